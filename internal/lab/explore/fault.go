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
	askStop                        // the leader is asked to stop
	askResign                      // the leader is asked to resign
	late                           // one copy of a datagram takes as long as half of the grace
	duplicate                      // one copy arrives a second time, at any later moment
	hold                           // one copy arrives at any later moment, or never
	cut                            // one board no longer hears another one, until any later moment or for good
	mute                           // nobody hears a board
	deafen                         // a board hears nobody
	everyFault   fault = 1<<iota - 1
	ask                = askStop | askResign
)

var faultNames = map[fault]string{
	pauseDaemon: "pause of a daemon", pauseSwitch: "pause of a switch", freezeBoard: "frozen board", suspendBoard: "suspended board",
	killDaemon: "killed daemon", powerOff: "power cut", unplug: "pulled cable", askStop: "request to stop", askResign: "request to resign",
	duplicate: "duplicate", hold: "lost or held datagram",
}

// wait is something that a fault has stopped, and that may go on.
type wait struct {
	fault  fault
	board  int
	other  int    // of a cut
	flight flight // that is held
	from   time.Duration
}

// choice is one thing that may happen instead of what happens next.
type choice struct {
	fault  fault
	board  int
	resume int // 1 + the number of the wait that ends; 0 if a fault begins
}

// choices lists what may happen before h does. Whatever waits may go on when something
// remarkable has just happened; what goes wrong counts as a fault.
func (w *world) choices(h happening, into []choice) []choice {
	into = into[:0]
	if w.remarkable {
		for i, x := range w.waits {
			b := &w.boards[x.board]
			if x.fault == killDaemon && (len(b.toggle.steps) > 0 || b.kernel.closed) {
				continue // its switch has something to do first
			}
			into = append(into, choice{resume: i + 1, fault: x.fault, board: x.board})
		}
	}
	if w.faults == 0 || h.at < w.from || h.at > w.until {
		return into
	}
	add := func(kinds ...fault) {
		for _, f := range kinds {
			if w.kinds&f != 0 {
				into = append(into, choice{fault: f, board: h.board})
			}
		}
	}
	switch h.kind {
	case happensArrival:
		add(hold, duplicate, late, cut, mute, deafen)
	case happensSwitch:
		add(pauseSwitch, freezeBoard)
	case happensDaemon:
		d := &w.boards[h.board].daemon
		if d.idles() {
			break
		}
		add(pauseDaemon, freezeBoard, suspendBoard, killDaemon, powerOff)
		if len(d.steps) == 0 {
			add(unplug)
		}
		if len(d.steps) == 0 && d.role == election.Leader {
			add(askStop, askResign)
		}
	}
	return into
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
	x := wait{fault: c.fault, board: c.board}
	w.stop(&x, true)
	switch c.fault {
	case suspendBoard:
		x.from = w.now
	case killDaemon:
		b.daemon = daemon{}
		b.kernel.closed, b.kernel.inbox = true, nil
	case powerOff:
		b.daemon = daemon{}
		b.kernel = kernel{cable: b.kernel.cable}
		b.toggle = deadman{}
	case unplug:
		b.kernel.cable = false
		b.daemon.insert(plain(steps.Check), plain(stepRead), plain(stepUnplugged))
	case askStop, askResign:
		asked := map[fault]steps.Kind{askStop: stepStop, askResign: stepResign}[c.fault]
		b.daemon.insert(plain(steps.Check), plain(stepRead), plain(asked))
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
	x := wait{fault: fault, board: f.from, other: f.to}
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
		x.flight = f
	case cut:
		w.tracef("FAULT: board %d no longer hears board %d", to.id, from.id)
	case mute:
		w.tracef("FAULT: nobody hears board %d any more", from.id)
	case deafen:
		w.tracef("FAULT: board %d hears nobody any more", to.id)
		x.board = f.to
	}
	w.stop(&x, true)
	w.await(from, x)
}

// stop has a fault stop what does nothing else meanwhile, or lets that go on.
func (w *world) stop(x *wait, stop bool) {
	b := &w.boards[x.board]
	switch x.fault {
	case pauseDaemon:
		b.daemon.paused = stop
	case pauseSwitch:
		b.toggle.paused = stop
	case freezeBoard:
		b.daemon.paused, b.toggle.paused = stop, stop
	case suspendBoard:
		b.kernel.off = stop
	case cut:
		w.cut[x.board][x.other] = stop
	case mute:
		w.mute[x.board] = stop
	case deafen:
		w.deaf[x.board] = stop
	}
}

// resumed says what a fault has let go on.
var resumed = map[fault]string{
	pauseDaemon: "the daemon of board %d goes on", pauseSwitch: "the switch of board %d goes on", freezeBoard: "board %d goes on",
	suspendBoard: "board %d wakes", killDaemon: "the daemon of board %d is started again", powerOff: "the daemon of board %d is started again",
	unplug: "the cable of board %d is in again", mute: "board %d is heard again", deafen: "board %d hears again",
}

// resume lets go on what a fault has stopped.
func (w *world) resume(x *wait) {
	b := &w.boards[x.board]
	switch x.fault {
	case hold, duplicate:
		w.tracef("the %v of board %d arrives at board %d after all", &x.flight, x.board+1, x.other+1)
	case cut:
		w.tracef("board %d hears board %d again", x.other+1, x.board+1)
	default:
		w.tracef(resumed[x.fault], b.id)
	}
	w.stop(x, false)
	switch x.fault {
	case suspendBoard:
		if w.bug == bugMonotonic {
			b.clock.lost += w.now - x.from
		}
	case killDaemon, powerOff:
		w.start(b)
	case unplug:
		b.kernel.cable = true
		if b.daemon.core != nil {
			b.daemon.steps = append(b.daemon.steps, plain(steps.Check), plain(stepRead), plain(stepUnplugged))
		}
	case hold, duplicate:
		x.flight.at = w.now
		w.flights = append(w.flights, x.flight)
	}
}
