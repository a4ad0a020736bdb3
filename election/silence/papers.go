package silence

import (
	"time"

	"topdog/election/clock"
	"topdog/wire"
)

// fixedDetector is the time-out that the papers of the bully family assume
// without much ado: a leader that was silent for a fixed time is suspect, and a
// suspect that does not answer one question within another fixed time T is
// dead. It learns nothing that changes when it suspects, so it shows
// what learning is worth.
type fixedDetector struct{ observed }

// fixedIntervals without a heartbeat make a leader suspect. Three are what VRRP
// waits (RFC 5798, section 6.1: Master_Down_Interval).
const fixedIntervals = 3

// suspectAfter is how long a leader may be silent. Just three intervals after a
// heartbeat, the third of its successors is due; VRRP's Skew_Time lets it arrive,
// and lets those of higher priority go first. The latter is the succession's
// business here, and the grace is enough for the former.
//
// So two lost heartbeats in a row are harmless. A loss p makes about p³
// suspicions per interval: at 1 % and 100 ms, one in 28 hours. The price is
// detection, 2 to 3 intervals after the crash, and one more for the question.
func (d *fixedDetector) suspectAfter() time.Duration {
	return fixedIntervals*d.interval + d.Grace()
}

func (d *fixedDetector) Heard(now clock.Instant, heartbeat wire.Heartbeat) {
	d.count(now, heartbeat, now >= d.Freshness())
}

func (d *fixedDetector) Freshness() clock.Instant { return d.last + d.suspectAfter() }

func (d *fixedDetector) Quality() Quality {
	return d.quality(d.suspectAfter()-d.interval, d.Questions())
}

// nfdeDetector is NFD-E, the failure detector with estimated arrival times for
// clocks that are not synchronised, of Chen, Toueg and Aguilera, "On the quality of
// service of failure detectors" (IEEE Transactions on Computers 51, 2002). Phase
// 1 of Li, Zhao and Wang uses it.
//
// A time-out counts from the last heartbeat, so one that came late makes it
// suspect late, and one that came early makes it suspect early. NFD-E counts
// from when the next heartbeat is expected, which it takes from the last n of
// them: heartbeat i is sent at i·η on the leader's clock, so what remains of the
// arrivals A_i after i·η is taken away is the same for all of them but for their
// delays, and its mean says when number l+1 will come:
//
//	EA(l+1) = 1/n · Σ (A_i − η·s_i) + (l+1)·η
//
// The freshness point τ(l+1) = EA(l+1) + α is when the leader becomes suspect,
// unless number l+1 or a later one has come.
type nfdeDetector struct {
	observed
	rhythm rhythm
	// expected is EA(l+1), or an interval after whatever is newer than heartbeat l.
	expected clock.Instant
}

// jitter is how far from the rhythm a heartbeat may be without anything being
// made of it. A quarter of the interval is many times what a LAN and a loaded
// board do to most packets, and a small part of α.
func (d *nfdeDetector) jitter() time.Duration { return d.interval / 4 }

// alpha is α, how much later than expected heartbeat l+1 may come. It trades the
// time to detect a crash, at most η + α and a delay, for mistakes. With α below η,
// every single lost heartbeat is a suspicion: p/η, at a loss p of 1 % and
// intervals of 100 ms one in 10 s. With α = η + jitter, number l+2 comes in
// time to save the leader, and two must be lost in a row: p²/η, one in 1000 s,
// for a detection 1¼ to 2¼ intervals after the crash. Another interval would be
// as slow as the time-out of the detector "fixed" and has nothing to win by an estimate.
func (d *nfdeDetector) alpha() time.Duration { return d.interval + d.jitter() }

func (d *nfdeDetector) Follow(now clock.Instant, interval time.Duration) {
	d.observed.Follow(now, interval)
	d.rhythm = rhythm{}
	d.expected = now + interval
}

func (d *nfdeDetector) Heard(now clock.Instant, heartbeat wire.Heartbeat) {
	interval := d.interval
	ahead, _, news := d.count(now, heartbeat, now >= d.Freshness())
	if d.interval != interval {
		d.rhythm = rhythm{} // the old arrivals are multiples of another η
	}
	switch {
	case !news:
	case ahead == 0:
		// The first one that is heard of a leader, too, may be an answer, which comes
		// at any time between two heartbeats.
		d.expected = now + d.interval
	default:
		d.learn(now, int64(ahead))
	}
}

// learn enters the arrival of a heartbeat that is so many numbers ahead of the
// newest one.
func (d *nfdeDetector) learn(now clock.Instant, ahead int64) {
	if d.rhythm.n > 0 {
		// Ours: the leader of the paper keeps its rhythm for ever. A board loses it
		// when it is frozen for a while, and topdog's leader begins its interval anew
		// whenever it answers a suspicion. The mean follows such a jump only after n
		// heartbeats; until then it would suspect a leader that is well, or a dead
		// one late. So a heartbeat that missed its freshness point begins a new rhythm
		// (to the paper it is too old to restore the trust, here it does), and so does
		// one that is earlier than those before it can have been late.
		off := now - d.rhythm.expect(ahead, d.interval)
		if off > d.alpha() || off < -d.jitter() {
			d.rhythm = rhythm{}
		}
	}
	d.rhythm.enter(now, ahead, d.interval)
	d.expected = d.rhythm.expect(1, d.interval)
}

// Evidence and Forgive give the leader an interval from then on, which is all that
// can be said without a number.

func (d *nfdeDetector) Evidence(at clock.Instant) {
	if at > d.last {
		d.observed.Evidence(at)
		d.expected = max(d.expected, at+d.interval)
	}
}

func (d *nfdeDetector) Forgive(now clock.Instant) {
	d.observed.Forgive(now)
	d.expected = max(d.expected, now+d.interval)
}

// Freshness is τ(l+1), and never so early that the question could be over before the grace is. The
// paper has no such bound; it matters only for a grace that was learned.
func (d *nfdeDetector) Freshness() clock.Instant { return max(d.expected+d.alpha(), d.last+d.Grace()) }

func (d *nfdeDetector) Quality() Quality {
	return d.quality(max(d.alpha(), d.Grace()-d.interval), d.Questions())
}

// rhythmSize is n, how many arrivals the mean is taken of. 32 heartbeats make it
// steadier than one of them by a factor of more than five, and are short enough
// to follow clocks that drift apart: timers that are always 1 ms late move the
// heartbeats by 32 ms in that time, of which the mean lags behind by half.
const rhythmSize = 32

// rhythm is what remains of the last arrivals when the multiples of the interval
// are taken away. The zero rhythm is empty.
type rhythm struct {
	start  clock.Instant // the first arrival; all others count from it
	number int64         // of the newest heartbeat, counted from 0 without a limit: s_l

	shifted [rhythmSize]time.Duration // A_i − start − η·s_i
	n, next int
	sum     time.Duration
}

// enter adds an arrival. Numbers are unwrapped here: the wire has them modulo 256.
func (r *rhythm) enter(now clock.Instant, ahead int64, interval time.Duration) {
	if r.n == 0 {
		r.start, ahead = now, 0
	}
	r.number += ahead
	shifted := now - r.start - time.Duration(r.number)*interval
	r.sum += shifted - r.shifted[r.next]
	r.shifted[r.next] = shifted
	r.next = (r.next + 1) % rhythmSize
	r.n = min(r.n+1, rhythmSize)
}

// expect returns when the heartbeat should come that is so many numbers ahead of
// the newest one. The rhythm must not be empty.
func (r *rhythm) expect(ahead int64, interval time.Duration) clock.Instant {
	return r.start + r.sum/time.Duration(r.n) + time.Duration(r.number+ahead)*interval
}
