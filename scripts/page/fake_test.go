package page

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"topdog/internal/console"
	"topdog/internal/web"
)

const repository = "../.."

// fakeBoard serves the page of a board that is in whatever state a test wants. The files are those
// of `topdog page`, and so is what is around them.
type fakeBoard struct {
	address string

	mu      sync.Mutex
	status  console.Status
	failure *web.Error // instead of the status
	tag     string     // of the status; "" for none
	garbled bool       // the next status arrives with its tag, and is no status
	since   time.Time  // when the status was true
	history any
	others  []console.Status // of the other groups, which stay as they are
}

// newFakeBoard starts one on the client.
func newFakeBoard(t *testing.T, s *stage) *fakeBoard {
	t.Helper()
	assets, _, err := web.Assets("assets", os.DirFS(repository+"/internal/page"))
	must(t, err)
	f := &fakeBoard{since: time.Now(), status: documented(t), history: dayOf(documented(t))}
	routes := append(assets,
		web.Route{Path: "/v1/groups", Serve: f.serveGroups},
		web.Route{Path: "/v1/status", Serve: f.serveStatus},
		web.Route{Path: "/v1/history", Serve: func(w http.ResponseWriter, _ *http.Request) error {
			return web.WriteJSON(w, http.StatusOK, f.history)
		}})
	port := s.listen(t)
	f.address = "http://" + port.Addr().String() + "/"
	ctx, end := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- (&web.Server{Routes: routes, Limits: web.DefaultLimits}).Run(ctx, port) }()
	t.Cleanup(func() {
		end()
		must(t, <-served)
	})
	return f
}

// set puts the board into another state.
func (f *fakeBoard) set(s console.Status, failure *web.Error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.status, f.failure, f.since = s, failure, time.Now()
}

// setOthers has the board have other groups too.
func (f *fakeBoard) setOthers(others ...console.Status) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.others = others
}

// serveGroups names the groups.
func (f *fakeBoard) serveGroups(w http.ResponseWriter, _ *http.Request) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	groups := console.GroupNames{Groups: []string{f.status.Group}}
	for _, s := range f.others {
		groups.Groups = append(groups.Groups, s.Group)
	}
	return web.WriteJSON(w, http.StatusOK, groups)
}

// garble has the next answer be of no use, though its tag is that of the ones that follow.
func (f *fakeBoard) garble() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tag, f.garbled = `"same"`, true
}

func (f *fakeBoard) serveStatus(w http.ResponseWriter, r *http.Request) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	w.Header().Set("Topdog-Page", "test")
	asked := r.URL.Query().Get("group")
	for _, s := range f.others {
		if s.Group == asked {
			return web.WriteJSON(w, http.StatusOK, later(s, time.Since(f.since)))
		}
	}
	if (asked == "") != (len(f.others) == 0) || asked != "" && asked != f.status.Group {
		return console.Refuse(http.StatusNotFound, "this board has no such group", "")
	}
	if f.failure != nil {
		return f.failure
	}
	if f.tag != "" {
		w.Header().Set("ETag", f.tag)
		if r.Header.Get("If-None-Match") == f.tag {
			w.WriteHeader(http.StatusNotModified)
			return nil
		}
	}
	if f.garbled {
		f.garbled = false
		return web.WriteJSON(w, http.StatusOK, map[string]int{"version": 1})
	}
	return web.WriteJSON(w, http.StatusOK, later(f.status, time.Since(f.since)))
}

// later is a status after some time in which nothing has happened.
func later(s console.Status, by time.Duration) console.Status {
	ms := console.Milliseconds(by)
	s = clone(s)
	for _, age := range []*float64{s.RoleSinceMs, s.LeaderSinceMs} {
		if age != nil {
			*age += ms
		}
	}
	for i := range s.Boards {
		b := &s.Boards[i]
		if b.UpSeconds != nil {
			*b.UpSeconds += by.Seconds()
		}
		if b.HeardMs != nil && (b.Stale || b.Gone) {
			*b.HeardMs += ms
		}
	}
	for i := range s.Changes {
		s.Changes[i].AgoMs += ms
	}
	return s
}

// clone shares nothing with s.
func clone(s console.Status) (c console.Status) {
	text, err := json.Marshal(s)
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err != nil {
		panic(fmt.Sprintf("a status is no JSON: %v", err)) // it came as JSON
	}
	return c
}

// documented is the status that docs/status.md has as an example.
func documented(t *testing.T) (s console.Status) {
	t.Helper()
	text, err := os.ReadFile(repository + "/docs/status.md")
	must(t, err)
	_, rest, found := strings.Cut(string(text), "```json\n{\n  \"version\"")
	block, _, ended := strings.Cut(rest, "\n```")
	if !found || !ended {
		t.Fatal("docs/status.md has no example of a status any more")
	}
	decoder := json.NewDecoder(strings.NewReader("{\n  \"version\"" + block))
	decoder.DisallowUnknownFields()
	must(t, decoder.Decode(&s))
	return s
}

// slot and change are those of /v1/history.
type slot struct {
	AgoNs      int64  `json:"ago_ns"`
	Leader     string `json:"leader"`
	LeaderName string `json:"leader_name"`
	Changes    int    `json:"changes"`
	OutageNs   int64  `json:"outage_ns"`
	UnknownNs  int64  `json:"unknown_ns"`
}

// dayOf is a day in which the lead has gone from board to board, and once nobody was asked.
func dayOf(s console.Status) map[string]any {
	const slotLength = 5 * time.Minute
	var slots []slot
	for n := range 288 {
		b := s.Boards[[]int{0, 1, 0, 2}[n/72]]
		one := slot{AgoNs: int64(time.Duration(288-n) * slotLength), Leader: b.ID, LeaderName: b.Name}
		switch {
		case n > 0 && n%72 == 0:
			one.Changes, one.OutageNs = 1, int64(108*time.Millisecond)
		case n >= 100 && n < 104:
			one.UnknownNs, one.Leader, one.LeaderName = int64(slotLength), "", ""
		}
		slots = append(slots, one)
	}
	return map[string]any{
		"board": s.Board.ID, "board_name": s.Board.Name, "watched_ns": 24 * time.Hour, "slot_ns": slotLength, "slots": slots, "changes": []any{},
	}
}
