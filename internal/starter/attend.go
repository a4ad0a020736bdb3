package starter

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"topdog/netio"
)

// Attend is the whole life of a starter. It returns when the daemon has ended. The socket is inherited from Open;
// without it the error says so.
func Attend() error {
	// The daemon decides when to go. A service manager that ends it signals every process of the service.
	signal.Ignore(unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGABRT, unix.SIGPIPE)
	kind, err := unix.GetsockoptInt(starterSocket, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil || kind != unix.SOCK_SEQPACKET {
		return errors.New("this is a part of `topdog run`, which starts it: it is of no use by itself")
	}
	unix.CloseOnExec(starterSocket)
	if err := unix.SetNonblock(starterSocket, false); err != nil {
		return fmt.Errorf("starter: %w", os.NewSyscallError("fcntl", err))
	}
	// The name of the process; only for people, so it does not matter if it fails.
	_ = os.WriteFile("/proc/self/comm", []byte("topdog-starter"), 0)
	if err := HideMemory(); err != nil { // from a daemon that was taken over
		return fmt.Errorf("starter: %w", err)
	}
	netio.DropProgram()
	for {
		r, err := receive()
		switch {
		case err != nil:
			return fmt.Errorf("starter: receive: %w", err)
		case r == nil:
			return nil
		}
		go r.carryOut()
	}
}

// request is what the daemon wants started.
type request struct {
	leash *os.File
	files []*os.File
}

// receive waits for a request. It returns none when the daemon has ended.
func receive() (*request, error) {
	message, rights := make([]byte, leashMax), make([]byte, unix.CmsgSpace(filesMax*4))
	for {
		n, controls, _, _, err := unix.Recvmsg(starterSocket, message, rights, unix.MSG_CMSG_CLOEXEC)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.ECONNRESET), err == nil && n == 0:
			return nil, nil
		case err != nil:
			return nil, os.NewSyscallError("recvmsg", err)
		}
		files := inherited(rights[:controls])
		if string(message[:n]) == CheckerWord && len(files) > 0 {
			return &request{files[0], files[1:]}, nil
		}
		closeAll(files) // it makes no sense: whoever has taken the daemon over may write anything
	}
}

// inherited returns the files that have come with a message.
func inherited(rights []byte) (files []*os.File) {
	controls, err := unix.ParseSocketControlMessage(rights)
	if err != nil {
		return nil
	}
	for i := range controls {
		fds, _ := unix.ParseUnixRights(&controls[i])
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "inherited"))
		}
	}
	return files
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// carryOut starts a checker, and holds its leash until it has ended. The kernel sends the signal of a parent's death when the
// thread ends that has made the child, so this one belongs to this goroutine until then.
func (r *request) carryOut() {
	runtime.LockOSThread()
	defer r.leash.Close()
	c := r.command()
	err := seats.start(c)
	closeAll(r.files)
	if err != nil {
		r.fail(err)
		return
	}
	_, _ = io.WriteString(r.leash, strconv.Itoa(c.Process.Pid))
	go r.obey(c.Process)
	netio.DropProgram() // the next start may come in a year
	if err := c.Wait(); err != nil {
		r.fail(err)
	}
	seats.leave()
}

// command is what starts a checker. It finds the files open after its standard error.
func (r *request) command() *exec.Cmd {
	c := exec.Command(ownProgram, CheckerWord)
	c.Args[0] = filepath.Base(os.Args[0]) // what ps shows, instead of the path
	// Checks wait most of the time, so one processor is enough, and what they need is small.
	c.Env = append(os.Environ(), "GOMAXPROCS=1", "GOGC=100", "GOMEMLIMIT=16MiB")
	c.ExtraFiles, c.Stderr = r.files, os.Stderr
	// It does not outlive this process, also if it is stuck.
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	return c
}

// fail tells the daemon what has become of it. The daemon may not be there any more.
func (r *request) fail(err error) { _, _ = io.WriteString(r.leash, string(failure)+err.Error()) }

// obey kills the process when the daemon wants it.
func (r *request) obey(p *os.Process) {
	if n, _ := r.leash.Read(make([]byte, len(kill))); n > 0 {
		_ = p.Kill()
	}
}

// checkersMax is how many checkers there may be at a time. One is replaced by another while it ends, and checks are tried in
// another one.
const checkersMax = 4

// seating counts the checkers, so that a daemon that was taken over cannot fill the board with them.
type seating struct {
	mu    sync.Mutex
	taken int
}

var seats seating

func (s *seating) start(c *exec.Cmd) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken >= checkersMax {
		return fmt.Errorf("%d of them run already", s.taken)
	}
	if err := c.Start(); err != nil {
		return err
	}
	s.taken++
	return nil
}

func (s *seating) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken--
}
