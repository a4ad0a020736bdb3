package wire

import (
	"encoding/binary"
	"fmt"
)

// Election asks whether the suspect is alive, and announces that the sender is
// about to take over if nobody objects.
type Election struct {
	Suspect     ID          // the leader under suspicion, or Nobody at a cold start
	Incarnation Incarnation // the suspect's
	LastHeard   Sequence    // of the newest HEARTBEAT that the sender had from it
	Round       uint8       // counts repetitions, so that an answer can be matched to its question
	NoClaim     bool        // the sender may not claim yet: nothing shows that its port receives
	Score       uint32      // what the algorithm score ranks the sender by; else 0
}

// electionSize is the length of the body without its tail, the score.
const electionSize = 14

// electionNoClaim is the one flag of an ELECTION. The others are reserved.
const electionNoClaim = 0x01

func (e *Election) appendTo(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(e.Suspect))
	dst = binary.BigEndian.AppendUint32(dst, uint32(e.Incarnation))
	dst = binary.BigEndian.AppendUint32(dst, uint32(e.LastHeard))
	var flags byte
	if e.NoClaim {
		flags |= electionNoClaim
	}
	dst = append(dst, e.Round, flags)
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
	e.NoClaim = body[13]&electionNoClaim != 0
	e.Score, drop = decodeScore(body, electionSize)
	return drop
}

func (e *Election) summary() string {
	s := fmt.Sprintf("round %d, suspects %v life %08x, heard #%d",
		e.Round, e.Suspect, uint32(e.Incarnation), e.LastHeard)
	if e.NoClaim {
		s += ", may not claim"
	}
	return s + scoreSummary(e.Score)
}
