package frame

import (
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
)

// Neighbour is a message of Neighbor Discovery about an address (RFC 4861, sections 4.3 and 4.4): it asks who has it, or says
// so. It is to IPv6 what ARP is to IPv4.
type Neighbour struct {
	Advertises bool
	Flags      byte // of an advertisement
	Target     netip.Addr
	MAC        net.HardwareAddr // of the sender, or nil if the message does not tell
}

// The flags of an advertisement.
const (
	NeighbourRouter    = 0x80
	NeighbourSolicited = 0x40
	NeighbourOverride  = 0x20
)

const (
	neighbourSolicitation, neighbourAdvertisement = 135, 136

	neighbourLen       = 24
	sourceMAC          = 1 // the option of a solicitation, and
	targetMAC          = 2 // that of an advertisement
	macOptionLen       = 8 // of either
	neighbourHops byte = 255
)

// AllNodes are all machines of a link, and SolicitedNode is the group in which whoever has an address is asked for it (RFC
// 4291, section 2.7.1).
var AllNodes = netip.MustParseAddr("ff02::1")

func SolicitedNode(of netip.Addr) netip.Addr {
	a, last := netip.MustParseAddr("ff02::1:ff00:0").As16(), of.As16()
	copy(a[13:], last[13:])
	return netip.AddrFrom16(a)
}

// Packet is the message from one address to another one.
func (n Neighbour) Packet(from, to netip.Addr, toMAC net.HardwareAddr) Packet {
	b := make([]byte, 8, neighbourLen+macOptionLen)
	b[0] = neighbourSolicitation
	option := byte(sourceMAC)
	if n.Advertises {
		b[0], b[4], option = neighbourAdvertisement, n.Flags, targetMAC
	}
	b = append(b, n.Target.AsSlice()...)
	if n.MAC != nil {
		b = append(append(b, option, macOptionLen/8), n.MAC...)
	}
	return Packet{FromMAC: n.MAC, ToMAC: toMAC, From: from, To: to, TTL: neighbourHops, Payload: b}.icmp6()
}

// Neighbour reads a message of Neighbor Discovery.
func (p Packet) Neighbour() (n Neighbour, ok bool) {
	b := p.Payload
	if p.Protocol != unix.IPPROTO_ICMPV6 || p.TTL != neighbourHops || len(b) < neighbourLen ||
		b[0] != neighbourSolicitation && b[0] != neighbourAdvertisement {
		return n, false
	}
	n = Neighbour{Advertises: b[0] == neighbourAdvertisement, Flags: b[4], Target: netip.AddrFrom16([16]byte(b[8:24]))}
	want := byte(sourceMAC)
	if n.Advertises {
		want = targetMAC
	}
	for b = b[neighbourLen:]; len(b) >= macOptionLen && b[1] > 0; b = b[min(len(b), 8*int(b[1])):] {
		if b[0] == want {
			n.MAC = net.HardwareAddr(b[2:macOptionLen])
		}
	}
	return n, true
}
