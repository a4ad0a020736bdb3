package page

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"topdog/internal/boottime"
	"topdog/internal/console"
	"topdog/internal/lab/assert"
)

// several is a page of a daemon that may have several groups. The first one leads here, the others follow.
type several struct {
	board
	socket string
}

// newSeveral runs Run, without a daemon.
func newSeveral(t *testing.T) *several {
	dir, err := os.MkdirTemp("", "topdog")
	assert.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	assert.NoError(t, err)
	s := &several{board{t: t, port: taken.Addr().String()}, filepath.Join(dir, "s")}
	taken.Close()
	s.run(func(ctx context.Context) error {
		return Run(ctx, console.Dial(s.socket), Options{Listen: s.port, Log: quiet()})
	})
	return s
}

// start starts a daemon with these groups.
func (s *several) start(groups ...string) (stop func()) {
	server := console.NewServer(s.socket)
	for i, name := range groups {
		b := &board{t: s.t, daemon: leading(time.Hour)}
		b.daemon.status.AsOf = boottime.Now()
		if b.daemon.status.Group = name; i > 0 {
			following(&b.daemon.status)
		}
		b.group = server.Add(name, b)
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	return func() {
		cancel()
		assert.ErrorIs(s.t, <-ended, nil, "the end of the daemon")
	}
}

// awaits asks until the answer has some words in it.
func (s *several) awaits(path, words string) {
	s.t.Helper()
	var answer string
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); <-time.After(5 * time.Millisecond) {
		if answer = s.try("GET " + path + " HTTP/1.0\r\n\r\n"); strings.Contains(answer, words) {
			return
		}
	}
	s.t.Fatalf("%s does not say %q: %s", path, words, answer)
}

func TestGroups(t *testing.T) {
	s := newSeveral(t)
	s.awaits("/v1/groups", `{"groups":[]}`)
	s.awaits("/metrics", "topdog_up 0")
	stop := s.start("dns1", "dns2")
	defer stop()
	s.awaits("/v1/groups", `{"groups":["dns1","dns2"]}`)
	s.awaits("/healthz", "the daemon answers")
	for _, c := range []struct {
		path string
		code int
		says string
	}{
		{"/v1/status?group=dns1", http.StatusOK, `"group":"dns1"`},
		{"/v1/status?group=dns2", http.StatusOK, `"group":"dns2"`},
		{"/v1/history?group=dns2", http.StatusOK, `"leader_name":"pi3"`},
		{"/leader?group=dns1", http.StatusOK, "pi1 leads and has the address"},
		{"/leader?group=dns2", http.StatusServiceUnavailable, "pi1 does not lead"},
		{"/follower?group=dns2", http.StatusOK, "pi1 follows pi3"},
		{"/fit?group=dns2", http.StatusOK, "pi1 is fit"},
		{"/v1/status", http.StatusBadRequest, `"this board has several groups: dns1, dns2","hint":"say which one with ?group="`},
		{"/leader", http.StatusBadRequest, "dns1, dns2"},
		{"/v1/events", http.StatusBadRequest, "dns1, dns2"},
		{"/v1/status?group=dns3", http.StatusNotFound, `"this board has no group dns3","hint":"it has dns1, dns2"`},
		{"/metrics", http.StatusOK, `topdog_leading{group="dns1"} 1` + "\n" + `topdog_leading{group="dns2"} 0`},
		{"/metrics", http.StatusOK, `topdog_build_info{version="",group="dns2",`},
		{"/", http.StatusOK, "<!doctype html>"},
	} {
		if r, body := s.ask("GET", c.path, "Host: pi1"); r.StatusCode != c.code || !strings.Contains(body, c.says) {
			t.Errorf("%s: %s, want %d with %q:\n%s", c.path, r.Status, c.code, c.says, body)
		}
	}
}

// A daemon may start again with other groups.
func TestOtherGroups(t *testing.T) {
	s := newSeveral(t)
	for _, groups := range [][]string{{"dns1"}, {"dns1", "dns2"}, {"dns3", "dns2"}, {"dns2"}, {"dns4", "dns5"}} {
		stop := s.start(groups...)
		s.awaits("/v1/groups", `{"groups":["`+strings.Join(groups, `","`)+`"]}`)
		s.awaits("/healthz", "the daemon answers")
		last := groups[len(groups)-1]
		s.awaits("/v1/status?group="+last, `"group":"`+last+`"`)
		if len(groups) == 1 {
			s.awaits("/v1/status", `"group":"`+last+`"`)
			s.awaits("/metrics", "topdog_leading 1\n")
		} else {
			s.awaits("/metrics", `topdog_leading{group="`+last+`"} 0`)
		}
		stop()
		s.awaits("/healthz", "does not answer")
	}
}
