package attack

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/cluster"
	"topdog/internal/lab/frame"
	"topdog/wire"
)

// variety is how many different frames a flood has.
const variety = 1024

// kinds are what the laptop can send without end.
var kinds = map[string]func(*Laptop) ([][]byte, error){
	"bad-tags":         changed(func(l *Laptop, n int, data []byte) frame.Packet { return l.to(n, l.own(), junkTag(n, data)) }),
	"bad-tags-sources": changed((*Laptop).anySource),
	"bad-tags-board":   changed((*Laptop).boardsSource),
	"ttl":              changed((*Laptop).shortTTL),
	"long":             changed((*Laptop).long),
	"version":          changed((*Laptop).otherVersion),
	"group":            changed((*Laptop).otherGroup),
	"fragments":        (*Laptop).fragments,
	"lives":            func(l *Laptop) ([][]byte, error) { return l.played(l.own()) },
	// A source that is not on the LAN.
	"lives-routed": func(l *Laptop) ([][]byte, error) { return l.played(netip.AddrFrom4([4]byte{8, 8, 8, 8})) },
	"garp":         (*Laptop).forgedARP,
	"arp":          (*Laptop).ordinaryARP,

	"vrrp-checksum": many((*Laptop).wrongChecksum),
	"vrrp-password": many(func(l *Laptop, n int) frame.Packet { return l.vrrp(n, vrrpTTL, passworded()) }),
	"vrrp-ttl":      many(func(l *Laptop, n int) frame.Packet { return l.vrrp(n, vrrpTTL-1, l.advertisement()) }),
	// It is right in everything: version 3 has no authentication.
	"vrrp-forged": many(func(l *Laptop, n int) frame.Packet { return l.vrrp(n, vrrpTTL, l.advertisement()) }),
	"carp-hmac":   many(func(l *Laptop, n int) frame.Packet { return l.vrrp(n, vrrpTTL, carp(n)) }),
	"carp-ttl":    many(func(l *Laptop, n int) frame.Packet { return l.vrrp(n, vrrpTTL-1, carp(n)) }),
}

// Frames returns the frames of a kind of flood, which may be sent over and over.
func (l *Laptop) Frames(kind string) ([][]byte, error) {
	frames, known := kinds[kind]
	if !known {
		return nil, fmt.Errorf("attack: there is no flood %q", kind)
	}
	return frames(l)
}

// many makes frames, each by its number.
func many(one func(l *Laptop, n int) frame.Packet) func(*Laptop) ([][]byte, error) {
	return func(l *Laptop) (frames [][]byte, err error) {
		for n := range variety {
			frames = append(frames, one(l, n).Frame())
		}
		return frames, nil
	}
}

// changed makes frames of what was recorded: with each, data is a copy that may be changed.
func changed(one func(l *Laptop, n int, data []byte) frame.Packet) func(*Laptop) ([][]byte, error) {
	return func(l *Laptop) ([][]byte, error) {
		if len(l.tape) == 0 {
			return nil, errNoTape
		}
		return many(func(l *Laptop, n int) frame.Packet { return one(l, n, bytes.Clone(l.tape[n%len(l.tape)])) })(l)
	}
}

// errNoTape and errNoLives say what a flood lacks.
var (
	errNoTape  = errors.New("attack: the laptop has recorded nothing yet (Listen)")
	errNoLives = errors.New("attack: the laptop has no recordings of the dead (Remember)")
)

// to is a packet with a datagram to the group, from an address of the laptop's choice.
func (l *Laptop) to(n int, from netip.Addr, data []byte) frame.Packet {
	return frame.Packet{
		FromMAC: l.host.HardwareAddr, ToMAC: frame.MulticastMAC(l.group.Addr()),
		From: from, To: l.group.Addr(), Protocol: unix.IPPROTO_UDP, TTL: wire.TTL, Ident: uint16(n),
		Payload: frame.UDP(netip.AddrPortFrom(from, l.group.Port()), l.group, data),
	}
}

// own is the laptop's own address.
func (l *Laptop) own() netip.Addr { return l.host.Addr.Addr() }

// junkTag is a recording whose last 16 bytes are by chance, so that only the key tells that it is none.
func junkTag(n int, data []byte) []byte {
	random := rand.New(rand.NewPCG(1, uint64(n)))
	tag := data[max(0, len(data)-tagLen):]
	for i := range tag {
		tag[i] = byte(random.Uint32())
	}
	return data
}

// tagLen is how long the tag at the end of a packet is.
const tagLen = 16

// anySource claims another source address with each packet, as nobody keeps a laptop from doing.
func (l *Laptop) anySource(n int, data []byte) frame.Packet {
	a := l.own().As4()
	a[2], a[3] = a[2]^1, byte(1+n%boardsOfLives)
	return l.to(n, netip.AddrFrom4(a), junkTag(n, data))
}

// boardsSource claims the source address of a board.
func (l *Laptop) boardsSource(n int, data []byte) frame.Packet {
	return l.to(n, l.boards[n%len(l.boards)].Addr.Addr(), junkTag(n, data))
}

// shortTTL looks as if it came by way of a router.
func (l *Laptop) shortTTL(n int, data []byte) frame.Packet {
	p := l.to(n, l.own(), data)
	p.TTL = wire.TTL - 1
	return p
}

func (l *Laptop) long(n int, data []byte) frame.Packet {
	return l.to(n, l.own(), junkTag(n, append(data, make([]byte, wire.MaxPacket-len(data))...)))
}

// versionStep is 1 of the version, which is in the high 3 bits of the first byte.
const versionStep = 0x20

func (l *Laptop) otherVersion(n int, data []byte) frame.Packet {
	data[0] += versionStep
	return l.to(n, l.own(), data)
}

// groupTagAt is where the tag of the group is.
const groupTagAt = 2

func (l *Laptop) otherGroup(n int, data []byte) frame.Packet {
	binary.BigEndian.PutUint16(data[groupTagAt:], ^binary.BigEndian.Uint16(data[groupTagAt:]))
	return l.to(n, l.own(), data)
}

// fragments are datagrams that are too long for Ethernet. Of every other one only the first part comes.
func (l *Laptop) fragments() (frames [][]byte, err error) {
	if len(l.tape) == 0 {
		return nil, errNoTape
	}
	for n := range variety {
		parts := l.to(n, l.own(), slices.Concat(l.tape[n%len(l.tape)], make([]byte, wire.MaxPacket))).Fragments()
		if n%2 == 1 {
			parts = parts[:1]
		}
		frames = append(frames, parts...)
	}
	return frames, nil
}

// played plays one packet of each board that has lived.
func (l *Laptop) played(from netip.Addr) (frames [][]byte, err error) {
	if len(l.lives) == 0 {
		return nil, errNoLives
	}
	for n, data := range l.lives {
		frames = append(frames, l.to(n, from, data).Frame())
	}
	return frames, nil
}

// forgedARP announces that the laptop has the floating address, by request and by reply.
func (l *Laptop) forgedARP() ([][]byte, error) {
	return [][]byte{
		arp(false, l.host.HardwareAddr, cluster.Address, cluster.Address),
		arp(true, l.host.HardwareAddr, cluster.Address, cluster.Address),
	}, nil
}

// ordinaryARP is what is heard on every LAN, only more of it: somebody looks for the address of another.
func (l *Laptop) ordinaryARP() (frames [][]byte, err error) {
	for n := range boardsOfLives {
		a := l.own().As4()
		a[3] = byte(1 + n)
		if target := netip.AddrFrom4(a); target != cluster.Address {
			frames = append(frames, arp(false, l.host.HardwareAddr, l.own(), target))
		}
	}
	return frames, nil
}

// arp is a message of ARP to everybody: a station says that it has an address, and asks for another
// one or answers for it.
func arp(reply bool, mac net.HardwareAddr, address, target netip.Addr) []byte {
	return frame.ARP{Reply: reply, MAC: mac, Sender: address, Target: target}.Frame(frame.Broadcast)
}
