package wire

import (
	"encoding/binary"
	"fmt"
)

// Round is the body of START, ACK and COLLECT: the number of a round of the algorithm
// agents (Li, Zhao, Wang).
type Round struct {
	Number uint32
}

// roundSize is the length of the body.
const roundSize = 4

func (r *Round) appendTo(dst []byte) []byte {
	return binary.BigEndian.AppendUint32(dst, r.Number)
}

func (r *Round) decode(body []byte) {
	r.Number = binary.BigEndian.Uint32(body)
}

func (r *Round) summary() string {
	return fmt.Sprintf("round %d", r.Number)
}
