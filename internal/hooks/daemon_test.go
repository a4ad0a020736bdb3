package hooks

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"topdog/internal/console"
	"topdog/internal/lab/assert"
)

// fakeDaemon is the control socket of one, with a board that is as the test says.
type fakeDaemon struct {
	console.Backend // what hooks do not ask for
	t               *testing.T
	path            string
	name            string        // of the group
	others          []*fakeDaemon // of other groups that its console answers for too
	server          *console.Server
	group           *console.Group
	stop            func()

	mu    sync.Mutex
	role  string
	holds bool
	term  uint32 // which counts the changes
}

func newDaemon(t *testing.T) *fakeDaemon {
	t.Helper()
	dir, err := os.MkdirTemp("", "topdog") // short, since the path of a socket has a limit
	assert.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	d := &fakeDaemon{t: t, path: filepath.Join(dir, "s"), name: "a group", role: console.RoleFollower}
	d.start()
	return d
}

func (d *fakeDaemon) start() {
	d.t.Helper()
	d.server = console.NewServer(d.path)
	for _, of := range append([]*fakeDaemon{d}, d.others...) {
		of.group = d.server.Add(of.name, of)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.server.Run(ctx) }()
	d.stop = sync.OnceFunc(func() {
		cancel()
		assert.ErrorIs(d.t, <-ended, nil, "the control socket")
	})
	d.t.Cleanup(d.stop)
	waitFor(d.t, "the socket is there", func() bool { _, err := d.client().Groups(d.t.Context()); return err == nil })
}

func (d *fakeDaemon) client() *console.Client { return console.Dial(d.path) }

// restart has the daemon end, and start again with other groups.
func (d *fakeDaemon) restart(name string, others ...string) {
	d.t.Helper()
	d.stop()
	d.name, d.others = name, nil
	for _, other := range others {
		d.others = append(d.others, &fakeDaemon{t: d.t, name: other, role: console.RoleFollower})
	}
	d.start()
}

// becomes changes the role of the board, and says so.
func (d *fakeDaemon) becomes(role string) {
	d.mu.Lock()
	d.role, d.holds, d.term = role, role == console.RoleLeader, d.term+1
	d.mu.Unlock()
	d.group.Publish(console.Transition{Event: console.EventRoleChanged, Group: d.name, Role: role, Holding: d.holds, Term: d.term})
}

func (d *fakeDaemon) Status(context.Context) (console.Status, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return console.Status{Transition: d.group.Published(), Group: d.name, Role: d.role, Holding: d.holds}, nil
}

func (d *fakeDaemon) Scene(context.Context) (console.Scene, error) { return console.Scene{}, nil }

func (d *fakeDaemon) Alive(ctx context.Context) error { return nil }
