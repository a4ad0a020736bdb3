package netio

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// FrameCounter counts the frames of other hosts that an interface receives: ARP and IPv4, whoever
// they are for. Other frames prove nothing: spanning tree, LLDP, pause frames and loop
// detection arrive on ports that forward nothing. IPv6 does not tell from which of the
// hosts it comes that are not to be counted.
//
// It is a packet socket that is read only when somebody wants to know the senders, so it costs no
// wake-up. But every frame is filtered for it, and closing it takes about 17 ms (see
// Announcer). It is meant to be open while there is a doubt. It is for one goroutine.
type FrameCounter struct {
	fd     int
	frames uint64
}

// OpenFrameCounter opens the counter of the interface with the given index. It needs CAP_NET_RAW.
func OpenFrameCounter(index int) (*FrameCounter, error) {
	// It hears nothing before it is bound, and so nothing that the filter would have dropped.
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("netio: count frames on interface %d: open a packet socket (needs CAP_NET_RAW): %w", index, err)
	}
	c := &FrameCounter{fd: fd}
	if err := c.open(index); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("netio: count frames on interface %d: %w", index, err)
	}
	return c, nil
}

func (c *FrameCounter) open(index int) error {
	// What there is no room for is counted all the same: the smallest buffer will do.
	if err := unix.SetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 1); err != nil {
		return fmt.Errorf("make the buffer small: %w", err)
	}
	// With protocol 0 it hears nothing yet, and has the interface whose Ethernet address is asked.
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

// Ignore has the frames of these hosts not counted from now on, and those of all others.
func (c *FrameCounter) Ignore(hosts []netip.Addr) error {
	if err := c.filter(hosts); err != nil {
		return fmt.Errorf("netio: choose which frames are counted: %w", err)
	}
	return nil
}

// filter chooses which frames are counted. One that this host has sent and a bridge or an access point
// reflects is told by its Ethernet address, as it is now: each doubt sets the filter anew.
func (c *FrameCounter) filter(ignored []netip.Addr) error {
	own, err := ownHardwareAddr(c.fd)
	if err != nil {
		return withLinkDown(err)
	}
	return setFilter(c.fd, foreignFilter(own, ignored))
}

// Frames returns how many frames have arrived since the counter was opened.
func (c *FrameCounter) Frames() (uint64, error) {
	// The kernel counts what it had no room for as well, and starts over when it is asked.
	stats, err := unix.GetsockoptTpacketStats(c.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if err != nil {
		return 0, fmt.Errorf("netio: read how many frames were received: %w", err)
	}
	c.frames += uint64(stats.Packets)
	return c.frames, nil
}

// Senders returns who has sent some of the frames that were counted since the last call. A
// sender of IPv4 may be behind a router, whose Ethernet address it has then.
func (c *FrameCounter) Senders() (senders []Neighbour) {
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

// Close closes the counter.
func (c *FrameCounter) Close() error { return unix.Close(c.fd) }

// Where the sender's IPv4 address is in an Ethernet frame of 14 bytes of header.
const (
	arpSource  = 14 + 14
	ipv4Source = 14 + 12
)

// foreignFilter passes the beginning of each frame of ARP or IPv4 that another host has sent, but
// for the hosts to be ignored. 0.0.0.0 is that of hosts that do not know yet who they are.
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
