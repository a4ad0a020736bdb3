package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"topdog/internal/console"
	"topdog/internal/lab/judge"
)

// starter is the process that starts the checkers of a board.
func (b *board) starter() (pid int) {
	b.c.t.Helper()
	b.c.until("the starter of "+b.String(), func() string {
		if pid = b.findPart("topdog-starter"); pid == 0 {
			return "it is not there"
		}
		return ""
	})
	return pid
}

// threads returns /proc/PID/task/*/status of a process.
func threads(t testing.TB, pid int) (all []string) {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	must(t, err)
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil { // else it has ended
			all = append(all, string(text))
		}
	}
	if len(all) == 0 {
		t.Fatalf("process %d has no threads", pid)
	}
	return all
}

// TestDaemonExecutesNothing: the kernel refuses it to all threads of a daemon. Whom it asks, the kernel does not, and all that
// ends is started again.
func TestDaemonExecutesNothing(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c, services, leader := withServices(t, byProcess, nil)
		for _, text := range threads(t, leader.PID()) {
			for _, want := range []string{"Seccomp:\t2\n", "NoNewPrivs:\t1\n"} {
				if !strings.Contains(text, want) {
					t.Errorf("not %q:\n%s", want, text)
				}
			}
		}
		for _, pid := range []int{leader.starter(), leader.checker(), leader.holder()} {
			if text := threads(t, pid)[0]; !strings.Contains(text, "Seccomp:\t0\n") {
				t.Errorf("process %d may not execute anything either:\n%s", pid, text)
			}
		}
		for _, text := range append(threads(t, leader.checker()), threads(t, leader.starter())...) {
			for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
				if !strings.Contains(text, set+":\t0000000000000000\n") {
					t.Errorf("it has capabilities:\n%s", text)
					break
				}
			}
		}
		s, err := leader.Status()
		must(t, err)
		if d := s.Defences[len(s.Defences)-1]; d.Kind != console.DefenceNoExec || !d.On {
			t.Errorf("the last line of defence is %+v", d)
		}
		if o := leader.topdog("status"); !strings.Contains(unwrapped(o.stdout), "lifetime, seccomp") {
			t.Errorf("the text does not show it:\n%s", o.stdout)
		}

		killed, former := time.Now(), leader.checker()
		must(t, syscall.Kill(former, syscall.SIGKILL))
		leader.untilLogged("the checker", "has ended; starting another one")
		if next, starter := leader.checker(), leader.starter(); next == former {
			t.Error("there is no other checker")
		} else if parent, _ := parentOf(next); parent != starter || parent == leader.PID() {
			t.Errorf("the parent of the other checker is process %d, the starter is process %d, and the daemon is process %d", parent, starter, leader.PID())
		}
		c.undisturbed(killed, leader)
		c.serviceOf(services, leader).kill()
		c.untilTakenFrom(leader)
		c.agree()
	})
}

// TestStarterIsKilled: a board whose checks cannot run any more hands over, and says what to do.
func TestStarterIsKilled(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c, _, leader := withServices(t, byProcess, nil)
		killed := time.Now()
		must(t, syscall.Kill(leader.starter(), syscall.SIGKILL))
		leader.untilProblem("the process that starts checkers has ended", "systemctl restart topdog")
		leader.untilGrade("failing")
		c.untilTakenFrom(leader)
		c.agree()
		c.twoHoldersAtMost(killed, 0)
		if o := leader.topdog("check"); o.status != exitFailure || !strings.Contains(o.stdout+o.stderr, "systemctl restart topdog") {
			t.Errorf("check: %v", o)
		}
		leader.signal(syscall.SIGTERM)
		leader.ended()
		leader.start()
		leader.untilGrade("passing")
		leader.untilNoProblems()
		c.agree()
	})
}
