package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/netns"
)

// The test binary plays two parts besides that of the tests.
const (
	// beTopdog makes it the program itself, so that what the tests start is what is
	// under test, built with the race detector if they are.
	beTopdog = "TOPDOG_BE_TOPDOG"
	// launch makes it raise its own priority as the unit file does (Nice=), and then
	// become the program of that path.
	launch = "TOPDOG_LAUNCH"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(launch); path != "" {
		fmt.Fprintln(os.Stderr, becomeAsService(path))
		os.Exit(1)
	}
	if os.Getenv(beTopdog) == "1" {
		main() // does not return
	}
	os.Exit(m.Run())
}

// serviceNice is Nice= of systemd/topdog.service. Without it, other tests that
// keep all processors busy would make leaders late, and that is not under test.
const serviceNice = -10

// becomeAsService replaces this process by the program. It only returns an error.
func becomeAsService(path string) error {
	runtime.LockOSThread() // a thread has a priority, and the one that calls execve stays
	if err := unix.Setpriority(unix.PRIO_PROCESS, 0, serviceNice); err != nil {
		return fmt.Errorf("set the priority to %d: %w", serviceNice, err)
	}
	env := slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, launch+"=") })
	return fmt.Errorf("become %s: %w", path, unix.Exec(path, os.Args, env))
}

// program is what the boards of a test run.
type program struct {
	path string
	env  []string
}

// itself is the program that this test binary is.
func itself() program { return program{path: "/proc/self/exe", env: []string{beTopdog + "=1"}} }

// daemon starts the program on a host as a service.
func (p program) daemon(h *netns.Host, output io.Writer, args ...string) (*netns.Process, error) {
	return h.Start(context.Background(), "/proc/self/exe", args,
		netns.Env(append(p.env, launch+"="+p.path)...), netns.Stdout(output), netns.Stderr(output))
}

// outcome is what became of a command.
type outcome struct {
	stdout, stderr string
	status         int
}

func (o outcome) String() string {
	return fmt.Sprintf("exit status %d\nstdout: %s\nstderr: %s", o.status, o.stdout, o.stderr)
}

// exec runs a command line to its end, outside of any lab.
func (p program) exec(t testing.TB, args ...string) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var stdout, stderr bytes.Buffer
	c := exec.CommandContext(ctx, p.path, args...)
	c.Env = append(c.Environ(), p.env...)
	c.Stdout, c.Stderr = &stdout, &stderr
	status := exitStatusOf(t, c.Run())
	return outcome{stdout.String(), stderr.String(), status}
}

// execOn runs a command line to its end on a host of a lab.
func (p program) execOn(t testing.TB, h *netns.Host, args ...string) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var stdout, stderr bytes.Buffer
	process, err := h.Start(ctx, p.path, args, netns.Env(p.env...), netns.Stdout(&stdout), netns.Stderr(&stderr))
	if err != nil {
		t.Fatal(err)
	}
	status := exitStatusOf(t, process.Wait())
	return outcome{stdout.String(), stderr.String(), status}
}

func exitStatusOf(t testing.TB, err error) int {
	t.Helper()
	exit, ended := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
		return 0
	case ended && exit.Exited():
		return exit.ExitCode()
	}
	t.Fatalf("topdog did not end by itself: %v", err)
	return -1
}

// journal keeps what a program prints, each line with the time at which it came.
type journal struct {
	start time.Time

	mu   sync.Mutex
	text strings.Builder
	open bool // the last line has no end yet
}

// maxJournal bounds a journal, in case a program goes mad.
const maxJournal = 1 << 20

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.text.Len() > maxJournal {
		return len(b), nil
	}
	for line := range bytes.Lines(b) {
		if !j.open {
			fmt.Fprintf(&j.text, "%8.1f ms  ", float64(time.Since(j.start))/float64(time.Millisecond))
		}
		j.text.Write(line)
		j.open = !bytes.HasSuffix(line, []byte("\n"))
	}
	return len(b), nil
}

// note writes a line of the test's own.
func (j *journal) note(format string, args ...any) {
	fmt.Fprintf(j, "--- "+format+"\n", args...)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}
