package wire

import (
	"encoding/binary"
	"fmt"
	"math"
	"net/netip"
	"time"
)

// cursor goes through the fields of a body in the order in which they are on the wire. It either
// appends them to a packet or reads them from one. Every message lists its fields once, in its
// method fields, so that sender and receiver cannot disagree about them.
//
// The first wrong field decides: the cursor notes a Drop while it reads, and an error while it
// appends. It goes through the other fields all the same, and nobody uses the result.
type cursor struct {
	message Type
	reading bool
	packet  []byte
	at      int // where the next field begins
	drop    Drop
	err     error

	// absent says that all further fields are missing from the packet. The cursor reads them from
	// none, as zeros, or writes them there.
	absent bool
	none   [MaxName]byte
}

// next returns the bytes of the next field. size is its length, at most MaxName.
func (c *cursor) next(size int) []byte {
	if c.absent {
		return c.none[:size]
	}
	from := c.at
	if !c.reading {
		c.packet = append(c.packet, c.none[:size]...)
	} else if size > len(c.packet)-from {
		if c.absent = true; !c.drop.Dropped() {
			c.drop = Drop{TooShort, len(c.packet)}
		}
		return c.none[:size]
	}
	c.at += size
	return c.packet[from:c.at]
}

// tail begins an optional part of the body. A sender omits it, and everything behind it, unless
// it is wanted. A receiver reads a missing tail as zeros.
func (c *cursor) tail(wanted bool) {
	if c.reading {
		wanted = c.at < len(c.packet)
	}
	c.absent = c.absent || !wanted
}

// wrong notes that a field has an impossible value. It begins at the offset, field is its name in the
// Go struct, and problem says in words what is wrong.
func (c *cursor) wrong(at int, field, problem string) {
	if c.reading {
		c.malformed(at)
	} else {
		c.refuse(field, problem)
	}
}

// malformed drops the packet that is read.
func (c *cursor) malformed(at int) {
	if !c.drop.Dropped() {
		c.drop = Drop{Malformed, at}
	}
}

// refuse refuses the message that is appended.
func (c *cursor) refuse(field, problem string) {
	if c.err == nil {
		c.err = &fieldError{c.message, field, problem}
	}
}

func (c *cursor) u8(v *uint8) {
	if b := c.next(1); c.reading {
		*v = b[0]
	} else {
		b[0] = *v
	}
}

func (c *cursor) u16(v *uint16) {
	if b := c.next(2); c.reading {
		*v = binary.BigEndian.Uint16(b)
	} else {
		binary.BigEndian.PutUint16(b, *v)
	}
}

func (c *cursor) u32(v *uint32) {
	if b := c.next(4); c.reading {
		*v = binary.BigEndian.Uint32(b)
	} else {
		binary.BigEndian.PutUint32(b, *v)
	}
}

func (c *cursor) nonce(n *Nonce) {
	if b := c.next(nonceSize); c.reading {
		*n = Nonce(b)
	} else {
		copy(b, n[:])
	}
}

// flag is a byte of which only the lowest bit is in use. A receiver ignores the others.
func (c *cursor) flag(set *bool) {
	if b := c.next(1); c.reading {
		*set = b[0]&flagInBody != 0
	} else if *set {
		b[0] = flagInBody
	}
}

const flagInBody = 0x01

func (c *cursor) incarnation(i *Incarnation) { c.u32((*uint32)(i)) }

func (c *cursor) sequence(s *Sequence) { c.u32((*uint32)(s)) }

func (c *cursor) term(field string, t *Term) {
	b := c.next(3)
	if c.reading {
		*t = Term(b[0])<<16 | Term(b[1])<<8 | Term(b[2])
		return
	}
	if *t > MaxTerm {
		c.refuse(field, fmt.Sprintf("is %d, at most %d fits", *t, MaxTerm))
	}
	b[0], b[1], b[2] = byte(*t>>16), byte(*t>>8), byte(*t)
}

// id is the id of a board, or Nobody.
func (c *cursor) id(id *ID) { c.u32((*uint32)(id)) }

// board is the id of a board.
func (c *cursor) board(field string, id *ID) {
	at := c.at
	if c.id(id); *id == Nobody {
		c.wrong(at, field, "is nobody")
	}
}

// number counts something, from 1.
func (c *cursor) number(field string, n *uint32) {
	at := c.at
	if c.u32(n); *n == 0 {
		c.wrong(at, field, "is 0, the first one is 1")
	}
}

// interval is the time until the next message. It is not 0.
func (c *cursor) interval(field string, d *time.Duration) {
	at := c.at
	if c.milliseconds(field, d); *d == 0 {
		c.wrong(at, field, "is 0, the next message never comes then")
	}
}

// milliseconds are a time in 16 bits. Fractions are rounded up: a time that is a little too long does not
// make anybody suspect the sender.
func (c *cursor) milliseconds(field string, d *time.Duration) {
	const most = math.MaxUint16 * time.Millisecond
	if !c.reading && (*d < 0 || *d > most) {
		c.refuse(field, fmt.Sprintf("is %v, it must be more than 0 and at most %v", *d, most))
	}
	ms := uint16((*d + time.Millisecond - 1) / time.Millisecond)
	if c.u16(&ms); c.reading {
		*d = time.Duration(ms) * time.Millisecond
	}
}

// elapsed is a measured time, in 32 bits of the unit. Fractions are cut off, and the greatest value stands for
// everything above it as well: nothing must fail merely because time passes.
func (c *cursor) elapsed(field string, d *time.Duration, unit time.Duration) {
	if !c.reading && *d < 0 {
		c.refuse(field, fmt.Sprintf("is %v, it must not be negative", *d))
	}
	units := uint32(min(*d/unit, math.MaxUint32))
	if c.u32(&units); c.reading {
		*d = time.Duration(units) * unit
	}
}

func (c *cursor) grace(d *time.Duration) {
	code, ok := graceCode(*d)
	if !c.reading && !ok {
		c.refuse("Grace", fmt.Sprintf("is %v, it must not be negative and at most %v", *d, MaxGrace))
	}
	if c.u8(&code); c.reading {
		*d = graceOf(code)
	}
}

// text is a text for people, with its length in one byte before it.
func (c *cursor) text(field string, text *string) {
	if !c.reading {
		c.appendText(field, *text)
		return
	}
	at := c.at
	length := int(c.next(1)[0])
	if length > MaxName || length > len(c.packet)-c.at {
		c.malformed(at)
		return
	}
	b := c.next(length)
	// A board says the same name in every HELLO, so the string that is there is often the right
	// one, and it was checked. The comparison does not allocate.
	if string(b) == *text {
		return
	}
	name := string(b)
	if bad := badName(name); bad >= 0 {
		c.malformed(at + 1 + bad)
		return
	}
	*text = name
}

func (c *cursor) appendText(field, text string) {
	if len(text) > MaxName {
		c.refuse(field, fmt.Sprintf("is %d bytes long, at most %d fit", len(text), MaxName))
		return
	}
	if at := badName(text); at >= 0 {
		c.refuse(field, fmt.Sprintf("%+q is not printable UTF-8 at byte %d", text, at))
	}
	c.next(1)[0] = byte(len(text))
	copy(c.next(len(text)), text)
}

// count is how many entries of that size follow. A receiver believes it only after it has seen that the
// packet is that long.
func (c *cursor) count(field string, n, size int) int { return c.countTo(MaxBoards, field, n, size) }

// countTo is a count that is bounded more tightly than by its byte.
func (c *cursor) countTo(most int, field string, n, size int) int {
	if !c.reading && n > most {
		c.refuse(field, fmt.Sprintf("has %d entries, at most %d fit", n, most))
	}
	at := c.at
	b := c.next(1)
	if !c.reading {
		b[0] = byte(n)
		return n
	}
	if n = int(b[0]); n > most || n*size > len(c.packet)-c.at {
		c.malformed(at)
		return 0
	}
	return n
}

// resized returns a list of that length. It reuses the capacity of the one that is given.
func resized[T any](list []T, n int) []T {
	if n <= cap(list) {
		return list[:n]
	}
	return make([]T, n)
}

// idSize is the length of an id, and of an IPv4 address.
const idSize = 4

// ids are the ids of boards.
func (c *cursor) ids(field string, ids *[]ID) {
	if n := c.count(field, len(*ids), idSize); c.reading {
		*ids = resized(*ids, n)
	}
	for i := range *ids {
		c.entry(field, i, &(*ids)[i])
	}
}

// entry is the id of a board in a list.
func (c *cursor) entry(list string, i int, id *ID) {
	at := c.at
	switch c.id(id); {
	case *id != Nobody:
	case c.reading:
		c.malformed(at)
	default:
		c.refuse(fmt.Sprintf("%s[%d]", list, i), "is nobody")
	}
}

// addresses4 are the IPv4 addresses that a list begins with, n of them in a message that is appended.
func (c *cursor) addresses4(field string, addrs *[]netip.Addr, n int) {
	if n = c.count(field, n, idSize); c.reading {
		*addrs = resized(*addrs, n)
	}
	for i := range n {
		if b := c.next(idSize); c.reading {
			(*addrs)[i] = netip.AddrFrom4([4]byte(b))
		} else {
			as4 := (*addrs)[i].As4()
			copy(b, as4[:])
		}
	}
}

// ipv6Size is the length of an IPv6 address.
const ipv6Size = 16

// addresses6 are the IPv6 addresses of a list, which stand behind its n IPv4 addresses in a message that is appended, and
// behind what the list holds already in one that is read.
func (c *cursor) addresses6(field string, addrs *[]netip.Addr, n int) {
	count := c.countTo(MaxIPv6, field, len(*addrs)-n, ipv6Size)
	if c.reading {
		for range count {
			*addrs = append(*addrs, netip.AddrFrom16([ipv6Size]byte(c.next(ipv6Size))))
		}
		return
	}
	for i, addr := range (*addrs)[n:] {
		b := c.next(ipv6Size)
		if !addr.Is6() || addr.Zone() != "" {
			c.refuse(fmt.Sprintf("%s[%d]", field, n+i), fmt.Sprintf("is %q, which is not an IPv6 address without a zone", addr))
			continue
		}
		as16 := addr.As16()
		copy(b, as16[:])
	}
}
