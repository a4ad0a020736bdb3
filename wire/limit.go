package wire

import "time"

// rate is how much of something is allowed: a token comes every so often, and so many fit
// into the bucket.
type rate struct {
	every time.Duration
	burst int
}

// limit is a token bucket that counts in time instead of tokens (the generic
// cell rate algorithm, ITU-T I.371): spent is the moment at which it is full again.
type limit struct{ spent time.Duration }

// allow uses a token, and reports whether there was one.
func (l *limit) allow(now time.Duration, r rate) bool {
	if !l.has(now, r, 1) {
		return false
	}
	l.spent = max(l.spent, now) + r.every
	return true
}

// has reports whether there are so many tokens.
func (l *limit) has(now time.Duration, r rate, tokens int) bool {
	return l.spent-now <= time.Duration(r.burst-tokens)*r.every
}

// giveBack puts a token back.
func (l *limit) giveBack(r rate) { l.spent -= r.every }
