package explore

import (
	"slices"
	"time"

	"topdog/election"
	"topdog/election/steps"
)

// fault is a kind of thing that goes wrong.
type fault uint16

// The faults.
const (
	pauseDaemon  fault = 1 << iota // between two of its steps
	pauseSwitch                    // between two of its steps
	freezeBoard                    // both processes at once; the kernel goes on
	suspendBoard                   // all of the board; it answers nobody meanwhile
	killDaemon                     // SIGKILL between two of its steps; it may be started again
	powerOff                       // all of the board is gone; it may be switched on again
	unplug                         // the cable is pulled, and the board notices
	ask                            // the leader is asked to stop, or to resign
	late                           // one copy of a datagram takes as long as half of the grace
	duplicate                      // one copy arrives a second time, at any later moment
	hold                           // one copy arrives at any later moment, or never
	cut                            // one board no longer hears another one, until any later moment or for good
	mute                           // nobody hears a board
	deafen                         // a board hears nobody
	everyFault   fault = 1<<iota - 1
)

var faultNames = map[fault]string{
	pauseDaemon: "pause of a daemon", pauseSwitch: "pause of a switch", freezeBoard: "frozen board", suspendBoard: "suspended board",
	killDaemon: "killed daemon", powerOff: "power cut", unplug: "pulled cable", ask: "stop or resign",
	late: "late datagram", duplicate: "duplicate", hold: "lost or held datagram", cut: "one-way cut", mute: "mute board", deafen: "deaf board",
}

// wait is something that a fault has stopped, and that may go on.
type wait struct {
	fault  fault
	board  int
	other  int     // of a cut
	flight *flight // that is held
	from   time.Duration
}

func (x *wait) hash(h *hasher) {
	h.number(uint64(x.fault)<<16 | uint64(x.board)<<8 | uint64(x.other))
	if x.flight != nil {
		h.flight(x.flight)
	}
	if x.fault == suspendBoard {
		h.number(uint64(x.from))
	}
}

// choice is one thing that may happen instead of what happens next.
type choice struct {
	fault  fault
	board  int
	resume int // 1 + the number of the wait that ends; 0 if a fault begins
	ask    steps.Kind
}

// choices lists what may happen before h does. Whatever waits may go on when something
// remarkable has just happened; what goes wrong counts as a fault.
func (w *world) choices(h happening, into []choice) []choice {
	into = into[:0]
	if w.remarkable {
		for i := range w.waits {
			if w.mayResume(&w.waits[i]) {
				into = append(into, choice{resume: i + 1, fault: w.waits[i].fault, board: w.waits[i].board})
			}
		}
	}
	if w.faults == 0 || h.at < w.from || h.at > w.until {
		return into
	}
	add := func(c choice) {
		if w.kinds&c.fault != 0 {
			into = append(into, c)
		}
	}
	switch h.kind {
	case happensArrival:
		for _, f := range []fault{hold, duplicate, late, cut, mute, deafen} {
			add(choice{fault: f, board: h.board})
		}
	case happensSwitch:
		add(choice{fault: pauseSwitch, board: h.board})
		add(choice{fault: freezeBoard, board: h.board})
	case happensDaemon:
		if w.boards[h.board].daemon.idles() {
			break
		}
		for _, f := range []fault{pauseDaemon, freezeBoard, suspendBoard, killDaemon, powerOff} {
			add(choice{fault: f, board: h.board})
		}
		if d := &w.boards[h.board].daemon; len(d.steps) == 0 {
			add(choice{fault: unplug, board: h.board})
			if d.role == election.Leader {
				add(choice{fault: ask, board: h.board, ask: stepStop})
				add(choice{fault: ask, board: h.board, ask: stepResign})
			}
		}
	}
	return into
}

// mayResume reports whether what a fault has stopped can go on.
func (w *world) mayResume(x *wait) bool {
	b := &w.boards[x.board]
	switch x.fault {
	case killDaemon:
		return b.toggle.step == deadmanWaits && !b.kernel.closed
	default:
		return true
	}
}

// apply lets a choice happen.
func (w *world) apply(h happening, c choice) {
	if c.resume > 0 {
		x := w.waits[c.resume-1]
		w.waits = slices.Delete(w.waits, c.resume-1, c.resume)
		w.resume(&x)
		w.remarkable = true // something else that waits may go on at the same moment
		return
	}
	w.faults--
	w.remarkable = false
	if h.kind == happensArrival {
		w.harm(h.board, c.fault)
		return
	}
	w.now = max(w.now, h.at)
	b := &w.boards[c.board]
	w.tracef("FAULT: %s %d%s", faultNames[c.fault], b.id, w.doing(h))
	x := wait{fault: c.fault, board: c.board, from: w.now}
	switch c.fault {
	case pauseDaemon:
		b.daemon.paused = true
	case pauseSwitch:
		b.toggle.paused = true
	case freezeBoard:
		b.daemon.paused, b.toggle.paused = true, true
	case suspendBoard:
		b.kernel.off = true
	case killDaemon:
		b.daemon.die()
		b.kernel.closed, b.kernel.inbox = true, nil
	case powerOff:
		b.daemon.die()
		b.kernel = kernel{cable: b.kernel.cable}
		b.toggle = deadman{}
	case unplug:
		b.kernel.cable = false
		b.daemon.insert(plain(steps.Check), plain(stepRead), plain(stepUnplugged))
	case ask:
		b.daemon.insert(plain(steps.Check), plain(stepRead), plain(c.ask))
		return
	}
	w.await(b, x)
}

// await lets something go on later: when something remarkable has happened, just before and
// just after the end of the lease, after a quarter of the grace, and after half an interval.
func (w *world) await(b *board, x wait) {
	w.waits = append(w.waits, x)
	w.instant(w.now + w.grace()/4)
	w.instant(w.now + w.interval/2)
	if b.kernel.word > wordIdle && b.kernel.word != wordForever {
		end := b.clock.global(b.kernel.word)
		w.instant(end - justBefore)
		w.instant(end + busy/2)
	}
}

// justBefore is enough for a daemon that goes on to extend its lease in time.
const justBefore = 50 * busy

func (w *world) instant(at time.Duration) {
	if at > w.now && !slices.Contains(w.instants, at) {
		w.instants = append(w.instants, at)
	}
}

// harm does something to a datagram that is about to arrive, or to the way that it takes.
func (w *world) harm(i int, fault fault) {
	f := w.flights[i]
	from, to := &w.boards[f.from], &w.boards[f.to]
	x := wait{fault: fault, board: f.from, other: f.to, from: w.now}
	switch fault {
	case late:
		w.tracef("FAULT: the %v of board %d to board %d is late", &f, from.id, to.id)
		w.flights[i].at += w.grace() / 2
		return
	case hold, duplicate:
		w.tracef("FAULT: %s: the %v of board %d to board %d", faultNames[fault], &f, from.id, to.id)
		if fault == hold {
			w.flights = slices.Delete(w.flights, i, i+1)
		}
		x.flight = &f
	case cut:
		w.tracef("FAULT: board %d no longer hears board %d", to.id, from.id)
		w.cut[f.from][f.to] = true
	case mute:
		w.tracef("FAULT: nobody hears board %d any more", from.id)
		w.mute[f.from] = true
	case deafen:
		w.tracef("FAULT: board %d hears nobody any more", to.id)
		x.board = f.to
		w.deaf[f.to] = true
	}
	w.await(from, x)
}

// resume lets go on what a fault has stopped.
func (w *world) resume(x *wait) {
	b := &w.boards[x.board]
	switch x.fault {
	case pauseDaemon:
		w.tracef("the daemon of board %d goes on", b.id)
		b.daemon.paused = false
	case pauseSwitch:
		w.tracef("the switch of board %d goes on", b.id)
		b.toggle.paused = false
	case freezeBoard:
		w.tracef("board %d goes on", b.id)
		b.daemon.paused, b.toggle.paused = false, false
	case suspendBoard:
		w.tracef("board %d wakes", b.id)
		b.kernel.off = false
		if w.bug == bugMonotonic {
			b.clock.lost += w.now - x.from
		}
	case killDaemon, powerOff:
		w.tracef("the daemon of board %d is started again", b.id)
		w.start(b)
	case unplug:
		w.tracef("the cable of board %d is in again", b.id)
		b.kernel.cable = true
		if b.daemon.core != nil {
			b.daemon.steps = append(slices.Clip(b.daemon.steps), plain(steps.Check), plain(stepRead), plain(stepUnplugged))
		}
	case hold, duplicate:
		f := *x.flight
		w.tracef("the %v of board %d arrives at board %d after all", &f, f.from+1, f.to+1)
		f.at = w.now
		w.flights = append(w.flights, f)
	case cut:
		w.tracef("board %d hears board %d again", x.other+1, x.board+1)
		w.cut[x.board][x.other] = false
	case mute:
		w.tracef("board %d is heard again", b.id)
		w.mute[x.board] = false
	case deafen:
		w.tracef("board %d hears again", b.id)
		w.deaf[x.board] = false
	}
}

// die is the end of the process.
func (d *daemon) die() { *d = daemon{at: d.at} }
