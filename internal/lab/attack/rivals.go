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

// advertisement is one of version 3, with the interval in hundredths of a second.
func (l *Laptop) advertisement(interval uint16) []byte {
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

// interval is what the rivals are configured to, in hundredths of a second: another one is refused for that alone.
const interval = 10

func (l *Laptop) wrongChecksum() ([][]byte, error) {
	return l.many(func(n int) frame.Packet {
		b := l.advertisement(interval)
		b[6] ^= byte(1 + n%255)
		return l.vrrp(n, vrrpTTL, b)
	}), nil
}

func (l *Laptop) wrongPassword() ([][]byte, error) {
	return l.many(func(n int) frame.Packet { return l.vrrp(n, vrrpTTL, passworded()) }), nil
}

func (l *Laptop) routedVRRP() ([][]byte, error) {
	return l.many(func(n int) frame.Packet { return l.vrrp(n, vrrpTTL-1, l.advertisement(interval)) }), nil
}

// forgedVRRP is right in everything: version 3 has no authentication.
func (l *Laptop) forgedVRRP() ([][]byte, error) {
	return l.many(func(n int) frame.Packet { return l.vrrp(n, vrrpTTL, l.advertisement(interval)) }), nil
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

func (l *Laptop) wrongHMAC() ([][]byte, error) {
	return l.many(func(n int) frame.Packet { return l.vrrp(n, vrrpTTL, carp(n)) }), nil
}

func (l *Laptop) routedCARP() ([][]byte, error) {
	return l.many(func(n int) frame.Packet { return l.vrrp(n, vrrpTTL-1, carp(n)) }), nil
}

func (l *Laptop) many(one func(n int) frame.Packet) (frames [][]byte) {
	for n := range variety {
		frames = append(frames, one(n).Frame())
	}
	return frames
}

// rivalFloods are those of VRRP and of CARP.
func rivalFloods() []attack {
	return []attack{
		against("keepalived", Flood{"vrrp-checksum", "VRRP with wrong checksums", 20_000, (*Laptop).wrongChecksum}),
		against("keepalived", Flood{"vrrp-password", "VRRP version 2 with a wrong password", 20_000, (*Laptop).wrongPassword}),
		against("keepalived", Flood{"vrrp-ttl", "VRRP with TTL 254", 20_000, (*Laptop).routedVRRP}),
		against("keepalived", Flood{"vrrp-forged", "VRRP that says it has the highest priority", 10, (*Laptop).forgedVRRP}),
		against("ucarp", Flood{"carp-hmac", "CARP with wrong codes", 20_000, (*Laptop).wrongHMAC}),
		against("ucarp", Flood{"carp-ttl", "CARP with TTL 254", 20_000, (*Laptop).routedCARP}),
	}
}

// against is a flood of a program's own protocol. Nothing is promised for others.
func against(program string, f Flood) attack {
	a := flood(f)
	a.Defended, a.quick = false, false
	a.unable = func(s system, _ place) string {
		if s.Name != program {
			return "these are packets of " + program
		}
		return ""
	}
	return a
}
