package check

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/judge"
	"topdog/internal/lab/netns"
)

// starterWord makes the test binary a starter.
const starterWord = "starter"

func TestMain(m *testing.M) {
	lives := map[string]func() error{starterWord: AttendStarter, CheckerWord: Attend}
	if len(os.Args) == 2 && lives[os.Args[1]] != nil {
		if err := lives[os.Args[1]](); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	judge.Main(m)
}

// noGateway says that the gateway cannot be asked.
func noGateway(context.Context, string) error { return os.ErrPermission }

// starting is the connection to a checker, and the process that starts it.
type starting struct {
	*Process
	starter int // its PID
}

// openProcess starts a starter. It ends with the test, and so do its checkers.
func openProcess(t *testing.T) *starting { return openWith(t, noGateway) }

func openWith(t *testing.T, askGateway func(context.Context, string) error) *starting {
	t.Helper()
	p, err := Open(askGateway, starterWord)
	assert.NoError(t, err)
	t.Cleanup(func() {
		_ = p.conn.Close()
		_ = p.starter.Kill()
	})
	return &starting{p, p.starter.Pid}
}

// openTrying starts a starter, and reads all reports.
func openTrying(t *testing.T) *starting {
	t.Helper()
	p := openProcess(t)
	go func() {
		for range p.Reports() {
		}
	}()
	return p
}

// idles gives the checker nothing to run, and waits until it has ended.
func (p *starting) idles(t *testing.T) {
	t.Helper()
	send(t, p, Order{})
	assert.Until(t, "the checker has ended", func() bool { return p.pid() == 0 })
}

// startChecker starts a checker.
func startChecker(t *testing.T) *starting {
	t.Helper()
	p := openProcess(t)
	send(t, p, Order{Checks: []Check{quick("127.0.0.1:1", Leading)}}) // which doesn't run here
	p.runs(t)
	return p
}

// pid returns the PID of the checker, or 0 if none runs.
func (p *starting) pid() (checker int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, stat := range stats {
		text, _ := os.ReadFile(stat)
		_, after, _ := strings.Cut(string(text), ") ") // the state and the PID of the parent follow
		var state string
		var parent int
		fmt.Sscan(after, &state, &parent)
		if parent == p.starter && state != "Z" {
			fmt.Sscan(string(text), &checker)
		}
	}
	return checker
}

// await waits for the next report that is like this.
func (p *starting) await(t *testing.T, like func(Report) bool) Report {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		select {
		case r, runs := <-p.Reports():
			if !runs || r.Ended && !like(r) {
				t.Fatalf("the checker has ended: %s", r.Text)
			}
			if like(r) {
				return r
			}
		case <-deadline:
			t.Fatal("nothing is reported")
		}
	}
}

// runs waits until the checker runs.
func (p *starting) runs(t *testing.T) {
	t.Helper()
	p.await(t, func(Report) bool { return true })
}

// report waits for the next report of a check.
func (p *starting) report(t *testing.T) Report {
	t.Helper()
	return p.await(t, func(r Report) bool { return r.ID != "" })
}

func send(t *testing.T, p *starting, o Order) {
	t.Helper()
	assert.NoError(t, p.Send(o))
}

// TestMemory: a process of the same user, as the daemon is, writes neither to the memory of the starter nor to that of a checker.
func TestMemory(t *testing.T) {
	t.Parallel()
	p := startChecker(t)
	for _, pid := range []int{p.pid(), p.starter} {
		withoutCapabilities(t, func() {
			file, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
			assert.ErrorIs(t, err, os.ErrPermission, "opening the memory of process %d", pid)
			file.Close()
		})
	}
}

// withoutCapabilities runs f as the daemon runs, also if this is root. The thread ends with f.
func withoutCapabilities(t *testing.T, f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var none [2]unix.CapUserData
		if err := unix.Capset(&header, &none[0]); err != nil {
			t.Errorf("give up all capabilities: %v", err)
			return
		}
		f()
	}()
	<-done
}

// TestNoGateway: a check of the gateway tells why the gateway cannot be asked, also if it is tried.
func TestNoGateway(t *testing.T) {
	p := openProcess(t)
	send(t, p, Order{Checks: []Check{{Kind: Gateway, Every: time.Second, Timeout: time.Second, Rise: 1, Fall: 1}}, Interface: "eth0"})
	r := p.report(t)
	assert.Equal(t, Report{ID: r.ID, Text: "permission denied"}, r, "its report")
}

// quick is a check that asks often, and has the time that a slow machine needs.
func quick(target string, when When) Check {
	return Check{Kind: TCP, Target: target, Every: MinEvery, Timeout: 10 * time.Second, Rise: 1, Fall: 1, When: when}
}

func TestChecker(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	assert.NoError(t, err)
	always, leading := quick(l.Addr().String(), Always), quick(l.Addr().String(), Leading)
	p := openProcess(t)
	send(t, p, Order{Checks: []Check{always, leading}})
	assert.Equal(t, Report{ID: always.ID(), Passing: true}, p.report(t), "not on the leader")
	send(t, p, Order{Checks: []Check{always, leading}, Leading: true})
	assert.Equal(t, Report{ID: leading.ID(), Passing: true}, p.report(t), "on the leader")
	send(t, p, Order{Checks: []Check{always, leading}})
	l.Close() // also what has connected and was not accepted yet, which is reset
	if r := p.report(t); r.ID != always.ID() || r.Passing || r.Text != "connection refused" && r.Text != "connection reset by peer" {
		t.Errorf("closed: report %+v", r)
	}
	send(t, p, Order{Checks: []Check{leading}, Leading: true})
	if r := p.report(t); r.ID != leading.ID() || r.Passing {
		t.Errorf("on the leader again: report %+v", r)
	}
	p.idles(t)
	send(t, p, Order{Checks: []Check{leading}, Leading: true})
	if r := p.report(t); r.ID != leading.ID() || r.Passing {
		t.Errorf("by another checker: report %+v", r)
	}
}

// TestCheckerHasNoCapabilities: also as root, which would get them all.
func TestCheckerHasNoCapabilities(t *testing.T) {
	t.Parallel()
	p := startChecker(t)
	status := statusOf(t, p)
	sets := []string{"CapInh", "CapPrm", "CapEff", "CapAmb"}
	if os.Getuid() == 0 {
		sets = append(sets, "CapBnd") // which nobody else may change, see capabilities(7)
	}
	for _, set := range sets {
		if !strings.Contains(status, set+":\t0000000000000000\n") {
			t.Errorf("it has capabilities:\n%s", status)
			break
		}
	}
	if !strings.HasPrefix(status, "Name:\ttopdog-checker\n") {
		t.Errorf("it has another name:\n%s", status)
	}
}

// statusOf is what the kernel tells of a checker.
func statusOf(t *testing.T, p *starting) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid()))
	assert.NoError(t, err)
	return string(text)
}

// TestCheckerEndsWithItsCommands: what a check has started does not outlive the checker that is told to end.
func TestCheckerEndsWithItsCommands(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "pid")
	c := Check{Kind: Command, Target: "/bin/sh", Arguments: []string{"-c", `echo $$ >"$0.new"; mv "$0.new" "$0"; exec sleep 1000`, file},
		Every: time.Hour, Timeout: time.Hour, Rise: 1, Fall: 1}
	p := openProcess(t)
	send(t, p, Order{Checks: []Check{c}})
	assert.Until(t, "the command was started", func() bool { _, err := os.Stat(file); return err == nil })
	p.Stop()
	text, err := os.ReadFile(file)
	assert.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	assert.NoError(t, err)
	assert.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH, "the command")
}

// TestStuckCheckerDoesNotHoldUpTheDaemon: its socket is full at last. It is killed, and the next one works.
func TestStuckCheckerDoesNotHoldUpTheDaemon(t *testing.T) {
	if testing.Short() {
		t.Skip("fills what a stuck checker does not read, a second")
	}
	t.Parallel()
	p := startChecker(t)
	assert.NoError(t, netns.Freeze(p.pid()))
	var o Order
	for i := range Max {
		o.Checks = append(o.Checks, quick(fmt.Sprintf("127.0.0.1:%d", i+1), Always))
	}
	began := time.Now()
	for p.Send(o) == nil {
		if time.Since(began) > 10*time.Second {
			t.Fatal("a checker that reads nothing takes all orders")
		}
	}
	p.Kill()
	p.over(t)
	send(t, p, o)
	p.runs(t)
}

func TestAttendAlone(t *testing.T) {
	for _, word := range []string{starterWord, CheckerWord} {
		output, err := exec.Command("/proc/self/exe", word).CombinedOutput()
		if err == nil || !strings.Contains(string(output), "it is of no use by itself") {
			t.Errorf("%s without a daemon: %v\n%s", word, err, output)
		}
	}
}
