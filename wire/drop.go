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

// Dropped reports whether the packet or message was not accepted.
func (r DropReason) Dropped() bool { return r != Accepted }

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
