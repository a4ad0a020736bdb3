package wire

import (
	"fmt"
	"time"
)

// A grace travels in one byte, so that a HEARTBEAT stays short. The byte is a small
// floating-point number: its high 4 bits are the exponent e, its low 4 bits the mantissa m,
// and the grace is (16 + m) · 2^e sixteenths of a millisecond. So 10 ms is exact, and no two
// neighbours are further apart than 1/16. The code 0 would be 1 ms, and says that the grace is
// the default of the interval.
const (
	graceMantissaBits = 4
	graceMantissas    = 1 << graceMantissaBits
	graceUnit         = time.Millisecond / graceMantissas
	// MaxGrace is the longest grace that fits, 63.488 s.
	MaxGrace = (2*graceMantissas - 1) << 15 * graceUnit
)

// graceOf reads a grace.
func graceOf(code byte) time.Duration {
	if code == 0 {
		return 0
	}
	return (graceMantissas + time.Duration(code)%graceMantissas) << (code >> graceMantissaBits) * graceUnit
}

// RoundGrace rounds a grace up to one that has a code; MaxGrace is the longest.
func RoundGrace(grace time.Duration) time.Duration {
	code, err := graceCode(TypeHeartbeat, grace)
	if err != nil {
		return MaxGrace
	}
	return graceOf(code)
}

// graceCode rounds a grace up to one that has a code: a board that waits a little longer for
// its leader than the leader asked for does no harm.
func graceCode(kind Type, grace time.Duration) (byte, error) {
	switch {
	case grace < 0 || grace > MaxGrace:
		return 0, &fieldError{kind, "Grace", fmt.Sprintf("is %v, it must not be negative and at most %v", grace, MaxGrace)}
	case grace == 0:
		return 0, nil
	}
	low, high := 1, 1<<8-1
	for low < high {
		if middle := (low + high) / 2; graceOf(byte(middle)) >= grace {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return byte(low), nil
}

// graceSummary describes a grace, if it is not the default.
func graceSummary(grace time.Duration) string {
	if grace == 0 {
		return ""
	}
	return fmt.Sprintf(", grace %v", grace)
}
