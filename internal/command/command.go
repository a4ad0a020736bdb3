// Package command runs programs that somebody else has written, for a score or a
// check: bounded in time and output, without this process's capabilities, and such
// that nothing of them is left behind.
package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// kept is how much of what a command prints, or writes to its standard error, is
	// kept: more than this nobody wants to read in a log.
	kept = 512
	// complaintMax is how much a command may write to its standard error, of which
	// only the beginning is kept: a script may be talkative, but to read what one
	// writes that has lost its mind costs a small board all of its processor.
	complaintMax = 64 << 10
	// outputWithin is how long the output may stay open when the command has
	// ended and all of its process group was killed: only what has made itself a
	// group of its own can keep it.
	outputWithin = 100 * time.Millisecond
)

// Run runs a program and returns the beginning of what it prints. When ctx ends, or it
// prints more than outputMax bytes, it is killed; and whatever becomes of it, nothing that
// it has started lives on in its process group.
//
// It gets none of this process's capabilities. They are ambient under systemd, so
// a child would have them; the thread that makes the child gives them up, and
// ends with this goroutine, because it is never unlocked. The same thread is what
// the kernel's parent-death signal goes by, so the program does not outlive a
// process that is killed either.
func Run(ctx context.Context, words []string, outputMax int) (output []byte, err error) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		runtime.LockOSThread()
		output, err = runHere(ctx, words, outputMax)
	}()
	<-ended
	return output, err
}

func runHere(ctx context.Context, words []string, outputMax int) ([]byte, error) {
	// Without such a set (in a container, say) there is nothing to give up.
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)

	ctx, kill := context.WithCancel(ctx)
	defer kill()
	stdout, stderr := limited{most: outputMax, exceeded: kill}, limited{most: complaintMax, exceeded: kill}
	c := exec.Command(words[0], words[1:]...)
	c.Stdout, c.Stderr = &stdout, &stderr
	c.Dir = "/"
	c.Env = environment(os.Environ())
	c.WaitDelay = outputWithin
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		// An *fs.PathError repeats the path, which whoever asked knows.
		return nil, fmt.Errorf("cannot be started: %w", bareError(err))
	}
	// The program is reaped by Wait alone, so that until then its number, which is
	// that of the group, cannot be another one's.
	killGroup := func() {
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
		_ = syscall.Kill(c.Process.Pid, syscall.SIGKILL) // it may have left its group
	}
	killed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { defer close(killed); killGroup() })
	awaitExit(c.Process.Pid)
	if !stop() {
		<-killed
	}
	killGroup() // what the program has left behind
	err := c.Wait()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // it has ended well, and something outside of its group keeps its output open
	}
	switch {
	case stdout.total > stdout.most:
		return nil, fmt.Errorf("printed more than %d bytes", stdout.most)
	case stderr.total > stderr.most:
		return nil, fmt.Errorf("wrote more than %d bytes to its standard error", stderr.most)
	}
	said := Quoted(strings.TrimSpace(string(stderr.kept)))
	switch {
	case err != nil && len(stderr.kept) > 0:
		return nil, fmt.Errorf("failed (%w): %s", err, said)
	case err != nil:
		return nil, fmt.Errorf("failed (%w)", err)
	}
	return stdout.kept, nil
}

// awaitExit waits until a child has ended, and leaves it to be waited for.
func awaitExit(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// environment is the environment of a command: numbers look alike everywhere, the
// daemon's socket to systemd is its own, and what keeps the checker small is not for
// other programs in Go.
func environment(env []string) []string {
	env = slices.DeleteFunc(slices.Clone(env), func(setting string) bool {
		name, _, _ := strings.Cut(setting, "=")
		switch name {
		case "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LC_ALL", "GOMAXPROCS", "GOGC", "GOMEMLIMIT":
			return true
		}
		return false
	})
	return append(env, "LC_ALL=C")
}

// Quoted shows what a program has printed: short, and on one line.
func Quoted(text string) string {
	const most = 60
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return strconv.Quote(text)
}

func bareError(err error) error {
	if cause := errors.Unwrap(err); cause != nil {
		return cause
	}
	return err
}

// limited keeps the beginning of what is written to it.
type limited struct {
	most     int    // how many bytes may be written
	exceeded func() // called when there are more
	kept     []byte
	total    int
}

// Write fails beyond the limit, so that nobody reads on: also what has left the
// process group, and so is not killed, cannot keep the daemon busy.
func (l *limited) Write(b []byte) (int, error) {
	l.kept = append(l.kept, b[:min(len(b), kept-len(l.kept))]...)
	l.total += len(b)
	if l.total > l.most {
		l.exceeded()
		return 0, errors.New("too much output")
	}
	return len(b), nil
}
