package wire

import "time"

// limit is a token bucket that counts in time instead of tokens (the generic
// cell rate algorithm, ITU-T I.371): spent is the moment at which it is full again.
type limit struct {
	every time.Duration // one token comes in this time
	burst int           // so many fit
	spent time.Duration
}

// allow uses a token, and reports whether there was one.
func (l *limit) allow(now time.Duration) bool {
	full := max(l.spent, now)
	if full-now > time.Duration(l.burst-1)*l.every {
		return false
	}
	l.spent = full + l.every
	return true
}
