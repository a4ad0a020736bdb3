package page

import (
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"topdog/internal/config"
	"topdog/internal/lab/cluster"
)

// endDaemons is how long daemons have to end.
const endDaemons = 3 * time.Second

// board is one of the LAN, with topdog and its page.
type board struct {
	*cluster.Topdog
	page *cluster.Daemon
}

// pageAddress is where the page of a board is, or that of the leader.
func pageAddress(host string) string { return "http://" + host + ":9254/" }

func (b *board) address() string { return pageAddress(b.Addr.Addr().String()) }

// runPage starts `topdog page`.
func (b *board) runPage() error {
	return b.page.Launch(b.Program.Path, []string{"page", "--config", b.ConfigFile()})
}

// build builds topdog, once for all tests.
func (s *stage) build(t *testing.T) {
	t.Helper()
	if s.program.Path != "" {
		return
	}
	path := filepath.Join(s.dir, "topdog")
	t.Chdir(repository)
	must(t, cluster.Build(t.Context(), path))
	s.program.Path = path
}

// boards runs topdog and its page on all boards of the LAN until the test ends, and waits until all
// follow one leader.
func (s *stage) boards(t *testing.T) (all []*board, leader *board) {
	t.Helper()
	s.build(t)
	key := config.NewKey()
	for n := 1; n <= boards; n++ {
		d, err := s.NewTopdog(s.program, n, nil)
		must(t, err)
		must(t, d.SetKey(key))
		page, err := s.NewDaemon(n)
		must(t, err)
		b := &board{Topdog: d, page: page}
		all = append(all, b)
		must(t, b.Run())
		must(t, b.runPage())
	}
	t.Cleanup(func() {
		s.Stop(endDaemons)
		for _, b := range all {
			for _, d := range []*cluster.Daemon{b.Daemon, b.page} {
				if d.Running() {
					t.Errorf("a daemon of %s has not ended within %v", b, endDaemons)
					_ = d.Signal(syscall.SIGKILL)
				}
				if t.Failed() {
					t.Logf("%s said:\n%s", b, d.Log.Last(40))
				}
			}
		}
	})
	return all, s.agreed(t, all)
}

// agreed waits until the boards follow one leader, and returns it.
func (s *stage) agreed(t *testing.T, all []*board) *board {
	t.Helper()
	var members []*cluster.Topdog
	for _, b := range all {
		members = append(members, b.Topdog)
	}
	leader, err := s.AwaitAgreed(members)
	must(t, err)
	return all[slices.Index(members, leader)]
}
