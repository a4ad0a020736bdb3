package netio

import (
	"context"
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

// session is everything that a holder has for one daemon. A goroutine serves the daemon's loop, another one ends the
// lease, and others do what takes long.
type session struct {
	options HolderOptions
	// trusted says that the daemon started this process, which ends with it.
	trusted  bool
	lifetime time.Duration // of the addresses
	sockets  *heldSockets  // those of the holder: they outlive a daemon

	main    *os.File        // the socket of the daemon's loop
	workers sync.WaitGroup  // the other goroutines
	served  context.Context // ends with the service for this daemon
	leave   func()          // ends it
	ended   chan struct{}   // closed when the daemon has ended, or will have no holder
	over    chan struct{}   // closed when everything is released then
	idle    *time.Timer     // drops the pages of the program

	// serving is held while a request of the daemon's loop is answered, or the lease is ended. It guards what follows.
	serving sync.Mutex
	sender  *os.File   // sends the RESIGN; nil before the sockets are open
	local   netip.Addr // this board's own address, in whose name it speaks ARP; invalid before the sockets are open
	resign  PreparedResign
	past    bool // the RESIGN is out of date: the daemon has released the addresses since

	keeping sync.Mutex // held while what must end in order is put together: of two goroutines, the later one has the newer device

	mu        sync.Mutex // guards what follows, and is held only for a moment
	open      []*os.File // the side socket and the lease's timer, to be closed at the end
	side      *os.File   // nil before it is open
	fence     *kernelFence
	floating  *FloatingIP
	told      HoldState // how the daemon knows that they are held
	announcer *Announcer
}

// programIdle is how long the holder must have been idle before it drops the pages of its program. Requests that
// belong together come closer together than that.
const programIdle = 100 * time.Millisecond

func newSession(o HolderOptions, sockets *heldSockets) *session {
	s := &session{options: o, lifetime: DefaultLifetime, sockets: sockets, ended: make(chan struct{}), over: make(chan struct{})}
	s.served, s.leave = context.WithCancel(context.Background())
	s.idle = time.AfterFunc(programIdle, DropProgram)
	return s
}

// attend serves the daemon at the other end of a socket until the daemon has ended, or the context has. When it
// returns, everything is released.
func (s *session) attend(ctx context.Context, main *os.File) {
	s.main = main
	defer close(s.over)
	defer s.close()
	defer context.AfterFunc(ctx, func() {
		s.daemonEnded() // soon it will have no holder
		_ = s.main.SetReadDeadline(time.Now())
	})()
	_ = readMessages(s.main, maxRequestBytes, s.serveMain) // however it ends, this daemon is not served any more
	s.daemonEnded()
}

// serveMain answers a request of the daemon's loop.
func (s *session) serveMain(message []byte, files []int) bool {
	s.serving.Lock()
	defer s.serving.Unlock()
	if len(message) > 0 && takesLong(holderRequest(message[0])) {
		closeAll(files)
		senderOf(s.main)(answerMessage(nil, fmt.Errorf("netio: request %d of the holder is one for another connection", message[0])))
		return true
	}
	s.serve(senderOf(s.main), message, files)
	return true
}

// settle waits until the present request of the daemon's loop is answered, if there is one.
func (s *session) settle() {
	s.serving.Lock()
	defer s.serving.Unlock()
}

// takesLong reports whether a request would make the loop wait, and with it the dead man's switch.
func takesLong(asked holderRequest) bool {
	return slices.Contains(sideRequests, asked)
}

// serveSideSocket answers the requests on the side socket until it is closed, or until a request does not belong there.
func (s *session) serveSideSocket(side *os.File) {
	running := make(chan struct{}, maxRunning) // has a value for each request that is being answered
	_ = readMessages(side, maxRequestBytes, func(message []byte, files []int) bool {
		if len(message) == 0 || len(files) != 1 || !isConnection(files[0]) || !takesLong(holderRequest(message[0])) {
			closeAll(files)
			return false
		}
		reply := files[0]
		select {
		case running <- struct{}{}:
		default:
			_ = sendMessage(reply, answerMessage(nil, fmt.Errorf("netio: the holder answers %d requests, and takes no more", maxRunning)))
			unix.Close(reply)
			return true
		}
		message = slices.Clone(message)
		s.workers.Go(func() {
			defer func() { <-running }()
			defer unix.Close(reply)
			s.serve(func(answer []byte, _ ...int) { _ = sendMessage(reply, answer) }, message, nil)
		})
		return true
	})
}

// maxRunning bounds how many requests of the side socket are answered at once. A daemon probes for all floating addresses at
// once, which are 16 at most (internal/config), asks the gateway for its checker 16 times at most (internal/check), and asks
// for little else.
const maxRunning = 48

// serve answers one request. It closes the files that came with it unless the session keeps them. A daemon that has
// ended by then needs no answer.
func (s *session) serve(send sender, message []byte, files []int) {
	if len(message) == 0 || holderRequest(message[0]) != askRenew { // the next renewal comes soon, and needs the same pages
		s.idle.Reset(programIdle)
	}
	answer, given, err := s.handle(message, &files)
	closeAll(files)
	send(answerMessage(answer, err), given...)
	if err != nil {
		return
	}
	// The daemon need not wait for this.
	switch holderRequest(message[0]) {
	case askCover, askFloating, askAcquire, askRenew:
		s.keepTogether()
	}
}

// sender sends a message to the daemon. If there is no room, the message is lost: a daemon that does not read has other worries.
type sender func(message []byte, files ...int)

// senderOf returns the sender of a socket that may be closed meanwhile.
func senderOf(socket *os.File) sender {
	return func(message []byte, files ...int) {
		if raw, err := socket.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) { _ = sendMessage(int(fd), message, files...) })
		}
	}
}

// tell sends the daemon an event.
func (s *session) tell(what event, value any, files ...int) {
	body, err := encode(value)
	s.mu.Lock()
	events := s.side
	s.mu.Unlock()
	if err == nil && events != nil {
		senderOf(events)(append([]byte{byte(what)}, body...), files...)
	}
}

// keepTogether puts the TUN device and the fence's programs into an fd store, so that they end in the right order if this
// process is killed. Without a device it gives the daemon the programs, see kernelFence.keep. The daemon is never given a
// device: through it, it could send whatever it likes.
func (s *session) keepTogether() {
	s.keeping.Lock()
	defer s.keeping.Unlock()
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
	err := fence.keep(device, func(programs ...int) { s.tell(eventFence, nil, programs...) })
	if err != nil {
		fmt.Fprintf(os.Stderr, "netio: keep the fence together with the device: %v\n", err)
	}
}

// endLease ends the lease whenever it is over, until the file is closed, which is a copy of the lease's timer.
func (s *session) endLease(timer *os.File) {
	socket, err := timer.SyscallConn()
	if err != nil {
		return
	}
	_ = socket.Read(func(uintptr) bool {
		s.serving.Lock()
		defer s.serving.Unlock()
		if !s.hasEnded() && s.fence.expire() {
			s.idle.Reset(programIdle)
			s.release()
		}
		return false // wait until the timer expires again
	})
}

// daemonEnded releases what the daemon held. The fence stays for as long as this process does.
func (s *session) daemonEnded() {
	s.serving.Lock()
	defer s.serving.Unlock()
	if s.hasEnded() {
		return
	}
	close(s.ended)
	s.endWithDaemon()
	if s.trusted {
		// The next daemon has a holder of its own, and needs the port. The address does not wait for that: another group may
		// be opening its sockets.
		s.sockets.close()
	} else {
		s.sockets.rest()
	}
}

// endWithDaemon ends the lease of a daemon that has ended.
func (s *session) endWithDaemon() {
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

// isOver reports whether everything is released.
func (s *session) isOver() bool {
	select {
	case <-s.over:
		return true
	default:
		return false
	}
}

// hasEnded reports whether the daemon has ended, or will have no holder.
func (s *session) hasEnded() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// resignPauses are the times between the copies of the RESIGN. There are several, since a datagram may be lost.
var resignPauses = [...]time.Duration{2 * time.Millisecond, 5 * time.Millisecond, 15 * time.Millisecond}

// release removes the addresses, and then tells the other boards: whoever takes over must be the only one to have
// them. If the fence is closed, nobody reaches this board by the addresses, so the others are told even if the removal
// failed. What the kernel refuses to remove goes at the end of its lifetime, since nobody renews it any more.
func (s *session) release() {
	err := s.removeAddresses()
	if err == nil || s.fence.Closes() {
		s.sendResign()
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "dead man's switch: %v\n", err)
	}
}

// removeAddresses removes the addresses if they are held, and no longer announces them. A renewal that is under way does
// not add them again.
func (s *session) removeAddresses() error {
	s.announce(nil)
	if s.floating == nil {
		return nil
	}
	return s.floating.Release()
}

// sendResign sends the pre-signed RESIGN several times. A board that misses all copies finds out by itself, as after a
// pulled plug.
func (s *session) sendResign() {
	if s.past || len(s.resign.Datagram) == 0 {
		return
	}
	resign := s.resign
	s.sendCopy(resign)
	s.workers.Go(func() {
		for _, pause := range resignPauses {
			time.Sleep(pause)
			s.serving.Lock()
			s.sendCopy(resign)
			s.serving.Unlock()
		}
	})
}

// sendCopy sends one copy to everybody.
func (s *session) sendCopy(resign PreparedResign) {
	if s.sender == nil {
		return
	}
	for _, to := range resign.To {
		if to.Addr().Is4() {
			_ = unix.Sendto(int(s.sender.Fd()), resign.Datagram, unix.MSG_DONTWAIT, &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()})
		}
	}
}

// close closes all that was opened for the daemon.
func (s *session) close() {
	s.main.Close()
	s.leave() // so that the next daemon does not wait for a gateway that does not answer
	s.mu.Lock()
	open := s.open
	s.open = nil
	s.mu.Unlock()
	for _, file := range open {
		file.Close()
	}
	s.closeAnnouncer()
	s.workers.Wait()
	s.idle.Stop()
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
// those whose subnet contains the first floating address of IPv4.
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
	floating := firstIPv4(s.options.Floating)
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
