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

const (
	// inheritedSocket is the first socket that a starter or a checker finds open.
	inheritedSocket = 3
	// inheritedGateway is the connection by which a checker asks the gateway, if it has one.
	inheritedGateway = 4
	// inheritedFilesMax is how many files a checker inherits.
	inheritedFilesMax = 2
)

// checkersMax is how many checkers a starter has at a time: one that runs the checks, and one that tries others.
const checkersMax = 2

// Open starts a starter. It returns the daemon's place for the checker that runs its checks, and the one for those that try
// other checks. The arguments make the main function of this program call AttendStarter. openGateway opens the connection
// by which a checker asks the gateway, see netio.InheritGatewayAsker.
func Open(openGateway func() (*os.File, error), arguments ...string) (checks, tries *Process, err error) {
	var processes [checkersMax]*Process
	if _, err := open(&processes, openGateway, arguments...); err != nil {
		return nil, nil, fmt.Errorf("start the starter: %w", err)
	}
	return processes[0], processes[1], nil
}

// open starts a starter for these places of checkers, and returns it.
func open(processes *[checkersMax]*Process, openGateway func() (*os.File, error), arguments ...string) (*exec.Cmd, error) {
	c := exec.Command(ownProgram, arguments...)
	c.Args[0] = filepath.Base(os.Args[0]) // what ps shows instead of the path
	// The starter only waits. One processor is enough for it, and a collector that never runs wakes nobody. If its memory
	// should grow, the limit makes the collector run after all.
	c.Env = append(os.Environ(), "GOMAXPROCS=1", "GOGC=off", "GOMEMLIMIT=8MiB")
	c.Stderr = os.Stderr
	// It doesn't outlive the daemon. In a process group of its own, it isn't interrupted by a terminal.
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	for i := range processes {
		starts, theirs, err := socketPair()
		if err != nil {
			return nil, err
		}
		defer theirs.Close()
		c.ExtraFiles = append(c.ExtraFiles, theirs)
		processes[i] = &Process{starts: starts, openGateway: openGateway, reports: make(chan Report)}
	}
	if err := startWithoutCapabilities(c); err != nil {
		return nil, err
	}
	for _, p := range processes {
		go p.awaitEnd()
	}
	return c, nil
}

// socketPair returns the daemon's end of a connection that keeps messages apart, and the other end.
func socketPair() (ours *net.UnixConn, theirs *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	// If this fails, there is room for any usual order all the same.
	_ = unix.SetsockoptInt(pair[0], unix.SOL_SOCKET, unix.SO_SNDBUF, orderMax)
	theirs = os.NewFile(uintptr(pair[1]), "to the daemon")
	file := os.NewFile(uintptr(pair[0]), "from the daemon")
	defer file.Close()
	if ours, err = connOf(file); err != nil {
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
	var attended sync.WaitGroup
	for _, socket := range sockets {
		starts, err := connOf(socket)
		if err != nil {
			return fmt.Errorf("starter: %w", err)
		}
		attended.Go(func() { attendStarts(starts) })
	}
	attended.Wait()
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

// attendStarts runs one checker after the other, as the daemon asks for them, until the daemon has ended.
func attendStarts(starts *net.UnixConn) {
	// The kernel kills a checker when the thread ends that has started it.
	runtime.LockOSThread()
	netio.DropProgram()
	for {
		files, err := awaitStart(starts)
		if err != nil {
			return
		}
		runChecker(files)
		for _, file := range files {
			file.Close()
		}
		netio.DropProgram() // the next start may come in a year
	}
}

// awaitStart waits until the daemon wants a checker, and returns the files that the checker inherits: its connection to the
// daemon, and one to the holder if there is one.
func awaitStart(starts *net.UnixConn) (files []*os.File, err error) {
	control := make([]byte, unix.CmsgSpace(inheritedFilesMax*4))
	_, n, _, _, err := starts.ReadMsgUnix(make([]byte, 1), control)
	if err != nil {
		return nil, err
	}
	messages, err := unix.ParseSocketControlMessage(control[:n])
	if err != nil || len(messages) == 0 {
		return nil, fmt.Errorf("there came no connection for a checker: %w", err)
	}
	descriptors, err := unix.ParseUnixRights(&messages[0])
	for _, fd := range descriptors {
		files = append(files, os.NewFile(uintptr(fd), "inherited"))
	}
	return files, err
}

// runChecker runs a checker until it ends. It kills a checker whose connection the daemon has closed.
func runChecker(files []*os.File) {
	c := exec.Command(ownProgram, CheckerWord)
	c.Args[0] = filepath.Base(os.Args[0])
	// Checks wait most of the time and need little memory.
	c.Env = append(os.Environ(), "GOMAXPROCS=1", "GOGC=100", "GOMEMLIMIT=16MiB")
	c.ExtraFiles, c.Stderr = files, os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	toDaemon := files[0]
	if err := c.Start(); err != nil {
		if message, err := encode(Report{Ended: true, Text: fmt.Sprintf("start the checker: %v", err)}); err == nil {
			_, _ = toDaemon.Write(message)
		}
		return
	}
	for _, file := range files[1:] {
		file.Close() // or the other end would never notice that the checker has ended
	}
	netio.DropProgram() // the checker may run for a year
	fd := int(toDaemon.Fd())
	var watching sync.WaitGroup
	watching.Go(func() {
		poll(fd, 0, -1) // until both directions are closed
		_ = c.Process.Kill()
	})
	_ = c.Wait() // the daemon notices the end; how it was says nothing
	_ = unix.Shutdown(fd, unix.SHUT_RDWR)
	watching.Wait()
}
