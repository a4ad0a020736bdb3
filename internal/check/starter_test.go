package check

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/netns"
)

// status returns a field of /proc/PID/status.
func status(t *testing.T, pid int, field string) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	assert.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	t.Fatalf("no %s of process %d", field, pid)
	return ""
}

// over waits until a checker has ended that had something to run, and returns why it couldn't be started.
func (p *starting) over(t *testing.T) string {
	t.Helper()
	return p.await(t, func(r Report) bool { return r.Ended }).Text
}

func runs(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

// unending is an order that has something to run.
var unending = Order{Checks: []Check{quick("127.0.0.1:1", Leading)}}

// TestStart: a checker is a child of the starter, and has one socket. It ends when it has nothing to do, or is killed, and
// another order starts another one.
func TestStart(t *testing.T) {
	t.Parallel()
	p := startChecker(t)
	first := p.pid()
	assert.Is(t, "topdog-starter", status(t, p.starter, "Name"), "the parent of the checker")
	if parent := status(t, p.starter, "PPid"); parent != fmt.Sprint(os.Getpid()) {
		t.Errorf("the parent of the starter is %s", parent)
	}
	if open := sockets(t, first); len(open) != 1 { // it inherits it, and has it open twice
		t.Errorf("it has the sockets %q", open)
	}
	send(t, p, Order{})
	send(t, p, unending) // for the next one
	assert.Until(t, "the next one runs", func() bool { return p.pid() != 0 && p.pid() != first })
	p.runs(t)
	p.Kill()
	p.Kill() // may be called twice
	assert.Is(t, "", p.over(t), "why it couldn't be started")
	p.Stop()
}

// sockets returns the different sockets that a process has open.
func sockets(t *testing.T, pid int) (open []string) {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	assert.NoError(t, err)
	for _, file := range files {
		if to, _ := os.Readlink(file); strings.HasPrefix(to, "socket:") && !slices.Contains(open, to) {
			open = append(open, to)
		}
	}
	return open
}

// TestCapabilitiesOfAll: neither a starter nor a checker has any, neither as root, who would get them all, nor of those that
// systemd gives. The test runs in a process with an ambient capability, which is inheritable too.
func TestCapabilitiesOfAll(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, who has capabilities")
	}
	if runsWithAmbient(t) {
		return
	}
	sets := []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"}
	for _, set := range sets { // before any thread has given them up
		if own := status(t, os.Getpid(), set); strings.Trim(own, "0") == "" {
			t.Errorf("this process has no %s", set)
		}
	}
	p := startChecker(t)
	for _, set := range sets {
		for _, pid := range []int{p.starter, p.pid()} {
			assert.Is(t, "0000000000000000", status(t, pid, set), "%s of process %d", set, pid)
		}
	}
}

// TestEnds: whether the starter ends or the daemon, the checkers end with it, also one that is frozen.
func TestEnds(t *testing.T) {
	for _, test := range []struct {
		name string
		end  func(t *testing.T, p *starting)
	}{
		{"the starter is killed", func(t *testing.T, p *starting) {
			assert.NoError(t, netns.Freeze(p.pid()))
			_ = syscall.Kill(p.starter, syscall.SIGKILL)
		}},
		{"the daemon has ended", func(_ *testing.T, p *starting) { p.conn.Close() }},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := openProcess(t)
			send(t, p, unending)
			p.runs(t)
			checker := p.pid()
			test.end(t, p)
			for open := true; open; {
				select {
				case _, open = <-p.Reports():
				case <-time.After(20 * time.Second):
					t.Fatal("the end of the starter is not told")
				}
			}
			assert.Until(t, "both have ended", func() bool { return !runs(checker) && !runs(p.starter) })
			assert.ErrorIs(t, p.Send(unending), errEnded, "another order")
			if _, err := p.Try(t.Context(), unending); !errors.Is(err, errEnded) {
				t.Errorf("a trial: %v", err)
			}
			p.Stop()
		})
	}
}

// TestFrozen: nobody waits for a starter that stands still. It does what it was asked when it goes on.
func TestFrozen(t *testing.T) {
	t.Parallel()
	p := startChecker(t)
	p.idles(t)
	assert.NoError(t, netns.Freeze(p.starter))
	send(t, p, unending)
	p.Kill()
	assert.Is(t, 0, p.pid(), "the checker that was started")
	assert.NoError(t, syscall.Kill(p.starter, syscall.SIGCONT))
	p.runs(t)
}

// TestKillAtOnce: a starter that has just been started doesn't end because it is to kill a checker.
func TestKillAtOnce(t *testing.T) {
	t.Parallel()
	for range 3 {
		p := openProcess(t)
		p.Kill()
		send(t, p, unending)
		p.runs(t)
	}
}

// TestEmptyMessage: a checker that somebody has taken over doesn't make the daemon believe that the starter has ended. It is
// killed.
func TestEmptyMessage(t *testing.T) {
	t.Parallel()
	p := startChecker(t)
	ours, theirs, err := socketPair()
	assert.NoError(t, err)
	q := &Process{conn: ours, starter: p.Process.starter, reports: make(chan Report), tried: make(chan message, 8)}
	go q.read()
	assert.NoError(t, unix.Sendmsg(int(theirs.Fd()), nil, nil, nil, 0))
	p.over(t)
	_, err = theirs.WriteString(`{"id": "next"}`)
	assert.NoError(t, err)
	assert.Equal(t, Report{ID: "next"}, <-q.Reports(), "the next one")
	theirs.Close()
	_, open := <-q.Reports()
	assert.Is(t, false, open, "after the end of the starter")
}

// TestCannotBeStarted: the daemon is told why, and the next order is a new try.
func TestCannotBeStarted(t *testing.T) {
	ours, theirs, err := socketPair()
	assert.NoError(t, err)
	defer ours.Close()
	go startCheckers(theirs)
	p := &starting{&Process{conn: ours, reports: make(chan Report), tried: make(chan message, 8)}, os.Getpid()}
	go p.read()
	const tooLong = "TOPDOG_TEST_TOO_LONG"
	t.Setenv(tooLong, strings.Repeat("x", 200<<10))
	for range 3 {
		send(t, p, unending)
		assert.Is(t, "start the checker: fork/exec /proc/self/exe: argument list too long", p.over(t), "its end")
		select {
		case r := <-p.Reports():
			t.Errorf("one order gives another report, %+v", r)
		case <-time.After(50 * time.Millisecond):
		}
	}
	os.Unsetenv(tooLong)
	send(t, p, unending)
	p.runs(t)
}

// TestGateway: the daemon asks the gateway for its checker, and for the one that replaces it.
func TestGateway(t *testing.T) {
	t.Parallel()
	p := openWith(t, func(_ context.Context, iface string) error {
		if iface != "eth0" {
			return fmt.Errorf("asked on %s", iface)
		}
		return nil
	})
	gateway := Check{Kind: Gateway, Every: time.Second, Timeout: 10 * time.Second, Rise: 1, Fall: 1}
	for range 2 {
		send(t, p, Order{Checks: []Check{gateway}, Interface: "eth0"})
		assert.Equal(t, Report{ID: gateway.ID(), Passing: true}, p.report(t), "its report")
		p.Kill()
		p.over(t)
	}
}

// TestGatewayBeside: a check of the gateway doesn't wait for the answer to another one, which is lost.
func TestGatewayBeside(t *testing.T) {
	t.Parallel()
	p := openWith(t, func(ctx context.Context, iface string) error {
		if iface == "lost" {
			<-ctx.Done()
		}
		return ctx.Err()
	})
	gateway := Check{Kind: Gateway, Every: MinEvery, Timeout: time.Second, Rise: 1, Fall: 1}
	send(t, p, Order{Checks: []Check{gateway}, Interface: "eth0"})
	assert.Equal(t, Report{ID: gateway.ID(), Passing: true}, p.report(t), "its report")
	tried := make(chan []string)
	go func() {
		slow := gateway
		slow.Timeout = 3 * time.Second
		reasons, _ := p.Try(t.Context(), Order{Checks: []Check{slow}, Interface: "lost"})
		tried <- reasons
	}()
	for {
		select {
		case r := <-p.Reports():
			if r.ID != "" {
				t.Fatalf("beside the trial: report %+v", r)
			}
		case reasons := <-tried:
			assert.Equal(t, []string{"no answer within 3s"}, reasons, "the trial")
			return
		}
	}
}

// TestQuestionsAreBounded: a checker that somebody has taken over cannot have the daemon ask the gateway without end.
func TestQuestionsAreBounded(t *testing.T) {
	var asked atomic.Int64
	p := &Process{asking: make(chan struct{}, questionsMax), askGateway: func(ctx context.Context, _ string) error {
		asked.Add(1)
		<-ctx.Done()
		return ctx.Err()
	}}
	for n := range 3 * questionsMax {
		p.ask(question{Number: n, Within: time.Hour})
	}
	assert.Until(t, "they are asked", func() bool { return asked.Load() == questionsMax })
	assert.Is(t, questionsMax, len(p.asking), "questions at a time") // ask takes a place before it returns
	p.asking = make(chan struct{}, questionsMax)
	p.ask(question{Interface: strings.Repeat("x", 10<<10), Within: time.Hour})
	assert.Is(t, 0, len(p.asking), "questions about what is no interface")
}
