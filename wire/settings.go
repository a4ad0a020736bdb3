package wire

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// Settings are what all boards of a group must have alike. A board tells them, so that the others can tell people of one
// that has other ones. The election does not depend on them.
type Settings struct {
	Heartbeat time.Duration // between two heartbeats of a leader; whole milliseconds, at most 65,535; 0: it has not told
	Addresses []netip.Addr  // the floating ones, IPv4, at most 255
}

// settingsSize is the length of settings without their addresses. They are the third tail of a HELLO.
const settingsSize = 3

func (s *Settings) appendTo(dst []byte) ([]byte, error) {
	heartbeat, err := milliseconds(TypeHello, "Settings.Heartbeat", s.Heartbeat)
	if err != nil {
		return nil, err
	}
	if len(s.Addresses) > 255 {
		return nil, &fieldError{TypeHello, "Settings.Addresses", fmt.Sprintf("has %d entries, at most 255 fit", len(s.Addresses))}
	}
	dst = append(binary.BigEndian.AppendUint16(dst, heartbeat), byte(len(s.Addresses)))
	for i, addr := range s.Addresses {
		if !addr.Is4() {
			return nil, &fieldError{TypeHello, fmt.Sprintf("Settings.Addresses[%d]", i), fmt.Sprintf("is %q, which is not an IPv4 address", addr)}
		}
		as4 := addr.As4()
		dst = append(dst, as4[:]...)
	}
	return dst, nil
}

// decode reads settings that begin at the offset, and returns that of what follows. It reuses the capacity of Addresses.
func (s *Settings) decode(body []byte, offset int) (end int, drop Drop) {
	s.Heartbeat, s.Addresses = 0, s.Addresses[:0]
	if missing, drop := tail(body, offset, settingsSize); missing {
		return offset, drop
	}
	count, at := int(body[offset+2]), offset+settingsSize
	if count*4 > len(body)-at {
		return at, Drop{TooShort, headerSize + len(body)}
	}
	s.Heartbeat = time.Duration(binary.BigEndian.Uint16(body[offset:])) * time.Millisecond
	for i := range count {
		s.Addresses = append(s.Addresses, netip.AddrFrom4([4]byte(body[at+4*i:])))
	}
	return at + 4*count, Drop{}
}

// Told reports whether a board has told its settings. One of an older version does not.
func (s Settings) Told() bool { return s.Heartbeat != 0 }

// Equal reports whether both are the same.
func (s Settings) Equal(t Settings) bool {
	return s.Heartbeat == t.Heartbeat && slices.Equal(s.Addresses, t.Addresses)
}

// Clone returns settings that share no memory with these.
func (s Settings) Clone() Settings { return Settings{s.Heartbeat, slices.Clone(s.Addresses)} }

func (s *Settings) summary() string {
	if !s.Told() {
		return ""
	}
	text := fmt.Sprintf(", heartbeats every %v, for", s.Heartbeat)
	for _, addr := range s.Addresses {
		text += " " + addr.String()
	}
	return text
}
