package netio

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// AttendHolder runs a holder that StartHolder has started. It returns when the daemon has ended and the addresses are gone.
func AttendHolder() error { return attendHolder(DefaultLifetime) }

// attendHolder is AttendHolder with the lifetime of the addresses that are added.
func attendHolder(lifetime time.Duration) error {
	// The daemon decides when to end. A service manager that stops it signals every process of the service.
	signal.Ignore(unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGABRT, unix.SIGPIPE)
	kind, err := unix.GetsockoptInt(holderSocket, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil || kind != unix.SOCK_SEQPACKET {
		return errors.New("this is a part of `topdog run`, which starts it: it is of no use by itself")
	}
	unix.CloseOnExec(holderSocket)
	var o HolderOptions
	if err := json.Unmarshal([]byte(os.Getenv(holderOptionsVariable)), &o); err != nil {
		return fmt.Errorf("netio: holder: read the options: %w", err)
	}
	beginHolder()
	h := newSession(o, holderSocket, &heldSockets{})
	h.trusted, h.lifetime = true, lifetime
	return h.attend(interrupts{listener: -1, stop: -1})
}

// beginHolder prepares the process to be a holder.
func beginHolder() {
	runtime.LockOSThread()
	// The name of the process is for people only, so a failure does not matter.
	_ = os.WriteFile("/proc/self/comm", []byte("topdog-holder"), 0)
}

// ServiceOptions are those of a holder that is a service of its own.
type ServiceOptions struct {
	// Path is where the socket is made. Its directory must exist.
	Path string
	// Options reads the configuration. It is called anew for each daemon.
	Options func() (HolderOptions, error)
	// UID is the user who may ask, besides root. GID is the group that may connect, so that nobody else can keep the
	// holder busy.
	UID, GID int
	// Stop becomes readable when the holder is to end: an eventfd, for instance.
	Stop *os.File
	// Alive is called at least once in AliveEvery while the loop runs; 0 for never.
	Alive      func()
	AliveEvery time.Duration
	// Ready is called once a daemon can connect.
	Ready func()
	// Say is given the errors that no daemon is told.
	Say func(error)
}

// ServeHolder runs such a holder. It serves one daemon after the other.
func ServeHolder(o ServiceOptions) error {
	beginHolder()
	signal.Ignore(unix.SIGPIPE)
	listener, err := listenForDaemons(o.Path)
	if err != nil {
		return fmt.Errorf("netio: holder: listen at %s: %w", o.Path, err)
	}
	defer unix.Close(listener)
	if err := letConnect(o.Path, o.GID); err != nil {
		return fmt.Errorf("netio: holder: let the group of the daemon connect: %w: the unit needs Group=topdog, as topdog-holder.service has it", err)
	}
	s := service{ServiceOptions: o, listener: listener}
	defer s.sockets.close()
	s.Ready()
	for {
		daemon, err := s.next()
		if err != nil || daemon < 0 {
			return err
		}
		s.serve(daemon)
	}
}

// service is a holder without a daemon.
type service struct {
	ServiceOptions
	listener int
	sockets  heldSockets
}

func listenForDaemons(path string) (fd int, err error) {
	if fd, err = unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0); err != nil {
		return -1, os.NewSyscallError("socket", err)
	}
	// A socket that is there was left by a holder that was killed: systemd starts only one.
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		unix.Close(fd)
		return -1, err
	}
	if err = unix.Bind(fd, &unix.SockaddrUnix{Name: path}); err == nil {
		err = os.NewSyscallError("listen", unix.Listen(fd, 8))
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// letConnect lets root and a group connect to a socket. Usually the socket belongs to that group already. A holder
// that runs as a service could not change it: it has no right to.
func letConnect(path string, gid int) error {
	var s unix.Stat_t
	if err := unix.Stat(path, &s); err != nil || int(s.Gid) != gid {
		if err := os.Chown(path, -1, gid); err != nil {
			return err
		}
	}
	return os.Chmod(path, 0o660)
}

// next waits for a daemon, and returns its socket; -1 when the holder is to end.
func (s *service) next() (daemon int, err error) {
	waits := []unix.PollFd{{Fd: int32(s.listener), Events: unix.POLLIN}, {Fd: int32(s.Stop.Fd()), Events: unix.POLLIN}}
	for {
		timeout := -1
		if s.AliveEvery > 0 {
			s.Alive()
			timeout = int(s.AliveEvery.Milliseconds())
		}
		_, err := unix.Poll(waits, timeout)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return -1, fmt.Errorf("netio: holder: poll: %w", err)
		case waits[1].Revents != 0:
			return -1, nil
		}
		if daemon := s.accept(); daemon >= 0 {
			return daemon, nil
		}
	}
}

// accept accepts a connection, and returns its socket; -1 if that user may not ask.
func (s *service) accept() int {
	fd, _, err := unix.Accept4(s.listener, unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
	if err != nil {
		return -1
	}
	peer, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err == nil && (peer.Uid == 0 || int(peer.Uid) == s.UID) {
		return fd
	}
	refuse(fd, errors.New("the holder serves the daemon alone, which runs as the user topdog"))
	return -1
}

// refuse tells whoever has connected why he is not served.
func refuse(fd int, why error) {
	_ = sendMessage(fd, answerMessage(nil, why))
	unix.Close(fd)
}

// serve serves one daemon until it has ended.
func (s *service) serve(daemon int) {
	o, err := s.Options()
	if err != nil {
		refuse(daemon, err)
		return
	}
	h := newSession(o, daemon, &s.sockets)
	h.alive, h.aliveEvery = s.Alive, s.AliveEvery
	others := func() {
		if other := s.accept(); other >= 0 {
			refuse(other, fmt.Errorf("the holder serves another daemon: %w", unix.EADDRINUSE))
		}
	}
	if err := h.attend(interrupts{listener: s.listener, others: others, stop: int(s.Stop.Fd())}); err != nil {
		s.Say(err)
	}
}

// DropProgram drops the pages of the program from this process's memory. The kernel still has them, and maps a page
// again when it is used.
func DropProgram() { loadedProgram().drop() }

// program is those parts of memory that are unchanged from the program's file.
type program []span

// span is a part of the address space.
type span struct{ from, to uintptr }

// programText returns those parts of memory that are unchanged from the program's file: they are not writable, and were not
// written to. A position-independent program, or a library, also has parts that were written to when it was loaded, and
// protected afterwards. smaps is the text of /proc/self/smaps.
func programText(smaps string) (text program) {
	var latest span
	file := false
	for line := range strings.Lines(smaps) {
		var s span
		var mode string
		if n, _ := fmt.Sscanf(line, "%x-%x %s", &s.from, &s.to, &mode); n == 3 {
			latest, file = s, !strings.Contains(mode, "w") && strings.Contains(line, "/")
		}
		var written int
		if n, _ := fmt.Sscanf(line, "Anonymous: %d kB", &written); n == 1 && written == 0 && file {
			text = append(text, latest)
		}
	}
	return text
}

// loadedProgram finds the program of this process. It does so once, since reading smaps takes more memory than there is to
// drop. If smaps cannot be read, nothing is dropped.
var loadedProgram = sync.OnceValue(func() program {
	smaps, _ := os.ReadFile("/proc/self/smaps")
	return programText(string(smaps))
})

// drop drops the program's pages. Starting up uses most of them, and a process that only waits needs nearly none.
func (p program) drop() {
	for _, s := range p {
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, s.from, s.to-s.from, unix.MADV_DONTNEED)
	}
}
