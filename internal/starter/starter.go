package starter

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Starter is the process that starts checkers, as the daemon sees it. Its methods may be called from several goroutines.
type Starter struct {
	command *exec.Cmd
	socket  *os.File
	ended   chan struct{}
}

// CheckerWord on the command line makes this program a checker.
const CheckerWord = "checker"

// ownProgram is the program of this process, also if its file was replaced meanwhile.
const ownProgram = "/proc/self/exe"

// starterSocket is where the starter finds its socket.
const starterSocket = 3

// small keeps a process small that only waits. One processor is enough for it, and a collector that never runs
// wakes nobody. The limit makes it run after all, should the memory grow.
var small = []string{"GOMAXPROCS=1", "GOGC=off", "GOMEMLIMIT=8MiB"}

// Open starts a starter: arguments are those that have the main function of this program call Attend at once.
func Open(arguments ...string) (*Starter, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, fmt.Errorf("start the starter: %w", err)
	}
	defer theirs.Close()
	s := &Starter{socket: ours, ended: make(chan struct{})}
	s.command = exec.Command(ownProgram, arguments...)
	s.command.Args[0] = filepath.Base(os.Args[0])
	s.command.Env = append(os.Environ(), small...)
	s.command.ExtraFiles, s.command.Stderr = []*os.File{theirs}, os.Stderr
	// A process group of its own: what a terminal sends to the daemon is not for it. It does not outlive the daemon.
	s.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go s.run(started)
	if err := <-started; err != nil {
		ours.Close()
		return nil, fmt.Errorf("start the starter: %w", err)
	}
	return s, nil
}

// socketPair returns both ends of a connection on which messages stay apart.
func socketPair() (ours, theirs *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	return os.NewFile(uintptr(pair[0]), "socket"), os.NewFile(uintptr(pair[1]), "socket"), nil
}

// run starts the process, without capabilities, and waits for its end. The kernel sends the signal of a parent's death when the thread ends
// that has made the child, so this one belongs to this goroutine until then.
func (s *Starter) run(started chan<- error) {
	runtime.LockOSThread()
	dropCapabilities()
	err := s.command.Start()
	started <- err
	if err != nil {
		return
	}
	_ = s.command.Wait() // how it has ended tells nothing
	close(s.ended)
}

// dropCapabilities has this thread start programs without capabilities: those that systemd gives are ambient, those of
// root come from the bounding set, and those that are inheritable go to root as well, and to a file that has some.
func dropCapabilities() {
	// What fails is not there to be given up, or not given to programs that are started.
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

// Ended is closed when the starter has ended, which it must not before Close. Then nothing can be started any more.
func (s *Starter) Ended() <-chan struct{} { return s.ended }

// errEnded says that there is no starter any more, and what to do.
var errEnded = errors.New("the process that starts checkers has ended, and the daemon itself executes nothing: systemctl restart topdog")

// Start has a checker started that finds the files open after its standard error. It waits for nothing. The files may be
// closed then.
func (s *Starter) Start(files ...*os.File) (*Process, error) {
	leash, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	if err := s.ask(append([]*os.File{theirs}, files...)); err != nil {
		leash.Close()
		return nil, err
	}
	p := &Process{leash: leash, ended: make(chan struct{})}
	go p.hold()
	return p, nil
}

// filesMax is how many files come with a request at most, the leash included.
const filesMax = 8

// ask sends the starter a request.
func (s *Starter) ask(files []*os.File) error {
	fds := make([]int, len(files))
	for i, f := range files {
		fds[i] = int(f.Fd())
	}
	raw, err := s.socket.SyscallConn()
	if err != nil {
		return errEnded // it was closed
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.Sendmsg(int(fd), []byte(CheckerWord), unix.UnixRights(fds...), nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
	})
	runtime.KeepAlive(files)
	switch {
	case err != nil, errors.Is(failed, unix.EPIPE), errors.Is(failed, unix.ECONNRESET):
		return errEnded
	case failed != nil:
		return fmt.Errorf("ask the process that starts checkers: %w", os.NewSyscallError("sendmsg", failed))
	}
	return nil
}

// closeWithin bounds how long Close waits for the starter.
const closeWithin = time.Second

// Close ends the starter, and all that it has started, and waits for it.
func (s *Starter) Close() {
	s.socket.Close()
	select {
	case <-s.ended:
	case <-time.After(closeWithin):
		_ = s.command.Process.Kill()
		<-s.ended
	}
}
