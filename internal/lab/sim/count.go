package sim

import (
	"topdog/election"
	"topdog/wire"
)

// Kind is what is counted apart. It is finer than wire.Type where one type
// serves two purposes.
type Kind uint8

// lastType is the largest type of which boards send messages.
const lastType = wire.TypePause

// The kinds are the types, and some more.
const (
	// KindReply is a HEARTBEAT that answers an ELECTION, or the QUERY of a board that joins;
	// Kind(wire.TypeHeartbeat) are the scheduled ones.
	KindReply = Kind(lastType) + 1 + iota
	// KindHandover is a QUERY that asks the leader to hand over;
	// Kind(wire.TypeQuery) are those of boards that join.
	KindHandover
	// KindTimingQuery is a QUERY by which a follower measures the round trip to its leader,
	// and KindTimingReply the HEARTBEAT that answers it. No paper has them.
	KindTimingQuery
	KindTimingReply
	// KindLook is a RIVAL to all by which a new leader looks for the one that it has replaced. It may be
	// sent for seconds, and no paper has it.
	KindLook
	kindCount
)

// finer are the kinds that are finer than a type, with their names: in texts, and as
// identifiers for programs.
var finer = map[Kind]struct {
	of               wire.Type
	text, identifier string
}{
	KindReply:       {wire.TypeHeartbeat, "HEARTBEAT in reply", "HEARTBEAT_REPLY"},
	KindHandover:    {wire.TypeQuery, "QUERY for handover", "QUERY_HANDOVER"},
	KindTimingQuery: {wire.TypeQuery, "QUERY for timing", "QUERY_TIMING"},
	KindTimingReply: {wire.TypeHeartbeat, "HEARTBEAT for timing", "HEARTBEAT_TIMING"},
	KindLook:        {wire.TypeRival, "RIVAL to all", "RIVAL_LOOK"},
}

// kindOf returns what a message counts as. Only the simulation can tell why a QUERY is
// sent, and what a HEARTBEAT answers: it knows what the one who asked was when it asked.
func (s *Sim) kindOf(from *Board, to wire.ID, m *wire.Message) Kind {
	switch m.Type {
	case wire.TypeHeartbeat:
		switch p := s.peers[to]; {
		case !m.Reply:
			return Kind(m.Type)
		case p != nil && p.timing:
			return KindTimingReply
		default:
			return KindReply
		}
	case wire.TypeRival:
		if to == wire.Nobody {
			return KindLook
		}
	case wire.TypeElection:
		from.timing = false
	case wire.TypeQuery:
		if m.Query.Purpose == wire.PurposeHandover {
			return KindHandover
		}
		if from.timing = from.role == election.Follower; from.timing {
			return KindTimingQuery
		}
	}
	return Kind(m.Type)
}

// Type returns the type of message that the kind belongs to.
func (k Kind) Type() wire.Type {
	if kind, ok := finer[k]; ok {
		return kind.of
	}
	return wire.Type(k)
}

func (k Kind) String() string {
	if name, ok := finer[k]; ok {
		return name.text
	}
	return wire.Type(k).String()
}

// Identifier names the kind in JSON: one word in capitals, as the types of messages.
func (k Kind) Identifier() string {
	if name, ok := finer[k]; ok {
		return name.identifier
	}
	return wire.Type(k).String()
}

// Routine reports whether messages of that kind are sent in steady state as well:
// they are no part of what an election costs.
func (k Kind) Routine() bool {
	switch k {
	case Kind(wire.TypeHeartbeat), Kind(wire.TypeHello), Kind(wire.TypeSupport), KindTimingQuery, KindTimingReply, KindLook:
		return true
	}
	return false
}

// Tally counts messages of one kind.
type Tally struct {
	// Packets are the datagrams on a multicast wire: one to all is one.
	Packets int
	// Live and Dead are the messages as the literature counts them, from one
	// process to another: one to all is as many as it has addressees. Dead are those to
	// boards that did not run, or whose cable was out, when the message was sent.
	Live, Dead int
}

// Messages is how many messages there were, whether or not they could arrive.
func (t Tally) Messages() int { return t.Live + t.Dead }

// Counts is a Tally for each kind.
type Counts [kindCount]Tally

// Type sums up all kinds of one type.
func (c *Counts) Type(t wire.Type) (sum Tally) {
	for k := range c {
		if Kind(k).Type() == t {
			sum = Tally{sum.Packets + c[k].Packets, sum.Live + c[k].Live, sum.Dead + c[k].Dead}
		}
	}
	return sum
}

// Kinds returns those of which there was a message, in the order of the types.
func (c *Counts) Kinds() []Kind {
	var kinds []Kind
	for t := wire.Type(0); t <= lastType; t++ {
		for k := range c {
			if Kind(k).Type() == t && c[k].Packets > 0 {
				kinds = append(kinds, Kind(k))
			}
		}
	}
	return kinds
}

// ResetCounts begins a new phase: nothing has been sent in it yet.
func (s *Sim) ResetCounts() { s.Counts = Counts{} }

// count takes in that a board sends a message.
func (s *Sim) count(from *Board, kind Kind, to wire.ID, audience []wire.ID) {
	t := &s.Counts[kind]
	t.Packets++
	switch {
	case to != wire.Nobody:
		s.address(t, from, to)
	case audience != nil:
		for _, id := range audience {
			s.address(t, from, id)
		}
	default:
		for _, other := range s.boards {
			if other != from {
				t.to(other)
			}
		}
	}
}

// address counts a message to one id. Who has never been on the LAN is dead, and
// nobody sends to itself.
func (s *Sim) address(t *Tally, from *Board, to wire.ID) {
	if to != from.Config.ID {
		t.to(s.peers[to])
	}
}

func (t *Tally) to(b *Board) {
	if b != nil && b.reachable() {
		t.Live++
	} else {
		t.Dead++
	}
}
