package wire

import (
	"math"
	"net/netip"
	"slices"
	"time"
	"unicode"
	"unicode/utf8"
)

// Heartbeat says that the leader is alive and when to expect the next one.
type Heartbeat struct {
	Interval time.Duration // until the next heartbeat; whole milliseconds, at most 65,535
	Grace    time.Duration // how late it may be before anybody takes over, at most MaxGrace; 0 is the default of the interval
	Number   uint8         // counts heartbeats modulo 256, so that a listener can tell how many it lost
}

func (h *Heartbeat) fields(c *cursor) {
	c.interval("Interval", &h.Interval)
	c.grace(&h.Grace)
	c.u8(&h.Number)
}

// Hello makes a board known to the others, which enter it in their rosters.
type Hello struct {
	Following ID            // the leader that the sender follows, or Nobody
	Age       time.Duration // since the sender's process started; whole seconds
	Interval  time.Duration // the sender says HELLO this often; whole milliseconds, at most 65,535
	// NoMulticast says that the sender hears its leader, but not by multicast.
	NoMulticast bool
	// Grace is the grace that the sender wishes its leader to announce; 0 is no wish.
	Grace time.Duration
	Name  string // for people: the host's name, at most MaxName bytes of UTF-8
	Score uint32 // by which the algorithm score ranks the sender; else 0
	Keys  Keys   // the keys that the sender accepts

	Settings Settings // of the sender
	Program  string   // for people: the version of the sender's program, as Name; "" without Settings
}

func (h *Hello) fields(c *cursor) {
	c.id(&h.Following)
	c.elapsed("Age", &h.Age, time.Second)
	c.interval("Interval", &h.Interval)
	c.flag(&h.NoMulticast)
	c.grace(&h.Grace)
	c.text("Name", &h.Name)

	settings := h.Settings.Told()
	keys := settings || h.Keys != Keys{}
	c.tail(keys || h.Score != 0)
	c.u32(&h.Score)
	c.tail(keys)
	c.u32((*uint32)(&h.Keys.Signs))
	c.u32((*uint32)(&h.Keys.Also))
	c.tail(settings)
	c.milliseconds("Settings.Heartbeat", &h.Settings.Heartbeat)
	ipv4 := h.Settings.ipv4()
	ipv6 := len(h.Settings.Addresses) > ipv4
	c.addresses4("Settings.Addresses", &h.Settings.Addresses, ipv4)
	c.tail(h.Program != "" || ipv6)
	c.text("Program", &h.Program)
	c.tail(ipv6)
	c.addresses6("Settings.Addresses", &h.Settings.Addresses, ipv4)
}

// Settings must be the same on all boards of a group. A board tells its own, so that the others can tell
// people when they differ. The election does not depend on them.
type Settings struct {
	Heartbeat time.Duration // between two heartbeats of a leader; whole milliseconds, at most 65,535; 0: it has not told
	Addresses []netip.Addr  // the floating ones: at most 255 of IPv4, and behind them at most MaxIPv6 of IPv6
}

// MaxIPv6 is how many IPv6 addresses a HELLO carries. With every other part of it at its longest, one more
// would not fit a packet.
const MaxIPv6 = 20

// ipv4 is how many IPv4 addresses the addresses begin with.
func (s Settings) ipv4() int {
	if n := slices.IndexFunc(s.Addresses, func(a netip.Addr) bool { return !a.Is4() }); n >= 0 {
		return n
	}
	return len(s.Addresses)
}

// Told reports whether a board has told its settings. A board with an older program does not.
func (s Settings) Told() bool { return s.Heartbeat != 0 }

// Equal reports whether both are the same.
func (s Settings) Equal(t Settings) bool {
	return s.Heartbeat == t.Heartbeat && slices.Equal(s.Addresses, t.Addresses)
}

// Clone returns settings that share no memory with these.
func (s Settings) Clone() Settings { return Settings{s.Heartbeat, slices.Clone(s.Addresses)} }

// MaxName is the length in bytes of the longest name in a HELLO.
const MaxName = 32

// NameFits reports whether a HELLO can carry the name.
func NameFits(name string) bool { return len(name) <= MaxName && badName(name) < 0 }

// badName returns the index of the first byte that a name must not contain, or -1. Names are shown on
// terminals, and in a group without a key anybody may send one: control characters (Unicode's class Cc)
// would let the sender drive the terminal, and marks of direction (the property Bidi_Control) would let
// it turn a line around.
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

// Resign says that the sender has released the address, and who should acquire it.
type Resign struct {
	Successor ID // Nobody lets the ranks decide
}

func (r *Resign) fields(c *cursor) { c.id(&r.Successor) }

// Pause says that only one board may lead for some time, or that this is over.
type Pause struct {
	Number uint32 // of the pause or of its end; the greater one counts
	Leader ID     // the board that alone may lead meanwhile; Nobody if the pause is over
	// Left is the time until the pause ends by itself; whole milliseconds.
	Left time.Duration
}

func (p *Pause) fields(c *cursor) {
	c.number("Number", &p.Number)
	c.id(&p.Leader)
	c.elapsed("Left", &p.Left, time.Millisecond)
}

// A grace travels in one byte, so that a HEARTBEAT stays short. The byte is a small
// floating-point number: its high 4 bits are the exponent e, its low 4 bits the mantissa m,
// and the grace is (16 + m) · 2^e sixteenths of a millisecond. So 10 ms is exact, and no two
// neighbours are further apart than 1/16. The code 0 would be 1 ms, and says that the grace is
// the default of the interval.
const (
	graceMantissaBits = 4
	graceMantissas    = 1 << graceMantissaBits
	graceUnit         = time.Millisecond / graceMantissas
	// MaxGrace is the longest grace that fits, 63.488 s.
	MaxGrace = (2*graceMantissas - 1) << 15 * graceUnit
)

// graceOf returns the grace that a code stands for.
func graceOf(code byte) time.Duration {
	if code == 0 {
		return 0
	}
	return (graceMantissas + time.Duration(code)%graceMantissas) << (code >> graceMantissaBits) * graceUnit
}

// graceCode rounds a grace up to one that has a code: a board that waits a little longer for
// its leader than the leader asked for does no harm. It is not ok if no code is as long.
func graceCode(grace time.Duration) (code byte, ok bool) {
	if grace <= 0 || grace > MaxGrace {
		return 0, grace == 0
	}
	low, high := 1, math.MaxUint8
	for low < high {
		if middle := (low + high) / 2; graceOf(byte(middle)) >= grace {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return byte(low), true
}

// RoundGrace rounds a grace up to one that has a code; MaxGrace is the longest.
func RoundGrace(grace time.Duration) time.Duration {
	code, ok := graceCode(grace)
	if !ok {
		return MaxGrace
	}
	return graceOf(code)
}
