package console

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"topdog/internal/lab/assert"
)

// several is a server for two groups.
func several(t *testing.T) *Server {
	s := newServer(socketPath(t), defaultLimits)
	for _, name := range []string{"dns1", "dns2"} {
		s.Add(name, fake{
			status: func(context.Context) (Status, error) { return Status{Group: name}, nil },
			resign: func(context.Context) (Handover, error) { return Handover{}, errors.New(name + " has no heir") },
		})
	}
	return s
}

func TestSeveralGroups(t *testing.T) {
	s := several(t)
	const which = `{"error":"this board has several groups: dns1, dns2","hint":"say which one with --group, or with ?group= in a request"}`
	for _, test := range []struct {
		method, path string
		code         int
		want         string
	}{
		{"GET", "/v1/groups", 200, `{"groups":["dns1","dns2"]}`},
		{"GET", "/v1/status", 400, which},
		{"GET", "/v1/events?alive", 400, which},
		{"POST", "/v1/drain?group=", 400, which},
		{"GET", "/v1/status?group=dns2", 200, `"group":"dns2"`},
		{"GET", "/v1/status?group=dns%1b", 404, `{"error":"this board has no group dns?","hint":"it has dns1, dns2"}`},
		{"POST", "/v1/resign?group=dns2", 500, `{"error":"dns2 has no heir"}`},
		{"POST", "/v1/leave", 200, `{"leader":"","leader_name":"","text":"left the group"}`},
		{"GET", "/v1/keys", 200, `{"signs_with":"030d726e","also_accepts":"","running_ns":0,"boards":[]}`},
		{"POST", "/v1/keys/reload", 200, `{"text":"read"}`},
	} {
		r := httptest.NewRequestWithContext(calledBy(t.Context(), s.control, false, 0), test.method, test.path, nil)
		w := httptest.NewRecorder()
		s.handler(t.Context()).ServeHTTP(w, r)
		if w.Code != test.code || !strings.Contains(w.Body.String(), test.want) {
			t.Errorf("%s %s: %d %s\nwant %d %s", test.method, test.path, w.Code, w.Body, test.code, test.want)
		}
	}
}

func TestClientOfAGroup(t *testing.T) {
	s := several(t)
	serve(t, &alone{Server: s})
	client := Dial(s.path)
	names, err := client.Groups(t.Context())
	assert.NoError(t, err)
	assert.Equal(t, []string{"dns1", "dns2"}, names, "the groups")
	status, err := client.Of("dns2").Status(t.Context())
	assert.NoError(t, err)
	assert.Is(t, "dns2", status.Group, "the group of the answer")
	enough := errors.New("enough")
	err = client.Of("dns1").Watch(t.Context(), WatchOptions{}, func(n Transition) error {
		assert.Is(t, "dns1", n.Group, "the group of the stream")
		return enough
	})
	assert.ErrorIs(t, err, enough, "Watch")
	_, err = client.Of("dns3").Status(t.Context())
	refused(t, err, 404, "this board has no group dns3: it has dns1, dns2", "another group")
}

// A key that a board has told in several groups is told once, and keys that differ are all told: whoever changes keys must
// wait for each.
func TestJoinKeys(t *testing.T) {
	one := Keys{SignsWith: "aa", RunningNs: 9, Boards: []BoardKeys{{ID: "2", HeardNs: 5, SignsWith: "aa", Live: true}, {ID: "3", HeardNs: 7}}}
	two := Keys{SignsWith: "aa", RunningNs: 8, Boards: []BoardKeys{{ID: "2", HeardNs: 1, SignsWith: "aa"}, {ID: "3", HeardNs: 2, SignsWith: "aa"}}}
	got, err := joinKeys([]Keys{one, two})
	assert.NoError(t, err)
	assert.Equal(t, Keys{SignsWith: "aa", RunningNs: 8, Boards: []BoardKeys{
		{ID: "2", HeardNs: 1, SignsWith: "aa", Live: true}, {ID: "3", HeardNs: 2, SignsWith: "aa"}, {ID: "3", HeardNs: 7},
	}}, got, "the keys")
	two.SignsWith = "bb"
	_, err = joinKeys([]Keys{one, two})
	refused(t, err, 409, "the groups of this board have different keys", "other keys")
}

func TestWorseExitStatus(t *testing.T) {
	order := []int{0, 5, 1, 3, 4}
	for i := range order {
		for j := range order {
			assert.Is(t, order[max(i, j)], WorseExitStatus(order[i], order[j]), "%d and %d", order[i], order[j])
		}
	}
}
