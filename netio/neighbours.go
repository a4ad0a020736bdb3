package netio

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sort"

	"github.com/vishvananda/netlink"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Neighbour is a host on the link whose Ethernet address the kernel knows.
type Neighbour struct {
	Addr netip.Addr
	MAC  net.HardwareAddr
}

// Neighbours are what the kernel knows of the hosts on one interface.
type Neighbours struct {
	Hosts   []Neighbour // the most recently confirmed ones first
	Gateway netip.Addr  // the default gateway, if it is reached by this interface; else invalid
}

// ReadNeighbours asks the kernel for the neighbours on the interface with the given index. After an error, what could be
// read is there.
func ReadNeighbours(index int) (n Neighbours, err error) {
	handle, err := openHandle()
	if err != nil {
		return n, err
	}
	defer handle.Close()
	all, err := dump(func() ([]netlink.Neigh, error) { return handle.NeighList(index, netlink.FAMILY_V4) })
	if err != nil {
		all, err = nil, fmt.Errorf("netio: list the neighbours on interface %d: %w", index, err)
	}
	sort.Slice(all, func(i, j int) bool { return freshness(all[i].State) < freshness(all[j].State) })
	for _, host := range all {
		addr, ok := netip.AddrFromSlice(host.IP.To4())
		if ok && freshness(host.State) < unconfirmed && len(host.HardwareAddr) == len(hardwareAddr{}) {
			n.Hosts = append(n.Hosts, Neighbour{Addr: addr, MAC: host.HardwareAddr})
		}
	}
	routes, failed := defaultRoutes(handle)
	if failed != nil {
		return n, errors.Join(err, fmt.Errorf("netio: find the gateway on interface %d: %w", index, failed))
	}
	for i := range routes {
		if addr, ok := netip.AddrFromSlice(routes[i].Gw.To4()); ok && routes[i].LinkIndex == index && !n.Gateway.IsValid() {
			n.Gateway = addr
		}
	}
	return n, err
}

// unconfirmed is the freshness of an entry that has no Ethernet address, or whose host did
// not answer.
const unconfirmed = 3

// freshness orders the states of entries, the freshest first.
func freshness(state int) int {
	switch {
	case state&(unix.NUD_REACHABLE|unix.NUD_DELAY|unix.NUD_PROBE) != 0:
		return 0
	case state&unix.NUD_STALE != 0:
		return 1
	case state&unix.NUD_PERMANENT != 0:
		return 2
	default:
		return unconfirmed
	}
}

// frameCounter counts the frames of other hosts that an interface receives: ARP and IPv4, whoever they are for. Other
// frames prove nothing: spanning tree, LLDP, pause frames and loop detection arrive even at a port that forwards
// nothing. A frame of IPv6 does not say whether it comes from one of the hosts that do not count.
//
// It is a packet socket that is read only to learn the senders, so it wakes nobody. But the kernel filters every frame
// for it, and closing it takes about 17 ms (see Announcer), so it is open only during a doubt. It is for one goroutine
// at a time.
type frameCounter struct {
	index  int // of the interface
	fd     int
	frames uint64
}

// openFrameCounter opens the counter of the interface with the given index. It needs CAP_NET_RAW.
func openFrameCounter(index int) (*frameCounter, error) {
	// The socket receives nothing before it is bound, and so nothing that the filter would drop.
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("netio: count frames on interface %d: open a packet socket (needs CAP_NET_RAW): %w", index, err)
	}
	c := &frameCounter{index: index, fd: fd}
	if err := c.open(index); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("netio: count frames on interface %d: %w", index, err)
	}
	return c, nil
}

func (c *frameCounter) open(index int) error {
	// The smallest buffer is enough: frames are counted even if there is no room for them.
	if err := unix.SetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 1); err != nil {
		return fmt.Errorf("make the buffer small: %w", err)
	}
	// With protocol 0 it receives nothing yet, but knows the interface, which filter asks for its Ethernet address.
	if err := unix.Bind(c.fd, &unix.SockaddrLinklayer{Ifindex: index}); err != nil {
		return fmt.Errorf("bind the packet socket: %w", withLinkDown(err))
	}
	if err := c.filter(nil); err != nil {
		return err
	}
	if err := unix.Bind(c.fd, &unix.SockaddrLinklayer{Protocol: htons(unix.ETH_P_ALL), Ifindex: index}); err != nil {
		return fmt.Errorf("bind the packet socket: %w", withLinkDown(err))
	}
	return nil
}

// begin begins to count, without the frames of these hosts.
func (c *frameCounter) begin(ignored []netip.Addr) error {
	if err := c.filter(ignored); err != nil {
		return fmt.Errorf("netio: choose which frames are counted: %w", err)
	}
	_, err := c.count()
	c.frames = 0
	return err
}

// filter sets which frames are counted. Frames of this host that a bridge or an access point reflects are recognized by its
// Ethernet address. That may change, so each doubt sets the filter anew.
func (c *frameCounter) filter(ignored []netip.Addr) error {
	own, err := ownHardwareAddr(c.fd)
	if err != nil {
		return withLinkDown(err)
	}
	return setFilter(c.fd, foreignFilter(own, ignored))
}

// count returns how many frames have arrived since begin.
func (c *frameCounter) count() (uint64, error) {
	// The kernel's count includes the frames for which there was no room, and starts over each time it is read.
	stats, err := unix.GetsockoptTpacketStats(c.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if err != nil {
		return 0, fmt.Errorf("netio: read how many frames were received: %w", err)
	}
	c.frames += uint64(stats.Packets)
	return c.frames, nil
}

// senders returns the senders of some of the frames that were counted since the last call. A
// sender of IPv4 may be behind a router; then the Ethernet address is the router's.
func (c *frameCounter) senders() (senders []Neighbour) {
	for range drainMax {
		var frame [64]byte
		n, err := unix.Read(c.fd, frame[:])
		if err != nil {
			return senders
		}
		at := ipv4Source
		if n > 14 && binary.BigEndian.Uint16(frame[12:]) == unix.ETH_P_ARP {
			at = arpSource
		}
		if n >= at+4 {
			senders = append(senders, Neighbour{Addr: netip.AddrFrom4([4]byte(frame[at:])), MAC: net.HardwareAddr(frame[6:12:12])})
		}
	}
	return senders
}

// Where the sender's IPv4 address is in an Ethernet frame of 14 bytes of header.
const (
	arpSource  = 14 + 14
	ipv4Source = 14 + 12
)

// foreignFilter passes the beginning of each frame of ARP or IPv4 that another host has sent, except for the ignored
// hosts. It drops those from 0.0.0.0, which hosts use that have no address yet.
func foreignFilter(own hardwareAddr, ignored []netip.Addr) []bpf.Instruction {
	drop := bpf.RetConstant{Val: 0}
	program := []bpf.Instruction{
		bpf.LoadExtension{Num: bpf.ExtType},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.PACKET_OUTGOING, SkipFalse: 1},
		drop,
		bpf.LoadAbsolute{Off: 6, Size: 4}, // the frame's sender
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: binary.BigEndian.Uint32(own[:4]), SkipFalse: 3},
		bpf.LoadAbsolute{Off: 10, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(binary.BigEndian.Uint16(own[4:])), SkipFalse: 1},
		drop,
		bpf.LoadExtension{Num: bpf.ExtProto},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.ETH_P_ARP, SkipFalse: 2},
		bpf.LoadAbsolute{Off: arpSource, Size: 4},
		bpf.Jump{Skip: 3},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.ETH_P_IP, SkipTrue: 1},
		drop,
		bpf.LoadAbsolute{Off: ipv4Source, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipFalse: 1},
		drop,
	}
	for _, addr := range ignored {
		as4 := addr.As4()
		program = append(program,
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: binary.BigEndian.Uint32(as4[:]), SkipFalse: 1},
			drop)
	}
	return append(program, bpf.RetConstant{Val: 64})
}
