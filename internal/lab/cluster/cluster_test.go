package cluster

import (
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/netns"
)

var must = assert.NoError

// A daemon that obeys ends in good order, one that does not is killed, and nothing is left.
func TestDaemonsEnd(t *testing.T) {
	netns.Reserve(t)
	c, err := New(2)
	must(t, err)
	var daemons []*Daemon
	for n, script := range []string{
		"trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.01; done",
		"trap '' TERM; echo ready; while :; do sleep 0.01; done",
	} {
		d, err := c.NewDaemon(n + 1)
		must(t, err)
		daemons = append(daemons, d)
		if d.Running() || !d.Ended(0) || d.Wait() != nil {
			t.Errorf("%s: a daemon that was never started is taken for one that runs", d.Host.Name)
		}
		must(t, d.Launch("/bin/sh", []string{"-c", script}))
		must(t, Until("it is ready", func() string {
			if d.Log.Logged("ready") {
				return ""
			}
			return "it has said nothing"
		}))
	}
	good, bad := daemons[0], daemons[1]
	must(t, good.Signal(syscall.SIGSTOP)) // Stop wakes it up
	c.Stop(time.Second)
	if good.Running() || good.Wait() != nil || !good.Log.Logged("bye") {
		t.Errorf("the one that obeys: running %v, %v, it said\n%s", good.Running(), good.Wait(), good.Log)
	}
	if !bad.Running() {
		t.Error("the one that ignores SIGTERM has ended")
	}
	must(t, c.Close())
	for _, d := range daemons {
		_, err := os.Stat(d.Dir)
		assert.ErrorIs(t, err, fs.ErrNotExist, "the directory %s", d.Dir)
	}
	if bad.Running() {
		t.Error("Close has left a process")
	}
}

// Lines get the time of their beginning, and the oldest are forgotten when it is too much.
func TestLog(t *testing.T) {
	l := &Log{start: time.Now()}
	for _, text := range []string{"one", " line\ntwo li", "nes\n"} {
		l.Write([]byte(text))
	}
	l.Note("a %s", "note")
	lines := strings.Split(l.String(), "\n")
	if len(lines) != 4 || !strings.HasSuffix(lines[0], " ms  one line") || !strings.HasSuffix(lines[1], " ms  two lines") || !strings.HasSuffix(lines[2], " ms  --- a note") {
		t.Errorf("the log is %q", lines)
	}
	if last := strings.Split(l.Last(2), "\n"); len(last) != 2 || last[0] != lines[1] || last[1] != lines[2] || l.Last(9) != strings.TrimSpace(l.String()) {
		t.Errorf("the last lines are %q", last)
	}
	if l.Count("line") != 2 || l.Count("line", "two") != 1 || l.Logged("one", "two") {
		t.Errorf("%d lines, %d with two, one with both: %v", l.Count("line"), l.Count("line", "two"), l.Logged("one", "two"))
	}
	const length = 1 << 10
	for range maxLog / length {
		l.Note("%s", strings.Repeat("x", length))
	}
	l.Note("the last")
	if text := l.String(); len(text) > maxLog || l.Logged("one line") || !l.Logged("the last") || !strings.Contains(text[:20], " ms  ") {
		t.Errorf("%d bytes that begin with %q", len(text), text[:40])
	}
}

func TestAgreedNobody(t *testing.T) {
	if _, err := (&Cluster{}).Agreed(nil); err == nil {
		t.Error("nobody has agreed")
	}
}
