package wire

import (
	"encoding/binary"
	"fmt"
	"time"
)

// Answer objects to an ELECTION, with what the sender knows of the leader. It
// also answers a QUERY.
type Answer struct {
	Leader      ID            // Nobody if the sender knows none
	Incarnation Incarnation   // the leader's
	LastHeard   Sequence      // of the newest HEARTBEAT that the sender had from it
	Age         time.Duration // since that HEARTBEAT arrived; whole microseconds
	Round       uint8         // copied from the question
}

// answerSize is the length of the body.
const answerSize = 17

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

func (a *Answer) summary() string {
	return fmt.Sprintf("round %d, leader %v life %08x, heard #%d %v ago",
		a.Round, a.Leader, uint32(a.Incarnation), a.LastHeard, a.Age)
}
