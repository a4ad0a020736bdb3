package election

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"topdog/election/clock"
	"topdog/election/roster"
	"topdog/election/silence"
	"topdog/wire"
)

// Instant is a point in time on the board's monotonic clock.
type Instant = clock.Instant

// Peer is what a board knows of another one, and Rank what boards are ordered by.
type (
	Peer = roster.Peer
	Rank = roster.Rank
	// Order reports whether the rank a comes before b, of two boards that are as fit.
	Order = roster.Order
)

// EffectKind says what the owner of a core has to do.
type EffectKind uint8

// The kinds of effects.
const (
	// EffectSend sends Message to the board To, to the whole group if To is wire.Nobody, or
	// to whoever has the floating address. The owner fills in incarnation and sequence.
	EffectSend EffectKind = iota + 1
	// EffectAcquire makes this board hold the floating address and announces it.
	// When the board holds it already, it is announced again.
	EffectAcquire
	// EffectRelease releases the address. It must be done before the effects
	// behind it: a RESIGN that overtakes it makes two holders.
	EffectRelease
	// EffectFenced says that the lease of this leader is over, because the majority was not
	// heard in time, and that it leads on. Where the kernel ends leases there is nothing to do.
	// Elsewhere the address is removed. EffectAcquire follows when the majority is heard again.
	EffectFenced
	// EffectProbe asks whether a foreign machine has the address (RFC 5227,
	// section 2.1.1). The owner answers with Core.Probed.
	EffectProbe
	// EffectAskLAN asks by ARP, at once: the witnesses and, unless To is wire.Nobody, the
	// floating address, by unicast to the MAC address that the board To had for it. The owner
	// answers with Core.AddressAnswered and Core.Evidence.
	EffectAskLAN
	// EffectChange tells of a change of role or leader.
	EffectChange
	// EffectNotice tells of something that a person should look into.
	EffectNotice
	// EffectFinished says that a stopping core has nothing left to do.
	EffectFinished
)

// Effect is one thing that the owner of a core has to do.
type Effect struct {
	Kind    EffectKind
	To      wire.ID
	Message wire.Message
	// Broadcast sends a copy of what goes to the whole group to 255.255.255.255 on the
	// interface as well, since a switch that loses multicast passes that. It is the same
	// datagram, so whoever gets both takes the second one for a replay.
	Broadcast bool
	// SecondPath sends a copy by the second path as well, to the same board or to all.
	SecondPath bool
	// Floating sends Message to the floating address itself, and not to To.
	Floating bool
	// Audience lists the boards that a message to all concerns, as its sender knows
	// them; nil means everybody. The others get the multicast as well and ignore
	// it. It is for those who count messages as the literature does.
	Audience []wire.ID
	// Beat is not 0 if the owner must tell Core.Sent which sequence the message has got.
	Beat   uint32
	Change Change
	Notice Notice
}

// Append appends what the effect is, in the words of scenes: nothing but what happens next, with what it says of a message.
func (e *Effect) Append(b []byte) []byte {
	switch e.Kind {
	case EffectSend:
		return e.appendMessage(b)
	case EffectAcquire:
		return append(b, "take"...)
	case EffectRelease:
		return append(b, "release"...)
	case EffectFenced:
		return append(b, "fenced"...)
	case EffectProbe:
		return append(b, "probe"...)
	case EffectAskLAN:
		return append(b, "ask the LAN"...)
	case EffectChange:
		return fmt.Appendf(b, "%v -> %v: %v", e.Change.From, e.Change.To, e.Change.Reason)
	case EffectNotice:
		return e.Notice.Board.Append(append(b, "notice about "...))
	}
	return append(b, "finished"...)
}

func (e *Effect) appendMessage(b []byte) []byte {
	m := &e.Message
	b = append(append(b, m.Type.String()...), " to "...)
	switch {
	case e.Floating:
		b = append(b, "the address"...)
	case e.To == wire.Nobody:
		b = append(b, "all"...)
	default:
		b = e.To.Append(b)
	}
	var grace time.Duration
	var score uint32
	switch m.Type {
	case wire.TypeHeartbeat:
		grace = m.Heartbeat.Grace
	case wire.TypeHello:
		grace, score = m.Hello.Grace, m.Hello.Score
	case wire.TypeElection:
		score = m.Election.Score
	case wire.TypeCoordinator:
		grace, score = m.Coordinator.Grace, m.Coordinator.Score
		if m.Coordinator.Coordinator != m.Sender {
			b = m.Coordinator.Coordinator.Append(append(b, " names "...))
		}
		if len(m.Coordinator.Candidates) > 0 {
			b = fmt.Appendf(b, " candidates %v", m.Coordinator.Candidates)
		}
	case wire.TypeLeader:
		b = m.Leader.Leader.Append(append(b, " names "...))
	case wire.TypeResign:
		b = m.Resign.Successor.Append(append(b, " names "...))
	case wire.TypeSupport:
		b = appendNumber(m.Support.Leader.Append(append(b, " for "...)), "/", m.Support.Incarnation)
		b = appendNumber(appendNumber(b, ", term ", m.Support.Term), ", heartbeat ", m.Support.Heartbeat)
	case wire.TypeVote:
		b = fmt.Appendf(b, " %v %d", m.Vote.Ballot, m.Vote.Number)
	case wire.TypeGrant:
		b = appendNumber(m.Grant.Candidate.Append(append(b, " for "...)), "/", m.Grant.Incarnation)
		b = appendNumber(b, ", request ", m.Grant.Number)
	}
	if len(e.Audience) > 0 {
		b = fmt.Appendf(b, " concerns %v", slices.Sorted(slices.Values(e.Audience)))
	}
	if score > 0 {
		b = appendNumber(b, " score ", score)
	}
	if grace > 0 {
		b = append(append(b, " grace "...), grace.String()...)
	}
	if m.Grade != wire.GradePassing {
		b = appendNumber(b, " grade ", m.Grade)
	}
	return b
}

func appendNumber[T ~uint8 | ~uint32](b []byte, what string, n T) []byte {
	return strconv.AppendUint(append(b, what...), uint64(n), 10)
}

// Change is a change of role or leader, or both.
type Change struct {
	From, To             Role
	OldLeader, NewLeader wire.ID
	Term                 wire.Term
	Reason               Reason
}

// LeaderChanged reports whether somebody else leads now, or nobody.
func (c Change) LeaderChanged() bool { return c.OldLeader != c.NewLeader }

func (c Change) String() string {
	return fmt.Sprintf("%v -> %v, leader %v, term %d: %v", c.From, c.To, c.NewLeader, c.Term, c.Reason)
}

// NoticeKind says what a person should look into.
type NoticeKind uint8

// The kinds of notices.
const (
	NoticeDuplicateID NoticeKind = iota + 1
	NoticeOtherAlgorithm
	NoticeRival
	NoticeRosterFull
	NoticeOtherVersion
	NoticeOtherVoters
	NoticeVoterTwice
	NoticeMajorityUnheard
	NoticePromiseTooLong
	NoticeAddressAnswers
	NoticeAddressStays
	NoticeNoMulticast
	NoticePatience
	noticeCount = iota + 1
)

// noticeTexts has both forms of every notice, %v being the board. The identifiers are part of the JSON that
// docs/status.md describes.
var noticeTexts = [noticeCount]struct{ identifier, text string }{
	0: {"unknown", "unknown notice"},
	NoticeDuplicateID: {"duplicate_id",
		"another live board has this board's id %v; the one that started later stays out: give one of them another id"},
	NoticeOtherAlgorithm: {"other_algorithm", ""},
	NoticeRival:          {"rival_leader", "board %v leads as well; the partition has healed or frames were lost"},
	NoticeRosterFull: {"too_many_boards",
		fmt.Sprintf("board %%v was ignored: the group has %d boards already", wire.MaxBoards)},
	NoticeOtherVersion: {"other_version",
		"board %v speaks another version of the protocol: upgrade the board that has the older program"},
	NoticeOtherVoters: {"other_voters",
		"board %v has another list of voters, and neither board counts the votes of the other: set the same voters on all boards"},
	NoticeVoterTwice: {"voter_twice",
		"the voter %v is there twice, in two processes, and its votes do not count: stop one of them, or give it another id"},
	NoticeMajorityUnheard: {"majority_unheard", "this leader does not hear the majority of the voters, " +
		"so nobody answers for the address until it does: look at the network, and at the other voters"},
	NoticePromiseTooLong: {"promise_too_long",
		"board %v asks for a longer promise than this voter makes: set the same interval and patience on all boards"},
	NoticeAddressAnswers: {"address_answers", "board %v is silent, but its address still answers: nobody takes it over yet"},
	NoticeAddressStays: {"address_stays",
		"the address of board %v answers and its daemon does not: is there a firewall on its UDP port?"},
	NoticeNoMulticast: {"no_multicast", "board %v gets no multicast, so broadcast is used as well"},
	NoticePatience:    {"longer_grace", ""},
}

// Identifier returns the kind for programs.
func (k NoticeKind) Identifier() string {
	if k < noticeCount {
		return noticeTexts[k].identifier
	}
	return noticeTexts[0].identifier
}

// Notice is something that a person should look into.
type Notice struct {
	Kind      NoticeKind
	Board     wire.ID
	algorithm wire.Algorithm // of that board, with NoticeOtherAlgorithm
	ours      wire.Algorithm // of this board, likewise
	grace     time.Duration  // from now on, with NoticePatience
	lesson    silence.Lesson // likewise
}

func (n Notice) String() string {
	switch {
	case n.Kind == NoticeOtherAlgorithm:
		return fmt.Sprintf("this board runs the algorithm %v, and board %v runs the algorithm %v: "+
			"set the same algorithm on all boards of the group", n.ours, n.Board, n.algorithm)
	case n.Kind == NoticePatience:
		return fmt.Sprintf("a leader may be late by %v from now on: %s",
			n.grace, n.lesson.Describe(fmt.Sprintf("board %v", n.Board)))
	case n.Kind < noticeCount:
		return strings.ReplaceAll(noticeTexts[n.Kind].text, "%v", n.Board.String())
	}
	return noticeTexts[0].text
}
