package wire

import "fmt"

// Proof gives the nonce of a CHALLENGE back.
type Proof struct {
	Nonce Nonce
}

// proofSize is the length of the body.
const proofSize = nonceSize

func (p *Proof) appendTo(dst []byte) []byte {
	return append(dst, p.Nonce[:]...)
}

func (p *Proof) decode(body []byte) {
	p.Nonce = Nonce(body[:proofSize])
}

func (p *Proof) summary() string {
	return fmt.Sprintf("nonce %x", p.Nonce)
}
