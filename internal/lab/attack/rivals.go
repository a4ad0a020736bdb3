package attack

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"

	"topdog/internal/lab/cluster"
	"topdog/internal/lab/frame"
)

// What topdog's rivals send: VRRP (RFC 9568, and RFC 3768 for version 2) and CARP, as keepalived and UCarp do.
const (
	protocolVRRP  = 112
	virtualRouter = 51 // of the bench's configurations
	vrrpTTL       = 255
	highest       = 255 // priority
	carpHeader    = 36
)

// vrrpGroup is where both send it.
var vrrpGroup = netip.AddrFrom4([4]byte{224, 0, 0, 18})

// vrrp is an advertisement to all, which says that the laptop has the address.
func (l *Laptop) vrrp(n int, ttl byte, payload []byte) frame.Packet {
	return frame.Packet{
		FromMAC: l.host.HardwareAddr, ToMAC: frame.MulticastMAC(vrrpGroup), From: l.own(), To: vrrpGroup,
		Protocol: protocolVRRP, TTL: ttl, Ident: uint16(n), Payload: payload,
	}
}

// interval is what the rivals are configured to, in hundredths of a second: another one is refused for that alone.
const interval = 10

// advertisement is one of version 3.
func (l *Laptop) advertisement() []byte {
	b := []byte{3<<4 | 1, virtualRouter, highest, 1}
	b = binary.BigEndian.AppendUint16(b, interval)
	b = append(append(b, 0, 0), cluster.Address.AsSlice()...)
	pseudo := append(l.own().AsSlice(), vrrpGroup.AsSlice()...)
	pseudo = binary.BigEndian.AppendUint16(append(pseudo, 0, protocolVRRP), uint16(len(b)))
	binary.BigEndian.PutUint16(b[6:], frame.Checksum(append(pseudo, b...)))
	return b
}

// passworded is an advertisement of version 2 with a password that is wrong.
func passworded() []byte {
	const simple = 1
	b := []byte{2<<4 | 1, virtualRouter, highest, 1, simple, 1, 0, 0}
	b = append(b, cluster.Address.AsSlice()...)
	b = append(b, "notthis!"...)
	binary.BigEndian.PutUint16(b[6:], frame.Checksum(b))
	return b
}

func (l *Laptop) wrongChecksum(n int) frame.Packet {
	b := l.advertisement()
	b[6] ^= byte(1 + n%255)
	return l.vrrp(n, vrrpTTL, b)
}

// carp is an advertisement with a code that is made up.
func carp(n int) []byte {
	b := make([]byte, carpHeader)
	copy(b, []byte{2<<4 | 1, virtualRouter, 0, 7, 0, 1})
	random := rand.New(rand.NewPCG(2, uint64(n)))
	for i := 8; i < len(b); i++ {
		b[i] = byte(random.Uint32())
	}
	binary.BigEndian.PutUint16(b[6:], frame.Checksum(b))
	return b
}
