package netio

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// session is everything that a holder has for one daemon. It belongs to the goroutine of attend. Other goroutines
// serve further connections; mu guards what they use.
type session struct {
	options HolderOptions
	// trusted says that the daemon started this process, and so may do whatever this process may.
	trusted  bool
	lifetime time.Duration // of the addresses
	// alive is called at least once in aliveEvery; 0 for never.
	alive      func()
	aliveEvery time.Duration
	aliveAt    time.Duration
	sockets    *heldSockets // those of the holder: they outlive a daemon

	main    int // the socket of the daemon's loop
	ended   daemonEnd
	sender  *os.File   // sends the RESIGN; nil before the sockets are open
	local   netip.Addr // this board's own address, in whose name it speaks ARP; invalid before the sockets are open
	resign  PreparedResign
	held    bool            // the daemon holds the addresses
	past    bool            // the RESIGN is out of date: the daemon has released the addresses since
	copies  int             // how many copies of the RESIGN are still to be sent
	copyAt  time.Duration   // when to send the next copy
	remove  retry           // for addresses that the kernel refused to remove
	workers sync.WaitGroup  // the other goroutines
	served  context.Context // ends with the service for this daemon
	leave   func()          // ends it
	program program         // what can be dropped from memory

	mu        sync.Mutex
	open      []*os.File // connections, to be closed at the end
	events    int        // where the daemon hears of events; -1 before
	fence     *kernelFence
	floating  *FloatingIP
	toldState HoldState // how it holds them, as the daemon knows
	announcer *Announcer
	given     int // the fd store that the daemon was given last
}

// retry says when to try again to remove addresses, and until when; 0 for not at all.
type retry struct{ at, until time.Duration }

// daemonEnd says whether the daemon has ended, and how.
type daemonEnd int

const (
	daemonRuns daemonEnd = iota
	daemonDismisses
	daemonEnded
)

func newSession(o HolderOptions, main int, sockets *heldSockets) *session {
	s := &session{options: o, lifetime: DefaultLifetime, main: main, sockets: sockets, events: -1, given: -1, program: loadedProgram()}
	s.served, s.leave = context.WithCancel(context.Background())
	return s
}

// programIdle is how long the holder must have been idle before it drops the pages of its program. Requests that
// belong together come closer together than that.
const programIdle = 100 * time.Millisecond

// interrupts are what may interrupt a holder while it waits for a daemon.
type interrupts struct {
	listener int    // readable when somebody else connects; -1 for never
	others   func() // called then
	stop     int    // readable when the holder is to end; -1 for never
}

// attend serves the daemon until the daemon has ended, or the holder is to end. When it returns, everything is released.
func (s *session) attend(in interrupts) error {
	defer s.close()
	dropped := false
	for s.ended == daemonRuns || s.copies > 0 || s.remove.until > 0 {
		var waits [4]unix.PollFd
		for i, fd := range [...]int{s.main, s.timer(), in.listener, in.stop} {
			if s.ended != daemonRuns {
				fd = -1 // no lease is left to end, and the next daemon waits until all is released
			}
			waits[i] = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
		}
		s.tellAlive()
		n, err := unix.Poll(waits[:], s.timeout(dropped))
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return fmt.Errorf("netio: holder: poll: %w", err)
		}
		if dropped = n == 0 && s.copies == 0 && s.remove.until == 0; dropped {
			s.program.drop()
			continue
		}
		// Requests come first: the RESIGN that was prepared last is the one to send.
		if waits[0].Revents != 0 {
			s.serveMain()
		}
		if s.ended == daemonRuns && waits[3].Revents != 0 {
			s.daemonEnded() // soon it will have no holder
		}
		if s.ended == daemonRuns && waits[1].Revents != 0 && s.fence.expire() {
			s.release()
		}
		s.finish()
		if waits[2].Revents != 0 {
			in.others()
		}
	}
	return nil
}

// tellAlive reports that this loop runs, if a report is due.
func (s *session) tellAlive() {
	if now := Now(); s.aliveEvery > 0 && now >= s.aliveAt {
		s.alive()
		s.aliveAt = now + s.aliveEvery
	}
}

// timer is the descriptor of the timer that wakes this process at the end of the lease; -1 without a lease.
func (s *session) timer() int {
	if s.fence == nil {
		return -1
	}
	return s.fence.timer
}

// timeout is how long there is nothing to do, in milliseconds as poll(2) wants it; -1 for ever.
func (s *session) timeout(dropped bool) int {
	next := time.Duration(-1)
	add := func(at time.Duration) {
		if left := max(at-Now(), 0); next < 0 || left < next {
			next = left
		}
	}
	if s.copies > 0 {
		add(s.copyAt)
	}
	if s.remove.until > 0 {
		add(s.remove.at)
	}
	if s.aliveEvery > 0 {
		add(s.aliveAt)
	}
	if !dropped {
		add(Now() + programIdle)
	}
	if next < 0 {
		return -1
	}
	return int((next + time.Millisecond - 1) / time.Millisecond)
}

// serveMain answers the requests of the daemon's loop, and notices when the daemon ends.
func (s *session) serveMain() {
	var buffer [maxRequestBytes]byte
	for s.ended == daemonRuns {
		message, files, err := receiveMessage(s.main, buffer[:])
		switch {
		case err == unix.EAGAIN:
			return
		case errors.Is(err, unix.EINTR):
		case err != nil:
			s.daemonEnded()
		case len(message) > 0 && holderRequest(message[0]) == askEnd:
			s.ended = daemonDismisses
			_ = sendMessage(s.main, answerMessage(nil, nil))
			return
		case len(message) > 0 && takesLong(holderRequest(message[0])):
			closeAll(files)
			_ = sendMessage(s.main, answerMessage(nil, fmt.Errorf("netio: request %d of the holder is one for another connection", message[0])))
		default:
			s.serve(s.main, message, files)
		}
	}
}

// takesLong reports whether a request would make the loop wait, and with it the dead man's switch.
func takesLong(asked holderRequest) bool {
	return asked == askGateway || slices.Contains(concurrentRequests, asked)
}

// serveConnection answers the requests on a further connection until it is closed, or until a request is not allowed there.
func (s *session) serveConnection(file *os.File, allowed []holderRequest) {
	socket, err := file.SyscallConn()
	if err != nil {
		return
	}
	var buffer [maxRequestBytes]byte
	for open := true; open; {
		var message []byte
		var files []int
		var failed error
		if err := socket.Read(func(fd uintptr) bool {
			message, files, failed = receiveMessage(int(fd), buffer[:])
			return failed != unix.EAGAIN
		}); err != nil || failed != nil {
			return
		}
		if len(message) == 0 || !slices.Contains(allowed, holderRequest(message[0])) {
			closeAll(files)
			return
		}
		open = socket.Control(func(fd uintptr) { s.serve(int(fd), message, files) }) == nil
	}
}

// concurrentRequests may take long, so they are made on further connections and not on that of the loop.
var concurrentRequests = []holderRequest{askCover, askRenew, askProbe, askPing}

// serve answers one request. It closes the files that came with it unless the session keeps them. A daemon that has ended
// meanwhile needs no answer.
func (s *session) serve(socket int, message []byte, files []int) {
	answer, given, err := s.handle(message, &files)
	closeAll(files)
	_ = sendMessage(socket, answerMessage(answer, err), given...)
	if err != nil {
		return
	}
	// The daemon need not wait for this.
	switch holderRequest(message[0]) {
	case askCover, askFloating, askAcquire, askRenew:
		s.keepTogether()
	}
}

// tell sends the daemon an event. If there is no room, the event is lost: a daemon that does not read has other worries.
func (s *session) tell(what event, value any, files ...int) {
	body, err := encode(value)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && s.events >= 0 {
		_ = sendMessage(s.events, append([]byte{byte(what)}, body...), files...)
	}
}

// keepTogether puts the TUN device and the fence's programs into an fd store, so that they end in the right order, and
// shares the store with the daemon, so that the fence outlives this process if it is killed. A daemon without rights
// is not given the device: through it, it could send whatever it likes.
func (s *session) keepTogether() {
	s.mu.Lock()
	fence, floating := s.fence, s.floating
	s.mu.Unlock()
	if fence == nil {
		return
	}
	var device *os.File
	if floating != nil {
		device = floating.device.Load().tun
	}
	err := fence.share(device, func(store int) error {
		if store < 0 || store == s.given {
			return nil
		}
		s.given = store
		if s.trusted {
			s.tell(eventFence, nil, store)
			return nil
		}
		inside, err := queued(store)
		if err == nil && len(inside) > 0 {
			s.tell(eventFence, nil, inside[0])
		}
		closeAll(inside)
		return err
	})
	if err != nil {
		fmt.Fprintf(os.Stderr, "netio: keep the fence together with the device: %v\n", err)
	}
}

// daemonEnded releases what the daemon held. The fence stays for as long as this process does.
func (s *session) daemonEnded() {
	s.ended = daemonEnded
	if s.trusted {
		s.sockets.close() // the next daemon has a holder of its own, and needs the port
	}
	if s.fence == nil {
		return
	}
	switch former := s.fence.word.load(); former {
	case leaseIdle:
	case leaseFired:
		// The daemon ended in the middle of a release, or this process had ended the lease and the daemon did not know yet.
		if s.removeAddresses() != nil {
			s.release()
		}
	default:
		s.fence.put(leaseFired)
		s.release()
	}
}

// resignPauses are the times between the copies of the RESIGN. There are several, since a datagram may be lost.
var resignPauses = [...]time.Duration{2 * time.Millisecond, 5 * time.Millisecond, 15 * time.Millisecond}

// If the kernel refuses to remove an address, it is tried again this often and for this long. By then the lifetime of
// the address is over.
const (
	removeEvery = 50 * time.Millisecond
	removeFor   = 10 * time.Second
)

// release removes the addresses, and then tells the other boards: whoever takes over must be the only one to have
// them. If the fence is closed, nobody reaches this board by the addresses, so the others are told even if the removal
// failed.
func (s *session) release() {
	err := s.removeAddresses()
	if err == nil || s.fence.Closes() {
		s.sendResign()
	}
	if err != nil {
		s.remove = retry{at: Now() + removeEvery, until: Now() + removeFor}
		fmt.Fprintf(os.Stderr, "dead man's switch: %v\n", err)
	}
}

// finish goes on with a release: it tries again to remove the addresses, and sends the next copy of the RESIGN.
func (s *session) finish() {
	now := Now()
	if s.remove.until > 0 && now >= s.remove.at {
		err := s.removeAddresses()
		s.remove.at = now + removeEvery
		if err == nil || now >= s.remove.until {
			s.remove = retry{}
		}
		if err == nil && !s.fence.Closes() {
			s.sendResign()
		}
	}
	if s.copies > 0 && now >= s.copyAt {
		s.sendCopy()
	}
}

// removeAddresses removes the addresses if they are held. A renewal that is under way does not add them again.
func (s *session) removeAddresses() error {
	if s.floating == nil {
		return nil
	}
	return s.floating.Release()
}

// sendResign sends the pre-signed RESIGN several times.
func (s *session) sendResign() {
	if !s.past {
		s.copies = 1 + len(resignPauses)
		s.sendCopy()
	}
}

// sendCopy sends one copy to everybody. A board that misses all of them finds out by itself, as after a pulled plug.
func (s *session) sendCopy() {
	if s.copies--; s.copies > 0 {
		s.copyAt = Now() + resignPauses[len(resignPauses)-s.copies]
	}
	if len(s.resign.Datagram) == 0 || s.sender == nil {
		s.copies = 0
		return
	}
	for _, to := range s.resign.To {
		if to.Addr().Is4() {
			_ = unix.Sendto(int(s.sender.Fd()), s.resign.Datagram, unix.MSG_DONTWAIT, &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()})
		}
	}
}

// close closes all that was opened for the daemon.
func (s *session) close() {
	unix.Close(s.main)
	s.leave() // so that the next daemon does not wait for a gateway that does not answer
	s.mu.Lock()
	open := s.open
	s.open = nil
	s.mu.Unlock()
	for _, connection := range open {
		connection.Close()
	}
	s.closeAnnouncer()
	s.workers.Wait()
	if s.floating != nil {
		if err := s.floating.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	if s.fence != nil {
		s.fence.Close()
	}
	if s.sender != nil {
		s.sender.Close()
	}
	if s.events >= 0 {
		unix.Close(s.events)
	}
	if s.trusted {
		s.sockets.close()
	}
}

// currentAnnouncer returns the announcer; nil while none is open.
func (s *session) currentAnnouncer() *Announcer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.announcer
}

// closeAnnouncer closes the announcer in the background, since closing a packet socket takes about 17 ms.
func (s *session) closeAnnouncer() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if announcer := s.announcer; announcer != nil {
		s.workers.Go(func() { announcer.Close() })
	}
	s.announcer = nil
}

// isFloating reports whether an address is one of the configured floating addresses.
func (s *session) isFloating(addr netip.Addr) bool { return slices.Contains(s.options.Floating, addr) }

// checkInterface refuses an interface that is not the group's. If none is configured, the daemon may choose among
// those whose subnet contains the first floating address.
func (s *session) checkInterface(name string) error {
	if group := s.options.Interface; group != "" {
		if name != group {
			return fmt.Errorf("netio: the holder works on %s and not on %s: restart topdog-holder.service if the configuration has changed", group, name)
		}
		return nil
	}
	own, err := prefixesOn(name)
	if err != nil {
		return err
	}
	floating := s.options.Floating[0]
	if !slices.ContainsFunc(own, func(p netip.Prefix) bool { return !p.IsSingleIP() && p.Addr() != floating && p.Contains(floating) }) {
		return fmt.Errorf("netio: the holder works on an interface whose subnet contains %s, which is not %s", floating, name)
	}
	return nil
}

// portAt returns the interface with that index. It must be the group's, or a port of that if it is a bridge.
func (s *session) portAt(index int) (*net.Interface, error) {
	link, err := netlink.LinkByIndex(index)
	if err == nil && link.Attrs().MasterIndex != 0 {
		if _, err := s.linkAt(link.Attrs().MasterIndex); err != nil {
			return nil, err
		}
		return net.InterfaceByIndex(index)
	}
	return s.linkAt(index)
}

// linkAt returns the interface with that index, which must be the group's.
func (s *session) linkAt(index int) (*net.Interface, error) {
	link, err := net.InterfaceByIndex(index)
	if err != nil {
		return nil, fmt.Errorf("%w (no such interface)", ErrLinkDown)
	}
	return link, s.checkInterface(link.Name)
}
