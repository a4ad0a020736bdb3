package explore

import (
	"testing"
	"time"

	"topdog/wire"
)

const (
	ms = time.Millisecond
	// settled is when all boards have long agreed, and know how long an answer takes.
	settled = 1500 * ms
	// driftMost is how wrong a clock goes, in millionths: 1 %. Above that a board does not take
	// part in strict.
	driftMost = 10_000
	// aMoment is for how long two boards may answer in the default mode when more than one thing
	// has gone wrong: until a packet of the one has reached the other.
	aMoment = ms
)

// What goes wrong with processes, with a board as a whole, and on the LAN.
const (
	processes = pauseDaemon | pauseSwitch | killDaemon
	boards    = processes | powerOff | unplug | ask
	datagrams = late | duplicate | hold
	paths     = cut | mute | deafen
)

// group returns a group of that many boards that has agreed on a leader, the one of the highest id.
// From just before a heartbeat things may go wrong, for that long, and it is seen what
// becomes of it within some more heartbeats.
func group(t *testing.T, size int, within time.Duration, change func(s *scope)) scope {
	t.Helper()
	s := scope{size: size, interval: 100 * ms, latency: 150 * time.Microsecond, end: settled + time.Second, most: 1}
	if change != nil {
		change(&s)
	}
	heartbeat := nextHeartbeat(t, s)
	s.from += heartbeat
	s.until = s.from + within
	s.end = s.until + 300*ms
	for i := range s.resigns {
		s.resigns[i] += heartbeat
	}
	return s
}

// nextHeartbeat returns when a leader is about to send a heartbeat, after the group has settled,
// if nothing goes wrong.
func nextHeartbeat(t *testing.T, s scope) time.Duration {
	t.Helper()
	s.from, s.until, s.most, s.resigns = s.end, s.end, 0, nil
	w := newWorld(&s)
	for w.now < settled+2*s.interval {
		w.advance(w.next())
		for i := range w.flights {
			if m := w.flights[i].message; w.now > settled && m != nil && m.Type == wire.TypeHeartbeat && !m.Reply {
				return w.now - 10*busy
			}
		}
	}
	t.Fatal("nobody sends heartbeats")
	return 0
}

// slowLeader and fastLeader are clocks as wrong as they may be.
func slowLeader(s *scope) { s.drift = []int{driftMost, driftMost, -driftMost} }
func fastLeader(s *scope) { s.drift = []int{-driftMost, -driftMost, driftMost} }

// votes has all boards vote, with the leader's clock slow.
func votes(s *scope) { slowLeader(s); s.strict = true }

// handover has the leader asked to resign soon after the heartbeat.
func handover(s *scope) { votes(s); s.resigns = []time.Duration{ms} }
