package wire

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

// Fingerprint names a group key to people and to other boards, and tells nothing about it.
// 0 is none.
type Fingerprint uint32

// FingerprintOf returns the fingerprint of a group key of KeySize bytes.
func FingerprintOf(key []byte) Fingerprint {
	derived, err := hkdf.Key(sha256.New, key, nil, fingerprintLabel, 4)
	if err != nil {
		return 0 // NewCodec derives in the same way, and reports it
	}
	return max(1, Fingerprint(binary.BigEndian.Uint32(derived)))
}

// String returns the fingerprint as people see it.
func (f Fingerprint) String() string { return fmt.Sprintf("%08x", uint32(f)) }

// Mark returns the bit of the fingerprint that every packet tells. The two keys that a board
// accepts differ in it.
func (f Fingerprint) Mark() uint8 { return uint8(f >> 31) }

// Keys are the fingerprints of the keys that a board accepts. The zero Keys are unknown: the
// board has no key, or its program cannot change keys.
type Keys struct {
	Signs Fingerprint // of the key that makes the tags of what the board sends
	Also  Fingerprint // of the other key that it accepts, or 0
}

// Accept reports whether the board accepts what a key has signed.
func (k Keys) Accept(f Fingerprint) bool { return f != 0 && (f == k.Signs || f == k.Also) }
