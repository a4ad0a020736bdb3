package check

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"topdog/netio"
)

// CheckerWord on the command line makes this program a checker.
const CheckerWord = "checker"

// ownProgram is the program of this process, even if its file was replaced meanwhile.
const ownProgram = "/proc/self/exe"

// inheritedSocket is the first socket that a starter or a checker finds open.
const inheritedSocket = 3

// checkersMax is how many checkers a starter has at a time: one that runs the checks, and one that tries others.
const checkersMax = 2

// Open starts a starter. It returns the connections to the checker that runs the daemon's checks, and to the one that
// tries other checks. The arguments make the main function of this program call AttendStarter. openGateway opens the connection
// by which a checker asks the gateway, see netio.InheritGatewayAsker.
func Open(openGateway func() (*os.File, error), arguments ...string) (checks, tries *Process, err error) {
	c := exec.Command(ownProgram, arguments...)
	c.Args[0] = filepath.Base(os.Args[0]) // what ps shows instead of the path
	// The starter only waits. One processor is enough for it, and a collector that never runs wakes nobody. If its memory
	// should grow, the limit makes the collector run after all.
	c.Env = append(os.Environ(), "GOMAXPROCS=1", "GOGC=off", "GOMEMLIMIT=8MiB")
	c.Stderr = os.Stderr
	// It doesn't outlive the daemon. In a process group of its own, it isn't interrupted by a terminal.
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	var processes [checkersMax]*Process
	for i := range processes {
		socket, theirs, err := socketPair()
		if err != nil {
			return nil, nil, fmt.Errorf("start the starter: %w", err)
		}
		defer theirs.Close()
		c.ExtraFiles = append(c.ExtraFiles, theirs)
		processes[i] = &Process{socket: socket, openGateway: openGateway, reports: make(chan Report)}
	}
	if err := startWithoutCapabilities(c); err != nil {
		return nil, nil, fmt.Errorf("start the starter: %w", err)
	}
	for _, p := range processes {
		p.starterPID = c.Process.Pid
		go p.read()
	}
	return processes[0], processes[1], nil
}

// socketPair returns the daemon's end of a connection, and that of the checkers. It keeps messages apart, and tells the
// daemon which process has sent each.
func socketPair() (ours *net.UnixConn, theirs *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	// If this fails, there is room for any usual order all the same.
	_ = unix.SetsockoptInt(pair[0], unix.SOL_SOCKET, unix.SO_SNDBUF, orderMax)
	theirs = os.NewFile(uintptr(pair[1]), "checkers")
	file := os.NewFile(uintptr(pair[0]), "daemon")
	defer file.Close()
	err = os.NewSyscallError("setsockopt(SO_PASSCRED)", unix.SetsockoptInt(pair[0], unix.SOL_SOCKET, unix.SO_PASSCRED, 1))
	if err == nil {
		ours, err = connOf(file)
	}
	if err != nil {
		theirs.Close()
	}
	return ours, theirs, err
}

// connOf returns a connection for a socket, which may be closed then.
func connOf(socket *os.File) (*net.UnixConn, error) {
	conn, err := net.FileConn(socket)
	if err != nil {
		return nil, err
	}
	return conn.(*net.UnixConn), nil
}

// startWithoutCapabilities starts a command that has no capabilities, and reaps it. The kernel kills it when the thread ends
// that has started it (Pdeathsig), so that thread belongs to the goroutine.
func startWithoutCapabilities(c *exec.Cmd) error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		dropCapabilities()
		err := c.Start()
		started <- err
		if err == nil {
			_ = c.Wait() // how it has ended says nothing
		}
	}()
	return <-started
}

// dropCapabilities takes away the capabilities that this thread's children would have. Those that systemd gives are
// ambient. Root's come from the bounding set, and the inheritable ones go to root as well, or to a file that has some.
func dropCapabilities() {
	// If a call fails, there is nothing to take away.
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	for capability := range uintptr(unix.CAP_LAST_CAP + 1) {
		_ = unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if unix.Capget(&header, &sets[0]) == nil {
		sets[0].Inheritable, sets[1].Inheritable = 0, 0
		_ = unix.Capset(&header, &sets[0])
	}
}

// AttendStarter is the whole life of a starter, which Open starts. It returns when the daemon has ended.
func AttendStarter() error {
	var sockets [checkersMax]*os.File
	for i := range sockets {
		var err error
		if sockets[i], err = inherit(inheritedSocket + i); err != nil {
			return err
		}
	}
	if err := beginLife("topdog-starter"); err != nil {
		return err
	}
	// A watchdog must not end it either. A checker doesn't ignore these two: the programs that it runs would do so too, and
	// one that writes to a pipe would fail in another way than in a shell.
	signal.Ignore(unix.SIGABRT, unix.SIGPIPE)
	var seats sync.WaitGroup
	for _, socket := range sockets {
		conn, err := connOf(socket)
		if err != nil {
			return fmt.Errorf("starter: %w", err)
		}
		seats.Go(func() { (&seat{socket, conn}).attend() })
	}
	seats.Wait()
	return nil
}

// inherit returns a socket that the parent of this process has opened for it.
func inherit(fd int) (*os.File, error) {
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil || kind != unix.SOCK_SEQPACKET {
		return nil, errors.New("this is a part of `topdog run`, which starts it: it is of no use by itself")
	}
	unix.CloseOnExec(fd)
	return os.NewFile(uintptr(fd), "socket"), nil
}

// beginLife makes this process a starter or a checker.
func beginLife(name string) error {
	// The daemon decides when it ends. A service manager signals every process of a service.
	signal.Ignore(unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT)
	// The name is only for people, so it doesn't matter if this fails. It must be set before the memory is hidden.
	_ = os.WriteFile("/proc/self/comm", []byte(name), 0)
	// Other processes of the same user, such as a daemon that was taken over, must not read or write this one's memory.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		err = os.NewSyscallError("prctl(PR_SET_DUMPABLE)", err)
		return fmt.Errorf("%s: keep other processes from the memory of this one: %w", name, err)
	}
	return nil
}

// seat starts one checker after the other. They inherit the socket to the daemon.
type seat struct {
	socket *os.File
	conn   *net.UnixConn // of that socket
}

// attend starts a checker whenever there is an order, until the daemon has ended.
func (s *seat) attend() {
	// The kernel kills a checker when the thread ends that has started it.
	runtime.LockOSThread()
	netio.DropProgram()
	for s.awaitOrder() {
		ended := s.run()
		if ended.Reason != "" {
			s.discard() // or a checker that can't read its orders would be started again and again
		}
		if message, err := encode(Report{Ended: &ended}); err == nil {
			_, _ = s.conn.Write(message) // if this fails the daemon has ended
		}
	}
}

// awaitOrder waits for an order, without reading it. It returns false when the daemon has ended.
func (s *seat) awaitOrder() bool {
	raw, err := s.conn.SyscallConn()
	if err != nil {
		return false
	}
	ordered := false
	err = raw.Read(func(fd uintptr) bool {
		n, _, err := unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
		ordered = n > 0
		return !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR)
	})
	return err == nil && ordered
}

// discard reads the orders that no checker has read. The daemon sends another when it knows of the end.
func (s *seat) discard() {
	raw, err := s.conn.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		for n := 1; n > 0; {
			n, _, _ = unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_DONTWAIT)
		}
	})
}

// run runs a checker until it ends.
func (s *seat) run() Ended {
	c := exec.Command(ownProgram, CheckerWord)
	c.Args[0] = filepath.Base(os.Args[0])
	// Checks wait most of the time and need little memory.
	c.Env = append(os.Environ(), "GOMAXPROCS=1", "GOGC=100", "GOMEMLIMIT=16MiB")
	c.ExtraFiles, c.Stderr = []*os.File{s.socket}, os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := c.Start(); err != nil {
		return Ended{Reason: fmt.Sprintf("start the checker: %v", err)}
	}
	if message, err := encode(Report{Began: c.Process.Pid}); err == nil {
		_, _ = s.conn.Write(message)
	}
	netio.DropProgram() // the next start may come in a year
	ended := Ended{PID: c.Process.Pid}
	if err := c.Wait(); err != nil {
		ended.Reason = err.Error()
	}
	return ended
}
