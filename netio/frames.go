package netio

import (
	"encoding/binary"
	"fmt"
	"net"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// FrameCounter counts the frames of other hosts that an interface receives: ARP, IPv4 and
// IPv6, whoever they are for. Other frames prove nothing: spanning tree, LLDP, pause frames
// and loop detection arrive on ports that forward nothing.
//
// It is a packet socket that nobody reads, so it costs no wake-up. But every frame is filtered
// for it, and closing it takes about 17 ms (see Announcer). It is meant to be open while there
// is a doubt.
type FrameCounter struct {
	fd     int
	frames uint64
}

// OpenFrameCounter opens the counter of the interface with the given index and Ethernet
// address. It needs CAP_NET_RAW.
func OpenFrameCounter(index int, mac net.HardwareAddr) (*FrameCounter, error) {
	if len(mac) != len(hardwareAddr{}) {
		return nil, fmt.Errorf("netio: count frames on interface %d: its hardware address %q is not an Ethernet address", index, mac)
	}
	// It hears nothing before it is bound, and so nothing that the filter would have dropped.
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("netio: count frames on interface %d: open a packet socket (needs CAP_NET_RAW): %w", index, err)
	}
	c := &FrameCounter{fd: fd}
	if err := c.open(index, hardwareAddr(mac)); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("netio: count frames on interface %d: %w", index, err)
	}
	return c, nil
}

func (c *FrameCounter) open(index int, own hardwareAddr) error {
	// What is not read fills the buffer, and is counted all the same: the smallest will do.
	if err := unix.SetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 1); err != nil {
		return fmt.Errorf("make the buffer small: %w", err)
	}
	if err := setFilter(c.fd, foreignFilter(own)); err != nil {
		return err
	}
	all := htons(unix.ETH_P_ALL)
	if err := unix.Bind(c.fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: index}); err != nil {
		return fmt.Errorf("bind the packet socket: %w", withLinkDown(err))
	}
	return nil
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

// Close closes the counter.
func (c *FrameCounter) Close() error { return unix.Close(c.fd) }

// foreignFilter passes one byte of each frame of ARP, IPv4 or IPv6 that another host has sent.
// A frame has its Ethernet header: the sender is at offset 6.
func foreignFilter(own hardwareAddr) []bpf.Instruction {
	const ours, foreign = 0, 1
	return []bpf.Instruction{
		bpf.LoadExtension{Num: bpf.ExtType},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.PACKET_OUTGOING, SkipTrue: 8},
		bpf.LoadExtension{Num: bpf.ExtProto},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.ETH_P_IP, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.ETH_P_ARP, SkipTrue: 1},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.ETH_P_IPV6, SkipFalse: 4},
		bpf.LoadAbsolute{Off: 6, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: binary.BigEndian.Uint32(own[:4]), SkipFalse: 3},
		bpf.LoadAbsolute{Off: 10, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(binary.BigEndian.Uint16(own[4:])), SkipFalse: 1},
		bpf.RetConstant{Val: ours},
		bpf.RetConstant{Val: foreign},
	}
}
