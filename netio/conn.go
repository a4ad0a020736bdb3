package netio

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"topdog/wire"
)

// controlSpace holds the one control message that is asked for (24 bytes for
// IP_TTL) with room to spare.
const controlSpace = 64

// Options say where a Conn listens and speaks.
type Options struct {
	// Interface is the name of the group's interface, such as "eth0".
	Interface string
	// Local is the board's own IPv4 address on it. Everything is sent from it.
	Local netip.Addr
	// Group is the IPv4 multicast address and port of the group.
	Group netip.AddrPort
	// Shared allows several boards in one host on one interface, as the demo
	// runs them: they share the port of the group, and the host hears its own
	// multicast. Without it a second daemon fails with EADDRINUSE, as it should.
	Shared bool
}

func (o *Options) validate() error {
	o.Local = o.Local.Unmap()
	o.Group = netip.AddrPortFrom(o.Group.Addr().Unmap(), o.Group.Port())
	switch {
	case o.Interface == "":
		return errors.New("no interface was given")
	case !o.Local.Is4():
		return fmt.Errorf("the board's own address must be an IPv4 address, not %q", o.Local)
	}
	if err := CheckGroup(o.Group); err != nil {
		return fmt.Errorf("the group's address: %w", err)
	}
	return nil
}

// CheckGroup says why boards cannot meet at an address and port.
func CheckGroup(group netip.AddrPort) error {
	switch ip := group.Addr(); {
	case !ip.Is4() || !ip.IsMulticast():
		return fmt.Errorf("%s is not an IPv4 multicast address (224.0.0.0 to 239.255.255.255)", ip)
	case group.Port() == 0:
		return errors.New("0 is not a UDP port")
	}
	return nil
}

// Datagram is one packet from another board on the link.
type Datagram struct {
	// Data is only valid during the call that delivers it.
	Data []byte
	// From is the sender's own address and port.
	From netip.AddrPort
	// Multicast tells whether it came by way of the group or to this board alone.
	Multicast bool
	// At is when it was read, on the clock of Now.
	At time.Duration
}

// Drops counts what was received and not delivered.
type Drops struct {
	WrongTTL      uint64 // came from beyond the link, or from something that does not speak topdog
	Truncated     uint64 // longer than wire.MaxPacket
	ReceiveErrors uint64 // reads that failed; the reader waits a little and goes on
}

// Conn is the pair of UDP sockets of one board. The one for the group is bound
// to the group's address and the other one to the board's own address, so the
// kernel sorts the traffic and no packet for other groups or addresses is even seen.
// All methods may be called from any goroutine.
type Conn struct {
	options   Options
	index     int // of the interface when the sockets were opened
	self      netip.AddrPort
	multicast *net.UDPConn // receives what is sent to the group; sends nothing
	unicast   *net.UDPConn // receives what is sent to Local; sends everything

	close  sync.Once
	closed chan struct{}

	wrongTTL, truncated, receiveErrors atomic.Uint64
}

// Open opens the sockets and joins the group. The error matches ErrLinkDown
// when the interface or the address is not there (yet), and EADDRINUSE when
// another daemon is.
//
// A Conn is tied to the interface that it was opened on. When the interface is
// deleted and made again (a USB adapter pulled and plugged) it has a new index
// and the old sockets stay deaf for ever, without any error: close the Conn and
// open a new one whenever Watch reports another index or another address.
func Open(o Options) (*Conn, error) {
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("netio: open sockets: %w", err)
	}
	c := &Conn{
		options: o,
		self:    netip.AddrPortFrom(o.Local, o.Group.Port()),
		closed:  make(chan struct{}),
	}
	if err := c.open(); err != nil {
		return nil, fmt.Errorf("netio: open sockets on %s: %w", o.Interface, err)
	}
	return c, nil
}

func (c *Conn) open() error {
	link, err := net.InterfaceByName(c.options.Interface)
	if err != nil {
		return fmt.Errorf("%w (no such interface)", ErrLinkDown)
	}
	c.index = link.Index
	if c.unicast, err = openSocket(c.options, c.index, c.self, false); err != nil {
		return err
	}
	if c.multicast, err = openSocket(c.options, c.index, c.options.Group, c.options.Shared); err != nil {
		c.unicast.Close()
		return err
	}
	if err = join(c.multicast, c.options.Group.Addr(), c.index); err != nil {
		c.unicast.Close()
		c.multicast.Close()
		return fmt.Errorf("join group %s: %w", c.options.Group.Addr(), withLinkDown(err))
	}
	return nil
}

// Serve delivers every datagram that arrives until Close is called, and then
// returns nil. The two sockets are read by a goroutine each, so deliver may be
// called twice at the same time. Serve survives every error that a read can
// return: the link may go and come back under it.
func (c *Conn) Serve(deliver func(Datagram)) error {
	var readers sync.WaitGroup
	readers.Go(func() { c.receive(c.multicast, true, deliver) })
	readers.Go(func() { c.receive(c.unicast, false, deliver) })
	readers.Wait()
	return nil
}

// datagramReader is the one method of net.UDPConn that reads without allocating.
type datagramReader interface {
	ReadMsgUDPAddrPort(b, oob []byte) (n, oobn, flags int, addr netip.AddrPort, err error)
}

func (c *Conn) receive(socket datagramReader, multicast bool, deliver func(Datagram)) {
	var (
		data     = make([]byte, wire.MaxPacket)
		control  = make([]byte, controlSpace)
		failures int
	)
	for {
		n, controls, flags, from, err := socket.ReadMsgUDPAddrPort(data, control)
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			c.receiveErrors.Add(1)
			failures++
			if !pause(c.closed, retryDelay(failures)) {
				return
			}
			continue
		}
		failures = 0
		switch {
		case flags&unix.MSG_TRUNC != 0:
			c.truncated.Add(1)
		case ttl(control[:controls]) != wire.TTL:
			c.wrongTTL.Add(1)
		case c.options.Shared && from == c.self:
			// Our own multicast, looped back. Without Shared the kernel loops
			// nothing back, and rejects what claims to come from our own address.
		default:
			deliver(Datagram{Data: data[:n], From: from, Multicast: multicast, At: Now()})
		}
	}
}

// retryDelay is how long to wait after so many failed reads in a row. The first
// failure is usually a message about one earlier packet (ICMP port
// unreachable) or about the link going down, and the next read simply blocks,
// so it costs no wait; an error that stays must not eat the CPU.
func retryDelay(failures int) time.Duration {
	const (
		first = 10 * time.Millisecond
		most  = time.Second
	)
	switch {
	case failures <= 1:
		return 0
	case failures >= 9: // 10 ms doubled 7 times is over the limit
		return most
	default:
		return min(first<<(failures-2), most)
	}
}

// pause waits for d. It returns false as soon as stop is closed.
func pause(stop <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-stop:
		return false
	case <-timer.C:
		return true
	}
}

// Multicast sends b to the group. An error matches ErrLinkDown when the link is
// away. No error does not mean that it was sent: with the cable out, the kernel
// accepts a packet and throws it away.
func (c *Conn) Multicast(b []byte) error { return c.send(b, c.options.Group) }

// Unicast sends b to one board; errors are as for Multicast.
func (c *Conn) Unicast(b []byte, to netip.AddrPort) error { return c.send(b, to) }

func (c *Conn) send(b []byte, to netip.AddrPort) error {
	if len(b) > wire.MaxPacket {
		return fmt.Errorf("netio: send to %s on %s: %d bytes are more than the %d that fit into one frame",
			to, c.options.Interface, len(b), wire.MaxPacket)
	}
	if _, err := c.unicast.WriteToUDPAddrPort(b, to); err != nil {
		return c.sendError(to, err)
	}
	return nil
}

// sendError is apart from send so that the arguments of the message do not
// escape to the heap when there is no error.
func (c *Conn) sendError(to netip.AddrPort, err error) error {
	if errno, ok := errors.AsType[unix.Errno](err); ok {
		err = errno // net's own wording repeats both addresses
	}
	return fmt.Errorf("netio: send to %s on %s: %w", to, c.options.Interface, withLinkDown(err))
}

// Rejoin leaves the group and joins it again, which sends fresh IGMP reports.
// Use it when multicast stays away although the link is up: some Wi-Fi drivers
// and snooping switches forget a membership without telling anyone. The
// error matches ErrLinkDown when the interface that the Conn was opened on no longer exists.
func (c *Conn) Rejoin() error {
	group := c.options.Group.Addr()
	// Not being a member is no obstacle to becoming one.
	_ = leave(c.multicast, group, c.index)
	if err := join(c.multicast, group, c.index); err != nil {
		return fmt.Errorf("netio: join group %s on %s again: %w", group, c.options.Interface, withLinkDown(err))
	}
	return nil
}

// Drops returns how many datagrams were dropped so far, and why.
func (c *Conn) Drops() Drops {
	return Drops{
		WrongTTL:      c.wrongTTL.Load(),
		Truncated:     c.truncated.Load(),
		ReceiveErrors: c.receiveErrors.Load(),
	}
}

// Close closes both sockets, which ends Serve. It may be called more than once.
func (c *Conn) Close() error {
	var err error
	c.close.Do(func() {
		close(c.closed)
		err = errors.Join(c.multicast.Close(), c.unicast.Close())
	})
	return err
}
