package wire

import (
	"encoding/binary"
	"time"
)

// Election asks whether the suspect is alive, and announces that the sender is
// about to take over if nobody objects.
type Election struct {
	Suspect     ID          // the leader under suspicion, or Nobody at a cold start
	Incarnation Incarnation // the suspect's
	LastHeard   Sequence    // of the newest HEARTBEAT that the sender had from it
	Round       uint8       // counts repetitions, so that an answer can be matched to its question
	Score       uint32      // the sender's importance, to the algorithm score; else 0
}

// electionScore is where the optional score begins in the body of an ELECTION.
const electionScore = 13

func (e *Election) appendTo(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(e.Suspect))
	dst = binary.BigEndian.AppendUint32(dst, uint32(e.Incarnation))
	dst = binary.BigEndian.AppendUint32(dst, uint32(e.LastHeard))
	dst = append(dst, e.Round)
	if e.Score != 0 {
		dst = binary.BigEndian.AppendUint32(dst, e.Score)
	}
	return dst
}

func (e *Election) decode(body []byte) (drop Drop) {
	e.Suspect = ID(binary.BigEndian.Uint32(body))
	e.Incarnation = Incarnation(binary.BigEndian.Uint32(body[4:]))
	e.LastHeard = Sequence(binary.BigEndian.Uint32(body[8:]))
	e.Round = body[12]
	e.Score, drop = decodeScore(body, electionScore)
	return drop
}

// Answer objects to an ELECTION, with what the sender knows of the leader. It
// also answers a QUERY.
type Answer struct {
	Leader      ID            // Nobody if the sender knows none
	Incarnation Incarnation   // the leader's
	LastHeard   Sequence      // of the newest HEARTBEAT that the sender had from it
	Age         time.Duration // since that HEARTBEAT arrived; whole microseconds
	Round       uint8         // copied from the question
}

func (a *Answer) appendTo(dst []byte) ([]byte, error) {
	age, err := age(TypeAnswer, a.Age, time.Microsecond)
	if err != nil {
		return nil, err
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(a.Leader))
	dst = binary.BigEndian.AppendUint32(dst, uint32(a.Incarnation))
	dst = binary.BigEndian.AppendUint32(dst, uint32(a.LastHeard))
	dst = binary.BigEndian.AppendUint32(dst, age)
	return append(dst, a.Round), nil
}

func (a *Answer) decode(body []byte) {
	a.Leader = ID(binary.BigEndian.Uint32(body))
	a.Incarnation = Incarnation(binary.BigEndian.Uint32(body[4:]))
	a.LastHeard = Sequence(binary.BigEndian.Uint32(body[8:]))
	a.Age = time.Duration(binary.BigEndian.Uint32(body[12:])) * time.Microsecond
	a.Round = body[16]
}

// Coordinator proclaims a new leader. Interval and Beat are as in a HEARTBEAT,
// since it counts as the first one of the reign.
type Coordinator struct {
	Coordinator ID
	Interval    time.Duration
	Number      uint8
	Score       uint32 // the sender's importance, to the algorithm score; else 0
	// Candidates are the boards that hold elections from now on, to the algorithm
	// candidates (Murshed and Allen); else none. At most MaxBoards.
	Candidates []ID
}

// Where the optional tail of a COORDINATOR begins in its body, and the list in it.
const (
	coordinatorScore      = 7
	coordinatorCandidates = coordinatorScore + scoreSize
)

func (c *Coordinator) appendTo(dst []byte) ([]byte, error) {
	if c.Coordinator == Nobody {
		return nil, &FieldError{TypeCoordinator, "Coordinator", "is nobody"}
	}
	interval, err := milliseconds(TypeCoordinator, "Interval", c.Interval)
	if err != nil {
		return nil, err
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(c.Coordinator))
	dst = binary.BigEndian.AppendUint16(dst, interval)
	dst = append(dst, c.Number)
	if c.Score == 0 && len(c.Candidates) == 0 {
		return dst, nil
	}
	dst = binary.BigEndian.AppendUint32(dst, c.Score)
	return appendIDs(dst, TypeCoordinator, "Candidates", c.Candidates)
}

func (c *Coordinator) decode(body []byte) Drop {
	c.Coordinator = ID(binary.BigEndian.Uint32(body))
	c.Interval = time.Duration(binary.BigEndian.Uint16(body[4:])) * time.Millisecond
	c.Number = body[6]
	switch {
	case c.Coordinator == Nobody:
		return malformed(0)
	case c.Interval == 0:
		return malformed(4)
	}
	return c.decodeTail(body)
}

func (c *Coordinator) decodeTail(body []byte) (drop Drop) {
	c.Score, c.Candidates = 0, c.Candidates[:0]
	// The list has a number at least, even if that is 0.
	if missing, drop := tail(body, coordinatorScore, scoreSize+1); missing {
		return drop
	}
	c.Score = binary.BigEndian.Uint32(body[coordinatorScore:])
	c.Candidates, drop = decodeIDs(c.Candidates, body, coordinatorCandidates)
	return drop
}

// Halt stops other elections while one is held (the modified bully algorithm).
type Halt struct {
	Suspect ID
}

func (h *Halt) appendTo(dst []byte) []byte {
	return binary.BigEndian.AppendUint32(dst, uint32(h.Suspect))
}

func (h *Halt) decode(body []byte) {
	h.Suspect = ID(binary.BigEndian.Uint32(body))
}
