package netio

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
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
	nameProcess()
	s := newSession(o, &heldSockets{})
	s.trusted, s.lifetime = true, lifetime
	s.attend(context.Background(), holderSocket)
	return nil
}

// nameProcess names the process for people. Its failure does not matter.
func nameProcess() { _ = os.WriteFile("/proc/self/comm", []byte("topdog-holder"), 0) }

// ServiceOptions are those of a holder that is a service of its own.
type ServiceOptions struct {
	// Path is where the socket is made. Its directory must exist.
	Path string
	// Options reads the configuration. It is called anew for each daemon.
	Options func() (HolderOptions, error)
	// UID is the user who may ask, besides root. GID is the group that may connect, so that nobody else can keep the
	// holder busy.
	UID, GID int
	// Alive is called at least once in AliveEvery while the holder can answer a daemon; 0 for never.
	Alive      func()
	AliveEvery time.Duration
	// Ready is called once a daemon can connect.
	Ready func()
}

// ServeHolder runs such a holder until the context ends. It serves one daemon after the other.
func ServeHolder(ctx context.Context, o ServiceOptions) error {
	nameProcess()
	signal.Ignore(unix.SIGPIPE)
	// A socket that is there was left by a holder that was killed: systemd starts only one.
	if err := os.Remove(o.Path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("netio: holder: %w", err)
	}
	listener, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: o.Path, Net: "unixpacket"})
	if err != nil {
		return fmt.Errorf("netio: holder: %w", err)
	}
	defer listener.Close()
	listener.SetUnlinkOnClose(false)
	if err := letConnect(o.Path, o.GID); err != nil {
		return fmt.Errorf("netio: holder: let the group of the daemon connect: %w: the unit needs Group=topdog, as topdog-holder.service has it", err)
	}
	s := service{ServiceOptions: o, daemons: make(chan int)}
	defer s.sockets.close()
	go s.accept(listener)
	o.Ready()
	if o.AliveEvery > 0 {
		go s.tellAlive()
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case daemon := <-s.daemons:
			s.serve(ctx, daemon)
		}
	}
}

// service is a holder that is a service.
type service struct {
	ServiceOptions
	daemons chan int                // sockets of daemons that are waiting to be served
	current atomic.Pointer[session] // of the daemon that is being served, or was last
	sockets heldSockets
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

// endNoticedWithin is how long it may take to notice that a daemon has ended. The next one may connect before that.
const endNoticedWithin = 50 * time.Millisecond

// accept accepts connections until the listener is closed. It refuses those of other users, and those that come while
// a daemon is being served. The next daemon waits until all is released that the former one had.
func (s *service) accept(listener *net.UnixListener) {
	for {
		connection, err := listener.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(endNoticedWithin) // there are too many open files, for instance
			continue
		}
		daemon, err := descriptorOf(connection)
		if err != nil {
			continue
		}
		if err := s.check(daemon); err != nil {
			_ = sendMessage(daemon, answerMessage(nil, err))
			unix.Close(daemon)
			continue
		}
		s.daemons <- daemon
	}
}

// descriptorOf closes a connection, and returns a copy of its descriptor.
func descriptorOf(connection *net.UnixConn) (fd int, err error) {
	defer connection.Close()
	raw, err := connection.SyscallConn()
	if err != nil {
		return -1, err
	}
	if closed := raw.Control(func(from uintptr) { fd, err = unix.FcntlInt(from, unix.F_DUPFD_CLOEXEC, 0) }); closed != nil {
		return -1, closed
	}
	return fd, err
}

// check returns why whoever has connected is not served.
func (s *service) check(daemon int) error {
	peer, err := unix.GetsockoptUcred(daemon, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil || peer.Uid != 0 && int(peer.Uid) != s.UID {
		return errors.New("the holder serves the daemon alone, which runs as the user topdog")
	}
	if current := s.current.Load(); current != nil {
		select {
		case <-current.ended:
		case <-time.After(endNoticedWithin):
			return fmt.Errorf("the holder serves another daemon: %w", unix.EADDRINUSE)
		}
	}
	return nil
}

// tellAlive calls Alive for as long as requests are answered.
func (s *service) tellAlive() {
	for {
		if current := s.current.Load(); current != nil {
			current.settle()
		}
		s.Alive()
		time.Sleep(s.AliveEvery)
	}
}

// serve serves one daemon until it has ended.
func (s *service) serve(ctx context.Context, daemon int) {
	o, err := s.Options()
	if err != nil {
		_ = sendMessage(daemon, answerMessage(nil, err))
		unix.Close(daemon)
		return
	}
	session := newSession(o, &s.sockets)
	s.current.Store(session)
	session.attend(ctx, daemon)
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
