package wire

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
)

// Challenge asks an unknown sender to prove that it is alive.
type Challenge struct {
	Target      ID
	Incarnation Incarnation // the target's
	Nonce       Nonce
}

// challengeSize is the length of the body.
const challengeSize = 8 + nonceSize

func (c *Challenge) appendTo(dst []byte) ([]byte, error) {
	if c.Target == Nobody {
		return nil, &fieldError{TypeChallenge, "Target", "is nobody"}
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(c.Target))
	dst = binary.BigEndian.AppendUint32(dst, uint32(c.Incarnation))
	return append(dst, c.Nonce[:]...), nil
}

func (c *Challenge) decode(body []byte) Drop {
	c.Target = ID(binary.BigEndian.Uint32(body))
	c.Incarnation = Incarnation(binary.BigEndian.Uint32(body[4:]))
	c.Nonce = Nonce(body[8:challengeSize])
	if c.Target == Nobody {
		return malformed(0)
	}
	return Drop{}
}

func (c *Challenge) summary() string {
	return fmt.Sprintf("to %v life %08x, nonce %x", c.Target, uint32(c.Incarnation), c.Nonce)
}

// Nonce is a random number used once.
type Nonce [nonceSize]byte

const nonceSize = 16

// RandomNonce draws a nonce that nobody can predict, which is what a Guard needs.
func RandomNonce() Nonce {
	var n Nonce
	// Read fills the slice or ends the process: see its documentation. There is
	// no error to handle.
	_, _ = rand.Read(n[:])
	return n
}
