package netns

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/assert"
)

// outputLines lets a process write into a pipe, of which next reads lines.
func outputLines(t *testing.T) (opt StartOption, next func() string) {
	r, w := io.Pipe()
	t.Cleanup(func() { r.Close() })
	scanner := bufio.NewScanner(r)
	return Stdout(w), func() string {
		t.Helper()
		if !scanner.Scan() {
			t.Fatalf("no output: %v", scanner.Err())
		}
		return scanner.Text()
	}
}

// watchPID returns a function that waits for the end of a process. The
// process must be alive now.
func watchPID(t *testing.T, pid int) (waitEnd func()) {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	must(t, err)
	t.Cleanup(func() { unix.Close(fd) })
	return func() {
		t.Helper()
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(timeout.Milliseconds()))
		if must(t, err); n == 0 {
			t.Errorf("process %d is still alive", pid)
		}
	}
}

// A process gets the priority that it is given, and nothing else of this program does.
func TestProcessPriority(t *testing.T) {
	l := newLAN(t, 1)
	ours, err := unix.Getpriority(unix.PRIO_PROCESS, os.Getpid())
	must(t, err)
	ready, next := outputLines(t)
	p, err := l.Board(1).Start(t.Context(), "/proc/self/exe", nil, as("sleeper"), ready, Nice(3))
	must(t, err)
	next()
	got, err := unix.Getpriority(unix.PRIO_PROCESS, p.PID)
	must(t, err)
	if want := 20 - 3; got != want { // the system call returns 20 minus the nice value
		t.Errorf("the priority of the process is %d, want %d", got, want)
	}
	if now, err := unix.Getpriority(unix.PRIO_PROCESS, os.Getpid()); now != ours || err != nil {
		t.Errorf("this program's priority was %d and is %d, %v", ours, now, err)
	}
}

func TestProcessRunsOnTheBoard(t *testing.T) {
	l := newLAN(t, 2)
	var out, errs bytes.Buffer
	p, err := l.Board(2).Start(t.Context(), "/proc/self/exe", nil, as("address"), Stdout(&out), Stderr(&errs))
	must(t, err)
	must(t, p.Wait())
	if !strings.Contains(out.String(), "10.77.0.2/24") || strings.Contains(out.String(), "10.77.0.1/24") {
		t.Errorf("the process sees %s", out.String())
	}
	if errs.Len() > 0 {
		t.Errorf("stderr: %s", errs.String())
	}
	assert.ErrorIs(t, p.Kill(), os.ErrProcessDone, "Kill after the end")
}

func TestProcessOutputToOneWriter(t *testing.T) {
	l := newLAN(t, 1)
	var out bytes.Buffer // The race detector sees it if two goroutines write.
	p, err := l.Board(1).Start(t.Context(), "/proc/self/exe", nil, as("no such role"), Stdout(&out), Stderr(&out))
	must(t, err)
	var exit *exec.ExitError
	if err := p.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("Wait: %v, want exit status 1", err)
	}
	assert.Is(t, "unknown role \"no such role\"\n", out.String(), "output")
}

// A process has the files that it is given, and reads and writes them.
func TestProcessFiles(t *testing.T) {
	l := newLAN(t, 1)
	read, theirs, err := os.Pipe()
	must(t, err)
	defer read.Close()
	given, err := os.CreateTemp(t.TempDir(), "given")
	must(t, err)
	defer given.Close()
	_, err = given.WriteAt([]byte("from the file"), 0)
	must(t, err)
	p, err := l.Board(1).Start(t.Context(), "/bin/sh", []string{"-c", "cat <&3 >&4"}, Files(given, theirs))
	must(t, err)
	must(t, theirs.Close())
	got, err := io.ReadAll(read)
	must(t, err)
	must(t, p.Wait())
	assert.Is(t, "from the file", string(got), "what the process has copied")
}

func TestProcessThatDoesNotExist(t *testing.T) {
	l := newLAN(t, 1)
	_, err := l.Board(1).Start(t.Context(), "/no/such/program", nil)
	assert.ErrorIs(t, err, os.ErrNotExist, "")
}

func TestProcessIsStoppedByItsContext(t *testing.T) {
	l := newLAN(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	stdout, line := outputLines(t)
	p, err := l.Board(1).Start(ctx, "/proc/self/exe", nil, as("sleeper"), stdout)
	must(t, err)
	line()
	cancel()
	if err := p.Wait(); err == nil {
		t.Error("the process ended by itself")
	}
}

// Close ends everybody who lives in the lab: a frozen process, and a child
// that another one left behind in a session of its own.
func TestCloseEndsProcesses(t *testing.T) {
	l := newLAN(t, 2)
	frozenOut, frozenLine := outputLines(t)
	frozen, err := l.Board(1).Start(t.Context(), "/proc/self/exe", nil, as("sleeper"), frozenOut)
	must(t, err)
	frozenLine()
	must(t, frozen.Signal(syscall.SIGSTOP))

	parentOut, parentLine := outputLines(t)
	parent, err := l.Board(2).Start(t.Context(), "/proc/self/exe", nil, as("parent"), parentOut)
	must(t, err)
	childPID := 0
	for range 3 { // "ready" of each of the two, and the number of the child, in any order
		if line := parentLine(); line != "ready" {
			childPID, err = strconv.Atoi(line)
			must(t, err)
		}
	}
	childEnds := watchPID(t, childPID)
	must(t, parent.Kill())
	<-parent.Exited()
	if err := syscall.Kill(childPID, 0); err != nil {
		t.Fatalf("the child should have survived its parent: %v", err)
	}

	must(t, l.Close())
	childEnds()
	select {
	case <-frozen.Exited():
	default:
		t.Error("the frozen process is still alive")
	}
}

// When the process that built the lab is killed, the kernel ends the
// processes on the boards.
func TestCrashEndsProcesses(t *testing.T) {
	skipUnlessAvailable(t)
	crasher := exec.CommandContext(t.Context(), "/proc/self/exe")
	crasher.Env = append(os.Environ(), roleVariable+"=crasher")
	out, err := crasher.StdoutPipe()
	must(t, err)
	must(t, crasher.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	must(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	must(t, err)
	ends := watchPID(t, pid)
	must(t, crasher.Process.Kill())
	_ = crasher.Wait() // "signal: killed"
	ends()
}

// A host's processes are those that were started there and their children, also
// when the parent has died; and nobody else's.
func TestProcesses(t *testing.T) {
	l := newLAN(t, 2)
	b := l.Board(1)
	if pids, err := b.Processes(); err != nil || len(pids) > 0 {
		t.Fatalf("before anything runs: %v, %v", pids, err)
	}
	// The shell's child is another process, since the shell has more to do after it.
	shell, err := b.Start(t.Context(), "/bin/sh", []string{"-c", "sleep 60; true"})
	must(t, err)
	number := func(want int) []int {
		t.Helper()
		for deadline := time.Now().Add(timeout); ; {
			pids, err := b.Processes()
			must(t, err)
			if len(pids) == want {
				return pids
			}
			if time.Now().After(deadline) {
				t.Fatalf("the processes are %v, not %d of them", pids, want)
			}
		}
	}
	both := number(2)
	if !slices.Contains(both, shell.PID) {
		t.Errorf("%v does not contain the shell, %d", both, shell.PID)
	}
	if pids, err := l.Board(2).Processes(); err != nil || len(pids) > 0 {
		t.Errorf("the other board has %v, %v", pids, err)
	}
	must(t, shell.Kill())
	<-shell.Exited()
	if orphan := number(1); orphan[0] == shell.PID || !slices.Contains(both, orphan[0]) {
		t.Errorf("after the shell's end there is %v of %v", orphan, both)
	}
}

// Each thread has its turn, also after one that has ended; another error ends it.
func TestEachThread(t *testing.T) {
	var all []int
	must(t, EachThread(os.Getpid(), func(id int) error {
		all = append(all, id)
		return fmt.Errorf("it has ended: %w", unix.ESRCH)
	}))
	if len(all) < 2 || !slices.Contains(all, os.Getpid()) {
		t.Errorf("this process (%d) has the threads %v", os.Getpid(), all)
	}
	assert.ErrorIs(t, EachThread(os.Getpid(), func(int) error { return unix.EPERM }), unix.EPERM, "")
	assert.ErrorIs(t, EachThread(-1, func(int) error { return nil }), os.ErrNotExist, "a process that is not there")
}
