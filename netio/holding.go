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

// holding is all that a holder has for one daemon. The goroutine of attend has it; what other goroutines use,
// which serve lanes, is behind mu.
type holding struct {
	options HolderOptions
	// trusted says that the daemon may do all that this process may: it has started it.
	trusted  bool
	lifetime time.Duration // of the addresses
	// alive is called at least every so often, unless that is 0.
	alive      func()
	aliveEvery time.Duration
	aliveAt    time.Duration
	sockets    *heldSockets // of the holder, which outlive a daemon

	main    int // the socket of the daemon's loop
	ended   daemonEnd
	sender  *os.File   // sends the RESIGN; nil before the sockets are open
	local   netip.Addr // of this board, in whose name the daemon may ask by ARP; likewise
	resign  PreparedResign
	past    bool            // the RESIGN is of a time that is over: the daemon has released the addresses since
	copies  int             // of the RESIGN that are to be sent still
	copyAt  time.Duration   // when the next one is
	remove  retry           // of addresses that the kernel does not let go of
	besides sync.WaitGroup  // of what other goroutines do
	served  context.Context // ends with the service for this daemon
	leave   func()          // ends it
	program program         // what can be dropped from memory

	mu        sync.Mutex
	open      []*os.File // lanes, to be closed at the end
	events    int        // where the daemon hears of events; -1 before
	fence     *kernelFence
	floating  *FloatingIP
	toldState HoldState // of it, as the daemon knows it
	announcer *Announcer
	frames    *FrameCounter
	gateway   *GatewayAsker // opened when it is used
	bundle    int           // what the daemon was given last
}

// retry is what is left to do when the addresses could not be removed at once.
type retry struct {
	at, until time.Duration // when it is tried again, and for how long; 0 for not at all
	told      bool          // that it fails
}

// How the daemon has ended, if it has.
type daemonEnd int

const (
	daemonRuns daemonEnd = iota
	daemonDismisses
	daemonEnded
)

func newHolding(o HolderOptions, main int, sockets *heldSockets) *holding {
	h := &holding{options: o, lifetime: DefaultLifetime, main: main, sockets: sockets, events: -1, bundle: -1, program: loadedProgram()}
	h.served, h.leave = context.WithCancel(context.Background())
	return h
}

// programIdle is how long nothing must have happened before the program's pages are dropped. What happens
// next comes within that time, if it belongs to the same thing.
const programIdle = 100 * time.Millisecond

// meanwhile is what a holder heeds while it serves a daemon.
type meanwhile struct {
	listener int    // can be read when somebody else connects; -1 for never
	others   func() // is called then
	stop     int    // can be read when the holder is to end; -1 for never
}

// attend serves the daemon until it has ended, or the holder is to, and everything that was held is released.
func (h *holding) attend(m meanwhile) error {
	defer h.close()
	dropped := false
	for h.ended == daemonRuns || h.copies > 0 || h.remove.until > 0 {
		waits := []unix.PollFd{{Fd: -1, Events: unix.POLLIN}, {Fd: -1, Events: unix.POLLIN}, {Fd: -1, Events: unix.POLLIN}, {Fd: -1, Events: unix.POLLIN}}
		if h.ended == daemonRuns { // else the next daemon waits until this one's things are done, and no lease is left to end
			waits[0].Fd, waits[1].Fd, waits[2].Fd, waits[3].Fd = int32(h.main), int32(h.timer()), int32(m.listener), int32(m.stop)
		}
		h.tellAlive()
		n, err := unix.Poll(waits, h.timeout(dropped))
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return fmt.Errorf("netio: holder: poll: %w", err)
		}
		if dropped = n == 0 && h.copies == 0 && h.remove.until == 0; dropped {
			h.program.drop()
			continue
		}
		// The requests first: the RESIGN that was prepared last counts.
		if waits[0].Revents != 0 {
			h.serveMain()
		}
		if h.ended == daemonRuns && waits[3].Revents != 0 {
			h.daemonEnded() // soon it has no holder
		}
		if h.ended == daemonRuns && waits[1].Revents != 0 && h.fence.expire() {
			h.release()
		}
		h.finish()
		if waits[2].Revents != 0 {
			m.others()
		}
	}
	return nil
}

// tellAlive tells that this loop turns, if that is due.
func (h *holding) tellAlive() {
	if now := Now(); h.aliveEvery > 0 && now >= h.aliveAt {
		h.alive()
		h.aliveAt = now + h.aliveEvery
	}
}

// timer is the one that wakes this process when the lease ends; -1 without a lease.
func (h *holding) timer() int {
	if h.fence == nil {
		return -1
	}
	return h.fence.timer
}

// timeout is how long nothing is to be done, in milliseconds as poll wants it; -1 for ever.
func (h *holding) timeout(dropped bool) int {
	next := time.Duration(-1)
	add := func(at time.Duration) {
		if left := max(at-Now(), 0); next < 0 || left < next {
			next = left
		}
	}
	if h.copies > 0 {
		add(h.copyAt)
	}
	if h.remove.until > 0 {
		add(h.remove.at)
	}
	if h.aliveEvery > 0 {
		add(h.aliveAt)
	}
	if !dropped {
		add(Now() + programIdle)
	}
	if next < 0 {
		return -1
	}
	return int((next + time.Millisecond - 1) / time.Millisecond)
}

// serveMain answers what the daemon's loop asks, and notices its end.
func (h *holding) serveMain() {
	var buffer [maxRequestBytes]byte
	for h.ended == daemonRuns {
		message, files, err := receiveMessage(h.main, buffer[:])
		switch {
		case err == unix.EAGAIN:
			return
		case errors.Is(err, unix.EINTR):
		case err != nil:
			h.daemonEnded()
		case len(message) > 0 && holderRequest(message[0]) == askEnd:
			h.ended = daemonDismisses
			h.answer(h.main, []byte{answerGood}, nil)
			return
		case len(message) > 0 && takesLong(holderRequest(message[0])):
			closeAll(files)
			h.answer(h.main, errorAnswer(fmt.Errorf("netio: request %d of the holder is one for another lane", message[0])), nil)
		default:
			h.serve(h.main, message, files)
		}
	}
}

// takesLong reports whether a request would keep the loop, and so the dead man's switch, waiting.
func takesLong(asked holderRequest) bool {
	return asked == askGateway || slices.Contains(besides, asked)
}

// serveLane answers what is asked on another lane, until that is closed.
func (h *holding) serveLane(file *os.File, allowed []holderRequest) {
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
		open = socket.Control(func(fd uintptr) { h.serve(int(fd), message, files) }) == nil
	}
}

// besides are the requests that may be made on other lanes than that of the loop.
var besides = []holderRequest{askCover, askRenew, askProbe, askPing}

// serve answers one request, and closes the files that came with it unless they are kept.
func (h *holding) serve(socket int, message []byte, files []int) {
	answer, given, err := h.carryOut(message, &files)
	closeAll(files)
	if err != nil {
		h.answer(socket, errorAnswer(err), nil)
		return
	}
	h.answer(socket, append([]byte{answerGood}, answer...), given)
	// What the daemon is not kept waiting for.
	switch holderRequest(message[0]) {
	case askCover, askFloating, askAcquire, askRenew:
		h.keepTogether()
	}
}

// answer sends an answer. A daemon that has ended meanwhile needs none.
func (h *holding) answer(socket int, answer []byte, files []int) {
	var rights []byte
	if len(files) > 0 {
		rights = unix.UnixRights(files...)
	}
	_ = unix.Sendmsg(socket, answer[:min(len(answer), maxAnswerBytes)], rights, nil, unix.MSG_NOSIGNAL)
}

// tell tells the daemon of an event. What there is no room for is lost: a daemon that does not read has other
// worries.
func (h *holding) tell(message []byte, files ...int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.events < 0 {
		return
	}
	var rights []byte
	if len(files) > 0 {
		rights = unix.UnixRights(files...)
	}
	_ = unix.Sendmsg(h.events, message, rights, nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
}

// keepTogether has the TUN device and the fence's programs end in their order, see bundle, and the daemon have them
// as well: if this process is killed, the fence stays. A daemon without rights is not given the device, by which it
// could send what it likes.
func (h *holding) keepTogether() {
	h.mu.Lock()
	fence, floating := h.fence, h.floating
	h.mu.Unlock()
	if fence == nil {
		return
	}
	var device *os.File
	if floating != nil {
		device = floating.place.get().tun
	}
	err := fence.share(device, func(bundle int) error {
		if bundle < 0 || bundle == h.bundle {
			return nil
		}
		h.bundle = bundle
		if h.trusted {
			h.tell([]byte{byte(eventPrograms)}, bundle)
			return nil
		}
		inside, err := queued(bundle)
		if err == nil && len(inside) > 0 {
			h.tell([]byte{byte(eventPrograms)}, inside[0])
		}
		closeAll(inside)
		return err
	})
	if err != nil {
		fmt.Fprintf(os.Stderr, "netio: keep the fence together with the device: %v\n", err)
	}
}

// daemonEnded begins the rest when the daemon has ended. The fence is there for as long as this process is.
func (h *holding) daemonEnded() {
	h.ended = daemonEnded
	if h.trusted {
		h.sockets.close() // the next daemon has a holder of its own, and needs the port
	}
	if h.fence == nil {
		return
	}
	switch former := h.fence.word.load(); former {
	case leaseIdle:
	case leaseFired:
		// It has ended in the middle of a release, or after this process has seen to it and before it knew.
		if h.removeAddresses() != nil {
			h.release()
		}
	default:
		h.fence.put(leaseFired)
		h.release()
	}
}

// resignPauses are the times between copies of the RESIGN: a datagram may be lost.
var resignPauses = [...]time.Duration{2 * time.Millisecond, 5 * time.Millisecond, 15 * time.Millisecond}

// How often, and for how long, an address is removed that the kernel does not let go of. Its
// lifetime is over by then.
const (
	removeEvery = 50 * time.Millisecond
	removeFor   = 10 * time.Second
)

// release removes the addresses, and tells the other boards afterwards: whoever takes over must be the only
// one. They are told at once if the fence is closed, since nobody reaches this board by the addresses then.
func (h *holding) release() {
	err := h.removeAddresses()
	if err == nil || h.fence.Closes() {
		h.sendResign()
	}
	if err != nil {
		h.remove = retry{at: Now() + removeEvery, until: Now() + removeFor, told: true}
		fmt.Fprintf(os.Stderr, "dead man's switch: %v\n", err)
	}
}

// finish does what is due of a release that was begun.
func (h *holding) finish() {
	now := Now()
	if h.remove.until > 0 && now >= h.remove.at {
		err := h.removeAddresses()
		h.remove.at = now + removeEvery
		if err == nil || now >= h.remove.until {
			h.remove = retry{}
		}
		if err == nil && !h.fence.Closes() {
			h.sendResign()
		}
	}
	if h.copies > 0 && now >= h.copyAt {
		h.sendCopy()
	}
}

// removeAddresses removes the addresses if they are held. A renewal that is on its way adds none any more.
func (h *holding) removeAddresses() error {
	if h.floating == nil {
		return nil
	}
	return h.floating.Release()
}

// sendResign sends the pre-signed RESIGN several times.
func (h *holding) sendResign() {
	if !h.past {
		h.copies = 1 + len(resignPauses)
		h.sendCopy()
	}
}

// sendCopy sends it to all. Where it does not arrive, the other boards find out by themselves, as after a
// pulled plug.
func (h *holding) sendCopy() {
	if h.copies--; h.copies > 0 {
		h.copyAt = Now() + resignPauses[len(resignPauses)-h.copies]
	}
	if len(h.resign.Datagram) == 0 || h.sender == nil {
		h.copies = 0
		return
	}
	for _, to := range h.resign.To {
		if to.Addr().Is4() {
			_ = unix.Sendto(int(h.sender.Fd()), h.resign.Datagram, unix.MSG_DONTWAIT, &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()})
		}
	}
}

// close closes all that was opened for the daemon.
func (h *holding) close() {
	unix.Close(h.main)
	h.leave() // the next daemon does not wait for a gateway that does not answer
	h.mu.Lock()
	open := h.open
	h.open = nil
	h.mu.Unlock()
	for _, lane := range open {
		lane.Close()
	}
	h.closeAnnouncer()
	h.closeFrames()
	h.besides.Wait()
	if h.floating != nil {
		if err := h.floating.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	if h.fence != nil {
		h.fence.Close()
	}
	if h.gateway != nil {
		h.gateway.Close()
	}
	if h.sender != nil {
		h.sender.Close()
	}
	if h.events >= 0 {
		unix.Close(h.events)
	}
	if h.trusted {
		h.sockets.close()
	}
}

// closeAnnouncer and closeFrames keep nobody waiting: to close a packet socket takes a while.
func (h *holding) closeAnnouncer() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if announcer := h.announcer; announcer != nil {
		h.besides.Go(func() { announcer.Close() })
	}
	h.announcer = nil
}

func (h *holding) closeFrames() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if frames := h.frames; frames != nil {
		h.besides.Go(func() { frames.Close() })
	}
	h.frames = nil
}

// isFloating reports whether something may be done for an address.
func (h *holding) isFloating(addr netip.Addr) bool { return slices.Contains(h.options.Floating, addr) }

// checkInterface refuses an interface that is not the group's. Of several whose subnets contain the address, the daemon may
// choose.
func (h *holding) checkInterface(name string) error {
	if group := h.options.Interface; group != "" {
		if name != group {
			return fmt.Errorf("netio: the holder works on %s and not on %s: restart topdog-holder.service if the configuration has changed", group, name)
		}
		return nil
	}
	own, err := prefixesOn(name)
	if err != nil {
		return err
	}
	floating := h.options.Floating[0]
	if !slices.ContainsFunc(own, func(p netip.Prefix) bool { return !p.IsSingleIP() && p.Addr() != floating && p.Contains(floating) }) {
		return fmt.Errorf("netio: the holder works on an interface whose subnet contains %s, which is not %s", floating, name)
	}
	return nil
}

// portAt returns the group's interface, or a port of that bridge, which must have that index.
func (h *holding) portAt(index int) (*net.Interface, error) {
	link, err := netlink.LinkByIndex(index)
	if err == nil && link.Attrs().MasterIndex != 0 {
		if _, err := h.linkAt(link.Attrs().MasterIndex); err != nil {
			return nil, err
		}
		return net.InterfaceByIndex(index)
	}
	return h.linkAt(index)
}

// linkAt returns the group's interface, which must have that index.
func (h *holding) linkAt(index int) (*net.Interface, error) {
	link, err := net.InterfaceByIndex(index)
	if err != nil {
		return nil, fmt.Errorf("%w (no such interface)", ErrLinkDown)
	}
	return link, h.checkInterface(link.Name)
}
