package netio

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"

	"golang.org/x/net/bpf"

	"topdog/wire"
)

// Options say where a Conn listens and speaks.
type Options struct {
	// Interface is the name of the group's interface, such as "eth0".
	Interface string
	// Local is the board's own IPv4 address on it. Everything is sent from it.
	Local netip.Addr
	// Group is the IPv4 multicast address and port of the group.
	Group netip.AddrPort
	// Floating are the floating addresses. While this board holds one, datagrams to it, on the port
	// of the group, arrive here.
	Floating []netip.Addr
	// Shared allows several boards in one host on one interface, as the demo
	// runs them: they share the port of the group, and the host hears its own
	// multicast. Without it a second daemon fails with EADDRINUSE, as it should.
	Shared bool
	// Tag is that of the group if this board has several, which share the port: then the sockets for what is sent to all
	// boards hear this group alone, and what is sent to this board alone may arrive at the sockets of any of its groups.
	Tag wire.GroupTag

	// replaces says that this process already has sockets with these addresses. The caller ends that others may have them.
	replaces bool
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

// CheckGroup says why an address and port cannot be those of a group.
func CheckGroup(group netip.AddrPort) error {
	switch ip := group.Addr(); {
	case !ip.Is4() || !ip.IsMulticast():
		return fmt.Errorf("%s is not an IPv4 multicast address (224.0.0.0 to 239.255.255.255)", ip)
	case group.Port() == 0:
		return errors.New("0 is not a UDP port")
	}
	return nil
}

// Conn is the UDP sockets of one board. Each is bound to one address to which
// datagrams are sent: the board's own, the group's, the broadcast address and the
// floating ones. So the kernel sorts the traffic, and no packet for other groups or
// addresses is even seen. All methods may be called from any goroutine.
type Conn struct {
	options   Options
	index     int // of the interface when the sockets were opened
	self      netip.AddrPort
	broadcast netip.AddrPort // where Broadcast sends to
	multicast *net.UDPConn   // receives what is sent to the group
	unicast   *net.UDPConn   // receives what is sent to Local; sends everything
	writer    *writer        // to unicast
	sockets   []*net.UDPConn // all of them
	readers   []*reader      // one for each
	admission admission

	close  sync.Once
	closed chan struct{}

	wrongTTL, truncated, receiveErrors atomic.Uint64
	own                                atomic.Uint64 // datagrams that this board has sent itself
	anyInterface                       atomic.Bool   // see ByAnyInterface
}

// Open opens the sockets and joins the group. The error matches ErrLinkDown
// when there is no such interface or address (yet), and EADDRINUSE when
// another daemon runs.
//
// A Conn is tied to the interface that it was opened on. When the interface is
// deleted and made again (a USB adapter pulled and plugged) it has a new index
// and the old sockets stay deaf for ever, without any error: close the Conn and
// open a new one whenever Watch reports another index or another address.
func Open(o Options) (*Conn, error) {
	c, err := newConn(o)
	if err != nil {
		return nil, fmt.Errorf("netio: open sockets: %w", err)
	}
	if err := c.open(); err != nil {
		_ = c.Close() // nothing was sent yet
		return nil, fmt.Errorf("netio: open sockets on %s: %w", o.Interface, err)
	}
	return c, nil
}

// self is what the sockets of this board alone are bound to.
func (o Options) self() netip.AddrPort { return netip.AddrPortFrom(o.Local, o.Group.Port()) }

// newConn returns a Conn without sockets.
func newConn(o Options) (*Conn, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	return &Conn{
		options:   o,
		self:      o.self(),
		broadcast: netip.AddrPortFrom(LimitedBroadcast, o.Group.Port()),
		closed:    make(chan struct{}),
		admission: newAdmission(),
	}, nil
}

// LimitedBroadcast reaches every host on the link (RFC 919, section 7). A switch that
// snoops on IGMP forwards it to all ports, whatever it believes about the groups.
var LimitedBroadcast = netip.AddrFrom4([4]byte{255, 255, 255, 255})

func (c *Conn) open() error {
	link, err := net.InterfaceByName(c.options.Interface)
	if err != nil {
		return fmt.Errorf("%w (no such interface)", ErrLinkDown)
	}
	c.index = link.Index
	for _, b := range c.binds() {
		socket, err := openSocket(c.options, c.index, b.to, b.path)
		if err != nil {
			return err
		}
		if err := c.add(socket, b.path); err != nil {
			return err
		}
		if b.path != PathMulticast {
			continue
		}
		if err := join(socket, c.options.Group.Addr(), c.index); err != nil {
			return fmt.Errorf("join group %s: %w", c.options.Group.Addr(), withLinkDown(err))
		}
	}
	return nil
}

// add adds the socket of a path.
func (c *Conn) add(socket *net.UDPConn, path Path) error {
	c.sockets = append(c.sockets, socket)
	switch path {
	case PathUnicast:
		c.unicast = socket
	case PathMulticast:
		c.multicast = socket
	}
	r, err := newReader(socket, path)
	if err != nil {
		return err
	}
	c.readers = append(c.readers, r)
	if path == PathUnicast {
		c.writer = newWriter(r.socket)
	}
	return nil
}

// ByAnyInterface sets whether datagrams to this board alone are accepted from any interface, and not only from the
// Conn's own. They should be if another interface is in the same network, such as cable and Wi-Fi: Linux answers ARP
// for each of its addresses on every interface (arp_ignore, Documentation/networking/ip-sysctl.rst), so each may
// receive what is meant for the other. What comes so is Elsewhere.
func (c *Conn) ByAnyInterface(may bool) error {
	filter := byInterface(c.index)
	if may {
		filter = []bpf.Instruction{bpf.RetConstant{Val: pass}}
	}
	c.anyInterface.Store(may)
	var failed []error
	for _, r := range c.readers {
		if r.path == PathUnicast || r.path == PathFloating {
			_ = r.socket.Control(func(fd uintptr) { failed = append(failed, setInterfaceTold(int(fd), may), setFilter(int(fd), filter)) }) // an error says that it is closed
		}
	}
	return errors.Join(failed...)
}

// Multicast sends b to the group. An error matches ErrLinkDown when the link is
// away. No error does not mean that it was sent: with the cable out, the kernel
// accepts a packet and throws it away.
func (c *Conn) Multicast(b []byte) error { return c.send(b, c.options.Group) }

// Broadcast sends b to every host on the link; errors are as for Multicast.
func (c *Conn) Broadcast(b []byte) error { return c.send(b, c.broadcast) }

// Unicast sends b to one board; errors are as for Multicast.
func (c *Conn) Unicast(b []byte, to netip.AddrPort) error { return c.send(b, to) }

func (c *Conn) send(b []byte, to netip.AddrPort) error {
	if len(b) > wire.MaxPacket {
		return fmt.Errorf("netio: send to %s on %s: %d bytes are more than the %d that fit into one frame",
			to, c.options.Interface, len(b), wire.MaxPacket)
	}
	if err := c.writer.write(b, to); err != nil {
		return c.sendError(to, err)
	}
	return nil
}

// sendError is apart from send so that the arguments of the message do not
// escape to the heap when there is no error.
func (c *Conn) sendError(to netip.AddrPort, err error) error {
	return fmt.Errorf("netio: send to %s on %s: %w", to, c.options.Interface, withLinkDown(err))
}

// Rejoin leaves the group and joins it again, which sends fresh IGMP reports.
// Use it when multicast stays away although the link is up: some Wi-Fi drivers
// and snooping switches forget a membership without telling anyone. The
// error matches ErrLinkDown when the interface that the Conn was opened on no longer exists.
func (c *Conn) Rejoin() error {
	group := c.options.Group.Addr()
	// It does not matter if the socket was not in the group.
	_ = leave(c.multicast, group, c.index)
	if err := join(c.multicast, group, c.index); err != nil {
		return fmt.Errorf("netio: join group %s on %s again: %w", group, c.options.Interface, withLinkDown(err))
	}
	return nil
}

// Close closes all sockets, which ends Serve. It may be called more than once.
func (c *Conn) Close() error {
	var failed []error
	c.close.Do(func() {
		close(c.closed)
		for _, socket := range c.sockets {
			failed = append(failed, socket.Close())
		}
	})
	return errors.Join(failed...)
}
