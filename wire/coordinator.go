package wire

import (
	"encoding/binary"
	"fmt"
	"time"
)

// Coordinator proclaims a new leader. Interval, Grace and Number are as in a HEARTBEAT,
// since it counts as the first one of that leader.
type Coordinator struct {
	Coordinator ID
	Interval    time.Duration
	Grace       time.Duration
	Number      uint8
	Score       uint32 // what the algorithm score ranks the sender by; else 0
	// Candidates are the boards that hold elections from now on, to the algorithm
	// candidates (Murshed and Allen); else none. At most MaxBoards.
	Candidates []ID
}

const (
	// coordinatorSize is the length of the body without its tail: a score and a list.
	coordinatorSize = 8
	// coordinatorCandidates is where the list begins.
	coordinatorCandidates = coordinatorSize + scoreSize
)

func (c *Coordinator) appendTo(dst []byte) ([]byte, error) {
	if c.Coordinator == Nobody {
		return nil, &fieldError{TypeCoordinator, "Coordinator", "is nobody"}
	}
	interval, err := milliseconds(TypeCoordinator, "Interval", c.Interval)
	if err != nil {
		return nil, err
	}
	grace, err := graceCode(TypeCoordinator, c.Grace)
	if err != nil {
		return nil, err
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(c.Coordinator))
	dst = binary.BigEndian.AppendUint16(dst, interval)
	dst = append(dst, grace, c.Number)
	if c.Score == 0 && len(c.Candidates) == 0 {
		return dst, nil
	}
	dst = binary.BigEndian.AppendUint32(dst, c.Score)
	return appendIDs(dst, TypeCoordinator, "Candidates", c.Candidates)
}

func (c *Coordinator) decode(body []byte) Drop {
	c.Coordinator = ID(binary.BigEndian.Uint32(body))
	c.Interval = time.Duration(binary.BigEndian.Uint16(body[4:])) * time.Millisecond
	c.Grace = graceOf(body[6])
	c.Number = body[7]
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
	if missing, drop := tail(body, coordinatorSize, scoreSize+1); missing {
		return drop
	}
	c.Score = binary.BigEndian.Uint32(body[coordinatorSize:])
	c.Candidates, drop = decodeIDs(c.Candidates, body, coordinatorCandidates)
	return drop
}

func (c *Coordinator) summary() string {
	s := fmt.Sprintf("%v leads, beat %d, next in %v", c.Coordinator, c.Number, c.Interval) +
		graceSummary(c.Grace) + scoreSummary(c.Score)
	if len(c.Candidates) > 0 {
		s += ", candidates" + listSummary(c.Candidates)
	}
	return s
}
