package sim

import (
	"fmt"
	"time"

	"topdog/election"
	"topdog/election/literature"
	"topdog/wire"
)

// Board is one simulated board. Between its lives it keeps its configuration.
type Board struct {
	Config election.Config
	// Grade is how fit the board is from the start of its process on, see SetGrade.
	Grade wire.Grade
	// Label is what traces call it: its id, unless two boards have the same one.
	Label string
	// Clock is what its daemon reads the time from; a change counts from the next Start.
	Clock Clock
	// Switch says that it has a dead man's switch, which does not stand still with its daemon.
	Switch bool

	sim     *Sim
	machine int  // its number in filters
	peer    int  // the number of the first one that has its id, as two may have
	plugged bool // the cable is in
	freezes int  // how often it was frozen
	holding bool
	fenced  bool // its lease has ended: the address is there, and does not answer
	// majorityUntil is the end of its lease, in the algorithm strict.
	majorityUntil election.Instant
	waking        event // of the core, at its deadline
	afterBeat     []func()
	life
}

// life is of the process of a board.
type life struct {
	core   *election.Core // nil while the process is dead
	clock  Clock
	role   election.Role
	leader wire.ID
	heard  []seen // by peer
	// heardBySecondPath is the same on the second path.
	heardBySecondPath []seen
	sequence          wire.Sequence
	timing            bool     // its last QUERY measured the round trip to its leader
	frozen            bool     // the process does not run
	overdue           bool     // something was due while it was frozen
	backlog           []func() // what waits until it goes on
	fired             bool     // its switch has released the address, and the daemon does not know yet
	finished          bool
	asker             asker
}

// Start switches the board on: a new life of its daemon.
func (b *Board) Start() {
	if b.core != nil {
		return
	}
	if max(b.Clock.PPM, -b.Clock.PPM) > MaxDrift {
		panic(fmt.Sprintf("sim: a clock may drift by at most %d ppm, is to drift by %d", MaxDrift, b.Clock.PPM)) // as below
	}
	b.Config.Incarnation = wire.Incarnation(b.sim.rng.Uint32()|1) & wire.MaxIncarnation
	b.life = life{clock: b.Clock}
	core, err := literature.NewCore(b.Config, b.local())
	if err != nil {
		panic(err) // a mistake of the one who wrote the simulation
	}
	b.core = core
	b.sim.trace(b, EventFault, "starts")
	b.act(core.SetGrade(b.local(), b.Grade))
	b.act(core.Link(b.local(), b.plugged))
	b.sim.review()
}

// Crash ends the board's daemon without a word. The address goes with it.
func (b *Board) Crash() {
	if b.core == nil {
		return
	}
	b.die()
	b.sim.trace(b, EventFault, "crashes")
	if !b.strict() || b.fenced {
		b.hold(false)
	}
	b.sim.review()
}

// die ends the process; what it was to do is forgotten.
func (b *Board) die() {
	b.sim.unschedule(&b.asker.next)
	b.life = life{clock: b.clock}
	b.sim.unschedule(&b.waking)
}

// reachable reports whether a message to the board could find a process there: what
// the literature calls alive. A paused one is.
func (b *Board) reachable() bool { return b.core != nil && b.plugged }

// Pull pulls the board's cable; the board notices.
func (b *Board) Pull() { b.cable(false) }

// Plug puts the cable back.
func (b *Board) Plug() { b.cable(true) }

func (b *Board) cable(in bool) {
	if b.plugged == in {
		return
	}
	b.plugged = in
	b.sim.note()
	b.sim.trace(b, EventFault, "cable %s", map[bool]string{true: "in", false: "out"}[in])
	b.run(func() { b.act(b.core.Link(b.local(), in)) })
	b.sim.review()
}

// Freeze stops the process; what comes in waits.
func (b *Board) Freeze() {
	b.freezes++
	b.frozen = true
	b.sim.trace(b, EventFault, "frozen")
	b.sim.review()
	b.awaitLeaseEnd()
}

// Thaw lets it go on.
func (b *Board) Thaw() {
	b.frozen = false
	b.sim.trace(b, EventFault, "thawed")
	b.learnFired()
	backlog := b.backlog
	b.backlog = nil
	for _, do := range backlog {
		do()
	}
	// As in the daemon, what came meanwhile is taken in before what was due is done.
	if b.overdue && b.core != nil {
		b.overdue = false
		b.act(b.core.Wake(b.local()))
	}
	b.lookForAnswer()
	b.sim.review()
}

// Resign hands the lead over, as a person would have it done. The error of a
// frozen board comes too late for anybody to read.
func (b *Board) Resign() error {
	return b.ask(func(c *election.Core) ([]election.Effect, error) { return c.Resign(b.local()) })
}

// ask does what somebody asks the board for, and returns what the board says to that.
func (b *Board) ask(do func(*election.Core) ([]election.Effect, error)) (err error) {
	b.run(func() {
		var effects []election.Effect
		effects, err = do(b.core)
		b.act(effects)
	})
	return err
}

// Stop ends the board's daemon as systemd would.
func (b *Board) Stop() {
	b.run(func() { b.act(b.core.Stop(b.local())) })
	b.sim.review()
}

// Suspect tells the board that its leader is gone, long before its own failure detector
// could know. It is how one board alone notices a failure, as in the examples
// of the literature: the others have most of a heartbeat interval before they
// notice, and an election is over by then. AfterHeartbeat makes sure of that.
func (b *Board) Suspect() {
	b.run(func() {
		b.sim.trace(b, EventFault, "notices that %v is gone", b.leader)
		b.act(b.core.Suspect(b.local()))
	})
}

// TrustClock tells the board whether its clock runs at its rate.
func (b *Board) TrustClock(trusted bool) {
	b.run(func() { b.act(b.core.ClockTrusted(b.local(), trusted)) })
}

// AfterHeartbeat has something done as soon as the next heartbeat that this board
// sends as the leader has reached all whom it reaches. A leader that crashes then
// is not missed for a whole interval.
func (b *Board) AfterHeartbeat(do func()) { b.afterBeat = append(b.afterBeat, do) }

// Reprioritise changes the board's priority while it runs.
func (b *Board) Reprioritise(priority uint8, preempt bool) {
	b.Config.Priority, b.Config.Preempt = priority, preempt
	b.run(func() { b.act(b.core.Reprioritise(b.local(), priority, preempt)) })
}

// Pause pauses the group for that long, as if somebody had asked this board to.
func (b *Board) Pause(length time.Duration) error {
	return b.ask(func(c *election.Core) ([]election.Effect, error) { return c.Pause(b.local(), length) })
}

// Unpause ends the pause.
func (b *Board) Unpause() error {
	return b.ask(func(c *election.Core) ([]election.Effect, error) { return c.Unpause(b.local()) })
}

// SetGrade changes how fit the board is, now and whenever its process is started.
func (b *Board) SetGrade(grade wire.Grade) {
	b.Grade = grade
	b.run(func() { b.act(b.core.SetGrade(b.local(), grade)) })
}

// Status returns the core's view; ok is false while the process is dead.
func (b *Board) Status() (s election.Status, ok bool) {
	if b.core == nil {
		return s, false
	}
	return b.core.Status(b.local()), true
}

// Running reports whether the board's process lives.
func (b *Board) Running() bool { return b.core != nil }

// Holding reports whether the board has the floating address.
func (b *Board) Holding() bool { return b.holding }

// Answers reports whether the board has the address, and its fence is open.
func (b *Board) Answers() bool { return b.holding && !b.fenced }

// Plugged reports whether the cable is in.
func (b *Board) Plugged() bool { return b.plugged }

// Frozen reports whether the process is paused.
func (b *Board) Frozen() bool { return b.frozen }

// Role returns what the board is; Isolated while its process is dead.
func (b *Board) Role() election.Role { return b.role }

// Leader returns whom it follows or suspects; Nobody while its process is dead.
func (b *Board) Leader() wire.ID { return b.leader }

// String names the board in errors.
func (b *Board) String() string { return fmt.Sprintf("board %s", b.Label) }
