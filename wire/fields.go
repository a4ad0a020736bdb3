package wire

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"
)

// What came to a body later stands at its end, as an optional tail: a sender
// leaves it away when there is nothing in it, and a receiver reads a missing
// one as zero. So whoever does not use it sends the same bytes as before.

// scoreSize is the length of a score, which every tail begins with.
const scoreSize = 4

// decodeScore reads the tail of a body that consists of a score and begins at
// the offset.
func decodeScore(body []byte, offset int) (uint32, Drop) {
	if missing, drop := tail(body, offset, scoreSize); missing {
		return 0, drop
	}
	return binary.BigEndian.Uint32(body[offset:]), Drop{}
}

// scoreSummary describes a score, if there is one.
func scoreSummary(score uint32) string {
	if score == 0 {
		return ""
	}
	return fmt.Sprintf(", score %d", score)
}

// tail looks for a tail of at least that size. If it is missing because the body
// ends before it, that is fine; if the body ends within it, the packet was cut.
func tail(body []byte, offset, size int) (missing bool, drop Drop) {
	switch rest := len(body) - offset; {
	case rest == 0:
		return true, Drop{}
	case rest < size:
		return true, Drop{TooShort, headerSize + len(body)}
	}
	return false, Drop{}
}

// idSize is the length of an id in a list.
const idSize = 4

// appendIDs appends how many ids there are, in one byte, and the ids. field is
// the list's name in the Go struct.
func appendIDs(dst []byte, kind Type, field string, ids []ID) ([]byte, error) {
	if len(ids) > MaxBoards {
		return nil, &fieldError{kind, field, fmt.Sprintf("has %d entries, at most %d fit", len(ids), MaxBoards)}
	}
	dst = append(dst, byte(len(ids)))
	for i, id := range ids {
		if id == Nobody {
			return nil, &fieldError{kind, fmt.Sprintf("%s[%d]", field, i), "is nobody"}
		}
		dst = binary.BigEndian.AppendUint32(dst, uint32(id))
	}
	return dst, nil
}

// decodeIDs reads a list that begins at the offset with the number of its ids. It
// reuses the capacity of ids, and believes the number only after it has seen
// that the packet is that long.
func decodeIDs(ids []ID, body []byte, offset int) ([]ID, Drop) {
	ids = ids[:0]
	count, first := int(body[offset]), offset+1
	if count*idSize > len(body)-first {
		return ids, malformed(offset)
	}
	for i := range count {
		at := first + i*idSize
		id := ID(binary.BigEndian.Uint32(body[at:]))
		if id == Nobody {
			return ids, malformed(at)
		}
		ids = append(ids, id)
	}
	return ids, Drop{}
}

// listSummary writes ids in a row, each after a space.
func listSummary(ids []ID) (s string) {
	if len(ids) == 0 {
		return " nobody"
	}
	for _, id := range ids {
		s += " " + id.String()
	}
	return s
}

// milliseconds converts the time until the next message. Fractions
// are rounded up: a time that is a little too long does not make anybody
// suspect the sender.
func milliseconds(kind Type, field string, d time.Duration) (uint16, error) {
	const most = math.MaxUint16 * time.Millisecond
	if d <= 0 || d > most {
		return 0, &fieldError{kind, field, fmt.Sprintf("is %v, it must be more than 0 and at most %v", d, most)}
	}
	return uint16((d + time.Millisecond - 1) / time.Millisecond), nil
}

// age converts the measured age of something to 32 bits of the given unit.
// Fractions are cut, and the greatest value stands for everything above it as
// well: nothing must fail merely because time passes.
func age(kind Type, d, unit time.Duration) (uint32, error) {
	if d < 0 {
		return 0, &fieldError{kind, "Age", fmt.Sprintf("is %v, it must not be negative", d)}
	}
	return uint32(min(d/unit, math.MaxUint32)), nil
}
