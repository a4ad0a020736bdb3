package attack

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/cluster"
	"topdog/internal/lab/frame"
	"topdog/wire"
)

// Flood is one kind of frames that a laptop sends without end.
type Flood struct {
	Key, Title string
	// Rate is how many frames a second it is by default. 0 is as many as this machine gives.
	Rate   int
	frames func(*Laptop) ([][]byte, error)
}

// variety is how many different frames a flood has.
const variety = 1024

// Floods returns all kinds, in the order of tables.
func Floods() []Flood {
	return []Flood{
		{"bad-tags", "bad tags", 20_000, (*Laptop).badTags},
		{"bad-tags-most", "bad tags, as many as it can", 0, (*Laptop).badTags},
		{"bad-tags-sources", "bad tags from 250 addresses", 20_000, (*Laptop).manySources},
		{"bad-tags-board", "bad tags, source: a living board", 20_000, (*Laptop).boardsSource},
		{"ttl", "TTL 254, as many as it can", 0, (*Laptop).shortTTL},
		{"long", "1472 bytes with bad tags", 20_000, (*Laptop).long},
		{"version", "another version", 20_000, (*Laptop).otherVersion},
		{"group", "another group", 20_000, (*Laptop).otherGroup},
		{"fragments", "fragments", 20_000, (*Laptop).fragments},
		{"lives", "recordings of 1,000 lives", 20_000, (*Laptop).deadLives},
		{"lives-1000", "the same, 1,000 a second", 1_000, (*Laptop).deadLives},
		{"lives-routed", "the same, source: 8.8.8.8", 1_000, (*Laptop).routedLives},
		{"garp", "forged gratuitous ARP", 1, (*Laptop).forgedARP},
		{"garp-10", "the same, ten a second", 10, (*Laptop).forgedARP},
		{"garp-1000", "the same, 1,000 a second", 1_000, (*Laptop).forgedARP},
		{"garp-35000", "the same, 35,000 a second", 35_000, (*Laptop).forgedARP},
		{"arp", "ARP of the LAN, 1,000 a second", 1_000, (*Laptop).ordinaryARP},
		{"arp-35000", "ARP of the LAN, 35,000 a second", 35_000, (*Laptop).ordinaryARP},
	}
}

// Frames returns the frames of a kind of flood, which may be sent over and over.
func (l *Laptop) Frames(key string) ([][]byte, error) {
	for _, f := range Floods() {
		if f.Key == key {
			return f.frames(l)
		}
	}
	return nil, fmt.Errorf("attack: there is no flood %q", key)
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

// changed makes frames of what was recorded: with each, data is a copy that may be changed.
func (l *Laptop) changed(make func(n int, data []byte) frame.Packet) ([][]byte, error) {
	if len(l.tape) == 0 {
		return nil, errNoTape
	}
	var frames [][]byte
	for n := range variety {
		data := append([]byte(nil), l.tape[n%len(l.tape)].data...)
		frames = append(frames, make(n, data).Frame())
	}
	return frames, nil
}

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

func (l *Laptop) badTags() ([][]byte, error) {
	return l.changed(func(n int, data []byte) frame.Packet { return l.to(n, l.own(), junkTag(n, data)) })
}

// manySources claims another source address with each packet, as nobody keeps a laptop from doing.
func (l *Laptop) manySources() ([][]byte, error) {
	return l.changed(func(n int, data []byte) frame.Packet {
		a := l.own().As4()
		a[2], a[3] = a[2]^1, byte(1+n%boardsOfLives)
		return l.to(n, netip.AddrFrom4(a), junkTag(n, data))
	})
}

// boardsSource claims the source address of a board.
func (l *Laptop) boardsSource() ([][]byte, error) {
	return l.changed(func(n int, data []byte) frame.Packet {
		return l.to(n, l.boards[n%len(l.boards)].Addr.Addr(), junkTag(n, data))
	})
}

// shortTTL looks as if it came by way of a router.
func (l *Laptop) shortTTL() ([][]byte, error) {
	return l.changed(func(n int, data []byte) frame.Packet {
		p := l.to(n, l.own(), data)
		p.TTL = wire.TTL - 1
		return p
	})
}

func (l *Laptop) long() ([][]byte, error) {
	return l.changed(func(n int, data []byte) frame.Packet {
		return l.to(n, l.own(), junkTag(n, append(data, make([]byte, wire.MaxPacket-len(data))...)))
	})
}

// versionStep is 1 of the version, which is in the high 3 bits of the first byte.
const versionStep = 0x20

func (l *Laptop) otherVersion() ([][]byte, error) {
	return l.changed(func(n int, data []byte) frame.Packet {
		data[0] += versionStep
		return l.to(n, l.own(), data)
	})
}

// groupTagAt is where the tag of the group is.
const groupTagAt = 2

func (l *Laptop) otherGroup() ([][]byte, error) {
	return l.changed(func(n int, data []byte) frame.Packet {
		binary.BigEndian.PutUint16(data[groupTagAt:], ^binary.BigEndian.Uint16(data[groupTagAt:]))
		return l.to(n, l.own(), data)
	})
}

// fragments are datagrams that are too long for Ethernet. Of every other one only the first part comes.
func (l *Laptop) fragments() ([][]byte, error) {
	if len(l.tape) == 0 {
		return nil, errNoTape
	}
	var frames [][]byte
	for n := range variety {
		data := append(append([]byte(nil), l.tape[n%len(l.tape)].data...), make([]byte, wire.MaxPacket)...)
		parts := l.to(n, l.own(), data).Fragments()
		if n%2 == 1 {
			parts = parts[:1]
		}
		frames = append(frames, parts...)
	}
	return frames, nil
}

// deadLives plays one packet of each board that has lived.
func (l *Laptop) deadLives() ([][]byte, error) { return l.played(l.own()) }

// routedLives are the same with a source that is not on the LAN.
func (l *Laptop) routedLives() ([][]byte, error) {
	return l.played(netip.AddrFrom4([4]byte{8, 8, 8, 8}))
}

func (l *Laptop) played(from netip.Addr) (frames [][]byte, err error) {
	if len(l.lives) == 0 {
		return nil, errNoLives
	}
	for n, r := range l.lives {
		frames = append(frames, l.to(n, from, r.data).Frame())
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
