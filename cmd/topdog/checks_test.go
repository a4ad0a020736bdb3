package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"topdog/internal/console"
	"topdog/internal/lab/judge"
	"topdog/internal/lab/netns"
	"topdog/internal/starter"
)

// service is a real name server on a board, which answers for pi.hole.
type service struct {
	b       *board
	path    string // of its program, which no other board runs
	process *netns.Process
}

// newServices gives each board a service of its own, which does not run yet. The checks of board n are those that
// checks returns for its service.
func (c *testCluster) newServices(checks func(s *service) string) (all []*service) {
	c.t.Helper()
	program, err := exec.LookPath("dnsmasq")
	if err != nil {
		c.t.Skipf("needs dnsmasq, of the package dnsmasq-base: %v", err)
	}
	data, err := os.ReadFile(program)
	must(c.t, err)
	for _, b := range c.boards {
		s := &service{b: b, path: filepath.Join(b.Dir, "dnsmasq")}
		must(c.t, os.WriteFile(s.path, data, 0o755))
		b.set(settings{"check": checks(s)})
		all = append(all, s)
	}
	return all
}

// start starts the service.
func (s *service) start() {
	s.b.c.t.Helper()
	var err error
	s.process, err = s.b.Host.Start(context.Background(), s.path, []string{
		"--keep-in-foreground", "--conf-file=/dev/null", "--no-resolv", "--no-hosts", "--address=/pi.hole/192.0.2.1",
		"--user=root", "--pid-file=", "--listen-address=127.0.0.1", "--bind-interfaces",
	})
	must(s.b.c.t, err)
	s.b.Log.Note("its service starts")
}

// kill kills it.
func (s *service) kill() {
	s.b.c.t.Helper()
	s.b.Log.Note("its service is killed")
	must(s.b.c.t, s.process.Kill())
}

// byProcess checks the process, and byAnswer what it answers.
func byProcess(s *service) string { return fmt.Sprintf("[{ exec = %q }]", s.path) }

func byAnswer(*service) string {
	return `[{ dns = "pi.hole @127.0.0.1", every = "100ms", fall = 2 }]`
}

// untilGrade waits until a board says that it has a grade.
func (b *board) untilGrade(grade string) console.Status {
	b.c.t.Helper()
	return b.untilStatus("grade "+grade, func(s console.Status) string {
		if s.Grade == grade {
			return ""
		}
		return fmt.Sprintf("it is %s: %s", s.Grade, s.GradeText)
	})
}

// moved returns when another board got the address, counted from a moment.
func (c *testCluster) moved(since time.Time, from *board) time.Duration {
	c.t.Helper()
	for _, span := range c.Holders.Since(since).Spans {
		if span.Board != from.Number {
			return span.From.Sub(since)
		}
	}
	c.t.Fatal("no other board has the address")
	return 0
}

// slowly has a leader live that does not run for a moment on a busy machine: these tests are about
// what its service does, which has nothing to do with heartbeats.
var slowly = settings{"heartbeat": quote("500ms")}

// withServices are three boards whose services run, and their leader.
func withServices(t testing.TB, checks func(*service) string, more settings) (c *testCluster, services []*service, leader *board) {
	t.Helper()
	c = newCluster(t, 3, slowly)
	for _, b := range c.boards {
		b.set(more)
	}
	services = c.newServices(checks)
	for _, s := range services {
		s.start()
	}
	c.start(c.boards...)
	c.agree()
	for _, b := range c.boards {
		b.untilGrade("passing")
	}
	return c, services, c.agree()
}

func (c *testCluster) serviceOf(all []*service, b *board) *service { return all[b.Number-1] }

// TestServiceIsKilled: the address goes to a board whose service lives, and nobody flaps.
func TestServiceIsKilled(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c, services, leader := withServices(t, byProcess, nil)
		killed := time.Now()
		c.serviceOf(services, leader).kill()
		c.untilTakenFrom(leader)
		next := c.agree()
		t.Logf("the address moved %.1f ms after the service was killed", ms(c.moved(killed, leader)))
		c.twoHoldersAtMost(killed, 0)
		c.handedOver(next)
		s := leader.untilGrade("failing")
		if len(s.Checks) != 1 || s.Checks[0].State != "failing" || s.Checks[0].Kind != "exec" {
			t.Errorf("the checks of %s: %+v", leader, s.Checks)
		}
		leader.untilProblem("this board is failing", "has ended")

		// It comes back: on probation, and then as good as any. The address stays.
		returned := time.Now()
		c.serviceOf(services, leader).start()
		leader.untilGrade("probation")
		leader.untilGrade("passing")
		c.agreeOn(next, c.boards...)
		c.undisturbed(returned, next)
		leader.untilNoProblems()
	})
}

// TestServiceIsFrozen: it is there, and does not answer.
func TestServiceIsFrozen(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c, services, leader := withServices(t, byAnswer, nil)
		frozen := time.Now()
		s := c.serviceOf(services, leader)
		must(t, s.process.Signal(syscall.SIGSTOP))
		defer s.process.Signal(syscall.SIGCONT)
		c.untilTakenFrom(leader)
		next := c.agree()
		after := c.moved(frozen, leader)
		t.Logf("the address moved %.1f ms after the service was frozen", ms(after))
		c.twoHoldersAtMost(frozen, 0)
		c.handedOver(next)
		leader.untilProblem("no answer within 100ms")
	})
}

// TestServiceDiesOnAllBoards: the address stays where it is, and goes to the first board that answers.
func TestServiceDiesOnAllBoards(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c, services, leader := withServices(t, byProcess, nil)
		for _, s := range services {
			if s.b != leader {
				s.kill()
				s.b.untilGrade("failing")
			}
		}
		dead := time.Now()
		c.serviceOf(services, leader).kill()
		leader.untilGrade("failing")
		c.watchFor(time.Second)
		c.agreeOn(leader, c.boards...)
		c.undisturbed(dead, leader)
		first := c.except(leader)[0]
		c.serviceOf(services, first).start()
		c.untilTakenFrom(leader)
		c.agreeOn(first, c.boards...)
		c.twoHoldersAtMost(dead, 0)
	})
}

// TestServiceComesAndGoes: a service that dies again and again does not drag the address along.
func TestServiceComesAndGoes(t *testing.T) {
	for _, preempt := range []string{"false", "true"} {
		t.Run("preempt="+preempt, judge.Of(func(t *judge.T) {
			c, services, leader := withServices(t, byProcess, settings{"preempt": preempt})
			s := c.serviceOf(services, leader)
			began := time.Now()
			for range 4 { // scripts/bench has ten, and counts the moves
				s.kill()
				<-s.process.Exited()
				c.watchFor(200 * time.Millisecond)
				s.start()
				c.watchFor(700 * time.Millisecond)
			}
			leader.untilGrade("passing")
			c.agree()
			if n := c.Holders.Since(began).Moves(); n > 2 {
				t.Errorf("the address moved %d times: %s", n, c.spans(began))
			}
			c.twoHoldersAtMost(began, 0)
		}))
	}
}

// TestStartWithoutService: a board that starts before its service does not take the address.
func TestStartWithoutService(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 2, nil)
		services := c.newServices(byProcess)
		for _, b := range c.boards {
			b.set(settings{"preempt": "true"})
		}
		c.board(2).set(settings{"priority": "200"})
		services[0].start()
		c.start(c.board(1))
		leader := c.agree()
		began := time.Now()
		c.start(c.board(2))
		s := c.board(2).untilGrade("failing")
		if !s.Starting {
			t.Errorf("%s is not starting: %s", c.board(2), s.GradeText)
		}
		c.watchFor(time.Second)
		c.agreeOn(leader, c.boards...)
		c.undisturbed(began, leader)
		services[1].start()
		c.agreeOn(c.board(2), c.boards...) // by preempt, since it passes for the first time and has had no relapse
	})
}

// TestCheckerIsKilled: another one takes over at once, and nobody notices.
func TestCheckerIsKilled(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c, services, leader := withServices(t, byProcess, nil)
		killed := time.Now()
		must(t, syscall.Kill(leader.checker(), syscall.SIGKILL))
		leader.untilLogged("the checker", "has ended; starting another one")
		c.watchFor(4 * time.Second)
		c.agreeOn(leader, c.boards...)
		c.undisturbed(killed, leader)
		leader.untilGrade("passing")
		c.serviceOf(services, leader).kill()
		c.untilTakenFrom(leader)
		c.agree()
	})
}

// TestCheckerIsFrozen: it is replaced, and what it has said is not believed for ever.
func TestCheckerIsFrozen(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c, _, leader := withServices(t, byProcess, nil)
		frozen := leader.checker()
		must(t, syscall.Kill(frozen, syscall.SIGSTOP))
		c.untilTakenFrom(leader)
		leader.untilGrade("probation")
		if now := leader.checker(); now == frozen {
			t.Error("the frozen checker was not replaced")
		}
		c.agree()
	})
}

// TestCheckerGoesWithItsDaemon: also if the daemon is killed.
func TestCheckerGoesWithItsDaemon(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c, _, leader := withServices(t, byProcess, nil)
		checker := leader.checker()
		leader.signal(syscall.SIGKILL)
		c.until("the checker ends", func() string {
			if err := syscall.Kill(checker, 0); err == nil && !zombie(checker) {
				return "it runs"
			}
			return ""
		})
		c.untilTakenFrom(leader)
	})
}

// zombie reports whether a process has ended, and may only wait for its parent to notice.
func zombie(pid int) bool {
	_, alive := parentOf(pid)
	return !alive
}

// checker is the process that runs the checks of a board.
func (b *board) checker() (pid int) {
	b.c.t.Helper()
	b.c.until("the checker of "+b.String(), func() string {
		if pid = b.findPart("topdog-checker"); pid == 0 {
			return "it is not there"
		}
		return ""
	})
	return pid
}

// TestCheckVerb: the file, its checks as they are here, and what the daemon has found.
func TestCheckVerb(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c, services, leader := withServices(t, byProcess, nil)
		o := leader.topdog("check")
		if want := "passes  exec " + c.serviceOf(services, leader).path; o.status != 0 || !strings.Contains(o.stdout, want) || !strings.Contains(o.stdout, "passing     exec") {
			t.Errorf("want %q: %v", want, o)
		}
		c.serviceOf(services, leader).kill()
		leader.untilGrade("failing")
		if o := leader.topdog("check"); o.status != exitFailure || !strings.Contains(o.stdout, "there is no such process") || !strings.Contains(o.stdout, "failing     exec") {
			t.Errorf("the service is dead: %v", o)
		}
		leader.set(settings{"check": `[{ gateway = true, every = "10ms" }]`})
		if o := leader.topdog("check"); o.status != exitConfig || !strings.Contains(o.stderr, "10ms is less than 50ms") {
			t.Errorf("a mistake: %v", o)
		}
		// The daemon, which knows nothing of this check yet, tries it.
		leader.set(settings{"check": `[{ command = ["/bin/sh", "-c", "tr '\\0' ' ' </proc/$PPID/cmdline >&2; false"], title = "who runs it" }]`})
		if o := leader.topdog("check"); o.status != exitFailure || !strings.Contains(o.stdout, "tried by the daemon, as it runs its own") || !strings.Contains(o.stdout, starter.CheckerWord) {
			t.Errorf("a check that the daemon does not have: %v", o)
		}
		leader.set(settings{"check": `[{ tcp = "127.0.0.1:1", when = "leading" }]`})
		if o := leader.topdog("check"); o.status != 0 || !strings.Contains(o.stdout, "it counts on the leader only") || !strings.Contains(o.stdout, "systemctl reload topdog") {
			t.Errorf("a check for the leader: %v", o)
		}
		leader.set(settings{"check": ""})
		if o := leader.topdog("check"); o.status != 0 || !strings.Contains(o.stdout, "It has no checks") {
			t.Errorf("no checks: %v", o)
		}
	})
}

// TestCheckVerbWithoutDaemon: root tries the checks itself, but runs no programs.
func TestCheckVerbWithoutDaemon(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 1, nil)
		b := c.boards[0]
		ran := filepath.Join(t.TempDir(), "ran")
		b.set(settings{"check": fmt.Sprintf(`[{ command = ["/usr/bin/touch", %q] }, { tcp = "127.0.0.1:1" }]`, ran)})
		o := b.topdog("check")
		for _, want := range []string{"tried as root, since no daemon answers on ", "not tried  command /usr/bin/touch", "fails      tcp 127.0.0.1:1: connection refused"} {
			if o.status != exitFailure || !strings.Contains(o.stdout, want) {
				t.Errorf("want %q: %v", want, o)
			}
		}
		if _, err := os.Stat(ran); err == nil {
			t.Error("root has run the program")
		}
		// A DNS check waits for an answer, as of a port that is bound and that nobody reads.
		must(t, b.Host.Do(func() error {
			l, err := net.ListenPacket("udp4", "127.0.0.1:9953")
			if err == nil {
				t.Cleanup(func() { l.Close() })
			}
			return err
		}))
		b.set(settings{"check": `[{ dns = "pi.hole @127.0.0.1:9953", timeout = "1h", every = "1h" }]`})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if o := b.interrupted(ctx, "check"); o.status != exitFailure || o.stdout != "" || !strings.Contains(o.stderr, "its checks were not tried") {
			t.Errorf("it is interrupted: %v", o)
		}
	})
}

// interrupted runs a command on the board until ctx ends, and interrupts it then.
func (b *board) interrupted(ctx context.Context, args ...string) outcome {
	b.c.t.Helper()
	var stdout, stderr bytes.Buffer
	p, err := b.Host.Start(b.c.t.Context(), b.c.program.Path, append(args, "--config", b.ConfigFile()),
		netns.Env(b.c.program.Env...), netns.Stdout(&stdout), netns.Stderr(&stderr))
	must(b.c.t, err)
	<-ctx.Done()
	must(b.c.t, p.Signal(syscall.SIGINT))
	status := exitStatusOf(b.c.t, p.Wait())
	return outcome{stdout.String(), stderr.String(), status}
}

// TestCheckVerbInterrupted: whoever does not wait for a slow check is told nothing of it, and it ends.
func TestCheckVerbInterrupted(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 1, slowly)
		b := c.boards[0]
		c.start(b)
		c.agree()
		noted := filepath.Join(t.TempDir(), "pid")
		b.set(settings{"check": fmt.Sprintf(`[{ command = ["/bin/sh", "-c", "echo $$ >%s; exec sleep 600"], timeout = "1h", every = "1h" }]`, noted)})
		ctx, runs := context.WithCancel(t.Context())
		first := make(chan outcome)
		go func() {
			defer close(first)
			first <- b.interrupted(ctx, "check")
		}()
		var pid int
		c.until("the check to run", func() string {
			text, _ := os.ReadFile(noted)
			if pid, _ = strconv.Atoi(strings.TrimSpace(string(text))); pid == 0 {
				return "it does not"
			}
			return ""
		})
		if o := b.topdog("check"); o.status != exitFailure || !strings.Contains(o.stderr, "checks are being tried already") {
			t.Errorf("two at a time: %v", o)
		}
		runs()
		if o := <-first; o.status != exitFailure || o.stdout != "" || !strings.Contains(o.stderr, "its checks were not tried") {
			t.Errorf("it is interrupted: %v", o)
		}
		c.until("the check to end", func() string {
			if syscall.Kill(pid, 0) == nil {
				return "it runs on"
			}
			return ""
		})
		b.set(settings{"check": `[{ gateway = true, title = "the next one" }]`})
		c.until("the next one to be tried", func() string {
			if o := b.topdog("check"); !strings.Contains(o.stdout, "tried by the daemon") {
				return o.String()
			}
			return ""
		})
		b.signal(syscall.SIGSTOP)
		o := b.topdog("check")
		b.signal(syscall.SIGCONT)
		if o.status != exitFailure || o.stdout != "" || !strings.Contains(o.stderr, "did not answer in time") {
			t.Errorf("the daemon stands still: %v", o)
		}
	})
}
