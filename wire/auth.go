package wire

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
)

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

// GroupTag is the group's name as every packet carries it, in whatever version: the bytes before GroupTagEnd.
type GroupTag uint16

// GroupTagEnd is the offset of what follows the tag.
const GroupTagEnd = offGroup + 2

// IncarnationEnd is the offset of what follows the incarnation, with the grade in its high bits, in this version.
const IncarnationEnd = offIncarnation + 4

// TagOf shortens the group's name to 16 bits.
// It keeps groups that share a LAN apart by accident; the key does so on purpose.
func TagOf(group string) GroupTag {
	sum := sha256.Sum256([]byte(groupLabel + group))
	return GroupTag(binary.BigEndian.Uint16(sum[:]))
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
