package soak

import (
	"encoding/binary"
	"net"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// Lengths and offsets of Ethernet, ARP (RFC 826), IPv4 without options (RFC 791) and ICMP
// echo (RFC 792).
const (
	ethernetLen = 14
	arpLen      = 28
	ipLen       = 20
	icmpLen     = 8
	stampLen    = 8 // the payload of our echo: when it was asked

	arpRequest, arpReply   = 1, 2
	echoRequest, echoReply = 8, 0
	typeIPv4, typeARP      = unix.ETH_P_IP, unix.ETH_P_ARP
)

// question is one of the two ways to ask a board whether it answers for an address.
type question struct {
	toMAC, fromMAC net.HardwareAddr
	target, from   netip.Addr
}

// ethernet begins a frame from one station to another.
func (q question) ethernet(kind uint16, size int) []byte {
	b := make([]byte, 0, ethernetLen+size)
	b = append(append(b, q.toMAC...), q.fromMAC...)
	return binary.BigEndian.AppendUint16(b, kind)
}

// arp asks who has the address, of one station and not of all.
func (q question) arp() []byte {
	b := q.ethernet(typeARP, arpLen)
	b = append(b, 0, 1, 8, 0, 6, 4, 0, arpRequest) // Ethernet, IPv4, the lengths of their addresses
	b = append(append(b, q.fromMAC...), q.from.AsSlice()...)
	b = append(b, 0, 0, 0, 0, 0, 0)
	return append(b, q.target.AsSlice()...)
}

// echo asks for an ICMP echo, which brings back when it was asked for.
func (q question) echo(id uint16, asked time.Duration) []byte {
	b := q.ethernet(typeIPv4, ipLen+icmpLen+stampLen)
	b = append(b, 0x45, 0, 0, ipLen+icmpLen+stampLen, 0, 0, 0x40, 0, 64, unix.IPPROTO_ICMP, 0, 0)
	b = append(append(b, q.from.AsSlice()...), q.target.AsSlice()...)
	header := b[ethernetLen:]
	binary.BigEndian.PutUint16(header[10:], checksum(header))
	icmp := len(b)
	b = append(b, echoRequest, 0, 0, 0)
	b = binary.BigEndian.AppendUint16(b, id)
	b = binary.BigEndian.AppendUint16(b, 0)
	b = binary.BigEndian.AppendUint64(b, uint64(asked))
	binary.BigEndian.PutUint16(b[icmp+2:], checksum(b[icmp:]))
	return b
}

// checksum is that of RFC 1071, over an even number of bytes.
func checksum(b []byte) uint16 {
	var sum uint32
	for ; len(b) > 0; b = b[2:] {
		sum += uint32(binary.BigEndian.Uint16(b))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

// readARP reads a reply for an address: from which station it is, and to whom.
func readARP(frame []byte, target netip.Addr) (mac net.HardwareAddr, to netip.Addr, ok bool) {
	if len(frame) < ethernetLen+arpLen || binary.BigEndian.Uint16(frame[12:]) != typeARP {
		return nil, to, false
	}
	b := frame[ethernetLen:]
	if binary.BigEndian.Uint16(b[6:]) != arpReply || netip.AddrFrom4([4]byte(b[14:18])) != target {
		return nil, to, false
	}
	return net.HardwareAddr(b[8:14]), netip.AddrFrom4([4]byte(b[24:28])), true
}

// readEcho reads the answer to an echo of ours from an address: from which station it is,
// and when it was asked for.
func readEcho(frame []byte, target netip.Addr, id uint16) (mac net.HardwareAddr, asked time.Duration, ok bool) {
	if len(frame) < ethernetLen+ipLen+icmpLen+stampLen || binary.BigEndian.Uint16(frame[12:]) != typeIPv4 {
		return nil, 0, false
	}
	ip := frame[ethernetLen:]
	icmp := ip[ipLen:]
	if ip[0] != 0x45 || ip[9] != unix.IPPROTO_ICMP || netip.AddrFrom4([4]byte(ip[12:16])) != target ||
		icmp[0] != echoReply || binary.BigEndian.Uint16(icmp[4:]) != id {
		return nil, 0, false
	}
	return net.HardwareAddr(frame[6:12]), time.Duration(binary.BigEndian.Uint64(icmp[8:])), true
}
