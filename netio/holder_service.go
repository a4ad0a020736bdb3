package netio

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"topdog/wire"
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
	var groups []HolderOptions
	if err := json.Unmarshal([]byte(os.Getenv(holderOptionsVariable)), &groups); err != nil {
		return fmt.Errorf("netio: holder: read the options: %w", err)
	}
	nameProcess()
	var sockets boardSockets
	var sessions sync.WaitGroup
	for i, o := range groups {
		unix.CloseOnExec(holderSocket + i)
		s := newSession(o, sockets.of(o.Tag))
		s.trusted, s.lifetime = true, lifetime
		sessions.Go(func() { s.attend(context.Background(), os.NewFile(uintptr(holderSocket+i), "main")) })
	}
	sessions.Wait()
	return nil
}

// nameProcess names the process for people. Its failure does not matter.
func nameProcess() { _ = os.WriteFile("/proc/self/comm", []byte("topdog-holder"), 0) }

// ServiceOptions are those of a holder that is a service of its own.
type ServiceOptions struct {
	// Path is where the socket is made. Its directory must exist.
	Path string
	// Options reads the configuration, and returns the options of each group. It is called anew for each group of a daemon.
	Options func() ([]HolderOptions, error)
	// UID is the user who may ask, besides root. GID is the group that may connect, so that nobody else can keep the
	// holder busy.
	UID, GID int
	// Alive is called at least once in AliveEvery while the holder can answer a daemon; 0 for never.
	Alive      func()
	AliveEvery time.Duration
	// Ready is called once a daemon can connect.
	Ready func()
}

// ServeHolder runs such a holder until the context ends. It serves one daemon of a group after the other.
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
	s := service{ServiceOptions: o, sessions: map[wire.GroupTag]*session{}}
	defer s.sockets.keep() // none
	s.serving.Go(func() { s.accept(ctx, listener) })
	o.Ready()
	if o.AliveEvery > 0 {
		go s.tellAlive()
	}
	<-ctx.Done()
	listener.Close()
	s.serving.Wait()
	return nil
}

// service is a holder that is a service.
type service struct {
	ServiceOptions
	serving sync.WaitGroup // one for each connection, and one for those that are to come
	sockets boardSockets

	mu       sync.Mutex
	sessions map[wire.GroupTag]*session // of the daemon of a group that is being served, or was last
	tags     []wire.GroupTag            // of the groups in the configuration, when it was read last
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

// accept accepts connections until the listener is closed, and serves those of root and of the daemon's user.
func (s *service) accept(ctx context.Context, listener *net.UnixListener) {
	for {
		connection, err := listener.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(endNoticedWithin) // there are too many open files, for instance
			continue
		}
		fd, err := descriptorOf(connection)
		if err != nil {
			continue
		}
		daemon := os.NewFile(uintptr(fd), "main")
		if err := s.check(fd); err != nil {
			senderOf(daemon)(answerMessage(nil, err))
			daemon.Close()
			continue
		}
		s.serving.Go(func() { s.serve(ctx, daemon) })
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
	return nil
}

// tellAlive calls Alive for as long as requests are answered.
func (s *service) tellAlive() {
	for {
		s.mu.Lock()
		sessions := slices.Collect(maps.Values(s.sessions))
		s.mu.Unlock()
		for _, current := range sessions {
			current.settle()
		}
		s.Alive()
		time.Sleep(s.AliveEvery)
	}
}

// serve serves a daemon, for the group that its first request names, until it has ended.
func (s *service) serve(ctx context.Context, daemon *os.File) {
	forget := context.AfterFunc(ctx, func() { _ = daemon.SetReadDeadline(time.Now()) })
	var first []byte
	var files []int
	_ = readMessages(daemon, maxRequestBytes, func(message []byte, came []int) bool {
		first, files = slices.Clone(message), came
		return false
	})
	session, err := s.begin(first)
	if err != nil {
		closeAll(files)
		senderOf(daemon)(answerMessage(nil, err))
		forget()
		daemon.Close()
		return
	}
	session.main = daemon
	session.serveMain(first, files)
	forget()
	session.attend(ctx, daemon)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keepSockets()
}

// begin returns a session for the daemon whose first request that is. It refuses a second daemon for a group. The next one
// waits until all is released that the former one had.
func (s *service) begin(first []byte) (*session, error) {
	if len(first) == 0 || holderRequest(first[0]) != askSideSocket {
		return nil, errors.New("netio: a daemon begins with its side socket: restart both services, which must be of one version")
	}
	var r sideSocketRequest
	if err := decode(first[1:], &r); err != nil {
		return nil, err
	}
	groups, err := s.Options()
	if err != nil {
		return nil, err
	}
	tags := make([]wire.GroupTag, 0, len(groups))
	for _, o := range groups {
		tags = append(tags, o.Tag)
	}
	i := slices.Index(tags, r.Group)
	if i < 0 {
		return nil, errors.New("netio: the holder's configuration has no such group: restart both services")
	}
	for {
		s.mu.Lock()
		former := s.sessions[r.Group]
		if former == nil || former.isOver() {
			defer s.mu.Unlock()
			s.tags = tags
			s.keepSockets()
			next := newSession(groups[i], s.sockets.of(r.Group))
			s.sessions[r.Group] = next
			return next, nil
		}
		s.mu.Unlock()
		select {
		case <-former.ended:
			<-former.over
		case <-time.After(endNoticedWithin):
			return nil, fmt.Errorf("the holder serves another daemon: %w", unix.EADDRINUSE)
		}
	}
}

// keepSockets closes the sockets of groups that are not in the configuration any more, and that no daemon has. What is sent to
// this board alone could arrive there, where nobody reads it. The next daemon may begin before all groups of the former one are
// over, so this is done at both times.
func (s *service) keepSockets() {
	tags := slices.Clone(s.tags)
	for tag, former := range s.sessions {
		if !former.isOver() {
			tags = append(tags, tag)
		} else if !slices.Contains(tags, tag) {
			delete(s.sessions, tag)
		}
	}
	s.sockets.keep(tags...)
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
