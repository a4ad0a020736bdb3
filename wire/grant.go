package wire

import (
	"encoding/binary"
	"fmt"
)

// Grant gives a candidate the sender's vote: a promise, as a SUPPORT is one.
type Grant struct {
	Candidate   ID
	Incarnation Incarnation // of the candidate
	Number      uint32      // of the request that is granted
	Voters      uint32      // the sender's VotersHash
}

// grantSize is the length of the body.
const grantSize = 16

func (g *Grant) appendTo(dst []byte) ([]byte, error) {
	if g.Candidate == Nobody {
		return nil, &fieldError{TypeGrant, "Candidate", "is nobody"}
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(g.Candidate))
	dst = binary.BigEndian.AppendUint32(dst, uint32(g.Incarnation))
	dst = binary.BigEndian.AppendUint32(dst, g.Number)
	return binary.BigEndian.AppendUint32(dst, g.Voters), nil
}

func (g *Grant) decode(body []byte) Drop {
	g.Candidate = ID(binary.BigEndian.Uint32(body))
	g.Incarnation = Incarnation(binary.BigEndian.Uint32(body[4:]))
	g.Number = binary.BigEndian.Uint32(body[8:])
	g.Voters = binary.BigEndian.Uint32(body[12:])
	if g.Candidate == Nobody {
		return malformed(0)
	}
	return Drop{}
}

func (g *Grant) summary() string {
	return fmt.Sprintf("to %v life %08x, request %d, voters %08x", g.Candidate, uint32(g.Incarnation), g.Number, g.Voters)
}
