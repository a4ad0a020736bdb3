package recipes

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"topdog/internal/config"
	"topdog/internal/lab/assert"
	"topdog/internal/lab/cluster"
	"topdog/internal/lab/judge"
	"topdog/wire"
)

// dir is where the program that the boards run is built, if a test needs it.
var dir string

// built builds it once for all tests.
var built = sync.OnceValues(func() (topdog cluster.Program, err error) {
	if dir, err = os.MkdirTemp("", "topdog"); err != nil {
		return topdog, err
	}
	topdog.Path = filepath.Join(dir, "topdog")
	return topdog, cluster.Build(context.Background(), topdog.Path)
})

func TestMain(m *testing.M) {
	judge.Setup()
	status := m.Run()
	os.RemoveAll(dir)
	os.Exit(status)
}

// holds are how the boards hold the address, in turn: a service must answer with each.
var holds = []string{"lifetime", "tun+lifetime", "auto"}

// rig is a LAN of boards that run a service, and topdog as its recipe says.
type rig struct {
	*cluster.Cluster
	t       testing.TB
	service *service
	boards  []*board
	client  *client
}

type board struct {
	*cluster.Topdog
	service *daemon
}

func newRig(t testing.TB, s *service) *rig {
	t.Helper()
	s.installed(t)
	c, err := cluster.New(len(holds))
	assert.NoError(t, err)
	r := &rig{Cluster: c, t: t, service: s}
	t.Cleanup(r.close)
	if s.beside != nil {
		s.beside(t, c)
	}
	key := config.NewKey()
	for i, hold := range holds {
		r.add(i+1, hold, key)
	}
	r.client = newClient(t, c, s.ask)
	return r
}

// add sets a board up as the recipe says.
func (r *rig) add(n int, hold string, key config.Key) {
	r.t.Helper()
	d := r.service.install(r.t, r.Cluster, n)
	// The floating address is in the recipe.
	topdog, err := built()
	assert.NoError(r.t, err)
	b, err := r.NewTopdog(topdog, n, cluster.Settings{"address": "", "hold": cluster.Quote(hold)})
	assert.NoError(r.t, err)
	assert.NoError(r.t, b.SetKey(key))
	settings, err := os.ReadFile(b.ConfigFile())
	assert.NoError(r.t, err)
	write(r.t, b.ConfigFile(), string(settings)+r.service.configuration(r.t, d))
	r.boards = append(r.boards, &board{b, d})
}

func (r *rig) close() {
	r.client.close()
	for _, b := range r.boards {
		if b.Running() {
			_ = b.Signal(syscall.SIGTERM)
		}
	}
	for _, b := range r.boards {
		if b.Topdog.Ended(cluster.Timeout); r.t.Failed() {
			r.t.Logf("%s:\n%s\nits service:\n%s", b, b.Log, b.service.Log)
		}
	}
	assert.NoError(r.t, r.Close())
}

// agree waits until the boards agree on a leader that one of them is.
func (r *rig) agree() *board {
	r.t.Helper()
	var all []*cluster.Topdog
	for _, b := range r.boards {
		all = append(all, b.Topdog)
	}
	leader, err := r.AwaitAgreed(all)
	assert.NoError(r.t, err)
	return r.boards[leader.Number-1]
}

// holder waits until one board has the address that is none of these.
func (r *rig) holder(what string, not ...*board) (b *board) {
	r.t.Helper()
	assert.NoError(r.t, cluster.Until(what, func() string {
		holders := r.Holders.Current()
		if len(holders) != 1 {
			return "not one board has the address"
		}
		if b = r.boards[holders[0]-1]; slices.Contains(not, b) {
			return b.String() + " has the address"
		}
		return ""
	}))
	return b
}

// works waits until the service answers at the board's own address.
func (r *rig) works(b *board) {
	r.t.Helper()
	assert.NoError(r.t, cluster.Until("the service works", func() string {
		if err := r.LAN.Client().Do(func() error { return r.service.ask(b.Addr.Addr()) }); err != nil {
			return err.Error()
		}
		return ""
	}))
}

// graded waits until the board's checks have come to a grade.
func (r *rig) graded(b *board, want wire.Grade) {
	r.t.Helper()
	assert.NoError(r.t, cluster.Until(b.String()+" is "+want.String(), func() string {
		s, err := b.Status()
		switch {
		case err != nil:
			return err.Error()
		case s.Grade != want.String():
			return s.Grade + ": " + s.GradeText
		}
		return ""
	}))
}

// signal sends a signal to all processes of the board's service.
func (r *rig) signal(b *board, sig syscall.Signal) {
	r.t.Helper()
	b.Log.Note("%v to the service", sig)
	assert.NoError(r.t, syscall.Kill(-b.service.PID(), sig))
}

// end ends the board's service, and waits until it has.
func (r *rig) end(b *board, sig syscall.Signal) {
	r.t.Helper()
	b.Log.Note("%v to the service", sig)
	assert.NoError(r.t, b.service.end(sig))
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
