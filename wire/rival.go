package wire

import (
	"encoding/binary"
	"fmt"
	"time"
)

// Rival is what a leader tells another leader that it hears, or that it has replaced and looks for: how many
// boards follow it, and what it has decided. The leader of the lower term decides, and the other one obeys.
type Rival struct {
	Rival    ID // the leader that this is for
	Decision Decision
	// Reach is how many boards were heard following the sender since the younger one of
	// the two reigns began.
	Reach uint8
	// Age is for how long the sender has led; whole milliseconds.
	Age time.Duration
}

// rivalSize is the length of the body.
const rivalSize = 10

func (r *Rival) appendTo(dst []byte) ([]byte, error) {
	if r.Rival == Nobody {
		return nil, &fieldError{TypeRival, "Rival", "is nobody"}
	}
	age, err := age(TypeRival, r.Age, time.Millisecond)
	if err != nil {
		return nil, err
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(r.Rival))
	dst = append(dst, byte(r.Decision), r.Reach)
	return binary.BigEndian.AppendUint32(dst, age), nil
}

// decode lets decisions through that this version does not know: who does not understand
// one decides for itself.
func (r *Rival) decode(body []byte) Drop {
	r.Rival = ID(binary.BigEndian.Uint32(body))
	r.Decision = Decision(body[4])
	r.Reach = body[5]
	r.Age = time.Duration(binary.BigEndian.Uint32(body[6:])) * time.Millisecond
	if r.Rival == Nobody {
		return malformed(0)
	}
	return Drop{}
}

func (r *Rival) summary() string {
	return fmt.Sprintf("to %v: %v, reach %d, leads for %v", r.Rival, r.Decision, r.Reach, r.Age)
}

// Decision is what one of two leaders has decided. Only append.
type Decision uint8

// The decisions.
const (
	DecisionOpen  Decision = 0 // none yet: tell me your reach
	DecisionYield Decision = 1 // the receiver releases the address, and follows the sender
)

func (d Decision) String() string {
	switch d {
	case DecisionOpen:
		return "open"
	case DecisionYield:
		return "yield"
	default:
		return fmt.Sprintf("decision %d", uint8(d))
	}
}
