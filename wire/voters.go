package wire

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
)

// VotersHash is the hash of a list of voters that SUPPORT, VOTE and GRANT carry: the first 32
// bits of SHA-256 over the ids in ascending order. Boards with different lists do not count
// each other's votes, since two majorities of two lists need not have a board in common.
func VotersHash(voters []ID) uint32 {
	sorted := slices.Sorted(slices.Values(voters))
	ids := make([]byte, 0, len(sorted)*idSize)
	for _, id := range sorted {
		ids = binary.BigEndian.AppendUint32(ids, uint32(id))
	}
	sum := sha256.Sum256(ids)
	return binary.BigEndian.Uint32(sum[:])
}
