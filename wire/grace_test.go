package wire

import (
	"testing"
	"time"

	"topdog/internal/lab/assert"
)

// TestGrace walks through all codes: each is read as what it was written for, they grow, and
// no step is larger than a sixteenth. What lies between two codes is rounded up.
func TestGrace(t *testing.T) {
	for code := 1; code < 256; code++ {
		grace := graceOf(byte(code))
		if got, err := graceCode(TypeHeartbeat, grace); err != nil || got != byte(code) {
			t.Errorf("grace %v has the code %d (%v), want %d", grace, got, err, code)
		}
		if code == 255 {
			break
		}
		next := graceOf(byte(code + 1))
		if next <= grace || next > grace+grace/graceMantissas {
			t.Errorf("code %d is %v, and code %d is %v", code, grace, code+1, next)
		}
		if got, err := graceCode(TypeHeartbeat, grace+1); err != nil || got != byte(code+1) {
			t.Errorf("grace %v has the code %d (%v), want %d", grace+1, got, err, code+1)
		}
	}
	for _, test := range []struct {
		code byte
		want time.Duration
	}{{0, 0}, {0x01, 1062500}, {0x20, 4 * time.Millisecond}, {0x34, 10 * time.Millisecond}, {0xff, MaxGrace}} {
		assert.Is(t, test.want, graceOf(test.code), "code %#x", test.code)
	}
}
