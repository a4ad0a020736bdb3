package check

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"topdog/netio"
)

// CheckerWord on the command line makes this program a checker.
const CheckerWord = "checker"

// ownProgram is the program of this process, even if its file was replaced meanwhile.
const ownProgram = "/proc/self/exe"

// inheritedSocket is the connection to the daemon, which a starter and its checker find open.
const inheritedSocket = 3

// killSignal has the starter kill its checker.
const killSignal = unix.SIGUSR1

// Open starts a starter, and returns the daemon's end of the connection to its checker. The arguments make the main function
// of this program call AttendStarter. askGateway asks the default gateway of an interface whether it is there.
func Open(askGateway func(ctx context.Context, iface string) error, arguments ...string) (*Process, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, fmt.Errorf("connect to the starter: %w", err)
	}
	defer theirs.Close()
	signal.Ignore(killSignal) // so the starter ignores it as well, until it handles it
	c := exec.Command(ownProgram, arguments...)
	c.Args[0] = filepath.Base(os.Args[0]) // what ps shows instead of the path
	// The starter only waits. One processor is enough for it, and a collector that never runs wakes nobody. If its memory
	// should grow, the limit makes the collector run after all.
	c.Env = append(os.Environ(), "GOMAXPROCS=1", "GOGC=off", "GOMEMLIMIT=8MiB")
	c.Stderr, c.ExtraFiles = os.Stderr, []*os.File{theirs}
	// It doesn't outlive the daemon. In a process group of its own, it isn't interrupted by a terminal.
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := startWithoutCapabilities(c); err != nil {
		ours.Close()
		return nil, fmt.Errorf("start the starter: %w", err)
	}
	p := &Process{
		conn: ours, starter: c.Process, askGateway: askGateway, asking: make(chan struct{}, questionsMax),
		reports: make(chan Report), tried: make(chan message, 8),
	}
	go p.read()
	return p, nil
}

// socketPair returns the daemon's end of a connection that keeps messages apart, and the other end.
func socketPair() (ours *net.UnixConn, theirs *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	// If this fails, there is room for any usual order all the same.
	_ = unix.SetsockoptInt(pair[0], unix.SOL_SOCKET, unix.SO_SNDBUF, requestMax)
	theirs = os.NewFile(uintptr(pair[1]), "to the daemon")
	file := os.NewFile(uintptr(pair[0]), "from the daemon")
	defer file.Close()
	conn, err := net.FileConn(file) // of a duplicate
	if err != nil {
		theirs.Close()
		return nil, nil, err
	}
	return conn.(*net.UnixConn), theirs, nil
}

// startWithoutCapabilities starts a command that has no capabilities, and reaps it. The kernel kills the command when the
// thread that started it ends (Pdeathsig), so the goroutine keeps its thread.
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

// dropCapabilities takes away the capabilities that this thread's children would have. The ambient ones come from systemd. A
// child that runs as root gets those of the bounding set and the inheritable ones. The latter also go to a program whose
// file has inheritable capabilities.
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

// AttendStarter is the whole life of a starter, which Open starts. It returns when the daemon has closed the connection.
func AttendStarter() error {
	socket, err := inherit()
	if err != nil {
		return err
	}
	if err := beginLife("topdog-starter"); err != nil {
		return err
	}
	// systemd's watchdog (SIGABRT) must not end the starter either. A checker doesn't ignore these two signals: the programs
	// that it runs would ignore them too, and one that writes to a closed pipe would fail in another way than in a shell.
	signal.Ignore(unix.SIGABRT, unix.SIGPIPE)
	startCheckers(socket)
	return nil
}

// startCheckers starts one checker after the other until the daemon has closed the connection.
func startCheckers(socket *os.File) {
	var present atomic.Pointer[os.Process] // the checker
	kills := make(chan os.Signal, 1)
	signal.Notify(kills, killSignal)
	go func() {
		for range kills {
			if checker := present.Load(); checker != nil {
				_ = checker.Kill() // unless it has ended
			}
		}
	}()
	runtime.LockOSThread() // the kernel kills a checker when the thread that started it ends
	netio.DropProgram()
	for awaitRequest(socket) {
		if err := runChecker(socket, &present); err != nil {
			tellEnd(socket, err)
		}
		netio.DropProgram() // the next start may come in a year
	}
}

// awaitRequest waits for a request, and leaves it in the socket for the checker. It returns false when the daemon has closed
// the connection.
func awaitRequest(socket *os.File) bool {
	fd := int(socket.Fd())
	poll(fd, unix.POLLIN, -1)
	n, _, _ := unix.Recvfrom(fd, make([]byte, 1), unix.MSG_PEEK)
	return n > 0
}

// runChecker runs a checker until it ends. It returns an error if the checker couldn't be started, or failed. A checker that
// has nothing to run, or whose daemon has ended, doesn't fail.
func runChecker(socket *os.File, present *atomic.Pointer[os.Process]) error {
	c := exec.Command(ownProgram, CheckerWord)
	c.Args[0] = filepath.Base(os.Args[0])
	// Checks wait most of the time and need little memory.
	c.Env = append(os.Environ(), "GOMAXPROCS=1", "GOGC=100", "GOMEMLIMIT=16MiB")
	c.ExtraFiles, c.Stderr = []*os.File{socket}, os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := c.Start(); err != nil {
		return fmt.Errorf("start the checker: %w", err)
	}
	present.Store(c.Process)
	netio.DropProgram() // the checker may run for a year
	return c.Wait()
}

// tellEnd tells the daemon that a checker has ended, or couldn't be started. Requests that the checker hasn't read are
// dropped: the daemon makes them again, a little later.
func tellEnd(socket *os.File, why error) {
	r := Report{Ended: true}
	if _, ended := errors.AsType[*exec.ExitError](why); !ended {
		r.Text = why.Error()
	}
	fd := int(socket.Fd())
	for n := 1; n > 0; {
		n, _, _ = unix.Recvfrom(fd, make([]byte, 1), unix.MSG_DONTWAIT)
	}
	if text, err := encode(message{Report: r}); err == nil {
		_ = unix.Sendmsg(fd, text, nil, nil, unix.MSG_NOSIGNAL) // if it fails, the daemon has ended
	}
}

// inherit returns the socket that the parent of this process has opened for it.
func inherit() (*os.File, error) {
	kind, err := unix.GetsockoptInt(inheritedSocket, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil || kind != unix.SOCK_SEQPACKET {
		return nil, errors.New("this is a part of `topdog run`, which starts it: it is of no use by itself")
	}
	unix.CloseOnExec(inheritedSocket)
	return os.NewFile(inheritedSocket, "to the daemon"), nil
}

// beginLife makes this process a starter or a checker.
func beginLife(name string) error {
	// The daemon decides when this process ends. A service manager signals every process of a service.
	signal.Ignore(unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT)
	// The name is only for people, so it doesn't matter if this fails. It must be set before the memory is hidden.
	_ = os.WriteFile("/proc/self/comm", []byte(name), 0)
	// Other processes of the same user, such as a daemon that was taken over, must not read or write the memory of this one.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		err = os.NewSyscallError("prctl(PR_SET_DUMPABLE)", err)
		return fmt.Errorf("%s: keep other processes from the memory of this one: %w", name, err)
	}
	return nil
}
