package wire

import (
	"encoding/binary"
	"fmt"
)

// Round numbers the rounds of the agents algorithm.
type Round struct {
	Number uint32
}

func (r *Round) appendTo(dst []byte) []byte {
	return binary.BigEndian.AppendUint32(dst, r.Number)
}

func (r *Round) decode(body []byte) {
	r.Number = binary.BigEndian.Uint32(body)
}

// OK is what the judge of a round says to all (Li, Zhao, Wang, phase 2). Who is
// not in it must begin the next round.
type OK struct {
	Round uint32
	Trust []ID // the trusted set, at most MaxBoards
}

// okTrust is where the trusted set begins in the body of an OK.
const okTrust = 4

func (o *OK) appendTo(dst []byte) ([]byte, error) {
	dst = binary.BigEndian.AppendUint32(dst, o.Round)
	return appendIDs(dst, TypeOK, "Trust", o.Trust)
}

func (o *OK) decode(body []byte) (drop Drop) {
	o.Round = binary.BigEndian.Uint32(body)
	o.Trust, drop = decodeIDs(o.Trust, body, okTrust)
	return drop
}

// Standing is one entry of a REPORT.
type Standing struct {
	ID       ID
	Priority uint8
}

// Report carries a priority list (Li, Zhao, Wang, phase 3).
type Report struct {
	Round     uint32
	Timestamp uint32
	Standings []Standing // at most MaxBoards
}

// MaxBoards is the largest number of boards in a group.
const MaxBoards = 255

// Sizes within the body of a REPORT.
const (
	reportStandings = 9 // where the standings begin; the byte before is their count
	standingSize    = 5
)

func (r *Report) appendTo(dst []byte) ([]byte, error) {
	if len(r.Standings) > MaxBoards {
		return nil, &FieldError{TypeReport, "Standings", fmt.Sprintf("has %d entries, at most %d fit", len(r.Standings), MaxBoards)}
	}
	dst = binary.BigEndian.AppendUint32(dst, r.Round)
	dst = binary.BigEndian.AppendUint32(dst, r.Timestamp)
	dst = append(dst, byte(len(r.Standings)))
	for i, s := range r.Standings {
		if s.ID == Nobody {
			return nil, &FieldError{TypeReport, fmt.Sprintf("Standings[%d].ID", i), "is nobody"}
		}
		dst = binary.BigEndian.AppendUint32(dst, uint32(s.ID))
		dst = append(dst, s.Priority)
	}
	return dst, nil
}

// decode reuses the capacity of Standings, and believes the count only after it
// has seen that the packet is that long.
func (r *Report) decode(body []byte) Drop {
	r.Round = binary.BigEndian.Uint32(body)
	r.Timestamp = binary.BigEndian.Uint32(body[4:])
	r.Standings = r.Standings[:0]
	count := int(body[reportStandings-1])
	if count*standingSize > len(body)-reportStandings {
		return malformed(reportStandings - 1)
	}
	for i := range count {
		at := reportStandings + i*standingSize
		id := ID(binary.BigEndian.Uint32(body[at:]))
		if id == Nobody {
			return malformed(at)
		}
		r.Standings = append(r.Standings, Standing{ID: id, Priority: body[at+4]})
	}
	return Drop{}
}

// Leader announces the judge's verdict (Li, Zhao, Wang, phase 3).
type Leader struct {
	Leader    ID
	Timestamp uint32
}

func (l *Leader) appendTo(dst []byte) ([]byte, error) {
	if l.Leader == Nobody {
		return nil, &FieldError{TypeLeader, "Leader", "is nobody"}
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
