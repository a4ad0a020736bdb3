package check

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"topdog/internal/lab/assert"
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

// starter returns the PID of the process that has started the checker.
func (p *Process) starter(t *testing.T) int {
	t.Helper()
	pid, err := strconv.Atoi(status(t, p.pid(), "PPid"))
	assert.NoError(t, err)
	assert.Is(t, "topdog-starter", status(t, pid, "Name"), "the parent of the checker")
	return pid
}

// over waits until a checker has ended that had something to run, and returns how.
func (p *Process) over(t *testing.T) Ended {
	t.Helper()
	return *p.await(t, func(r Report) bool { return r.Ended != nil && r.Ended.Reason != "" }).Ended
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
	if parent := status(t, p.starter(t), "PPid"); parent != fmt.Sprint(os.Getpid()) {
		t.Errorf("the parent of the starter is %s", parent)
	}
	if open := sockets(t, first); len(open) != 1 { // it inherits it, and has it open twice
		t.Errorf("it has the sockets %q", open)
	}
	send(t, p, Order{})
	send(t, p, unending) // for the next one
	ended := p.await(t, func(r Report) bool { return r.Ended != nil }).Ended
	assert.Is(t, Ended{PID: first}, *ended, "its end")
	p.runs(t)
	second := p.pid()
	p.Kill()
	p.Kill() // may be called twice
	assert.Is(t, Ended{PID: second, Reason: "signal: killed"}, p.over(t), "its end")
	assert.NoError(t, p.Stop())
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
		for _, pid := range []int{p.starter(t), p.pid()} {
			assert.Is(t, "0000000000000000", status(t, pid, set), "%s of process %d", set, pid)
		}
	}
}

// TestEnds: whether the starter ends or the daemon, the checkers end with it, also one that is frozen.
func TestEnds(t *testing.T) {
	for _, test := range []struct {
		name string
		end  func(p, other *Process, starter int)
	}{
		{"the starter is killed", func(p, _ *Process, starter int) {
			_ = syscall.Kill(p.pid(), syscall.SIGSTOP)
			_ = syscall.Kill(starter, syscall.SIGKILL)
		}},
		{"the daemon has ended", func(p, other *Process, _ int) {
			p.socket.Close()
			other.socket.Close()
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p, other, err := Open(noGateway, starterWord)
			assert.NoError(t, err)
			send(t, p, unending)
			p.runs(t)
			checker, starter := p.pid(), p.starter(t)
			test.end(p, other, starter)
			for open := true; open; {
				select {
				case _, open = <-p.Reports():
				case <-time.After(20 * time.Second):
					t.Fatal("the end of the starter is not told")
				}
			}
			assert.Until(t, "both have ended", func() bool { return !runs(checker) && !runs(starter) })
			assert.ErrorIs(t, p.Send(unending), errEnded, "another order")
			if _, err := Once(t.Context(), p, unending); !errors.Is(err, errEnded) {
				t.Errorf("a trial: %v", err)
			}
			assert.ErrorIs(t, other.Send(unending), errEnded, "another order to the other one")
			_ = p.Stop()
		})
	}
}

// TestFrozen: nobody waits for a starter that stands still. It does what it was asked when it goes on.
func TestFrozen(t *testing.T) {
	t.Parallel()
	p := startChecker(t)
	starter := p.starter(t)
	assert.NoError(t, p.Stop())
	assert.NoError(t, syscall.Kill(starter, syscall.SIGSTOP))
	send(t, p, unending)
	p.Kill()
	assert.Is(t, 0, p.pid(), "the checker that was started")
	if err := p.Stop(); err == nil {
		t.Error("it is said to have ended")
	}
	assert.NoError(t, syscall.Kill(starter, syscall.SIGCONT))
	send(t, p, unending)
	p.runs(t)
}

// TestCannotBeStarted: the daemon is told why, and the next order is a new try.
func TestCannotBeStarted(t *testing.T) {
	ours, theirs, err := socketPair()
	assert.NoError(t, err)
	defer ours.Close()
	conn, err := connOf(theirs)
	assert.NoError(t, err)
	go (&seat{theirs, conn}).attend()
	p := &Process{socket: ours, starterPID: os.Getpid(), openGateway: noGateway, reports: make(chan Report)}
	go p.read()
	const tooLong = "TOPDOG_TEST_TOO_LONG"
	t.Setenv(tooLong, strings.Repeat("x", 200<<10))
	for range 3 {
		send(t, p, unending)
		assert.Equal(t, Ended{Reason: "start the checker: fork/exec /proc/self/exe: argument list too long"}, p.over(t), "its end")
		select {
		case r := <-p.Reports():
			t.Errorf("one order gives another report, %+v", r)
		case <-time.After(50 * time.Millisecond):
		}
	}
	os.Unsetenv(tooLong)
	send(t, p, unending)
	p.runs(t)
	assert.NoError(t, p.Stop())
}

// TestLaneIsPassedOn: a checker has the lane to the gateway that was opened for it, and so has the one that replaces it.
func TestLaneIsPassedOn(t *testing.T) {
	t.Parallel()
	opened := 0
	p, other, err := Open(func() (*os.File, error) {
		opened++
		ours, theirs, err := socketPair()
		if err == nil {
			go answerAll(ours)
		}
		return theirs, err
	}, starterWord)
	assert.NoError(t, err)
	defer other.socket.Close()
	defer p.socket.Close()
	gateway := Check{Kind: Gateway, Every: time.Second, Timeout: time.Second, Rise: 1, Fall: 1}
	for n := 1; n <= 2; n++ {
		for range 3 {
			send(t, p, Order{Checks: []Check{gateway}, Interface: "eth0"})
		}
		assert.Equal(t, Report{ID: gateway.ID(), Passing: true}, p.report(t), "its report")
		assert.Is(t, n, opened, "lanes")
		p.Kill()
		p.over(t)
	}
}

// answerAll says to whatever is asked on a lane that it went well.
func answerAll(lane *net.UnixConn) {
	defer lane.Close()
	for buffer := make([]byte, 1<<10); ; {
		if n, err := lane.Read(buffer); n <= 0 || err != nil {
			return
		}
		_, _ = lane.Write([]byte{0})
	}
}

// TestLateLane: an order from before, without a lane, does not make the gateway fail.
func TestLateLane(t *testing.T) {
	c := newChecker(&tools{}, new(strings.Builder))
	defer c.end()
	order := Order{Checks: []Check{{Kind: Gateway, Every: time.Second, Timeout: time.Second, Rise: 1, Fall: 1}}, Interface: "eth0"}
	c.carryOut(received{Order: order})
	assert.Is(t, 0, len(c.workers), "checks that run before the lane is there")
	order.NoGateway = "permission denied"
	c.carryOut(received{Order: order})
	assert.Is(t, 1, len(c.workers), "checks that run when it is known that there is none")
}

// TestForgedReports: only the starter tells that a checker has begun or ended. A checker that was taken over could have
// the daemon kill another process.
func TestForgedReports(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		sender   string
		starter  int // the PID that the daemon knows
		believed bool
		died     syscall.Signal // of what the process that was named died
	}{
		{"another process than the starter", os.Getppid(), false, syscall.SIGTERM},
		{"the starter", os.Getpid(), true, syscall.SIGKILL},
	} {
		victim := exec.Command("sleep", "1000")
		assert.NoError(t, victim.Start())
		pid := victim.Process.Pid
		ours, theirs, err := socketPair()
		assert.NoError(t, err)
		conn, err := connOf(theirs)
		assert.NoError(t, err)
		theirs.Close()
		p := &Process{socket: ours, starterPID: test.starter, openGateway: noGateway, reports: make(chan Report)}
		go p.read()
		say := func(r Report) {
			message, err := encode(r)
			assert.NoError(t, err)
			_, err = conn.Write(message)
			assert.NoError(t, err)
		}
		said := func() Report { return p.await(t, func(r Report) bool { return r.ID != "" || r.Ended != nil }) }
		say(Report{Began: pid})
		say(Report{ID: "1"})
		assert.Is(t, "1", said().ID, "%s: the report after the beginning", test.sender)
		assert.Is(t, test.believed, p.pid() == pid, "%s: it can name a checker", test.sender)
		p.Kill()
		say(Report{Ended: &Ended{PID: pid, Reason: "signal: killed"}})
		say(Report{ID: "2"})
		assert.Is(t, test.believed, said().Ended != nil, "%s: it can tell of an end", test.sender)
		_ = victim.Process.Signal(syscall.SIGTERM) // a SIGKILL that was sent before wins
		_ = victim.Wait()
		assert.Is(t, test.died, victim.ProcessState.Sys().(syscall.WaitStatus).Signal(), "%s: the signal that ended the process that it named", test.sender)
		conn.Close()
		for range p.Reports() {
		}
	}
}
