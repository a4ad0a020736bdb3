package wire

import (
	"encoding/binary"
	"fmt"
)

// Leader announces the judge's verdict (Li, Zhao, Wang, phase 3).
type Leader struct {
	Leader    ID
	Timestamp uint32
}

// leaderSize is the length of the body.
const leaderSize = 8

func (l *Leader) appendTo(dst []byte) ([]byte, error) {
	if l.Leader == Nobody {
		return nil, &fieldError{TypeLeader, "Leader", "is nobody"}
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(l.Leader))
	return binary.BigEndian.AppendUint32(dst, l.Timestamp), nil
}

func (l *Leader) decode(body []byte) Drop {
	l.Leader = ID(binary.BigEndian.Uint32(body))
	l.Timestamp = binary.BigEndian.Uint32(body[4:])
	if l.Leader == Nobody {
		return malformed(0)
	}
	return Drop{}
}

func (l *Leader) summary() string {
	return fmt.Sprintf("%v leads, time %d", l.Leader, l.Timestamp)
}
