package wire

import (
	"crypto/rand"
	"encoding/binary"
)

// Nonce is a random number used once.
type Nonce [16]byte

// RandomNonce draws a nonce that nobody can predict, which is what a Guard needs.
func RandomNonce() Nonce {
	var n Nonce
	// Read fills the slice or ends the process: see its documentation. There is
	// no error to handle.
	_, _ = rand.Read(n[:])
	return n
}

// Challenge asks an unknown sender to prove that it is alive.
type Challenge struct {
	Target      ID
	Incarnation Incarnation // the target's
	Nonce       Nonce
}

func (c *Challenge) appendTo(dst []byte) ([]byte, error) {
	if c.Target == Nobody {
		return nil, &FieldError{TypeChallenge, "Target", "is nobody"}
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(c.Target))
	dst = binary.BigEndian.AppendUint32(dst, uint32(c.Incarnation))
	return append(dst, c.Nonce[:]...), nil
}

func (c *Challenge) decode(body []byte) Drop {
	c.Target = ID(binary.BigEndian.Uint32(body))
	c.Incarnation = Incarnation(binary.BigEndian.Uint32(body[4:]))
	c.Nonce = Nonce(body[8:24])
	if c.Target == Nobody {
		return malformed(0)
	}
	return Drop{}
}

// Proof gives the nonce of a CHALLENGE back.
type Proof struct {
	Nonce Nonce
}

func (p *Proof) appendTo(dst []byte) []byte {
	return append(dst, p.Nonce[:]...)
}

func (p *Proof) decode(body []byte) {
	p.Nonce = Nonce(body[:16])
}
