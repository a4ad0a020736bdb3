package election

import (
	"time"
	"topdog/election/clock"
	"topdog/election/silence"
	"topdog/wire"
)

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

// A follower measures the round trip to a new leader as often as roundTripMeasurements, one
// interval apart but never less than measureMin, so that the answer has time to come back
// before the next one is asked for. From then on it does so every measureEvery.
const (
	roundTripMeasurements = 4
	measureMin            = 50 * time.Millisecond
	measureEvery          = 10 * time.Second
)

// measureRoundTrip measures how far away the leader is, so that a candidate knows how long
// an answer may take. Only those boards do it that are next in the succession.
func (c *Core) measureRoundTrip() {
	if c.detectorKind() != silence.DetectorAsk {
		return // nobody waits for as long as an answer takes
	}
	c.lastLeader.measured++
	c.following.measure = clock.Due(c.now + c.measureInterval())
	if c.leader == wire.Nobody || !c.rank().Eligible() || c.succession() >= witnesses {
		return
	}
	c.asking.forget()
	c.asking.ask(c.now)
	c.send(c.leader, wire.Message{
		Header: wire.Header{Type: wire.TypeQuery},
		Query:  wire.Query{Purpose: wire.PurposeJoin},
	})
}

func (c *Core) measureInterval() time.Duration {
	if c.lastLeader.measured < roundTripMeasurements {
		return max(c.cfg.Interval, measureMin)
	}
	return measureEvery
}

// answersQuestion reports whether a HEARTBEAT that is a reply may answer a question of this
// board. Candidates are answered by multicast, with a number of its own. Who measures
// the round trip is answered alone, with the number of the heartbeat before; it must
// not take what others are answered for it.
func (c *Core) answersQuestion(m *wire.Message, heartbeat wire.Heartbeat) bool {
	return m.Reply && c.asking.count > 0 && (c.role == Candidate || heartbeat.Number == c.lastLeader.lastNumber)
}

// timeAnswer learns the round trip from an answer. One that comes very late answers
// the question of another board, and the own one was lost.
func (c *Core) timeAnswer() {
	if late := c.now - c.asking.last; late <= max(c.cfg.Interval, measureMin) {
		c.detector.Answered(late, c.now-c.asking.first)
	}
	c.asking.forget()
}
