package netio

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"topdog/wire"
)

// discovery speaks Neighbor Discovery (RFC 4861) on one interface for the floating addresses of IPv6: it announces them, as long
// as the lease lasts, asks whether another host has one, and listens for rivals.
//
// It also answers solicitations. Unlike ARP, the kernel answers these only for an address of the interface at which they arrive,
// and the floating addresses are on a device of their own. So a holder that stands still falls silent by itself.
//
// Every board has joined the groups of the addresses, whether or not it leads. So a take-over need not wait until the switches
// know that it has (RFC 4541).
type discovery struct {
	addrs      []netip.Addr
	socket     packetSocket
	announcing announcing
	heard      func(m ndpMessage, sender hardwareAddr) // is told of each message of another host
	awaits     func() bool                             // reports whether somebody waits for such messages

	reading sync.Mutex // guards what follows
	inbox   packetInbox
	limit   wire.Limit     // of the messages that are read
	muted   []hardwareAddr // whose messages the kernel drops for a moment

	joining    sync.Mutex // guards what follows
	groups     int        // a socket that has joined the groups; -1 if the kernel has no IPv6
	joined     bool
	forwarding *os.File // says whether the interface forwards packets; nil if the kernel has no IPv6
}

// openDiscovery opens the packet socket on the interface with that index.
func openDiscovery(index int, addrs []netip.Addr, heard func(ndpMessage, hardwareAddr), awaits func() bool) (d *discovery, err error) {
	d = &discovery{addrs: addrs, heard: heard, awaits: awaits}
	d.announcing.say = d.say
	if d.socket, err = openPacketSocket(index, unix.ETH_P_IPV6, ndpFilter(addrs)); err != nil {
		return nil, err
	}
	// What has no IPv6 at present may get it later. Both are opened now, since later this may be another network namespace.
	if d.groups, err = unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
		d.groups = -1
	}
	if link, err := net.InterfaceByIndex(index); err == nil {
		d.forwarding, _ = os.Open(filepath.Join(confIPv6, link.Name, "forwarding"))
	}
	_ = d.join() // is tried again
	return d, nil
}

func (d *discovery) close() error {
	err := d.socket.file.Close()
	d.joining.Lock()
	defer d.joining.Unlock()
	if d.groups >= 0 {
		unix.Close(d.groups)
	}
	d.groups, d.joined = -1, false
	if d.forwarding != nil {
		d.forwarding.Close()
	}
	return err
}

// join joins the groups of the addresses, unless that was done.
func (d *discovery) join() error {
	d.joining.Lock()
	defer d.joining.Unlock()
	if d.joined {
		return nil
	}
	if d.groups < 0 {
		return fmt.Errorf("%w: this kernel has no IPv6", ErrLinkDown)
	}
	for _, addr := range d.addrs {
		request := &unix.IPv6Mreq{Multiaddr: solicitedNode(addr).As16(), Interface: uint32(d.socket.index)}
		err := unix.SetsockoptIPv6Mreq(d.groups, unix.IPPROTO_IPV6, unix.IPV6_JOIN_GROUP, request)
		if err != nil && err != unix.EADDRINUSE { // two addresses may have one group
			return fmt.Errorf("%w (join the group %v: %w)", ErrLinkDown, solicitedNode(addr), err)
		}
	}
	d.joined = true
	return nil
}

// say announces addresses once, and perhaps asks who else has them. It returns the first error.
func (d *discovery) say(addrs []netip.Addr, ask bool) (first error) {
	for _, addr := range addrs {
		err := d.announce(addr)
		if ask && err == nil {
			err = d.probe(addr)
		}
		if first == nil {
			first = err
		}
	}
	return first
}

// errNoDiscovery is what an Announcer says that was opened for addresses of IPv4 alone.
var errNoDiscovery = errors.New("netio: this announcer does not speak Neighbor Discovery: it was opened without an address of IPv6")

func (d *discovery) announce(addr netip.Addr) error {
	if d == nil {
		return errNoDiscovery
	}
	err := d.join()
	if err == nil {
		err = d.socket.send(etherMulticast(allNodes), advertise(addr, d.isRouter()))
	}
	if err != nil {
		return fmt.Errorf("netio: announce %s on interface %d: %w", addr, d.socket.index, err)
	}
	return nil
}

// probe asks everybody for an address. Whoever has it answers.
func (d *discovery) probe(addr netip.Addr) error {
	if d == nil {
		return errNoDiscovery
	}
	question := probe6(addr)
	return d.socket.send(etherMulticast(question.destination), question)
}

// isRouter reports whether the interface forwards packets, which neighbours are told (RFC 4861, section 4.4): to those that use
// this board as a router, an advertisement that does not say so takes the route away.
func (d *discovery) isRouter() bool {
	d.joining.Lock()
	defer d.joining.Unlock()
	if d.forwarding == nil {
		return false
	}
	value := []byte{'0'}
	_, err := d.forwarding.ReadAt(value, 0)
	return err == nil && value[0] != '0'
}

// read reads and handles one packet, or returns EAGAIN if there is none.
func (d *discovery) read(fd uintptr) error {
	d.reading.Lock()
	defer d.reading.Unlock()
	data, err := d.inbox.read(fd)
	if err != nil {
		return err
	}
	sender := hardwareAddr(d.inbox.sender.Addr[:len(hardwareAddr{})])
	if m, err := parseNDP(data); err == nil {
		d.receive(m, sender, fd)
	}
	d.throttle(fd, sender)
	return nil
}

// receive handles a message that has come in a frame of that sender, unless this host has sent it: a bridge or an access point
// may reflect that.
func (d *discovery) receive(m ndpMessage, sender hardwareAddr, fd uintptr) {
	own, err := ownHardwareAddr(int(fd))
	if err != nil || sender == own || m.mac == own {
		return
	}
	if m.mac != (hardwareAddr{}) {
		sender = m.mac
	}
	if m.kind == solicitation {
		d.answer(m, sender)
	}
	d.heard(m, sender)
}

// answer answers a solicitation if this board may answer for the address.
func (d *discovery) answer(m ndpMessage, sender hardwareAddr) {
	d.announcing.mu.Lock() // so that nothing is sent once the address was released
	defer d.announcing.mu.Unlock()
	if !d.announcing.answers(m.target) || slices.Contains(d.announcing.addrs, m.source) {
		return
	}
	answer := answerTo(m, d.isRouter())
	if answer.destination == allNodes {
		sender = etherMulticast(allNodes)
	}
	_ = d.socket.send(sender, answer) // whoever has asked will ask again
}

// ndpRate is what a flood is limited to, as arpRate does for ARP. It is greater by much, since no kernel answers here: a client
// whose solicitations are dropped does not find the address. To answer one takes about 20 µs.
var ndpRate = wire.Rate{Every: time.Millisecond, Burst: 256}

// ndpPause is for how long the kernel drops the messages of a sender in a flood.
const ndpPause = 10 * time.Millisecond

// mutedMax is how many senders are told apart in a flood.
const mutedMax = 16

// throttle counts a packet that was read, unless somebody waits for an answer. In a flood the kernel drops those of its sender for a
// moment, so that others are answered all the same, and if there are very many senders, all. It is called with reading locked.
func (d *discovery) throttle(fd uintptr, sender hardwareAddr) {
	// What was already in the queue does not count.
	if len(d.muted) > mutedMax || slices.Contains(d.muted, sender) || d.awaits() || d.limit.Allow(Now(), ndpRate) {
		return
	}
	if d.muted = append(d.muted, sender); len(d.muted) == 1 {
		time.AfterFunc(ndpPause, d.passAll)
	}
	addrs := d.addrs
	if len(d.muted) > mutedMax {
		addrs = nil
	}
	_ = setFilter(int(fd), ndpFilter(addrs, d.muted...)) // if the kernel has no memory for it, the flood goes on
}

// passAll lets all messages in again. If the kernel refuses, it is tried again later.
func (d *discovery) passAll() {
	d.reading.Lock()
	defer d.reading.Unlock()
	if len(d.muted) == 0 {
		return
	}
	_ = d.socket.Control(func(fd uintptr) { // an error says that the socket is closed
		if setFilter(int(fd), ndpFilter(d.addrs)) != nil {
			time.AfterFunc(ndpPause, d.passAll)
			return
		}
		d.muted = d.muted[:0]
	})
}

// confIPv6 has the settings of IPv6 for each interface.
const confIPv6 = "/proc/sys/net/ipv6/conf"

// checkIPv6 says why an address of IPv6 would be of no use that is on a device, which may be the interface itself, and is asked for
// on the interface.
func checkIPv6(iface, device string) error {
	if _, err := os.Stat(confIPv6); errors.Is(err, os.ErrNotExist) {
		return errors.New("this kernel has no IPv6: leave out ipv6.disable=1 in its command line, or the address in the configuration")
	}
	for _, on := range []string{iface, device} {
		value, err := os.ReadFile(filepath.Join(confIPv6, on, "disable_ipv6")) // the device may be about to come
		switch {
		case err != nil || len(value) == 0 || value[0] == '0':
		case on == iface:
			return fmt.Errorf("IPv6 is switched off on %s: sysctl net.ipv6.conf.%[1]s.disable_ipv6=0", iface)
		default: // a device of ours has what is the default when it is made
			return fmt.Errorf("IPv6 is switched off on %s: sysctl net.ipv6.conf.default.disable_ipv6=0, and restart topdog-holder.service", device)
		}
	}
	return nil
}
