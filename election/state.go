package election

import (
	"time"

	"topdog/election/clock"
	"topdog/election/roster"
	"topdog/election/silence"
	"topdog/wire"
)

// Core is the election as one board takes part in it. Its methods are not safe for
// concurrent use. The effects that a method returns are good until the next call.
type Core struct {
	cfg        Config
	definition Definition
	algorithm  Algorithm
	detector   silence.Detector

	now       Instant // of the present call
	startedAt Instant
	wokeLate  time.Duration // by how much the present call of Wake is late

	role   Role
	leader wire.ID // whom this board follows or suspects; itself when it leads
	term   wire.Term

	roleState

	// What outlives the roles.
	roster     roster.Roster
	lastLeader lastLeader
	asking     asking
	deferred   deferred
	answered   answered
	coldStart  coldStart
	heartbeats heartbeats
	rivals     rivals
	grace      silence.Grace
	watching   watching
	evidence   evidence
	paths      paths
	second     secondPath
	handover   handover
	conflict   conflict
	notices    notices
	score      score
	fitness    fitness
	pause      pause
	votes      voting
	hello      clock.Deadline               // the next HELLO
	own        [ownDeadlines]clock.Deadline // of the algorithm
	stopping   bool                         // the board leaves the group

	timetable timetable
	effects   []Effect
	counts    [reasonCount]uint64
}

// roleState is the state of the present role. That of each other role is zero: become ends all that belonged to the
// former role, its deadlines among it.
type roleState struct {
	listening listenerState
	following followerState
	candidacy candidateState
	leading   leaderState
	barred    barredState
	answers   clock.Deadline // the question of a candidate, or of a leader that was called upon, has gone unanswered
	named     clock.Deadline // a RESIGN has named this board, and what had arrived behind it is read
}

// listenerState is that of a listener.
type listenerState struct {
	end   clock.Deadline // it has listened long enough
	query clock.Deadline // it asks once more who leads
}

// followerState is that of a follower.
type followerState struct {
	turn    clock.Deadline // the leader is late, or there is none, and it is this board's turn to act
	missed  clock.Deadline // the address of the leader has gone unanswered for longer than a heartbeat that came late explains
	measure clock.Deadline // it measures the round trip to the leader
	preempt clock.Deadline // it asks a leader of lower rank for the lead
	// preemptFirst is when it asks for the first time if no other board outranks it.
	preemptFirst Instant
}

// candidateState is that of a board that stands for election.
type candidateState struct {
	cause            Reason // why it became one
	handoverRequests int    // how often it has asked a leader of lower rank to hand over
	probe            probe
	incumbent        clock.Deadline // the leader that it has asked to hand over is late
	coordinator      clock.Deadline // it was outranked, and has waited for a COORDINATOR
	address          addressState
	since            Instant // when it began to ask
	request          request
	unheard          bool           // nothing was received since then, so it could not claim
	askLAN           clock.Deadline // it asks the LAN again because of that
	second           clock.Deadline // the leader would have answered by the second path
	waited           bool           // for answers, see readsFirst
	refused          bool           // its algorithm would have claimed, but for what mayClaim looks at
}

// probe says how far a candidate has come in finding out whether the address is free.
type probe uint8

const (
	probeNone probe = iota // not wanted: a leader's silence is no time to wait
	probePending
	probeFree
)

// addressState is what a candidate has found out about the address of the leader that it suspects.
type addressState struct {
	ask      clock.Deadline // the leader's lease ends, so that its address should not answer any more
	asked    bool           // it was asked since then
	askedAt  Instant        // when it was asked
	answered bool           // it has answered that question or a later one
	silent   clock.Deadline // an answer would have come by then
	waited   bool           // see readsFirst
}

// leaderState is that of a leader.
type leaderState struct {
	heartbeat   clock.Deadline
	lapse       lapse
	sentAt      Instant // the time of the call that sent the last heartbeat; a COORDINATOR is one
	reclaimedAt Instant // when it proclaimed itself anew
	hearing     hearing
	fence       fence
	deposed     deposed        // the leader that it has replaced
	since       Instant        // when it began to lead
	reclaim     clock.Deadline // nobody opposes it, although somebody has led in the term exceeded
	exceeded    wire.Term
	doubtUntil  Instant        // it was late, and yields to any higher term until then
	yield       clock.Deadline // it is unfit, and hands over
}

// lapse is the state of a leader whose lease has ended before its next heartbeat. It must make sure that nobody has
// claimed meanwhile: it must not answer beside its successor. It sends the heartbeat that was due. A board that is
// about to claim hears it, and one that has claimed would be heard within a round trip. Only then the lease begins
// again.
type lapse struct {
	end    Instant        // of the lease that has ended
	over   clock.Deadline // nobody was heard who leads, so the lease begins again
	waited bool           // see readsFirst
}

// request is how a candidate asks for votes.
type request struct {
	open   bool          // it does
	since  Instant       // since when
	repeat time.Duration // until it asks once more
}

// fence is how a leader stands with the lease that the majority of the voters gives it.
type fence struct {
	// closed says that the lease has ended: nobody answers for the address. The board leads
	// on, and says nothing of it. If the majority is heard again before anybody has claimed, the
	// address is back without a move.
	closed    bool
	beatAt    Instant        // when the last heartbeat to all was sent
	repeat    clock.Deadline // a majority has not acknowledged it
	leaseEnds clock.Deadline
}

// hearing is how a leader finds out whether its port still receives. A leader whose port sends but receives nothing is heard
// by all, so nobody deposes it, and nobody can reach its address. It notices that its followers' HELLOs fail to come.
type hearing struct {
	since Instant        // when it began to ask
	asked int            // how often it has
	again clock.Deadline // it asks once more, or has asked often enough
	// answers says that only what answers it counts: others miss it, so perhaps its port receives and does not send.
	answers bool
	// secondPath says that another board was heard by the second path since then. receives is the first in rank of those that
	// have said by it that their ports receive.
	secondPath bool
	receives   wire.ID
}

// deposed is the leader that this one has replaced because it was silent. It may live: its frames were lost, or it is cut
// off. Then it leads on until it hears that it was replaced. So this leader tells it, and then looks for it among
// all. What the two learn from that is patience.
type deposed struct {
	id          wire.ID
	incarnation wire.Incarnation
	due         Instant        // the heartbeat of it that was missed
	look        clock.Deadline // when it is told once more who leads
}

// barredState is that of a board that stays out.
type barredState struct {
	end clock.Deadline // it looks whether the conflict is over
}

// lastLeader is what a board knows of the leader that it follows, or that it followed last.
type lastLeader struct {
	id          wire.ID // the board that this one follows or followed last
	incarnation wire.Incarnation
	term        wire.Term
	lastHeard   wire.Sequence // of the leader's newest HEARTBEAT
	lastNumber  uint8         // of the same
	measured    int           // how often the round trip to the leader was measured
	forgiven    bool          // the leader got a fresh interval since it was heard last
	// predecessor is the leader that resigned or restarted, until there is another one.
	predecessor wire.ID
}

// asking is what this board has asked of late, so that the answer can be timed.
type asking struct {
	// round counts the ELECTIONs since this board became a candidate. A leader that holds
	// an election goes on counting. 0 also says that the answers were missed, because this
	// board was not running.
	round       uint8
	count       int     // of the questions whose answer would tell the round trip
	first, last Instant // when the first and the last of them went out
}

// ask counts a question.
func (a *asking) ask(now Instant) {
	if a.count == 0 {
		a.first = now
	}
	a.last = now
	a.count++
}

// forget makes nothing of the answers that are still to come.
func (a *asking) forget() { a.count = 0 }

// deferred is the suspicion in which this board has left it to another one to act, and
// until when it does so if that one hears nothing.
type deferred struct {
	leader    wire.ID
	lastHeard wire.Sequence
	until     Instant
}

// answered is the last question that this follower has answered.
type answered struct {
	candidate wire.ID
	round     uint8
	at        Instant
}

// coldStart is what a board knows that has not found a leader yet since it began to listen. It
// lasts until there is one, whatever role the board has meanwhile.
type coldStart struct {
	pending bool
	// retry is for how long the board listens after the next probe that finds the address in
	// use; it doubles. 0 means that no probe has found that.
	retry time.Duration
	since Instant // when a probe found that first
	taken bool    // this board claims nevertheless, see Config.TakeInUse
}

// heartbeats is what this board has sent as a leader. The numbers go on when it leads again,
// so that nobody takes an old one for a new one.
type heartbeats struct {
	number    uint8
	repliedAt Instant // when it last answered all who doubt that it lives
}

// rivals is what this board knows of other leaders that it has heard while it led.
type rivals struct {
	yieldedTo  wire.ID // the last one for which this board released the address
	yieldedAt  Instant
	heardAt    Instant // when one was heard last
	heardSince Instant // when it was heard first, without a pause since
	whoHears   bool    // since then this leader has asked who hears it
	askedAt    Instant // when one was last told the reach of this leader
}

// evidence shows that this board's port receives. Silence has two causes: the leader is gone, or this port receives
// nothing. And the address may still be held by a leader whose daemon is silent. So the LAN is asked as well, by
// ARP: its witnesses, and the address itself.
type evidence struct {
	at      Instant // when something last came from another machine
	foreign bool    // since this process started, something has come that was no message of a board
	// foreignAt is when that was last, in answer to EffectAskLAN.
	foreignAt Instant
	// answeredAt is when a question of this leader was last answered on the first path, by a witness or by a follower.
	answeredAt Instant
	// othersAt is when something last came there that is not of the leader of this board.
	othersAt Instant
}

// paths is by which ways this board hears its leader.
type paths struct {
	direct      bool    // the present message came by unicast or broadcast
	multicastAt Instant // when the leader was last heard by multicast, or when this board began to follow it
	noMulticast bool    // when the leader was last heard, it was not by multicast
}

// handover is how this board gives the lead to another one. It goes on while the board
// that has resigned is a follower already, or a candidate, until somebody leads.
type handover struct {
	successor wire.ID       // named in the last RESIGN
	named     int           // how many successors were, one after the other
	since     Instant       // when the first one was
	namedAt   Instant       // when the last one was
	pause     time.Duration // until the RESIGN is repeated; it doubles
	repeat    clock.Deadline
}

// conflict is with another board that this one cannot live together with.
type conflict struct {
	since Instant // when the present conflict broke out
	at    Instant // when it was last heard of
	told  Instant // when this board last said HELLO, and so how old it is
}

// notices are when each notice was given last.
type notices map[Notice]Instant

// score is this board's own, for algorithms that compare scores.
type score struct {
	told uint32 // as it last told the others
	set  uint32 // as the owner of the core has found it out, for ScoreFromCommand
}

// fitness is how fit this board is to lead, which it says in every message (wire.Grade). Its owner finds that out. A
// board of a better grade comes before one of a lesser grade in all algorithms. An unfit leader hands over to a
// fitter board. If there is none, it leads on: an address whose service does not work is of more use than one that
// nobody holds.
type fitness struct {
	set  wire.Grade // by the owner
	told wire.Grade // in messages
	vain int        // how often in a row it has handed over because it was unfit, and nobody took the lead
}

// pause is the latest one that this board knows of, or its end. People pause a group while they work on its network or
// its boards: the address stays where it is. Only the board that led when the pause began may lead. No other board
// takes over, whatever it hears, and the leader hands over to nobody. All boards are told when a pause begins and
// ends, behind every HELLO, and when they join. It ends by itself, since people forget.
type pause struct {
	number uint32
	leader wire.ID // who may lead
	end    clock.Deadline
	// insists is until when this board, on which somebody has begun or ended the pause, does so anew
	// if others know of a later one.
	insists clock.Deadline
	anew    int // how often it still may: two boards that insist would do so without end
	// correctedAt is when this board has last told a board that knew of an older pause.
	correctedAt Instant
}

// duty is something to be done at a deadline, which is kept in the state of the role to which it belongs, or with another
// owner.
type duty struct {
	deadline *clock.Deadline
	do       func(*Core)
}

// timetable has all duties of one core, in the order in which what is due together is done.
type timetable [27 + ownDeadlines]duty

// earliest returns the first deadline to come, beside one.
func (t *timetable) earliest(beside *clock.Deadline) (first clock.Deadline) {
	for _, d := range t {
		if d.deadline != beside && d.deadline.Set && (!first.Set || d.deadline.At < first.At) {
			first = *d.deadline
		}
	}
	return first
}

// notBefore makes deadlines that are overdue come at that time.
func (t *timetable) notBefore(at Instant) {
	for _, d := range t {
		if d.deadline.Reached(at) {
			*d.deadline = clock.Due(at)
		}
	}
}
