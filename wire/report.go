package wire

import (
	"encoding/binary"
	"fmt"
)

// Report carries a priority list (Li, Zhao, Wang, phase 3).
type Report struct {
	Round     uint32
	Timestamp uint32
	Standings []Standing // at most MaxBoards
}

// Standing is one entry of a REPORT.
type Standing struct {
	ID       ID
	Priority uint8
}

const (
	// reportSize is the length of the body without the standings. The last byte of it is
	// the number of standings, which follow.
	reportSize   = 9
	standingSize = 5
)

func (r *Report) appendTo(dst []byte) ([]byte, error) {
	if len(r.Standings) > MaxBoards {
		return nil, &fieldError{TypeReport, "Standings", fmt.Sprintf("has %d entries, at most %d fit", len(r.Standings), MaxBoards)}
	}
	dst = binary.BigEndian.AppendUint32(dst, r.Round)
	dst = binary.BigEndian.AppendUint32(dst, r.Timestamp)
	dst = append(dst, byte(len(r.Standings)))
	for i, s := range r.Standings {
		if s.ID == Nobody {
			return nil, &fieldError{TypeReport, fmt.Sprintf("Standings[%d].ID", i), "is nobody"}
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
	count := int(body[reportSize-1])
	if count*standingSize > len(body)-reportSize {
		return malformed(reportSize - 1)
	}
	for i := range count {
		at := reportSize + i*standingSize
		id := ID(binary.BigEndian.Uint32(body[at:]))
		if id == Nobody {
			return malformed(at)
		}
		r.Standings = append(r.Standings, Standing{ID: id, Priority: body[at+4]})
	}
	return Drop{}
}

func (r *Report) summary() string {
	s := fmt.Sprintf("round %d, time %d,", r.Round, r.Timestamp)
	for _, standing := range r.Standings {
		s += fmt.Sprintf(" %v=%d", standing.ID, standing.Priority)
	}
	return s
}
