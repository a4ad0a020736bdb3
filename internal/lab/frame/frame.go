// Package frame writes and reads Ethernet frames with ARP, or with IP and what is in it, and has a socket that sends and
// hears them whole. It is for those who ask in the name of nobody, who count what passes, and who forge.
package frame

import (
	"bytes"
	"encoding/binary"
	"net"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// Lengths of Ethernet, ARP for IPv4 (RFC 826), IPv4 without options (RFC 791), UDP (RFC 768) and ICMP echo (RFC 792).
const (
	EthernetLen = 14
	arpLen      = 28
	IPLen       = 20
	ip6Len      = 40 // RFC 8200
	udpLen      = 8
	echoLen     = 8

	// MTU is the longest packet that an Ethernet frame carries.
	MTU = 1500
)

// Broadcast is the address of all stations.
var Broadcast = net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// MulticastMAC is where Ethernet has a multicast group (RFC 1112, section 6.4; RFC 2464, section 7).
func MulticastMAC(group netip.Addr) net.HardwareAddr {
	if group.Is6() {
		a := group.As16()
		return append(net.HardwareAddr{0x33, 0x33}, a[12:]...)
	}
	a := group.As4()
	return net.HardwareAddr{0x01, 0, 0x5e, a[1] & 0x7f, a[2], a[3]}
}

// Frame is one that a Socket has heard. Its bytes are valid until the next one is read.
type Frame struct {
	Bytes    []byte
	Length   int       // on the wire, without checksum
	Outgoing bool      // the host has sent it
	At       time.Time // when the kernel had it
}

// EtherType says what the frame carries. It is 0 if the frame is cut off.
func (f Frame) EtherType() uint16 {
	if len(f.Bytes) < EthernetLen {
		return 0
	}
	return binary.BigEndian.Uint16(f.Bytes[12:])
}

// To and From are the stations. They are nil if the frame is cut off.
func (f Frame) To() net.HardwareAddr   { return f.station(0) }
func (f Frame) From() net.HardwareAddr { return f.station(6) }

func (f Frame) station(at int) net.HardwareAddr {
	if len(f.Bytes) < EthernetLen {
		return nil
	}
	return f.Bytes[at : at+6]
}

// IsFrom reports whether the frame has this source.
func (f Frame) IsFrom(mac net.HardwareAddr) bool { return bytes.Equal(f.From(), mac) }

// ethernet begins a frame.
func ethernet(to, from net.HardwareAddr, etherType uint16) []byte {
	b := append(append(make([]byte, 0, EthernetLen+MTU), to...), from...)
	return binary.BigEndian.AppendUint16(b, etherType)
}

// ARP is a message that says who has an address, and asks for another one or answers for it.
type ARP struct {
	Reply     bool
	MAC       net.HardwareAddr // of the sender
	Sender    netip.Addr
	TargetMAC net.HardwareAddr // nil if it is what is asked for
	Target    netip.Addr
}

// The two operations of ARP.
const arpRequest, arpReply = 1, 2

// Frame is the message in a frame to one station or to all.
func (a ARP) Frame(to net.HardwareAddr) []byte {
	b := ethernet(to, a.MAC, unix.ETH_P_ARP)
	operation := byte(arpRequest)
	if a.Reply {
		operation = arpReply
	}
	b = append(b, 0, unix.ARPHRD_ETHER, unix.ETH_P_IP>>8, unix.ETH_P_IP&0xff, 6, 4, 0, operation)
	b = append(append(b, a.MAC...), a.Sender.AsSlice()...)
	target := make(net.HardwareAddr, 6)
	copy(target, a.TargetMAC)
	return append(append(b, target...), a.Target.AsSlice()...)
}

// ARP reads a message of ARP. Its addresses are those of the frame's bytes.
func (f Frame) ARP() (a ARP, ok bool) {
	if f.EtherType() != unix.ETH_P_ARP || len(f.Bytes) < EthernetLen+arpLen {
		return a, false
	}
	b := f.Bytes[EthernetLen:]
	operation := binary.BigEndian.Uint16(b[6:])
	if b[4] != 6 || b[5] != 4 || operation != arpRequest && operation != arpReply {
		return a, false
	}
	return ARP{
		Reply: operation == arpReply,
		MAC:   b[8:14], Sender: netip.AddrFrom4([4]byte(b[14:18])),
		TargetMAC: b[18:24], Target: netip.AddrFrom4([4]byte(b[24:28])),
	}, true
}

// Packet is an IP packet in an Ethernet frame, of the family of its addresses. IPv6 has no Ident.
type Packet struct {
	FromMAC, ToMAC net.HardwareAddr
	From, To       netip.Addr
	Protocol, TTL  byte
	Ident          uint16
	Payload        []byte
}

// Frame is the packet as it is on the wire.
func (p Packet) Frame() []byte {
	if p.To.Is4() {
		return p.part(0, len(p.Payload))
	}
	b := append(ethernet(p.ToMAC, p.FromMAC, unix.ETH_P_IPV6), 0x60, 0, 0, 0)
	b = binary.BigEndian.AppendUint16(b, uint16(len(p.Payload)))
	b = append(b, p.Protocol, p.TTL)
	b = append(append(b, p.From.AsSlice()...), p.To.AsSlice()...)
	return append(b, p.Payload...)
}

// Fragments are an IPv4 packet as a sender cuts it for a link on which it is too long.
func (p Packet) Fragments() (frames [][]byte) {
	const most = (MTU - IPLen) &^ 7
	for at := 0; at < len(p.Payload); at += most {
		frames = append(frames, p.part(at, min(at+most, len(p.Payload))))
	}
	return frames
}

// moreFragments is the flag of a fragment that is not the last one.
const moreFragments = 0x2000

// part is the frame with a part of the payload. All but the last part end at a multiple of 8.
func (p Packet) part(begin, end int) []byte {
	offset := uint16(begin / 8)
	if end < len(p.Payload) {
		offset |= moreFragments
	}
	b := append(ethernet(p.ToMAC, p.FromMAC, unix.ETH_P_IP), 0x45, 0)
	b = binary.BigEndian.AppendUint16(b, uint16(IPLen+end-begin))
	b = binary.BigEndian.AppendUint16(b, p.Ident)
	b = binary.BigEndian.AppendUint16(b, offset)
	b = append(b, p.TTL, p.Protocol, 0, 0)
	b = append(append(b, p.From.AsSlice()...), p.To.AsSlice()...)
	header := b[EthernetLen:]
	binary.BigEndian.PutUint16(header[10:], Checksum(header))
	return append(b, p.Payload[begin:end]...)
}

// Packet reads an IPv4 packet, or an IPv6 packet without extension headers, as much of it as was heard. Its bytes are those
// of the frame.
func (f Frame) Packet() (p Packet, ok bool) {
	if f.EtherType() == unix.ETH_P_IPV6 && len(f.Bytes) >= EthernetLen+ip6Len {
		b := f.Bytes[EthernetLen:]
		return Packet{
			FromMAC: f.From(), ToMAC: f.To(),
			From: netip.AddrFrom16([16]byte(b[8:24])), To: netip.AddrFrom16([16]byte(b[24:40])),
			Protocol: b[6], TTL: b[7], Payload: b[ip6Len:],
		}, true
	}
	if f.EtherType() != unix.ETH_P_IP || len(f.Bytes) < EthernetLen+IPLen {
		return p, false
	}
	b := f.Bytes[EthernetLen:]
	header := int(b[0]&0x0f) * 4
	if b[0]>>4 != 4 || header < IPLen || len(b) < header {
		return p, false
	}
	return Packet{
		FromMAC: f.From(), ToMAC: f.To(),
		From: netip.AddrFrom4([4]byte(b[12:16])), To: netip.AddrFrom4([4]byte(b[16:20])),
		Protocol: b[9], TTL: b[8], Ident: binary.BigEndian.Uint16(b[4:]),
		Payload: b[header:],
	}, true
}

// UDP is a datagram, whose checksum needs the addresses of the packet around it.
func UDP(from, to netip.AddrPort, data []byte) []byte {
	length := uint16(udpLen + len(data))
	b := binary.BigEndian.AppendUint16(nil, from.Port())
	b = binary.BigEndian.AppendUint16(b, to.Port())
	b = binary.BigEndian.AppendUint16(b, length)
	b = append(append(b, 0, 0), data...)
	sum := Checksum(append(pseudo(from.Addr(), to.Addr(), unix.IPPROTO_UDP, len(b)), b...))
	if sum == 0 {
		sum = 0xffff // 0 says that there is none
	}
	binary.BigEndian.PutUint16(b[6:], sum)
	return b
}

// pseudo is what stands before a payload in its checksum: the same sum in both families (RFC 768; RFC 8200, section 8.1).
func pseudo(from, to netip.Addr, protocol byte, length int) []byte {
	b := append(from.AsSlice(), to.AsSlice()...)
	return binary.BigEndian.AppendUint16(append(b, 0, protocol), uint16(length))
}

// The two types of an echo of ICMP, and of ICMPv6 (RFC 4443, section 4).
const (
	echoRequest, echoReply   = 8, 0
	echoRequest6, echoReply6 = 128, 129
)

// Echo asks for an ICMP echo of some data.
func Echo(id uint16, data []byte) []byte {
	b := binary.BigEndian.AppendUint16([]byte{echoRequest, 0, 0, 0}, id)
	b = append(append(b, 0, 0), data...) // the sequence number says nothing that the data does not
	binary.BigEndian.PutUint16(b[2:], Checksum(b))
	return b
}

// WithEcho is a packet with an Echo in it, of its family.
func (p Packet) WithEcho(id uint16, data []byte) Packet {
	if p.Protocol, p.Payload = unix.IPPROTO_ICMP, Echo(id, data); p.To.Is6() {
		p.Payload[0] = echoRequest6
		return p.icmp6()
	}
	return p
}

// icmp6 has a message of ICMPv6 in the packet, which has its checksum from then on.
func (p Packet) icmp6() Packet {
	p.Protocol = unix.IPPROTO_ICMPV6
	clear(p.Payload[2:4])
	sum := Checksum(append(pseudo(p.From, p.To, p.Protocol, len(p.Payload)), p.Payload...))
	binary.BigEndian.PutUint16(p.Payload[2:], sum)
	return p
}

// EchoReply reads the answer to an Echo.
func (p Packet) EchoReply() (id uint16, data []byte, ok bool) {
	if len(p.Payload) < echoLen {
		return 0, nil, false
	}
	kind := [2]byte{p.Protocol, p.Payload[0]}
	if kind != [2]byte{unix.IPPROTO_ICMP, echoReply} && kind != [2]byte{unix.IPPROTO_ICMPV6, echoReply6} {
		return 0, nil, false
	}
	return binary.BigEndian.Uint16(p.Payload[4:]), p.Payload[echoLen:], true
}

// Checksum is that of the Internet (RFC 1071).
func Checksum(b []byte) uint16 {
	var sum uint32
	for i, octet := range b {
		if i%2 == 0 {
			sum += uint32(octet) << 8
		} else {
			sum += uint32(octet)
		}
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}
