package netio

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"topdog/wire"
)

// Announcer speaks ARP on one interface: it tells the neighbours where the
// floating addresses are, asks whether somebody else has one, listens for
// rivals (RFC 5227), asks single hosts whether they are there, and watches a floating address by asking its host for it again
// and again. For an added address the
// kernel does none of that; it only answers when it is asked. While a board doubts that it hears
// anything, the Announcer also counts the frames of other hosts. For the floating addresses of IPv6 it speaks Neighbor Discovery,
// see discovery.
//
// All methods may be called from any goroutine.
type Announcer struct {
	index int
	local netip.Addr // this host's own address
	// speakers are the floating addresses of IPv4, and this host's own: whoever speaks as one of them is heard. Without
	// floating addresses, everybody is.
	speakers []netip.Addr
	socket   packetSocket
	six      *discovery // speaks for the floating addresses of IPv6; nil if there are none

	close    sync.Once
	closed   chan struct{}
	listener sync.WaitGroup

	// reading is held by whoever reads the socket, so that what is read before and after
	// a question can be told apart.
	reading   sync.Mutex
	limit     wire.Limit   // of the packets that are read
	throttled bool         // the kernel drops whatever this board does not wait for
	passing   []netip.Addr // who is heard, or was asked before, except in a flood
	drainOnce func(fd uintptr)
	drained   bool // drainOnce has read all
	inbox     packetInbox
	watching  addressWatching

	mu         sync.Mutex
	waiting    map[*awaited]struct{}
	ours       []netip.Addr
	heard      func(netip.Addr, net.HardwareAddr)
	asked      map[netip.Addr]time.Duration // when each address was asked last, on the clock of Now
	answered   func(ARPAnswer)
	announcers map[netip.Addr]hardwareAddr // who has announced each floating address last
	claims     wire.Limit                  // of the rivals for addresses of IPv6 that are told of

	announcing announcing

	counting sync.Mutex    // guards what follows
	counter  *frameCounter // nil while no frames are counted
	closing  sync.WaitGroup
}

// OpenAnnouncer opens the packet socket on the interface with the given index,
// and starts to listen. It needs CAP_NET_RAW. The Announcer is tied to that
// index: open a new one when Watch reports another.
//
// local is this host's own address, in whose name it asks; it may be invalid.
// If floating addresses are given, only these packets wake the process: those that speak as one of
// them or as this host, those that probe for one, replies of whoever was asked, and what the watched machine sends to this
// host. Of a flood of these, only some packets a second do. Without floating addresses, every ARP packet does.
func OpenAnnouncer(index int, local netip.Addr, floating ...netip.Addr) (*Announcer, error) {
	a := &Announcer{
		index:   index,
		local:   local.Unmap(),
		closed:  make(chan struct{}),
		waiting: map[*awaited]struct{}{},
		asked:   map[netip.Addr]time.Duration{}, announcers: map[netip.Addr]hardwareAddr{},
	}
	four, six := byFamily(floating)
	for _, addr := range four {
		a.announcers[addr] = hardwareAddr{}
	}
	if a.speakers = four; len(floating) > 0 && local.IsValid() {
		a.speakers = append(a.speakers, a.local)
	}
	a.announcing.say, a.drainOnce = a.say, a.readAll
	var filter []bpf.Instruction
	if len(a.speakers) > 0 {
		filter = a.filter()
	}
	var err error
	if a.socket, err = openPacketSocket(index, unix.ETH_P_ARP, filter); err == nil && len(six) > 0 {
		if a.six, err = openDiscovery(index, six, a.discovered, a.awaits); err != nil {
			a.socket.file.Close()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("netio: announce on interface %d: %w", index, err)
	}
	a.listener.Go(func() { a.socket.listen(a.closed, a.read) })
	if a.six != nil {
		a.listener.Go(func() { a.six.socket.listen(a.closed, a.six.read) })
	}
	return a, nil
}

// firstIPv4 returns the first address of IPv4 among floating addresses, which stands for all: whoever answers for it holds them all.
// It is invalid if there is none.
func firstIPv4(floating []netip.Addr) (first netip.Addr) {
	if four, _ := byFamily(floating); len(four) > 0 {
		first = four[0]
	}
	return first
}

// byFamily sorts addresses by their families.
func byFamily(addrs []netip.Addr) (four, six []netip.Addr) {
	for _, addr := range addrs {
		if addr = addr.Unmap(); addr.Is4() {
			four = append(four, addr)
		} else {
			six = append(six, addr)
		}
	}
	return four, six
}

// Hold has the floating addresses that are ours announced, at once and then again and again, for as long as lasts reports that
// this board may answer for them; nil for always. It ends what Hold was called for before; without addresses, it only does
// that. Another host that speaks as one of them is a rival.
func (a *Announcer) Hold(ours []netip.Addr, lasts func() bool) {
	a.mu.Lock()
	a.ours = slices.Clone(ours)
	a.mu.Unlock()
	four, six := byFamily(ours)
	a.announcing.hold(four, lasts)
	if a.six != nil {
		a.six.announcing.hold(six, lasts)
	}
}

// AnnounceAnew announces what is held as if it had been acquired now.
func (a *Announcer) AnnounceAnew() {
	a.announcing.anew()
	if a.six != nil {
		a.six.announcing.anew()
	}
}

// Unannounced sets the function that is told why what is held could not be announced. It is tried again all the same. failed must
// not call Hold, AnnounceAnew or Close.
func (a *Announcer) Unannounced(failed func(error)) {
	a.announcing.tell(failed)
	if a.six != nil {
		a.six.announcing.tell(failed)
	}
}

// say announces addresses once, and perhaps asks who else has them. It returns the first error.
func (a *Announcer) say(addrs []netip.Addr, ask bool) (first error) {
	for _, addr := range addrs {
		err := a.Announce(addr)
		if ask && err == nil {
			err = a.Resolve(addr)
		}
		if first == nil {
			first = err
		}
	}
	return first
}

// Announce tells every neighbour once that addr is at our Ethernet address: by
// an ARP request and a reply, or by an advertisement. The error matches ErrLinkDown when the link is away.
func (a *Announcer) Announce(addr netip.Addr) error {
	if addr = addr.Unmap(); addr.Is6() {
		return a.six.announce(addr)
	}
	announcements := announcements(addr)
	if err := a.socket.send(broadcast, announcements[0], announcements[1]); err != nil {
		return fmt.Errorf("netio: announce %s on interface %d: %w", addr, a.index, err)
	}
	return nil
}

// Rivals sets which floating addresses are ours until the next Hold, and the function to call when another host
// speaks as one of them, or as this host. It replaces what was set before. heard is called by the goroutine that listens,
// which waits for it, so heard must not call Close.
func (a *Announcer) Rivals(ours []netip.Addr, heard func(addr netip.Addr, mac net.HardwareAddr)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ours, a.heard = slices.Clone(ours), heard
}

// read locks reading, and calls readLocked.
func (a *Announcer) read(fd uintptr) error {
	a.reading.Lock()
	defer a.reading.Unlock()
	return a.readLocked(fd)
}

// readLocked reads and handles one packet, or returns EAGAIN if there is none.
func (a *Announcer) readLocked(fd uintptr) error {
	data, err := a.inbox.read(fd)
	if err != nil {
		return err
	}
	packet, err := parseARP(data)
	watched := err == nil && a.watchAnswered(packet, a.inbox.sender.Pkttype == unix.PACKET_HOST)
	if err == nil && !(watched && a.onlyWatched(packet.senderIP)) {
		if own, err := ownHardwareAddr(int(fd)); err == nil {
			a.receive(packet, own)
		}
	}
	if !watched {
		a.throttle()
	}
	return nil
}

// packetInbox is a packet that was read, and where it was sent to. Its memory is reused.
type packetInbox struct {
	data   [128]byte // Ethernet pads the 28 bytes to 46
	sender unix.RawSockaddrLinklayer
	vector unix.Iovec
	header unix.Msghdr
}

// read reads one packet. It is not unix.Recvfrom, which allocates the sender. The system call is one that does not wait, and is
// made as such (RawSyscall): otherwise the runtime wakes a second thread of an idle process, which costs more than the call.
func (i *packetInbox) read(fd uintptr) ([]byte, error) {
	i.vector.Base = &i.data[0]
	i.vector.SetLen(len(i.data))
	i.header = unix.Msghdr{Name: (*byte)(unsafe.Pointer(&i.sender)), Namelen: unix.SizeofSockaddrLinklayer, Iov: &i.vector}
	i.header.SetIovlen(1)
	n, _, errno := unix.RawSyscall(unix.SYS_RECVMSG, fd, uintptr(unsafe.Pointer(&i.header)), unix.MSG_DONTWAIT)
	if errno != 0 {
		return nil, errno // never EINTR, since it does not wait
	}
	return i.data[:n], nil
}

// receive tells whoever waits for an ARP packet, unless this host has sent it: a bridge or an access point may reflect what
// was sent from the Ethernet address own.
func (a *Announcer) receive(packet arpPacket, own hardwareAddr) {
	if packet.senderMAC == own {
		return
	}
	a.mu.Lock()
	a.tellWaiting(packet.conflictsWith, packet.senderMAC)
	heard := a.heard
	// A host that only probes for this host's own address may be a switch that looks for hosts, and does not have the
	// address.
	rival := slices.Contains(a.ours, packet.senderIP) || packet.senderIP == a.local
	answer, answered := a.answer(packet, own)
	a.mu.Unlock()
	if packet.senderIP == a.watching.wanted.Addr && packet.senderIP == packet.targetIP {
		a.aim() // somebody has announced it
	}
	if rival && heard != nil {
		heard(packet.senderIP, packet.senderMAC[:])
	}
	if answered != nil {
		answered(answer)
	}
}

// tellWaiting tells the probes for those addresses with which something conflicts that a host has sent. It is called with mu locked.
func (a *Announcer) tellWaiting(conflictsWith func(netip.Addr) bool, sender hardwareAddr) {
	for w := range a.waiting {
		if conflictsWith(w.addr) {
			select {
			case w.heard <- sender:
			default:
			}
		}
	}
}

// awaits reports whether a probe waits for an answer.
func (a *Announcer) awaits() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.waiting) > 0
}

// discovered is receive for a message of IPv6 that another host has sent.
func (a *Announcer) discovered(m ndpMessage, sender hardwareAddr) {
	a.mu.Lock()
	a.tellWaiting(m.conflictsWith, sender)
	heard := a.heard
	i := slices.IndexFunc(a.ours, m.speaksAs)
	var rival netip.Addr
	if i >= 0 && a.claims.Allow(Now(), arpRate) {
		rival = a.ours[i]
	}
	a.mu.Unlock()
	if rival.IsValid() && heard != nil {
		heard(rival, sender[:])
	}
}

// Close stops listening, and closes the sockets. It may be called more than once.
func (a *Announcer) Close() error {
	var err error
	a.close.Do(func() {
		close(a.closed)
		a.Hold(nil, nil)
		a.closeWatch()
		err = a.socket.file.Close()
		if a.six != nil {
			err = errors.Join(err, a.six.close())
		}
		a.listener.Wait()
		_ = a.Calm()
		a.closing.Wait()
	})
	return err
}

// drain reads what has arrived, and reports whether that was all. It is called with reading locked.
func (a *Announcer) drain() (empty bool) {
	return a.socket.Control(a.drainOnce) != nil || a.drained // an error says that the socket is closed
}

// readAll is drainOnce, which is made once, since a closure allocates.
func (a *Announcer) readAll(fd uintptr) {
	a.drained = false
	for n := 0; n < drainMax && !a.drained; n++ {
		a.drained = a.readLocked(fd) != nil
	}
}

// A flood of ARP packets that concern this board could keep a core busy: somebody may speak as a
// floating address thirty thousand times a second, or answer again and again. So
// their rate is limited. Above it, the kernel drops all but the replies that this board waits
// for, and lets the others in again a moment later. A rival is then still heard several times a second,
// which is more often than this board answers one.
// arpRate allows 50 packets a second in the long run, each of which wakes the program. More may come at once: when a leader
// announces its floating addresses, there are two for each, and there are the answers of some neighbours.
var arpRate = wire.Rate{Every: 20 * time.Millisecond, Burst: 128}

// arpPause is for how long the other packets are dropped.
const arpPause = 100 * time.Millisecond

// throttle counts a packet that was read. It is called with reading locked.
func (a *Announcer) throttle() {
	if len(a.speakers) == 0 || a.throttled || a.limit.Allow(Now(), arpRate) {
		return // the packets that were already in the queue do not count
	}
	a.throttled = true
	_ = a.renewFilter() // if the kernel has no memory for that filter, the flood goes on
	time.AfterFunc(arpPause, a.passAll)
}

// awaitedAddrs are the addresses that this board has asked, and that have not answered. It is called with reading locked.
func (a *Announcer) awaitedAddrs() []netip.Addr {
	a.mu.Lock()
	defer a.mu.Unlock()
	awaited := slices.AppendSeq(a.watchAwaits(), maps.Keys(a.asked))
	for p := range a.waiting {
		if p.addr.Is4() {
			awaited = append(awaited, p.addr)
		}
	}
	return awaited
}

// passAll lets all packets in again. If the kernel refuses, it is tried again later.
func (a *Announcer) passAll() {
	a.reading.Lock()
	defer a.reading.Unlock()
	a.throttled = false
	if a.renewFilter() != nil {
		a.throttled = true
		time.AfterFunc(arpPause, a.passAll)
	}
}

// renewFilter has the kernel pass what concerns this board by now. It is called with reading locked.
func (a *Announcer) renewFilter() (err error) {
	if len(a.speakers) == 0 {
		return nil // everything passes
	}
	former := a.passing
	_ = a.socket.Control(func(fd uintptr) { // an error says that the socket is closed
		if err = setFilter(int(fd), a.filter()); err != nil {
			a.passing = former
		}
	})
	return err
}

// filter is the filter for what concerns this board; in a flood, for what it waits for alone.
func (a *Announcer) filter() []bpf.Instruction {
	awaited := a.awaitedAddrs()
	if a.throttled {
		return arpFilter(nil, awaited, hardwareAddr{}, 0)
	}
	a.passing = append(awaited, a.speakers...)
	return arpFilter(a.speakers, awaited, a.watching.target, a.watching.least)
}

// passAnswers has the kernel pass the answers to new questions. It is called with reading locked.
func (a *Announcer) passAnswers() error {
	for _, addr := range a.awaitedAddrs() {
		if a.throttled || !slices.Contains(a.passing, addr) {
			return a.renewFilter()
		}
	}
	return nil
}

// renewAwaited adds a new question of the watch to the filter of a flood. It is called with reading locked.
func (a *Announcer) renewAwaited() {
	if a.throttled {
		_ = a.renewFilter()
	}
}
