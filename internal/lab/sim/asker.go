package sim

import (
	"math"
	"time"

	"topdog/election"
	"topdog/election/silence"
	"topdog/wire"
)

// asker is how a board asks for the address of its leader, again and again, as its core wants it. It belongs to another process
// than the core. While no frame is lost by chance, nothing happens between two changes of the LAN. So only the first question
// that goes unanswered is an event then, and not each that is answered.
type asker struct {
	leader wire.ID
	every  time.Duration
	begun  election.Instant // all questions are whole multiples of every later
	since  election.Instant // when the first question was asked that has gone unanswered
	misses int              // how many have in a row
	works  bool             // an answer has come
	told   bool             // the core was told
	lost   float64          // share of the questions that were not answered of late
	next   event            // the next question that may matter
}

const (
	// askerNeeds must go unanswered to count, and up to askerMost where answers are lost by chance: as many as make a
	// suspicion in vain rarer than one a minute.
	askerNeeds, askerMost = 2, 8
	askerFade             = 0.99 // makes about the last hundred questions count for what is lost
	askerLonger           = 10   // more questions follow each other closely after the core was told
)

// watchAddress has the board ask as its core wants it.
func (b *Board) watchAddress() {
	leader, every := wire.Nobody, time.Duration(0)
	if b.core != nil {
		leader, every = b.core.Watch()
	}
	a := &b.asker
	if leader == a.leader && every == a.every {
		return
	}
	b.sim.unschedule(&a.next)
	*a = asker{leader: leader, every: every, begun: b.sim.now, lost: a.lost}
	b.lookForAnswer()
}

// lookForAnswer is called when the LAN, or what answers on it, may have changed: the next question may go unanswered, or be
// answered again.
func (b *Board) lookForAnswer() {
	a := &b.asker
	if a.every == 0 || b.frozen || a.next.place > 0 {
		return
	}
	answers := !b.sim.losesByChance() && b.addressAnswers()
	a.works = a.works || answers
	if a.misses > 0 || !answers {
		into := (b.sim.now - a.begun) % a.every
		b.askAt(b.sim.now - into + a.every)
	}
}

func (b *Board) askAt(at election.Instant) {
	a := &b.asker
	if a.next.do == nil {
		a.next.do = b.askAddress
	}
	b.sim.schedule(at, &a.next)
}

// losesByChance reports whether frames are lost by chance.
func (s *Sim) losesByChance() bool { return s.Wire.Loss > 0 || len(s.shares) > 0 }

// addressAnswers reports whether the kernel of the leader would answer a question that is asked now.
func (b *Board) addressAnswers() bool {
	s, owner := b.sim, b.sim.peers[b.asker.leader]
	return owner != nil && b.plugged && owner.answersARP() && s.inTouch(b, owner) &&
		!s.lostByChance(b, owner, false) && !s.lostByChance(owner, b, false)
}

// askAddress asks once.
func (b *Board) askAddress() {
	a := &b.asker
	if b.frozen {
		return // Thaw looks again
	}
	answered := b.addressAnswers()
	if a.works {
		if a.lost *= askerFade; !answered {
			a.lost += 1 - askerFade
		}
	}
	switch {
	case answered:
		a.works, a.misses = true, 0
		if a.told {
			a.told = false
			b.act(b.core.AddressReturned(b.local()))
		}
		b.lookForAnswer()
		return
	case !a.works:
		b.askAt(b.sim.now + a.every)
		return
	case a.misses == 0:
		a.since = b.local()
	}
	a.misses++
	again := silence.RoundTripMin
	if a.misses > askerMost+askerLonger {
		again = a.every
	}
	b.askAt(b.sim.now + again)
	if need := a.needs(); a.misses >= need && need > 0 && !a.told {
		a.told = true
		b.act(b.core.AddressMissed(b.local(), a.since))
	}
}

// needs is how many questions must go unanswered; 0 if too much is lost for the watch to be of any use.
func (a *asker) needs() int {
	for n := askerNeeds; n <= askerMost; n++ {
		if math.Pow(a.lost, float64(n)) <= a.every.Minutes() {
			return n
		}
	}
	return 0
}
