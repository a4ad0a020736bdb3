package wire

import (
	"encoding/binary"
	"fmt"
)

// Resign says that the sender has released the address, and who should acquire it.
type Resign struct {
	Successor ID // Nobody lets the ranks decide
}

// resignSize is the length of the body.
const resignSize = 4

func (r *Resign) appendTo(dst []byte) []byte {
	return binary.BigEndian.AppendUint32(dst, uint32(r.Successor))
}

func (r *Resign) decode(body []byte) {
	r.Successor = ID(binary.BigEndian.Uint32(body))
}

func (r *Resign) summary() string {
	return fmt.Sprintf("successor %v", r.Successor)
}
