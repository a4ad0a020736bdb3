package wire

import "encoding/binary"

// Resign says that the sender has let go of the address and who should take it.
type Resign struct {
	Successor ID // Nobody lets the ranks decide
}

func (r *Resign) appendTo(dst []byte) []byte {
	return binary.BigEndian.AppendUint32(dst, uint32(r.Successor))
}

func (r *Resign) decode(body []byte) {
	r.Successor = ID(binary.BigEndian.Uint32(body))
}
