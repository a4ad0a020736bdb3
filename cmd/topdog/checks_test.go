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

	"topdog/internal/check"
	"topdog/internal/console"
	"topdog/internal/lab/assert"
	"topdog/internal/lab/judge"
	"topdog/internal/lab/netns"
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
		assert.WriteFile(c.t, s.path, data, 0o755)
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

// byProcess checks the process, and byAnswer what it answers as well.
func byProcess(s *service) string { return fmt.Sprintf("[{ exec = %q }]", s.path) }

func byAnswer(s *service) string {
	return fmt.Sprintf(`[{ exec = %q }, { dns = "pi.hole @127.0.0.1", every = "100ms", fall = 2 }]`, s.path)
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
func withServices(t testing.TB, checks func(*service) string) (c *testCluster, services []*service, leader *board) {
	t.Helper()
	c = newCluster(t, 3, slowly)
	services = c.newServices(checks)
	for _, s := range services {
		s.start()
	}
	c.start(c.boards...)
	for _, b := range c.boards {
		b.untilGrade("passing")
	}
	return c, services, c.agree()
}

func (c *testCluster) serviceOf(all []*service, b *board) *service { return all[b.Number-1] }

// TestServiceFails: the address goes to a board whose service lives, and nobody flaps. Then the service of that board is there, and
// does not answer.
func TestServiceFails(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c, services, leader := withServices(t, byAnswer)
		killed := time.Now()
		c.serviceOf(services, leader).kill()
		c.untilTakenFrom(leader)
		next := c.agree()
		t.Logf("the address moved %.1f ms after the service was killed", ms(c.moved(killed, leader)))
		c.twoHoldersAtMost(killed, 0)
		c.handedOver(next)
		s := leader.untilGrade("failing")
		if len(s.Checks) != 2 || s.Checks[0].State != "failing" || s.Checks[0].Kind != "exec" {
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

		frozen := time.Now()
		service := c.serviceOf(services, next)
		must(t, service.process.Signal(syscall.SIGSTOP))
		defer service.process.Signal(syscall.SIGCONT)
		c.untilTakenFrom(next)
		last := c.agree()
		t.Logf("the address moved %.1f ms after the service was frozen", ms(c.moved(frozen, next)))
		c.twoHoldersAtMost(frozen, 0)
		c.handedOver(last)
		next.untilProblem("no answer within 100ms")
	})
}

// TestDaemonExecutesNothing: the kernel refuses it to all threads of a daemon. Whom it asks, the kernel does not, and all that
// ends is started again.
func TestDaemonExecutesNothing(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c, services, leader := withServices(t, byProcess)
		leader.executesNothing()

		killed, former := time.Now(), leader.checker()
		must(t, syscall.Kill(former, syscall.SIGKILL))
		leader.untilLogged("the checker", "has ended; starting another one")
		if next, starter := leader.checker(), leader.starter(); next == former {
			t.Error("there is no other checker")
		} else if parent, _ := parentOf(next); parent != starter || parent == leader.PID() {
			t.Errorf("the parent of the other checker is process %d, the starter is process %d, and the daemon is process %d", parent, starter, leader.PID())
		}
		c.watchFor(time.Second)
		leader.untilGrade("passing")
		c.agreeOn(leader, c.boards...)
		c.undisturbed(killed, leader)
		c.serviceOf(services, leader).kill() // which it finds
		c.untilTakenFrom(leader)
		c.agree()
	})
}

// TestCheckerFails: a checker that stands still is replaced, and what it has said is not believed for ever. Where no checker can
// be started any more the board hands over, and says what to do. And a checker goes with its daemon, also if that is killed.
func TestCheckerFails(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c, _, leader := withServices(t, byProcess)
		frozen := leader.checker()
		must(t, netns.Freeze(frozen))
		c.untilTakenFrom(leader)
		leader.untilGrade("probation")
		if now := leader.checker(); now == frozen {
			t.Error("the frozen checker was not replaced")
		}
		leader = c.agree()

		killed := time.Now()
		must(t, syscall.Kill(leader.starter(), syscall.SIGKILL))
		leader.untilProblem("the process that starts checkers has ended", "systemctl restart topdog")
		leader.untilGrade("failing")
		c.untilTakenFrom(leader)
		next := c.agree()
		c.twoHoldersAtMost(killed, 0)
		if o := leader.topdog("check"); o.status != exitFailure || !strings.Contains(o.stdout+o.stderr, "systemctl restart topdog") {
			t.Errorf("check: %v", o)
		}
		leader.signal(syscall.SIGTERM)
		leader.ended()
		leader.start()
		leader.untilGrade("passing")
		leader.untilNoProblems()

		checker := next.checker()
		next.signal(syscall.SIGKILL)
		c.untilEnded("the checker", checker)
		c.untilTakenFrom(next)
	})
}

// executesNothing checks what the kernel lets the processes of a board do, and that people can see it.
func (b *board) executesNothing() {
	t := b.c.t
	t.Helper()
	for _, text := range threads(t, b.PID()) {
		for _, want := range []string{"Seccomp:\t2\n", "NoNewPrivs:\t1\n"} {
			if !strings.Contains(text, want) {
				t.Errorf("not %q:\n%s", want, text)
			}
		}
	}
	for _, pid := range []int{b.starter(), b.checker(), b.holder()} {
		if text := threads(t, pid)[0]; !strings.Contains(text, "Seccomp:\t0\n") {
			t.Errorf("process %d may not execute anything either:\n%s", pid, text)
		}
	}
	for _, text := range append(threads(t, b.checker()), threads(t, b.starter())...) {
		for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
			if !strings.Contains(text, set+":\t0000000000000000\n") {
				t.Errorf("it has capabilities:\n%s", text)
				break
			}
		}
	}
	s, err := b.Status()
	must(t, err)
	if d := s.Defences[len(s.Defences)-1]; d.Kind != console.DefenceNoExec || !d.On {
		t.Errorf("the last line of defence is %+v", d)
	}
	if o := b.topdog("status"); !strings.Contains(unwrapped(o.stdout), "lifetime, seccomp") {
		t.Errorf("the text does not show it:\n%s", o.stdout)
	}
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

// zombie reports whether a process has ended, and may only wait for its parent to notice.
func zombie(pid int) bool {
	_, alive := parentOf(pid)
	return !alive
}

// checker is the process that runs the checks of a board, starter that which starts checkers, and holder that which has the
// address and the dead man's switch.
func (b *board) checker() (pid int) { return b.part("topdog-checker") }
func (b *board) starter() (pid int) { return b.part("topdog-starter") }
func (b *board) holder() (pid int)  { return b.part("topdog-holder") }

// part waits for the process of that name.
func (b *board) part(name string) (pid int) {
	b.c.t.Helper()
	b.c.untilTrue(fmt.Sprintf("%s has a %s", b, name), func() bool {
		pid = b.findPart(name)
		return pid != 0
	})
	return pid
}

// TestCheckVerb: the file, its checks as they are here, and what the daemon has found. Without a daemon root tries the checks
// itself, but runs no programs. Whoever does not wait for a slow check is told nothing of it, and it ends.
func TestCheckVerb(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 2, slowly)
		t.Run("without a daemon", func(*judge.T) { c.board(1).checksWithoutDaemon() })
		services := c.newServices(byProcess)
		for _, s := range services {
			s.start()
			s.b.start()
		}
		for _, b := range c.boards {
			b.untilGrade("passing")
		}
		b := c.agree()
		service := c.serviceOf(services, b)
		for _, check := range []struct {
			name   string
			do     func()
			status int
			want   []string
		}{
			{"it passes", nil, 0, []string{"check: exec " + service.path + " passes", "daemon: exec " + service.path + " is passing"}},
			{"the service is dead", func() { service.kill(); c.untilTakenFrom(b); c.agree() }, exitFailure, []string{"there is no such process", "is failing"}},
			{"a mistake", b.checks(`[{ gateway = true, every = "10ms" }]`), exitConfig, []string{"10ms is less than 50ms"}},
			// The daemon, which knows nothing of this check yet, tries it.
			{"a check that the daemon does not have", b.checks(`[{ command = ["/bin/sh", "-c", "tr '\\0' ' ' </proc/$PPID/cmdline >&2; false"], title = "who runs it" }]`),
				exitFailure, []string{"tried: by the daemon, as it runs its own", check.CheckerWord}},
			{"a check for the leader", b.checks(`[{ tcp = "127.0.0.1:1", when = "leading" }]`), 0, []string{"it counts on the leader only", "systemctl reload topdog"}},
			{"no checks", b.checks(""), 0, []string{"this board is ready", "runs and "}},
		} {
			if check.do != nil {
				check.do()
			}
			if o := b.topdog("check"); o.status != check.status || !containsAll(o.stdout+o.stderr, check.want) {
				t.Errorf("%s: want status %d and %q: %v", check.name, check.status, check.want, o)
			}
		}
		t.Run("interrupted", func(*judge.T) { b.checksInterrupted() })
	})
}

// checks gives the board other checks, which its daemon is not told of.
func (b *board) checks(toml string) func() { return func() { b.set(settings{"check": toml}) } }

func (b *board) checksWithoutDaemon() {
	t := b.c.t
	t.Helper()
	ran := filepath.Join(t.TempDir(), "ran")
	b.checks(fmt.Sprintf(`[{ command = ["/usr/bin/touch", %q] }, { tcp = "127.0.0.1:1" }]`, ran))()
	want := []string{"tried: as root, since no daemon answers on ", "check: command /usr/bin/touch", "was not tried", "check: tcp 127.0.0.1:1 fails: connection refused"}
	if o := b.topdog("check"); o.status != exitFailure || !containsAll(o.stdout, want) {
		t.Errorf("want %q: %v", want, o)
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
	b.checks(`[{ dns = "pi.hole @127.0.0.1:9953", timeout = "1h", every = "1h" }]`)()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if o := b.interrupted(ctx, "check"); o.status != exitFailure || o.stdout != "" || !strings.Contains(o.stderr, "its checks were not tried") {
		t.Errorf("it is interrupted: %v", o)
	}
}

func (b *board) checksInterrupted() {
	t, c := b.c.t, b.c
	t.Helper()
	noted := filepath.Join(t.TempDir(), "pid")
	b.checks(fmt.Sprintf(`[{ command = ["/bin/sh", "-c", "echo $$ >%s; exec sleep 600"], timeout = "1h", every = "1h" }]`, noted))()
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
	if o := b.topdog("check"); o.status != exitFailure || !strings.Contains(o.stdout, "tried: not at all: checks are being tried already") {
		t.Errorf("two at a time: %v", o)
	}
	runs()
	if o := <-first; o.status != exitFailure || o.stdout != "" || !strings.Contains(o.stderr, "its checks were not tried") {
		t.Errorf("it is interrupted: %v", o)
	}
	c.untilTrue("the check to end", func() bool { return syscall.Kill(pid, 0) != nil })
	b.checks(`[{ gateway = true, title = "the next one" }]`)()
	c.until("the next one to be tried", func() string {
		if o := b.topdog("check"); !strings.Contains(o.stdout, "tried: by the daemon") {
			return o.String()
		}
		return ""
	})
	b.signal(syscall.SIGSTOP)
	o := b.topdog("check")
	b.signal(syscall.SIGCONT)
	if o.status != exitFailure || !strings.Contains(o.stdout, "tried: not at all: the topdog daemon") || !strings.Contains(o.stdout, "did not answer in time") {
		t.Errorf("the daemon stands still: %v", o)
	}
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
