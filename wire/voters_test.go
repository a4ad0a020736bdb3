package wire

import (
	"slices"
	"testing"

	"topdog/internal/lab/assert"
)

// TestVotersHash: the order of the list does not matter, and its argument stays as it is. The
// value was computed by another implementation of SHA-256 (Python's hashlib).
func TestVotersHash(t *testing.T) {
	voters := []ID{0x0a000005, 0x0a000003, 0x0a000004}
	assert.Is(t, 0x33182271, VotersHash(voters), "the hash")
	if !slices.Equal(voters, []ID{0x0a000005, 0x0a000003, 0x0a000004}) {
		t.Errorf("the list is now %v", voters)
	}
	if VotersHash(voters[:2]) == VotersHash(voters) {
		t.Error("two lists have one hash")
	}
}
