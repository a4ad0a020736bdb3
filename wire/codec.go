package wire

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"
)

const (
	// DefaultPort is the UDP port. It is ours by choice, not by registration.
	DefaultPort = 9254

	// DefaultGroup is the multicast group: the address that RFC 4727 sets
	// aside for experiments in the link-local block. Switches
	// with IGMP snooping flood that block instead of pruning it (RFC 4541
	// section 2.1.2), and no router forwards it.
	DefaultGroup = "224.0.0.254"

	// TTL is the time to live of every packet. One that arrives with less has
	// crossed a router and must be dropped (RFC 5082).
	TTL = 255

	// MaxPacket is the length of the longest packet: what an Ethernet frame
	// carries without fragments, 1500 bytes less 20 of IPv4 and 8 of UDP. The
	// longest message of this version, a REPORT, has 1321 bytes.
	MaxPacket = 1500 - 20 - 8

	// HeaderSize is the length of the header, and the offset of every body.
	HeaderSize = 21
)

// version is the protocol's. See "Versions" in the package comment.
const version = 1

// The flags share a byte with the algorithm. 0x10 is reserved.
const (
	flagAuthenticated = 0x80
	flagLeading       = 0x40
	flagReply         = 0x20
	algorithmMask     = 0x0f
)

// Offsets in the header.
const (
	offVersion     = 0
	offFlags       = 1
	offGroup       = 2
	offSender      = 4
	offTerm        = 8
	offPriority    = 12
	offIncarnation = 13
	offSequence    = 17
)

// bodySizes holds the length of each type's body, without the name of a HELLO,
// the standings of a REPORT, the trusted set of an OK, and optional tails. Types
// that do not exist have none.
var bodySizes = [32]int{
	TypeHeartbeat:   3,
	TypeHello:       helloName,
	TypeElection:    electionScore,
	TypeAnswer:      17,
	TypeCoordinator: coordinatorScore,
	TypeResign:      4,
	TypeQuery:       2,
	TypeChallenge:   24,
	TypeProof:       16,
	TypeHalt:        4,
	TypeStart:       4,
	TypeAck:         4,
	TypeCollect:     4,
	TypeReport:      reportStandings,
	TypeLeader:      8,
	TypeOK:          okTrust + 1,
}

// Codec turns messages of one group into packets and back. It is not safe for
// concurrent use: every goroutine needs its own, see Clone.
type Codec struct {
	group uint16
	auth  *authenticator // nil in a group without a key
}

// NewCodec returns a codec for the group. A nil key means that packets are not
// authenticated; any other must have KeySize bytes.
func NewCodec(group string, key []byte) (*Codec, error) {
	c := &Codec{group: groupTag(group)}
	if key == nil {
		return c, nil
	}
	var err error
	c.auth, err = newAuthenticator(group, key)
	return c, err
}

// Clone returns another codec for the same group, for use by another goroutine.
func (c *Codec) Clone() *Codec {
	clone := &Codec{group: c.group}
	if c.auth != nil {
		clone.auth = c.auth.clone()
	}
	return clone
}

// Authenticated reports whether the group has a key.
func (c *Codec) Authenticated() bool { return c.auth != nil }

// FieldError is the error for a message that has no representation on the wire.
type FieldError struct {
	Message Type
	Field   string // its name in the Go struct
	Problem string // in words, to follow the name
}

func (e *FieldError) Error() string {
	return fmt.Sprintf("cannot encode %v: %s %s", e.Message, e.Field, e.Problem)
}

// Append appends m to dst as a packet. It fails with a *FieldError if a field
// does not fit the wire, and then returns dst as it was. It allocates only if dst is too small.
func (c *Codec) Append(dst []byte, m *Message) ([]byte, error) {
	start := len(dst)
	if err := checkHeader(&m.Header); err != nil {
		return dst, err
	}
	packet := c.appendHeader(dst, &m.Header)
	packet, err := appendBody(packet, m)
	if err != nil {
		return dst, err
	}
	if c.auth != nil {
		packet = append(packet, c.auth.tag(packet[start:])...)
	}
	return packet, nil
}

func checkHeader(h *Header) error {
	switch {
	case int(h.Type) >= len(bodySizes) || bodySizes[h.Type] == 0:
		return &FieldError{h.Type, "Type", "does not exist"}
	case h.Algorithm == 0 || h.Algorithm > algorithmMask:
		return &FieldError{h.Type, "Algorithm", fmt.Sprintf("is %d, it must be from 1 to %d", h.Algorithm, algorithmMask)}
	case h.Sender == Nobody:
		return &FieldError{h.Type, "Sender", "is nobody"}
	case h.Sequence == 0:
		return &FieldError{h.Type, "Sequence", "is 0, the first one is 1"}
	}
	return nil
}

func (c *Codec) appendHeader(dst []byte, h *Header) []byte {
	flags := byte(h.Algorithm)
	if c.auth != nil {
		flags |= flagAuthenticated
	}
	if h.Leading {
		flags |= flagLeading
	}
	if h.Reply {
		flags |= flagReply
	}
	dst = append(dst, version<<5|byte(h.Type), flags)
	dst = binary.BigEndian.AppendUint16(dst, c.group)
	dst = binary.BigEndian.AppendUint32(dst, uint32(h.Sender))
	dst = binary.BigEndian.AppendUint32(dst, uint32(h.Term))
	dst = append(dst, h.Priority)
	dst = binary.BigEndian.AppendUint32(dst, uint32(h.Incarnation))
	return binary.BigEndian.AppendUint32(dst, uint32(h.Sequence))
}

// appendBody is a switch and not a table of functions, so that the compiler sees
// that m does not escape: callers may keep messages on the stack.
func appendBody(dst []byte, m *Message) ([]byte, error) {
	switch m.Type {
	case TypeHeartbeat:
		return m.Heartbeat.appendTo(dst)
	case TypeHello:
		return m.Hello.appendTo(dst)
	case TypeElection:
		return m.Election.appendTo(dst), nil
	case TypeAnswer:
		return m.Answer.appendTo(dst)
	case TypeCoordinator:
		return m.Coordinator.appendTo(dst)
	case TypeResign:
		return m.Resign.appendTo(dst), nil
	case TypeQuery:
		return m.Query.appendTo(dst), nil
	case TypeChallenge:
		return m.Challenge.appendTo(dst)
	case TypeProof:
		return m.Proof.appendTo(dst), nil
	case TypeHalt:
		return m.Halt.appendTo(dst), nil
	case TypeStart, TypeAck, TypeCollect:
		return m.Round.appendTo(dst), nil
	case TypeReport:
		return m.Report.appendTo(dst)
	case TypeLeader:
		return m.Leader.appendTo(dst)
	case TypeOK:
		return m.OK.appendTo(dst)
	default:
		return nil, &FieldError{m.Type, "Type", "does not exist"}
	}
}

// Decode reads a packet into m: the header and the body of its type; the other
// bodies keep what they held. If the result is a drop, m holds nothing of use.
//
// It allocates nothing but a name that differs from the one in m, and a list
// (standings, candidates, trusted set) that is longer than the capacity of the
// one in m. The lists are m's: the next Decode into m overwrites them.
func (c *Codec) Decode(m *Message, datagram []byte) Drop {
	packet, drop := c.open(datagram)
	if drop.Dropped() {
		return drop
	}
	drop = decodeHeader(&m.Header, packet)
	if drop.Dropped() {
		return drop
	}
	return decodeBody(m, packet[HeaderSize:])
}

// open makes sure that the packet is for this version, group and key, and cuts
// the tag off. What it looks at before the tag is verified decides only whether to drop.
func (c *Codec) open(datagram []byte) ([]byte, Drop) {
	n := len(datagram)
	switch {
	case n < HeaderSize:
		return nil, Drop{TooShort, n}
	case n > MaxPacket:
		return nil, Drop{TooLong, MaxPacket}
	case datagram[offVersion]>>5 != version:
		return nil, Drop{BadVersion, offVersion}
	case binary.BigEndian.Uint16(datagram[offGroup:]) != c.group:
		return nil, Drop{OtherGroup, offGroup}
	}
	authenticated := datagram[offFlags]&flagAuthenticated != 0
	switch {
	case c.auth == nil && authenticated:
		return nil, Drop{NotExpectingAuth, offFlags}
	case c.auth == nil:
		return datagram, Drop{}
	case !authenticated:
		return nil, Drop{Unauthenticated, offFlags}
	case n < HeaderSize+TagSize:
		return nil, Drop{TooShort, n}
	}
	packet, tag := datagram[:n-TagSize], datagram[n-TagSize:]
	if !c.auth.verify(packet, tag) {
		return nil, Drop{BadTag, n - TagSize}
	}
	return packet, Drop{}
}

// decodeHeader reads the header, and makes sure that there is a body to decode.
func decodeHeader(h *Header, packet []byte) Drop {
	kind := Type(packet[offVersion] & 0x1f)
	size := bodySizes[kind]
	switch {
	case size == 0:
		return Drop{UnknownType, offVersion}
	case len(packet) < HeaderSize+size:
		return Drop{TooShort, len(packet)}
	}
	flags := packet[offFlags]
	*h = Header{
		Type:        kind,
		Algorithm:   Algorithm(flags & algorithmMask),
		Leading:     flags&flagLeading != 0,
		Reply:       flags&flagReply != 0,
		Sender:      ID(binary.BigEndian.Uint32(packet[offSender:])),
		Term:        Term(binary.BigEndian.Uint32(packet[offTerm:])),
		Priority:    packet[offPriority],
		Incarnation: Incarnation(binary.BigEndian.Uint32(packet[offIncarnation:])),
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

// decodeBody reads the body of m's type. decodeHeader has made sure that it is
// at least as long as bodySizes says.
func decodeBody(m *Message, body []byte) Drop {
	switch m.Type {
	case TypeHeartbeat:
		return m.Heartbeat.decode(body)
	case TypeHello:
		return m.Hello.decode(body)
	case TypeElection:
		return m.Election.decode(body)
	case TypeAnswer:
		m.Answer.decode(body)
	case TypeCoordinator:
		return m.Coordinator.decode(body)
	case TypeResign:
		m.Resign.decode(body)
	case TypeQuery:
		m.Query.decode(body)
	case TypeChallenge:
		return m.Challenge.decode(body)
	case TypeProof:
		m.Proof.decode(body)
	case TypeHalt:
		m.Halt.decode(body)
	case TypeStart, TypeAck, TypeCollect:
		m.Round.decode(body)
	case TypeReport:
		return m.Report.decode(body)
	case TypeLeader:
		return m.Leader.decode(body)
	case TypeOK:
		return m.OK.decode(body)
	}
	return Drop{}
}

// milliseconds converts a promise of how long until the next message. Fractions
// are rounded up: a promise that is a little too long does not make anybody
// suspect the sender.
func milliseconds(kind Type, field string, d time.Duration) (uint16, error) {
	const most = math.MaxUint16 * time.Millisecond
	if d <= 0 || d > most {
		return 0, &FieldError{kind, field, fmt.Sprintf("is %v, it must be more than 0 and at most %v", d, most)}
	}
	return uint16((d + time.Millisecond - 1) / time.Millisecond), nil
}

// age converts the measured age of something to 32 bits of the given unit.
// Fractions are cut, and the greatest value stands for everything above it as
// well: nothing must fail merely because time passes.
func age(kind Type, d, unit time.Duration) (uint32, error) {
	if d < 0 {
		return 0, &FieldError{kind, "Age", fmt.Sprintf("is %v, it must not be negative", d)}
	}
	return uint32(min(d/unit, math.MaxUint32)), nil
}
