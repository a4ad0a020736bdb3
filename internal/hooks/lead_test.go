package hooks

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"topdog/internal/console"
	"topdog/internal/lab/assert"
)

// led is a command that runs while a fake daemon leads.
type led struct {
	t      *testing.T
	daemon *fakeDaemon
	book   book // where the command writes
	said   *lines
	end    context.CancelFunc
	ended  chan int // its exit status, or -1 with an error
}

// lead runs a script of the shell, in which $book is a file.
func newLed(t *testing.T, killAfter time.Duration, script string) *led {
	log, said := newTestLog()
	l := &led{t: t, daemon: newDaemon(t), book: newBook(t), said: said, ended: make(chan int, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	l.end = cancel
	go func() {
		status, err := Lead(ctx, l.daemon.client(), LeadOptions{
			Command: []string{"sh", "-c", "book=" + string(l.book) + "\n" + script}, KillAfter: killAfter, Log: log,
		})
		if err != nil {
			t.Log(err)
			status = -1
		}
		l.ended <- status
	}()
	return l
}

func (l *led) wantBook(want ...string) {
	l.t.Helper()
	l.book.wants(l.t, want...)
}

func (l *led) wantEnd(want int) {
	l.t.Helper()
	select {
	case got := <-l.ended:
		assert.Is(l.t, want, got, "its end")
	case <-time.After(deadline):
		l.t.Fatal("it does not end")
	}
	noChildren(l.t)
}

const patient = `trap 'echo end >>$book; exit 0' TERM; echo begin >>$book; while :; do sleep 0.01; done`

// The command runs while the board leads, and not without a daemon.
func TestLead(t *testing.T) {
	l := newLed(t, deadline, patient)
	l.daemon.becomes(console.RoleCandidate)
	l.daemon.becomes(console.RoleLeader)
	l.wantBook("begin")
	l.daemon.becomes(console.RoleFollower)
	l.wantBook("begin", "end")
	l.daemon.becomes(console.RoleLeader)
	l.wantBook("begin", "end", "begin")
	l.daemon.stop()
	l.wantBook("begin", "end", "begin", "end")
	waitFor(t, "it is logged", func() bool {
		return l.said.has("no daemon: the topdog daemon on " + l.daemon.path + " ended meanwhile")
	})
	l.daemon.start() // it leads at once
	l.wantBook("begin", "end", "begin", "end", "begin")
	l.end()
	l.wantEnd(0)
	l.wantBook("begin", "end", "begin", "end", "begin", "end")
}

// A board that leads again before the command has ended starts it again when it has.
func TestLeadAgain(t *testing.T) {
	l := newLed(t, deadline, `trap 'echo end >>$book; read x <$book.gate; exit 0' TERM
[ -e $book.gate ] || mkfifo $book.gate
echo begin >>$book; while :; do sleep 0.01; done`)
	l.daemon.becomes(console.RoleLeader)
	l.wantBook("begin")
	l.daemon.becomes(console.RoleFollower)
	l.wantBook("begin", "end")
	l.daemon.becomes(console.RoleLeader)
	assert.NoError(t, os.WriteFile(string(l.book)+".gate", []byte("go\n"), 0))
	l.wantBook("begin", "end", "begin")
	l.end()
	l.wantBook("begin", "end", "begin", "end")
	assert.NoError(t, os.WriteFile(string(l.book)+".gate", []byte("go\n"), 0))
	l.wantEnd(0)
}

// A command that does not obey is killed, with all that it has started.
func TestLeadKills(t *testing.T) {
	l := newLed(t, 50*time.Millisecond, `trap '' TERM; echo begin >>$book; sleep 1000 & wait; wait; sleep 1000`)
	l.daemon.becomes(console.RoleLeader)
	l.wantBook("begin")
	l.daemon.becomes(console.RoleFollower)
	waitFor(t, "it is logged", func() bool {
		return l.said.has("has not ended 50ms after SIGTERM: killed") && l.said.has("sh has ended")
	})
	l.daemon.becomes(console.RoleLeader)
	l.wantBook("begin", "begin")
	l.end()
	l.wantEnd(0)
}

// A command that ends by itself ends it, and how.
func TestLeadStatus(t *testing.T) {
	for script, want := range map[string]int{"exit 0": 0, "exit 7": 7, "kill -9 $$": 128 + 9} {
		l := newLed(t, deadline, script)
		l.daemon.becomes(console.RoleLeader)
		l.wantEnd(want)
	}
}

func TestLeadWithoutCommand(t *testing.T) {
	log, _ := newTestLog()
	_, err := Lead(t.Context(), console.Dial("/nowhere"), LeadOptions{Command: []string{"no-such-command"}, Log: log})
	assert.ErrorContains(t, err, "topdog lead has no command that it could run", "")
}

// systemd is asked once for each change, again if it refuses, and at last to stop.
func TestTarget(t *testing.T) {
	bin, book := t.TempDir(), newBook(t)
	refuse := string(book) + ".refuse"
	write(t, filepath.Join(bin, "systemctl"), "#!/bin/sh\necho \"$*\" >>"+string(book)+"\n[ ! -e "+refuse+" ] || { echo no >&2; exit 1; }\n", 0o755)
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	daemon := newDaemon(t)
	log, said := newTestLog()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Target(ctx, daemon.client(), TargetOptions{Unit: "x.target", Log: log}) }()
	var want []string
	next := func(verb string) {
		t.Helper()
		want = append(want, "--no-block "+verb+" x.target")
		book.wants(t, want...)
	}
	next("stop") // it may have been left on
	daemon.becomes(console.RoleCandidate)
	daemon.becomes(console.RoleLeader)
	next("start")
	write(t, refuse, "", 0o600)
	daemon.becomes(console.RoleFollower)
	next("stop")
	waitFor(t, "it is logged", func() bool { return said.has("systemctl stop x.target: exit status 1: no") })
	assert.NoError(t, os.Remove(refuse))
	next("stop") // again after a second
	daemon.becomes(console.RoleLeader)
	next("start")
	daemon.stop()
	next("stop")
	daemon.start()
	next("start")
	cancel()
	assert.ErrorIs(t, <-ended, nil, "its end")
	next("stop")
}
