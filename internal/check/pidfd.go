package check

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// process is a process that is watched. What is open is the process itself and not its number, which
// another one may have later.
type process struct {
	pid  int
	file *os.File // its pidfd
}

// watchProcess watches a process until close. ended is told when it has ended. The caller has to find out
// again, afterwards, whether the number is still that of the process that it means.
func watchProcess(pid int, ended chan<- struct{}) (*process, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, os.NewSyscallError("pidfd_open", err)
	}
	// PIDFD_NONBLOCK would do it in one call, and needs Linux 5.10.
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, os.NewSyscallError("fcntl", err)
	}
	p := &process{pid: pid, file: os.NewFile(uintptr(fd), "process")}
	raw, err := p.file.SyscallConn()
	if err != nil {
		p.file.Close()
		return nil, err
	}
	go func() {
		// A pidfd becomes readable when the process has ended (pidfd_open(2)).
		if raw.Read(func(fd uintptr) bool { return readable(int(fd)) }) == nil {
			notify(ended)
		}
	}()
	return p, nil
}

// readable reports whether a pidfd says that its process has ended.
func readable(fd int) bool {
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		if !errors.Is(err, unix.EINTR) {
			return n > 0
		}
	}
}

// lives reports whether the process has not ended.
func (p *process) lives() bool {
	raw, err := p.file.SyscallConn()
	if err != nil {
		return false
	}
	ended := true
	_ = raw.Control(func(fd uintptr) { ended = readable(int(fd)) })
	return !ended
}

func (p *process) close() { p.file.Close() }

// endedError says that a process has ended.
func endedError(what string, pid int) error { return fmt.Errorf("%s %d has ended", what, pid) }

// notify tells somebody who waits, or will, and never waits itself.
func notify(waiter chan<- struct{}) {
	select {
	case waiter <- struct{}{}:
	default:
	}
}
