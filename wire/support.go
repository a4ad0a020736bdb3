package wire

import (
	"encoding/binary"
	"fmt"
)

// Support acknowledges one heartbeat of a leader: the sender, a voter of the algorithm
// strict, promises to support nobody else for the interval and the grace of that heartbeat.
type Support struct {
	Leader      ID
	Incarnation Incarnation // of the leader
	Term        Term        // of the heartbeat
	Heartbeat   Sequence    // of the heartbeat
	Voters      uint32      // the sender's VotersHash
}

// supportSize is the length of the body.
const supportSize = 19

func (s *Support) appendTo(dst []byte) ([]byte, error) {
	switch {
	case s.Leader == Nobody:
		return nil, &fieldError{TypeSupport, "Leader", "is nobody"}
	case s.Term > MaxTerm:
		return nil, &fieldError{TypeSupport, "Term", fmt.Sprintf("is %d, at most %d fits", s.Term, MaxTerm)}
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(s.Leader))
	dst = binary.BigEndian.AppendUint32(dst, uint32(s.Incarnation))
	dst = append(dst, byte(s.Term>>16), byte(s.Term>>8), byte(s.Term))
	dst = binary.BigEndian.AppendUint32(dst, uint32(s.Heartbeat))
	return binary.BigEndian.AppendUint32(dst, s.Voters), nil
}

func (s *Support) decode(body []byte) Drop {
	s.Leader = ID(binary.BigEndian.Uint32(body))
	s.Incarnation = Incarnation(binary.BigEndian.Uint32(body[4:]))
	s.Term = Term(body[8])<<16 | Term(body[9])<<8 | Term(body[10])
	s.Heartbeat = Sequence(binary.BigEndian.Uint32(body[11:]))
	s.Voters = binary.BigEndian.Uint32(body[15:])
	if s.Leader == Nobody {
		return malformed(0)
	}
	return Drop{}
}

func (s *Support) summary() string {
	return fmt.Sprintf("%v life %08x term %d, heard #%d, voters %08x",
		s.Leader, uint32(s.Incarnation), s.Term, s.Heartbeat, s.Voters)
}
