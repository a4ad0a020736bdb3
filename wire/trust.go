package wire

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
)

// Challenge asks an unknown sender to prove that it is alive.
type Challenge struct {
	Target      ID
	Incarnation Incarnation // the target's
	Nonce       Nonce
}

func (k *Challenge) fields(c *cursor) {
	c.board("Target", &k.Target)
	c.incarnation(&k.Incarnation)
	c.nonce(&k.Nonce)
}

// Proof gives the nonce of a CHALLENGE back.
type Proof struct {
	Nonce Nonce
}

func (p *Proof) fields(c *cursor) { c.nonce(&p.Nonce) }

// Nonce is a random number used once.
type Nonce [nonceSize]byte

const nonceSize = 16

// RandomNonce draws a nonce that nobody can predict, as a Guard needs it.
func RandomNonce() Nonce {
	var n Nonce
	// Read fills the slice or ends the process: see its documentation. There is
	// no error to handle.
	_, _ = rand.Read(n[:])
	return n
}

const (
	// KeySize is the length of a group key in bytes: 256 bits, as long as the
	// hash, which RFC 2104 section 3 recommends.
	KeySize = 32

	// tagSize is the length of the tag that ends an authenticated packet:
	// HMAC-SHA-256 truncated to half its length, the least that RFC 2104 section
	// 5 allows and what IPsec uses (HMAC-SHA-256-128, RFC 4868).
	tagSize = 16
)

// The labels keep apart what is derived from one group name (domain
// separation). They are those of the first version, and stay: boards of two versions must
// recognise each other, see "Versions" in the package comment.
const (
	groupLabel = "topdog/1 group tag\x00"
	keyLabel   = "topdog/1 packet authentication\x00"

	fingerprintLabel = "topdog/1 key fingerprint\x00"
)

// GroupTag is the group's name as packets of all versions carry it: in the two bytes before GroupTagEnd.
type GroupTag uint16

// GroupTagEnd is the offset of what follows the tag.
const GroupTagEnd = offGroup + 2

// IncarnationEnd is the offset of what follows the incarnation in this version. The grade is in its high bits.
const IncarnationEnd = offIncarnation + 4

// TagOf shortens the group's name to 16 bits. The tag keeps apart groups that happen to share a LAN. Only
// the key keeps out somebody who wants to get in.
func TagOf(group string) GroupTag {
	sum := sha256.Sum256([]byte(groupLabel + group))
	return GroupTag(binary.BigEndian.Uint16(sum[:]))
}

// OnSecondPath returns the name under which a group speaks on its second path. So what was sent on one path is nothing to who hears it
// on the other, though both may be in one LAN. No group that people name has such a name.
func OnSecondPath(group string) string { return group + "\x00second path" }

// TagIn returns the tag that a packet carries. Nothing else of the packet is looked at. ok is false if it is too short for a tag.
func TagIn(packet []byte) (tag GroupTag, ok bool) {
	if len(packet) < GroupTagEnd {
		return 0, false
	}
	return GroupTag(binary.BigEndian.Uint16(packet[offGroup:])), true
}

// authenticator computes the tags of one key. It allocates nothing after its construction.
type authenticator struct {
	fingerprint Fingerprint

	hash hash.Hash
	sum  [sha256.Size]byte // where hash leaves its result
}

// newAuthenticator derives the key for packets of the group. The group key itself is used
// for nothing else, so that further ones can be derived from it, as the fingerprint is.
func newAuthenticator(group string, key []byte) (*authenticator, error) {
	if len(key) != KeySize {
		return nil, fmt.Errorf("the group key is %d bytes long, it must be %d (topdog init makes one)", len(key), KeySize)
	}
	derived, err := hkdf.Key(sha256.New, key, nil, keyLabel+group, KeySize)
	if err != nil {
		return nil, fmt.Errorf("derive the packet key of group %q: %w", group, err)
	}
	a := &authenticator{fingerprint: FingerprintOf(key), hash: hmac.New(sha256.New, derived)}
	// The first Reset after a Sum remembers the state of the keyed hash, which
	// allocates. Do it now and not for the first packet.
	a.hash.Sum(a.sum[:0])
	a.hash.Reset()
	return a, nil
}

// tag returns the tag of the packet. It is valid until the next call.
func (a *authenticator) tag(packet []byte) []byte {
	a.hash.Reset()
	a.hash.Write(packet) // never fails, see hash.Hash
	return a.hash.Sum(a.sum[:0])[:tagSize]
}

// verify reports whether the tag belongs to the packet, in a time that does not
// tell how much of it was right.
func (a *authenticator) verify(packet, tag []byte) bool {
	return hmac.Equal(a.tag(packet), tag)
}

// Fingerprint names a group key to people and to other boards, and does not reveal it.
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

// Mark returns the bit of the fingerprint that every packet carries. The two keys that a board
// accepts differ in it.
func (f Fingerprint) Mark() uint8 { return uint8(f >> 31) }

// Keys are the fingerprints of the keys that a board accepts. The zero Keys are unknown: the
// board has no key, or its program cannot change keys.
type Keys struct {
	Signs Fingerprint // of the key that makes the tags of what the board sends
	Also  Fingerprint // of the other key that it accepts, or 0
}

// Accept reports whether the board accepts packets that a key has signed.
func (k Keys) Accept(f Fingerprint) bool { return f != 0 && (f == k.Signs || f == k.Also) }
