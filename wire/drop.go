package wire

import "fmt"

// DropReason says why a packet or message was not accepted. Decode gives the
// ones that a packet shows by itself, Guard.Admit the ones that depend on what
// was heard before.
type DropReason uint8

// The reasons. Accepted is none.
const (
	Accepted         DropReason = iota
	TooShort                    // ends before its header, body or tag does
	TooLong                     // longer than MaxPacket
	BadVersion                  // of a version other than ours, and not of our group
	OtherGroup                  // of another group
	Unauthenticated             // not authenticated, in a group that has a key
	NotExpectingAuth            // authenticated, in a group that has no key
	BadTag                      // the tag is not that of an accepted key: another key, or the packet was changed
	UnknownType                 // of a type that this version does not know
	Malformed                   // a field holds an impossible value

	Own       // our own packet, come back
	Duplicate // heard before: normal when two paths carry the same packet
	Replayed  // older than the window of its sender, so possibly a recording
	Unproven  // from a sender that has not proven yet that it is alive
	TableFull // from one board more than a group may have

	OtherVersion // of our group, and of a version other than ours

	// DropReasons is the number of reasons, for arrays of counters.
	DropReasons int = iota
)

// dropReasons has both forms of every reason. The identifiers are part of the JSON
// that docs/status.md describes, so they stay as they are; the texts may be bettered.
var dropReasons = [DropReasons]struct{ identifier, text string }{
	Accepted:         {"accepted", "accepted"},
	TooShort:         {"too_short", "too short"},
	TooLong:          {"too_long", "too long"},
	BadVersion:       {"bad_version", "unknown version"},
	OtherGroup:       {"other_group", "other group"},
	Unauthenticated:  {"unauthenticated", "not authenticated"},
	NotExpectingAuth: {"unexpected_tag", "authenticated, but this group has no key"},
	BadTag:           {"bad_tag", "wrong key, or changed on its way"},
	UnknownType:      {"unknown_type", "unknown type"},
	Malformed:        {"malformed", "impossible value"},
	Own:              {"own_packet", "own packet"},
	Duplicate:        {"duplicate", "duplicate"},
	Replayed:         {"replayed", "replayed"},
	Unproven:         {"unproven", "sender not proven alive yet"},
	TableFull:        {"table_full", "too many boards"},
	OtherVersion:     {"other_version", "a board of this group, of another version"},
}

// String returns the reason for people.
func (r DropReason) String() string {
	if int(r) < DropReasons {
		return dropReasons[r].text
	}
	return fmt.Sprintf("reason %d", uint8(r))
}

// Identifier returns the reason for programs.
func (r DropReason) Identifier() string {
	if int(r) < DropReasons {
		return dropReasons[r].identifier
	}
	return "unknown"
}

// Drop says why a packet was dropped and at which byte. It is a value, so that a
// flood of garbage costs no memory. The zero Drop means that the packet was
// accepted; test with Dropped, since a Drop in a variable of type error is never nil.
type Drop struct {
	Reason DropReason
	offset int // of the first byte that is wrong; the length of the packet if it ends too soon
}

// Dropped reports whether the packet was dropped.
func (d Drop) Dropped() bool { return d.Reason != Accepted }

// Error describes the drop.
func (d Drop) Error() string {
	switch {
	case d.Reason == Accepted:
		return "packet accepted"
	case d.Reason == TooShort && d.offset < headerSize:
		return fmt.Sprintf("packet of %d bytes dropped at byte %d: shorter than a header", d.offset, d.offset)
	case d.Reason == TooShort:
		return fmt.Sprintf("packet dropped at byte %d: ends before its message does", d.offset)
	default:
		return fmt.Sprintf("packet dropped at byte %d: %v", d.offset, d.Reason)
	}
}
