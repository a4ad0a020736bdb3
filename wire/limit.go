package wire

import "time"

// Rate is how much of something is allowed: a token comes every so often, and so many fit
// into the bucket.
type Rate struct {
	Every time.Duration
	Burst int
}

// Limit is a token bucket that counts in time instead of tokens (the generic
// cell rate algorithm, ITU-T I.371): spent is the moment at which it is full again.
type Limit struct{ spent time.Duration }

// Allow uses a token, and reports whether there was one.
func (l *Limit) Allow(now time.Duration, r Rate) bool {
	if !l.has(now, r, 1) {
		return false
	}
	l.spent = max(l.spent, now) + r.Every
	return true
}

// has reports whether there are so many tokens.
func (l *Limit) has(now time.Duration, r Rate, tokens int) bool {
	return l.spent-now <= time.Duration(r.Burst-tokens)*r.Every
}

// giveBack puts a token back.
func (l *Limit) giveBack(r Rate) { l.spent -= r.Every }
