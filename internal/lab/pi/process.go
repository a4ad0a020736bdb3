package pi

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/netns"
)

// The niceness of boards. One that boots is a program like any other. One that
// runs goes ahead of those, be it another board that boots or a build: a real
// board shares its processor with nobody, and its daemon takes a pause for what it is.
const (
	bootNice = 0
	runNice  = -5
)

// killTimeout bounds the wait for a killed process to be gone.
const killTimeout = 10 * time.Second

// processID names a process such that no other can be meant: the kernel gives a
// number again once its process has ended, but not with the same start time.
type processID struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // field 22 of /proc/PID/stat (proc(5)): clock ticks since boot
}

// identify reads the start time of a process.
func identify(pid int) (processID, error) {
	fields, err := statFields(pid)
	if err != nil {
		return processID{}, err
	}
	start, err := strconv.ParseUint(fields[19], 10, 64)
	return processID{pid, start}, err
}

// statFields returns the fields of /proc/PID/stat from the third on: the second,
// the program's name, is in parentheses and may contain anything.
func statFields(pid int) ([]string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, err
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 20 {
		return nil, fmt.Errorf("/proc/%d/stat is %q", pid, text)
	}
	return fields, nil
}

// runs tells whether the process is there. One that has ended and that nobody
// has waited for yet is not.
func (p processID) runs() bool {
	if p.PID == 0 {
		return false
	}
	fields, err := statFields(p.PID)
	return err == nil && fields[19] == strconv.FormatUint(p.Start, 10) && fields[0] != "Z" && fields[0] != "X"
}

// kill ends the process and waits until it is gone. It is all right if it is.
func (p processID) kill() error {
	if !p.runs() {
		return nil
	}
	// From here on the descriptor means this process, whatever its number does.
	fd, err := unix.PidfdOpen(p.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return os.NewSyscallError("pidfd_open", err)
	}
	defer unix.Close(fd)
	if !p.runs() {
		return nil
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return os.NewSyscallError("pidfd_send_signal", err)
	}
	deadline := time.Now().Add(killTimeout)
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(time.Until(deadline).Milliseconds()))
		switch {
		case n > 0:
			return nil
		case err != nil && !errors.Is(err, unix.EINTR):
			return os.NewSyscallError("poll", err)
		case time.Now().After(deadline):
			return fmt.Errorf("process %d is still there %s after SIGKILL", p.PID, killTimeout)
		}
	}
}

// setNice sets the niceness of the process's session and of all its threads, of
// which each has its own in Linux. Where the kernel groups sessions (sched(7), "The
// autogroup feature"), only the former counts among programs of other sessions; a
// process that no session was ever opened above is in none of its groups (EINVAL),
// and then its threads' own counts.
func (p processID) setNice(nice int) error {
	err := os.WriteFile(fmt.Sprintf("/proc/%d/autogroup", p.PID), strconv.AppendInt(nil, int64(nice), 10), 0)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.EINVAL) {
		return err
	}
	return netns.EachThread(p.PID, func(id int) error {
		return os.NewSyscallError("setpriority", unix.Setpriority(unix.PRIO_PROCESS, id, nice))
	})
}

// launch starts QEMU on the lab's segment, in the directory dir, as one that boots. In a
// mortal lab it dies with this program, whatever ends this program; otherwise it
// goes on in a session of its own.
func (l *Lab) launch(dir string, command []string) (processID, error) {
	path, err := FindProgram(command[0])
	if err != nil {
		return processID{}, err
	}
	log, err := os.Create(filepath.Join(dir, "qemu.log"))
	if err != nil {
		return processID{}, err
	}
	defer log.Close()
	c := exec.Command(path, command[1:]...)
	c.Dir, c.Stdout, c.Stderr = dir, log, log
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if l.temporary {
		c.SysProcAttr.Pdeathsig = syscall.SIGKILL
	}
	started := make(chan error, 1)
	run := func() error {
		err := c.Start()
		started <- err
		if err == nil {
			// The kernel sends the parent-death signal when the thread ends
			// that made the child, so it has to stay.
			_ = c.Wait()
		}
		return nil
	}
	l.processes.Add(1)
	l.segment.Go(run, func(err error) {
		if err != nil {
			started <- err
		}
		l.processes.Done()
	})
	if err := <-started; err != nil {
		l.processes.Wait()
		return processID{}, err
	}
	p, err := identify(c.Process.Pid)
	if err != nil {
		return p, err
	}
	return p, p.setNice(bootNice)
}
