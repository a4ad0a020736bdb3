package wire

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"time"
	"unicode"
	"unicode/utf8"
)

// Hello makes a board known to the roster of the others.
type Hello struct {
	Following ID            // the leader that the sender follows, or Nobody
	Age       time.Duration // since the sender's process started; whole seconds
	Interval  time.Duration // the sender says HELLO this often; whole milliseconds, at most 65,535
	// NoMulticast says that the sender hears its leader, but not by multicast.
	NoMulticast bool
	// Grace is the grace that the sender wishes its leader to announce; 0 is no wish.
	Grace time.Duration
	Name  string // for people: the host's name, at most MaxName bytes of UTF-8
	Score uint32 // what the algorithm score ranks the sender by; else 0
	Keys  Keys   // the keys that the sender accepts

	Settings Settings // of the sender
	Program  string   // the version of the sender's program, for people, as Name; "" without Settings
}

// MaxName is the length in bytes of the longest name in a HELLO.
const MaxName = 32

// helloSize is the length of the body without its name and tail. The last byte of it is
// the length of the name, which follows.
const helloSize = 13

// helloNoMulticast is the one flag of a HELLO. The others are reserved.
const helloNoMulticast = 0x01

func (h *Hello) appendTo(dst []byte) ([]byte, error) {
	age, err := age(TypeHello, h.Age, time.Second)
	if err != nil {
		return nil, err
	}
	interval, err := milliseconds(TypeHello, "Interval", h.Interval)
	if err != nil {
		return nil, err
	}
	if err := cmp.Or(checkName("Name", h.Name), checkName("Program", h.Program)); err != nil {
		return nil, err
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(h.Following))
	dst = binary.BigEndian.AppendUint32(dst, age)
	grace, err := graceCode(TypeHello, h.Grace)
	if err != nil {
		return nil, err
	}
	dst = binary.BigEndian.AppendUint16(dst, interval)
	dst = append(dst, h.flags(), grace, byte(len(h.Name)))
	dst = append(dst, h.Name...)
	hasKeys := h.Keys != (Keys{}) || h.Settings.Told()
	if h.Score != 0 || hasKeys {
		dst = binary.BigEndian.AppendUint32(dst, h.Score)
	}
	if hasKeys {
		dst = binary.BigEndian.AppendUint32(dst, uint32(h.Keys.Signs))
		dst = binary.BigEndian.AppendUint32(dst, uint32(h.Keys.Also))
	}
	if !h.Settings.Told() {
		return dst, nil
	}
	if dst, err = h.Settings.appendTo(dst); err != nil || h.Program == "" {
		return dst, err
	}
	return append(append(dst, byte(len(h.Program))), h.Program...), nil
}

// checkName returns an error if a name does not fit into the field.
func checkName(field, name string) error {
	if len(name) > MaxName {
		return &fieldError{TypeHello, field, fmt.Sprintf("is %d bytes long, at most %d fit", len(name), MaxName)}
	}
	if at := badName(name); at >= 0 {
		return &fieldError{TypeHello, field, fmt.Sprintf("%+q is not printable UTF-8 at byte %d", name, at)}
	}
	return nil
}

func (h *Hello) flags() (flags byte) {
	if h.NoMulticast {
		flags |= helloNoMulticast
	}
	return flags
}

func (h *Hello) decode(body []byte) Drop {
	h.Following = ID(binary.BigEndian.Uint32(body))
	h.Age = time.Duration(binary.BigEndian.Uint32(body[4:])) * time.Second
	h.Interval = time.Duration(binary.BigEndian.Uint16(body[8:])) * time.Millisecond
	if h.Interval == 0 {
		return malformed(8)
	}
	h.NoMulticast = body[10]&helloNoMulticast != 0
	h.Grace = graceOf(body[11])
	at, drop := decodeName(&h.Name, body, helloSize-1)
	if drop.Dropped() {
		return drop
	}
	if h.Score, drop = decodeScore(body, at); drop.Dropped() {
		return drop
	}
	at = min(at+scoreSize, len(body))
	if h.Keys, drop = decodeKeys(body, at); drop.Dropped() {
		return drop
	}
	if at, drop = h.Settings.decode(body, min(at+keysSize, len(body))); drop.Dropped() {
		return drop
	}
	if at == len(body) {
		h.Program = ""
		return Drop{}
	}
	_, drop = decodeName(&h.Program, body, at)
	return drop
}

// decodeName reads a name that begins at the offset with its length, and returns the offset of what follows.
func decodeName(to *string, body []byte, offset int) (end int, drop Drop) {
	length, at := int(body[offset]), offset+1
	if length > MaxName || length > len(body)-at {
		return at, malformed(offset)
	}
	name := body[at : at+length]
	// A board says the same name in every HELLO, so the string that is there is
	// often the right one. The comparison does not allocate.
	if string(name) != *to {
		s := string(name)
		if bad := badName(s); bad >= 0 {
			return at, malformed(at + bad)
		}
		*to = s
	}
	return at + length, Drop{}
}

// keysSize is the length of the fingerprints, which are the second tail.
const keysSize = 8

// decodeKeys reads the fingerprints, which begin at the offset.
func decodeKeys(body []byte, offset int) (Keys, Drop) {
	if missing, drop := tail(body, offset, keysSize); missing {
		return Keys{}, drop
	}
	return Keys{
		Signs: Fingerprint(binary.BigEndian.Uint32(body[offset:])),
		Also:  Fingerprint(binary.BigEndian.Uint32(body[offset+4:])),
	}, Drop{}
}

func (h *Hello) summary() string {
	s := fmt.Sprintf("%q, up %v, follows %v, every %v", h.Name, h.Age, h.Following, h.Interval)
	if h.NoMulticast {
		s += ", hears no multicast"
	}
	if h.Grace > 0 {
		s += fmt.Sprintf(", wishes grace %v", h.Grace)
	}
	s += scoreSummary(h.Score)
	if h.Keys.Signs != 0 {
		s += fmt.Sprintf(", signs with %v", h.Keys.Signs)
	}
	if h.Keys.Also != 0 {
		s += fmt.Sprintf(", accepts %v", h.Keys.Also)
	}
	s += h.Settings.summary()
	if h.Program != "" {
		s += fmt.Sprintf(", of version %q", h.Program)
	}
	return s
}

// NameFits reports whether a HELLO can carry the name.
func NameFits(name string) bool { return len(name) <= MaxName && badName(name) < 0 }

// badName returns the place of the first byte that a name must not contain, or
// -1. Names are shown on terminals, and in a group without a key anybody may send one:
// control characters (Unicode's class Cc) would let the sender drive the terminal, and
// marks of direction (the property Bidi_Control) would let it turn a line around.
func badName(name string) int {
	for at, r := range name {
		if unicode.In(r, unicode.Cc, unicode.Bidi_Control) {
			return at
		}
		if r == utf8.RuneError {
			// U+FFFD may have been sent as such, in three bytes.
			if _, size := utf8.DecodeRuneInString(name[at:]); size == 1 {
				return at
			}
		}
	}
	return -1
}
