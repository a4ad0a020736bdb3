package wire

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strconv"
)

// Header is what every message begins with.
type Header struct {
	Type      Type
	Algorithm Algorithm

	// Leading is set by a board that leads at the time of sending.
	Leading bool
	// Reply marks a message that answers another one and was not sent on schedule,
	// so that nobody learns the sender's rhythm from it.
	Reply bool

	Sender      ID
	Term        Term  // the highest term that the sender knows of
	Priority    uint8 // the sender's own; 0 means that it must not lead
	Grade       Grade // the sender's own
	Incarnation Incarnation
	Sequence    Sequence

	// Key is the key that has verified the packet, or 0 in a group without one. Codec.Decode
	// sets it, and Codec.Append signs with the key of the codec, whatever it is.
	Key Fingerprint
}

// Term numbers the claims to lead: each one has a higher term, up to MaxTerm.
type Term uint32

// MaxTerm is the highest term: it has 24 bits on the wire. At a claim a minute that is 31 years.
const MaxTerm Term = 1<<24 - 1

// Incarnation is a random number, at most MaxIncarnation, that is drawn once in the life of
// a daemon process.
type Incarnation uint32

// MaxIncarnation is the greatest incarnation: it has 30 bits on the wire.
const MaxIncarnation Incarnation = 1<<30 - 1

// Sequence counts the packets of one incarnation, from 1.
type Sequence uint32

// headerSize is the length of the header, and the offset of every body.
const headerSize = 20

// Offsets in the header.
const (
	offVersion     = 0
	offFlags       = 1
	offGroup       = 2
	offSender      = 4
	offTerm        = 8
	offPriority    = 11
	offIncarnation = 12
	offSequence    = 16
)

// version is the protocol's. See "Versions" in the package comment.
const version = 2

// The version and the type share a byte.
const (
	versionShift = 5
	typeMask     = 1<<versionShift - 1
)

// The flags share a byte with the algorithm.
const (
	flagAuthenticated = 0x80
	flagLeading       = 0x40
	flagReply         = 0x20
	flagMark          = 0x10
	algorithmMask     = 0x0f
)

// markShift is where the mark of the key is in the flags.
const markShift = 4

// The grade shares four bytes with the incarnation.
const gradeShift = 30

// check returns a *fieldError if a field has no representation on the wire.
func (h *Header) check() error {
	switch {
	case !h.Type.known():
		return &fieldError{h.Type, "Type", "does not exist"}
	case h.Algorithm == 0 || h.Algorithm > algorithmMask:
		return &fieldError{h.Type, "Algorithm", fmt.Sprintf("is %d, it must be from 1 to %d", h.Algorithm, algorithmMask)}
	case h.Sender == Nobody:
		return &fieldError{h.Type, "Sender", "is nobody"}
	case h.Term > MaxTerm:
		return &fieldError{h.Type, "Term", fmt.Sprintf("is %d, at most %d fits", h.Term, MaxTerm)}
	case h.Grade > MaxGrade:
		return &fieldError{h.Type, "Grade", fmt.Sprintf("is %d, at most %d fits", h.Grade, MaxGrade)}
	case h.Incarnation > MaxIncarnation:
		return &fieldError{h.Type, "Incarnation", fmt.Sprintf("is %d, at most %d fits", h.Incarnation, MaxIncarnation)}
	case h.Sequence == 0:
		return &fieldError{h.Type, "Sequence", "is 0, the first one is 1"}
	}
	return nil
}

func (h *Header) appendTo(dst []byte, group GroupTag, signature byte) []byte {
	flags := byte(h.Algorithm) | signature
	if h.Leading {
		flags |= flagLeading
	}
	if h.Reply {
		flags |= flagReply
	}
	dst = append(dst, version<<versionShift|byte(h.Type), flags)
	dst = binary.BigEndian.AppendUint16(dst, uint16(group))
	dst = binary.BigEndian.AppendUint32(dst, uint32(h.Sender))
	dst = binary.BigEndian.AppendUint32(dst, uint32(h.Term)<<8|uint32(h.Priority))
	dst = binary.BigEndian.AppendUint32(dst, uint32(h.Grade)<<gradeShift|uint32(h.Incarnation))
	return binary.BigEndian.AppendUint32(dst, uint32(h.Sequence))
}

// decode reads the header of a packet that has at least that length. It makes sure that the packet is no
// shorter than its type demands.
func (h *Header) decode(packet []byte) Drop {
	kind := Type(packet[offVersion] & typeMask)
	switch {
	case !kind.known():
		return Drop{UnknownType, offVersion}
	case len(packet) < types[kind].size:
		return Drop{TooShort, len(packet)}
	}
	flags := packet[offFlags]
	life := binary.BigEndian.Uint32(packet[offIncarnation:])
	*h = Header{
		Type:        kind,
		Algorithm:   Algorithm(flags & algorithmMask),
		Leading:     flags&flagLeading != 0,
		Reply:       flags&flagReply != 0,
		Sender:      ID(binary.BigEndian.Uint32(packet[offSender:])),
		Term:        Term(binary.BigEndian.Uint32(packet[offTerm:]) >> 8),
		Priority:    packet[offPriority],
		Grade:       Grade(life >> gradeShift),
		Incarnation: Incarnation(life) & MaxIncarnation,
		Sequence:    Sequence(binary.BigEndian.Uint32(packet[offSequence:])),
	}
	switch {
	case h.Algorithm == 0:
		return Drop{Malformed, offFlags}
	case h.Sender == Nobody:
		return Drop{Malformed, offSender}
	case h.Sequence == 0:
		return Drop{Malformed, offSequence}
	}
	return Drop{}
}

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
func (id ID) String() string { return string(id.Append(nil)) }

// Append appends what String returns.
func (id ID) Append(b []byte) []byte {
	switch {
	case id == Nobody:
		return append(b, "nobody"...)
	case id < 1<<24:
		return strconv.AppendUint(b, uint64(id), 10)
	default:
		return id.Addr().AppendTo(b)
	}
}

// Algorithm is the number of an election algorithm. Boards of one group must
// agree on it. Only append to this list: the numbers are part of the protocol.
type Algorithm uint8

// The algorithms that have numbers.
const (
	AlgorithmHeir       Algorithm = 1
	AlgorithmBully      Algorithm = 2
	AlgorithmScore      Algorithm = 3
	AlgorithmModified   Algorithm = 4
	AlgorithmCandidates Algorithm = 5
	AlgorithmMinID      Algorithm = 6
	AlgorithmAgents     Algorithm = 7
	AlgorithmStrict     Algorithm = 8
)

var algorithmNames = [...]string{
	AlgorithmHeir:       "heir",
	AlgorithmBully:      "bully",
	AlgorithmScore:      "score",
	AlgorithmModified:   "modified",
	AlgorithmCandidates: "candidates",
	AlgorithmMinID:      "minid",
	AlgorithmAgents:     "agents",
	AlgorithmStrict:     "strict",
}

func (a Algorithm) String() string {
	if int(a) < len(algorithmNames) && algorithmNames[a] != "" {
		return algorithmNames[a]
	}
	return fmt.Sprintf("algorithm %d", uint8(a))
}

// Grade says how fit a board is to lead, by its own judgement. The smaller, the fitter.
type Grade uint8

// The grades. They are part of the protocol.
const (
	GradePassing   Grade = 0 // all is well, or nothing is checked
	GradeProbation Grade = 1 // all is well again, and was not a short time ago
	GradeDrained   Grade = 2 // somebody has asked this board to leave the lead to others
	GradeFailing   Grade = 3 // what this board is to serve does not work, or is not known to
)

// MaxGrade is the greatest grade: it has two bits on the wire.
const MaxGrade = GradeFailing

var gradeNames = [...]string{
	GradePassing:   "passing",
	GradeProbation: "probation",
	GradeDrained:   "drained",
	GradeFailing:   "failing",
}

func (g Grade) String() string {
	if g <= MaxGrade {
		return gradeNames[g]
	}
	return fmt.Sprintf("grade %d", uint8(g))
}
