package attack

import (
	"encoding/binary"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
)

// Lengths of Ethernet, IPv4 without options (RFC 791), UDP (RFC 768) and ARP (RFC 826).
const (
	ethernetLen = 14
	ipLen       = 20
	udpLen      = 8
	mtu         = 1500
)

var broadcastMAC = net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// multicastMAC is where Ethernet has an IPv4 multicast group (RFC 1112, section 6.4).
func multicastMAC(group netip.Addr) net.HardwareAddr {
	a := group.As4()
	return net.HardwareAddr{0x01, 0, 0x5e, a[1] & 0x7f, a[2], a[3]}
}

// ethernet begins a frame.
func ethernet(from, to net.HardwareAddr, kind uint16) []byte {
	b := append(append(make([]byte, 0, ethernetLen+mtu), to...), from...)
	return binary.BigEndian.AppendUint16(b, kind)
}

// packet is an IPv4 packet in an Ethernet frame.
type packet struct {
	fromMAC, toMAC net.HardwareAddr
	from, to       netip.Addr
	protocol, ttl  byte
	ident          uint16
	payload        []byte
}

// frame is the packet as it is on the wire.
func (p packet) frame() []byte { return p.part(0, len(p.payload)) }

// fragments are the packet as a sender cuts it for a link on which it is too long.
func (p packet) fragments() (frames [][]byte) {
	const most = (mtu - ipLen) &^ 7
	for at := 0; at < len(p.payload); at += most {
		frames = append(frames, p.part(at, min(at+most, len(p.payload))))
	}
	return frames
}

// moreFragments is the flag of a fragment that is not the last one.
const moreFragments = 0x2000

// part is the frame with a part of the payload. All but the last part end at a multiple of 8.
func (p packet) part(begin, end int) []byte {
	offset := uint16(begin / 8)
	if end < len(p.payload) {
		offset |= moreFragments
	}
	b := ethernet(p.fromMAC, p.toMAC, unix.ETH_P_IP)
	b = append(b, 0x45, 0)
	b = binary.BigEndian.AppendUint16(b, uint16(ipLen+end-begin))
	b = binary.BigEndian.AppendUint16(b, p.ident)
	b = binary.BigEndian.AppendUint16(b, offset)
	b = append(b, p.ttl, p.protocol, 0, 0)
	b = append(append(b, p.from.AsSlice()...), p.to.AsSlice()...)
	header := b[ethernetLen:]
	binary.BigEndian.PutUint16(header[10:], checksum(header))
	return append(b, p.payload[begin:end]...)
}

// udp is a datagram, whose checksum needs the addresses of the packet around it.
func udp(from, to netip.AddrPort, data []byte) []byte {
	length := uint16(udpLen + len(data))
	pseudo := append(from.Addr().AsSlice(), to.Addr().AsSlice()...)
	pseudo = binary.BigEndian.AppendUint16(append(pseudo, 0, unix.IPPROTO_UDP), length)

	b := binary.BigEndian.AppendUint16(nil, from.Port())
	b = binary.BigEndian.AppendUint16(b, to.Port())
	b = binary.BigEndian.AppendUint16(b, length)
	b = append(append(b, 0, 0), data...)
	sum := checksum(append(pseudo, b...))
	if sum == 0 {
		sum = 0xffff // 0 says that there is none
	}
	binary.BigEndian.PutUint16(b[6:], sum)
	return b
}

// checksum is that of the Internet (RFC 1071).
func checksum(b []byte) uint16 {
	var sum uint32
	for i := 0; i+1 < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	if len(b)%2 == 1 {
		sum += uint32(b[len(b)-1]) << 8
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

const arpRequest, arpReply = 1, 2

// arp is a message of ARP to everybody: a station says that it has an address, and asks for another
// one or answers for it.
func arp(operation byte, mac net.HardwareAddr, address, target netip.Addr) []byte {
	b := ethernet(mac, broadcastMAC, unix.ETH_P_ARP)
	b = append(b, 0, 1, 8, 0, 6, 4, 0, operation) // Ethernet, IPv4, the lengths of their addresses
	b = append(append(b, mac...), address.AsSlice()...)
	b = append(b, 0, 0, 0, 0, 0, 0)
	return append(b, target.AsSlice()...)
}
