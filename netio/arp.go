package netio

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// An ARP packet for IPv4 over Ethernet, in bytes (RFC 826, "Packet format"):
//
//	 0  2  hardware address space   1, Ethernet
//	 2  2  protocol address space   0x0800, IPv4
//	 4  1  hardware address length  6
//	 5  1  protocol address length  4
//	 6  2  operation                1, request; 2, reply
//	 8  6  sender's hardware address
//	14  4  sender's IPv4 address    0.0.0.0 in a probe
//	18  6  target's hardware address
//	24  4  target's IPv4 address
//
// Ethernet pads it to 46 bytes, so more may arrive; the rest means nothing.
const arpLength = 28

const (
	arpRequest = 1
	arpReply   = 2
)

// hardwareAddr is an Ethernet address. Unlike net.HardwareAddr it can be compared.
type hardwareAddr [6]byte

var broadcast = hardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

type arpPacket struct {
	operation uint16
	senderMAC hardwareAddr
	senderIP  netip.Addr
	targetMAC hardwareAddr
	targetIP  netip.Addr
}

// probe asks whether anybody has addr without claiming it: the sender's address
// is zero, so that no neighbour's cache changes (RFC 5227, section 2.1.1).
func probe(addr netip.Addr) arpPacket {
	return arpPacket{operation: arpRequest, senderIP: netip.IPv4Unspecified(), targetIP: addr}
}

// request asks target for its Ethernet address in the name of own. A probe would not do: Linux
// answers it only for an address on the same interface, and not for one on a TUN device.
func request(own, target netip.Addr) arpPacket {
	return arpPacket{operation: arpRequest, senderIP: own, targetIP: target}
}

// announcements are the two forms of "addr is at this interface", both broadcast. The
// request is what RFC 5227 section 2.3 prescribes (section 3 says why). The
// reply is for devices that learn from replies only (kube-vip issue 80, metallb
// issue 172); its target MAC must be our own, see from, since Linux ignores one with
// ff:ff:ff:ff:ff:ff in the first second of an entry's life.
func announcements(addr netip.Addr) [2]arpPacket {
	return [2]arpPacket{
		{operation: arpRequest, senderIP: addr, targetIP: addr},
		{operation: arpReply, senderIP: addr, targetIP: addr},
	}
}

// from returns the packet as an interface with the Ethernet address own sends it.
func (p arpPacket) from(own hardwareAddr) arpPacket {
	p.senderMAC = own
	if p.operation == arpReply {
		p.targetMAC = own
	}
	return p
}

// conflictsWith reports whether a packet of another host shows that the host has addr, or is
// about to take it: the packet speaks as addr, or probes for it (RFC 5227, section 2.1.1).
func (p arpPacket) conflictsWith(addr netip.Addr) bool {
	return p.senderIP == addr ||
		p.operation == arpRequest && p.senderIP.IsUnspecified() && p.targetIP == addr
}

func (p arpPacket) appendFrom(b []byte, own hardwareAddr) []byte { return p.from(own).append(b) }

func (p arpPacket) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint16(b, unix.ARPHRD_ETHER)
	b = binary.BigEndian.AppendUint16(b, unix.ETH_P_IP)
	b = append(b, 6, 4)
	b = binary.BigEndian.AppendUint16(b, p.operation)
	sender, target := p.senderIP.As4(), p.targetIP.As4()
	b = append(b, p.senderMAC[:]...)
	b = append(b, sender[:]...)
	b = append(b, p.targetMAC[:]...)
	return append(b, target[:]...)
}

var (
	errARPShort = errors.New("too short for an ARP packet")
	errARPKind  = errors.New("not ARP for IPv4 over Ethernet")
)

func parseARP(b []byte) (arpPacket, error) {
	if len(b) < arpLength {
		return arpPacket{}, fmt.Errorf("%w: %d of %d bytes", errARPShort, len(b), arpLength)
	}
	if binary.BigEndian.Uint16(b) != unix.ARPHRD_ETHER || binary.BigEndian.Uint16(b[2:]) != unix.ETH_P_IP || b[4] != 6 || b[5] != 4 {
		return arpPacket{}, fmt.Errorf("%w: % x", errARPKind, b[:6])
	}
	return arpPacket{
		operation: binary.BigEndian.Uint16(b[6:]),
		senderMAC: hardwareAddr(b[8:14]),
		senderIP:  netip.AddrFrom4([4]byte(b[14:18])),
		targetMAC: hardwareAddr(b[18:24]),
		targetIP:  netip.AddrFrom4([4]byte(b[24:28])),
	}, nil
}

// arpFilter passes the ARP packets that concern this host: packets that speak as one of the addresses, probes for one, replies
// to this host from awaited addresses, and what the watched machine sends to this host alone: operations from least on. If
// least is 0, nobody is watched.
func arpFilter(addresses, awaited []netip.Addr, watched hardwareAddr, least uint32) []bpf.Instruction {
	floating, replies := passEach(addresses), passEach(awaited)
	program := append([]bpf.Instruction{bpf.LoadAbsolute{Off: 14, Size: 4}}, floating...)
	program = append(program, bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 1}, bpf.Jump{Skip: uint32(1 + len(floating))},
		bpf.LoadAbsolute{Off: 24, Size: 4})
	program = append(program, floating...)
	program = append(program,
		bpf.LoadExtension{Num: bpf.ExtType},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.PACKET_HOST, SkipTrue: 1},
		bpf.RetConstant{Val: 0},
		bpf.LoadAbsolute{Off: 6, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: arpReply, SkipTrue: 1},
		bpf.Jump{Skip: uint32(1 + len(replies))},
		bpf.LoadAbsolute{Off: 14, Size: 4})
	program = append(program, replies...)
	if least > 0 {
		program = append(program,
			bpf.LoadAbsolute{Off: 6, Size: 2},
			bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: least, SkipFalse: 3},
			bpf.LoadAbsolute{Off: 10, Size: 4}, // the last four bytes of the sender's; the Announcer compares all six
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: binary.BigEndian.Uint32(watched[2:]), SkipFalse: 1},
			bpf.RetConstant{Val: pass})
	}
	return append(program, bpf.RetConstant{Val: 0})
}

// passEach passes a packet if the loaded address is one of these.
func passEach(addresses []netip.Addr) []bpf.Instruction {
	program := make([]bpf.Instruction, 0, 2*len(addresses))
	for _, addr := range addresses {
		as4 := addr.As4()
		program = append(program,
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: binary.BigEndian.Uint32(as4[:]), SkipFalse: 1},
			bpf.RetConstant{Val: pass})
	}
	return program
}

// ProbeCount is PROBE_NUM of RFC 5227, section 1.1: a lost probe must not make an address look free. In a take-over nobody
// probes: the address is known to be free, or soon will be, and every second of doubt is a second of outage.
const ProbeCount = 3
