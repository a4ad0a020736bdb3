package wire

import (
	"encoding/binary"
	"fmt"
)

// OK is what the judge of a round says to all (Li, Zhao, Wang, phase 2). Who is
// not in it must begin the next round.
type OK struct {
	Round uint32
	Trust []ID // the trusted set, at most MaxBoards
}

const (
	// okTrust is where the trusted set begins, with its length.
	okTrust = 4
	// okSize is the length of the body without the ids of the trusted set.
	okSize = okTrust + 1
)

func (o *OK) appendTo(dst []byte) ([]byte, error) {
	dst = binary.BigEndian.AppendUint32(dst, o.Round)
	return appendIDs(dst, TypeOK, "Trust", o.Trust)
}

func (o *OK) decode(body []byte) (drop Drop) {
	o.Round = binary.BigEndian.Uint32(body)
	o.Trust, drop = decodeIDs(o.Trust, body, okTrust)
	return drop
}

func (o *OK) summary() string {
	return fmt.Sprintf("round %d, trusts", o.Round) + listSummary(o.Trust)
}
