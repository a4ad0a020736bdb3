package explore

import (
	"reflect"
	"slices"
	"time"

	"topdog/election"
	"topdog/wire"
)

// What the seeded bugs of strict do: they change a message before the core gets it, or what
// the core keeps after it has handled one.

// promise points to what a voter has promised, inside its core.
type promise struct {
	to    *wire.ID
	until *election.Instant
}

func promiseOf(core *election.Core) promise {
	kept := reflect.ValueOf(core).Elem().FieldByName("votes").FieldByName("promise")
	return promise{
		(*wire.ID)(kept.FieldByName("To").Addr().UnsafePointer()),
		(*election.Instant)(kept.FieldByName("Until").Addr().UnsafePointer()),
	}
}

// newest is the newest heartbeat that a board has sent.
type newest struct {
	heartbeat wire.Sequence
	term      wire.Term
}

func (n *newest) note(m *wire.Message) {
	if m.Leading && beginsInterval(m.Type) {
		n.heartbeat, n.term = m.Sequence, m.Term
	}
}

// alter makes of a message what a board with a seeded bug takes it for.
func (w *world) alter(b *board, m *wire.Message) {
	switch own := b.daemon.newest; {
	case w.bug == bugAnySequence && m.Type == wire.TypeSupport:
		m.Support.Heartbeat, m.Support.Term = own.heartbeat, own.term
	case w.bug == bugOtherVoters:
		hash := wire.VotersHash(w.voters(b))
		m.Support.Voters, m.Vote.Voters, m.Grant.Voters = hash, hash, hash
	}
}

// spoilHeard is called when the core has handled a message.
func (w *world) spoilHeard(b *board, m *wire.Message) {
	d := &b.daemon
	switch w.bug {
	case bugPromiseBack:
		if p := promiseOf(d.core); m.Leading && m.Sender == *p.to {
			*p.until = min(*p.until, d.read+w.grace())
		}
	case bugLeaseFromReceipt, bugFirstLease:
		if m.Type == wire.TypeSupport {
			d.late = 0
			if w.bug == bugLeaseFromReceipt {
				w.leaseFromNow(b)
			}
		}
	}
}

// spoil is called after each call of the core that may want something done.
func (w *world) spoil(b *board, effects []election.Effect) {
	d := &b.daemon
	was, role := d.role, d.core.Role()
	switch w.bug {
	case bugPromiseRole:
		if role != was && role != election.Leader {
			*promiseOf(d.core).until = d.read
		}
	case bugOwnVote:
		if role != was && role == election.Candidate {
			*promiseOf(d.core).until = d.read
		}
	case bugVotesTwice:
		if slices.ContainsFunc(effects, func(e election.Effect) bool {
			return e.Kind == election.EffectSend && e.Message.Type == wire.TypeGrant
		}) {
			*promiseOf(d.core).until = d.read
		}
	case bugFirstLease:
		if role != was && role == election.Leader {
			w.leaseFromNow(b)
		}
	}
}

// leaseFromNow makes the lease of a leader last as if what it rests on had been sent just now.
func (w *world) leaseFromNow(b *board) {
	if end, ends := b.daemon.core.LeaseEnd(); ends {
		b.daemon.late = max(0, b.daemon.read+w.lease()-end)
	}
}

// lease is how long a lease lasts from a heartbeat.
func (s *scope) lease() time.Duration { return s.interval + s.grace()*3/4 }
