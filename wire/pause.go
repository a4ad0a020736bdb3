package wire

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"
)

// Pause is what boards tell each other while nobody is to take the lead, or that this is over.
type Pause struct {
	Number uint32 // of the pause or of its end; the greater one counts
	Leader ID     // who alone may lead meanwhile; Nobody if the pause is over
	// Left is the time until the pause ends by itself; whole milliseconds.
	Left time.Duration
}

// pauseSize is the length of the body.
const pauseSize = 12

func (p *Pause) appendTo(dst []byte) ([]byte, error) {
	if p.Number == 0 {
		return nil, &fieldError{TypePause, "Number", "is 0, the first one is 1"}
	}
	if p.Left < 0 {
		return nil, &fieldError{TypePause, "Left", fmt.Sprintf("is %v, it must not be negative", p.Left)}
	}
	left := uint32(min(p.Left/time.Millisecond, math.MaxUint32))
	dst = binary.BigEndian.AppendUint32(dst, p.Number)
	dst = binary.BigEndian.AppendUint32(dst, uint32(p.Leader))
	return binary.BigEndian.AppendUint32(dst, left), nil
}

func (p *Pause) decode(body []byte) Drop {
	p.Number = binary.BigEndian.Uint32(body)
	p.Leader = ID(binary.BigEndian.Uint32(body[4:]))
	p.Left = time.Duration(binary.BigEndian.Uint32(body[8:])) * time.Millisecond
	if p.Number == 0 {
		return malformed(0)
	}
	return Drop{}
}

func (p *Pause) summary() string {
	if p.Leader == Nobody {
		return fmt.Sprintf("number %d, over", p.Number)
	}
	return fmt.Sprintf("number %d, only %v may lead for %v", p.Number, p.Leader, p.Left)
}
