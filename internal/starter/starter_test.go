package starter

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/assert"
)

// starterWord makes the test binary a starter. The word of a checker makes it one that waits for the end of its file.
const starterWord = "starter"

func TestMain(m *testing.M) {
	lives := map[string]func() error{starterWord: Attend, CheckerWord: wait}
	if len(os.Args) != 2 || lives[os.Args[1]] == nil {
		os.Exit(m.Run())
	}
	if err := lives[os.Args[1]](); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// wait is the life of a checker.
func wait() error {
	if _, err := os.NewFile(3, "pipe").Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

func open(t *testing.T) *Starter {
	t.Helper()
	s, err := Open(starterWord)
	assert.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// begin has a checker started that ends when the pipe does.
func begin(t *testing.T, s *Starter) (p *Process, pipe *os.File) {
	t.Helper()
	theirs, pipe, err := os.Pipe()
	assert.NoError(t, err)
	defer theirs.Close()
	t.Cleanup(func() { pipe.Close() })
	p, err = s.Start(theirs)
	assert.NoError(t, err)
	return p, pipe
}

// begun waits until it runs.
func begun(t *testing.T, p *Process) *Process {
	t.Helper()
	assert.Until(t, "it was started", func() bool { return p.PID() != 0 })
	assert.Until(t, "it is the checker", func() bool {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.PID()))
		return bytes.Count(text, []byte{0}) == 2
	})
	return p
}

// over waits for the end, and returns how it was told.
func over(t *testing.T, p *Process) error {
	t.Helper()
	select {
	case <-p.Ended():
		return p.Err()
	case <-time.After(20 * time.Second):
		t.Fatalf("process %d does not end", p.PID())
		return nil
	}
}

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

func runs(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

// TestStart: it is a child of the starter, has the file that it was given and none else, and ends by itself, or is killed.
func TestStart(t *testing.T) {
	s := open(t)
	p, pipe := begin(t, s)
	begun(t, p)
	assert.Is(t, fmt.Sprint(s.command.Process.Pid), status(t, p.PID(), "PPid"), "its parent, which is the starter")
	for _, fd := range []string{"0", "1", "2", "3"} {
		_, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", p.PID(), fd))
		assert.ErrorIs(t, err, nil, "")
	}
	if leaked, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", p.PID())); holdsSocket(leaked) {
		t.Errorf("it has a socket of the starter among %q", leaked)
	}
	pipe.Close()
	assert.ErrorIs(t, over(t, p), nil, "its end")
	second, _ := begin(t, s)
	begun(t, second)
	second.Kill()
	assert.Is(t, "signal: killed", fmt.Sprint(over(t, second)), "its end")
	second.Kill() // may be called twice
}

func holdsSocket(files []string) bool {
	for _, file := range files {
		if to, _ := os.Readlink(file); strings.HasPrefix(to, "socket:") {
			return true
		}
	}
	return false
}

// withAmbient marks the test binary that was started with an ambient capability.
const withAmbient = "TOPDOG_TEST_AMBIENT"

// TestCapabilities: neither a starter nor a checker has any, neither as root, who would get them all, nor of those that systemd
// gives. The test runs in a process with an ambient capability, which is inheritable too.
func TestCapabilities(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, who has capabilities")
	}
	if os.Getenv(withAmbient) == "" {
		c := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
		c.Env = append(os.Environ(), withAmbient+"=1")
		c.SysProcAttr = &syscall.SysProcAttr{AmbientCaps: []uintptr{unix.CAP_NET_RAW}}
		output, err := c.CombinedOutput()
		if errors.Is(err, syscall.EPERM) {
			t.Skipf("needs CAP_NET_RAW to give away: %v", err)
		}
		if err != nil {
			t.Errorf("%v\n%s", err, output)
		}
		return
	}
	sets := []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"}
	for _, set := range sets { // before any thread has given them up
		if own := status(t, os.Getpid(), set); strings.Trim(own, "0") == "" {
			t.Errorf("this process has no %s", set)
		}
	}
	s := open(t)
	p, _ := begin(t, s)
	begun(t, p)
	for _, set := range sets {
		for _, pid := range []int{s.command.Process.Pid, p.PID()} {
			assert.Is(t, "0000000000000000", status(t, pid, set), "%s of process %d", set, pid)
		}
	}
}

// TestEnds: whether the starter ends or the daemon, the checkers end with it.
func TestEnds(t *testing.T) {
	for _, test := range []struct {
		name string
		end  func(*Starter)
	}{
		{"the starter is killed", func(s *Starter) { _ = syscall.Kill(s.command.Process.Pid, syscall.SIGKILL) }},
		{"the daemon has ended", func(s *Starter) { s.socket.Close() }},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := open(t)
			checker, _ := begin(t, s)
			begun(t, checker)
			test.end(s)
			select {
			case <-s.Ended():
			case <-time.After(20 * time.Second):
				t.Fatal("the starter does not end")
			}
			over(t, checker)
			assert.Until(t, "the checker has ended", func() bool { return !runs(checker.PID()) })
			_, err := s.Start()
			assert.ErrorIs(t, err, errEnded, "another one")
		})
	}
}

// TestFrozen: whoever asks a starter that stands still waits for nothing, and what is killed before it was started does not stay.
func TestFrozen(t *testing.T) {
	s := open(t)
	assert.NoError(t, syscall.Kill(s.command.Process.Pid, syscall.SIGSTOP))
	p, _ := begin(t, s)
	p.Kill()
	assert.Is(t, 0, p.PID(), "the process that was started")
	assert.NoError(t, syscall.Kill(s.command.Process.Pid, syscall.SIGCONT))
	if err := over(t, p); err == nil {
		t.Error("it has ended well")
	}
}

// TestRefused: what makes no sense is ignored, and there are never many of one part.
func TestRefused(t *testing.T) {
	s := open(t)
	first, _ := begin(t, s)
	begun(t, first).Kill()
	over(t, first)
	before := files(t, s.command.Process.Pid)
	ours, theirs, err := socketPair()
	assert.NoError(t, err)
	raw, err := s.socket.SyscallConn()
	assert.NoError(t, err)
	_ = raw.Control(func(fd uintptr) {
		err := unix.Sendmsg(int(fd), []byte(CheckerWord), nil, nil, 0) // nothing to tell it by
		if err == nil {
			err = unix.Sendmsg(int(fd), []byte("/bin/sh"), unix.UnixRights(int(theirs.Fd())), nil, 0)
		}
		if err != nil {
			t.Error(err)
		}
	})
	theirs.Close()
	if n, err := ours.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("to another word the starter says %d bytes, %v", n, err)
	}
	ours.Close()
	var all []*Process
	for range checkersMax {
		one, _ := begin(t, s)
		all = append(all, begun(t, one))
	}
	more, _ := begin(t, s)
	assert.Is(t, "4 of them run already", fmt.Sprint(over(t, more)), "one more")
	for _, one := range all {
		one.Kill()
		over(t, one)
	}
	next, _ := begin(t, s)
	begun(t, next).Kill()
	over(t, next)
	assert.Until(t, "the files are closed", func() bool { return files(t, s.command.Process.Pid) <= before })
}

func files(t *testing.T, pid int) int {
	t.Helper()
	open, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	assert.NoError(t, err)
	return len(open)
}

func TestByHand(t *testing.T) {
	output, err := exec.Command("/proc/self/exe", starterWord).CombinedOutput()
	if err == nil || !strings.Contains(string(output), "it is of no use by itself") {
		t.Errorf("without a daemon: %v\n%s", err, output)
	}
}
