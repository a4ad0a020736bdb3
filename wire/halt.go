package wire

import (
	"encoding/binary"
	"fmt"
)

// Halt stops other elections while one is held (the modified bully algorithm).
type Halt struct {
	Suspect ID
}

// haltSize is the length of the body.
const haltSize = 4

func (h *Halt) appendTo(dst []byte) []byte {
	return binary.BigEndian.AppendUint32(dst, uint32(h.Suspect))
}

func (h *Halt) decode(body []byte) {
	h.Suspect = ID(binary.BigEndian.Uint32(body))
}

func (h *Halt) summary() string {
	return fmt.Sprintf("suspects %v", h.Suspect)
}
