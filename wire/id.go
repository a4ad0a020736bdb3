package wire

import (
	"fmt"
	"net/netip"
)

// ID names a board within its group. By default it is the board's own IPv4
// address on the group's interface, read as a big-endian number: unique on a
// LAN by construction. Zero is nobody.
type ID uint32

// Nobody is the ID that stands for "no board".
const Nobody ID = 0

// MaxBoards is the largest number of boards in a group.
const MaxBoards = 255

// IDFromAddr returns the ID that a board with the IPv4 address addr has by default.
func IDFromAddr(addr netip.Addr) ID {
	b := addr.As4()
	return ID(b[0])<<24 | ID(b[1])<<16 | ID(b[2])<<8 | ID(b[3])
}

// Addr returns the IPv4 address that the ID was made from, if it was made from one.
func (id ID) Addr() netip.Addr {
	return netip.AddrFrom4([4]byte{byte(id >> 24), byte(id >> 16), byte(id >> 8), byte(id)})
}

// String writes small numbers, which people choose by hand, as numbers and
// everything else as the IPv4 address that it was made from.
func (id ID) String() string {
	switch {
	case id == Nobody:
		return "nobody"
	case id < 1<<24:
		return fmt.Sprintf("%d", uint32(id))
	default:
		return id.Addr().String()
	}
}
