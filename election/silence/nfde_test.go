package silence

import (
	"math/rand/v2"
	"testing"
	"time"

	"topdog/election/clock"
	"topdog/internal/lab/assert"
	"topdog/wire"
)

const ms = time.Millisecond

// newNFDE returns a detector that has heard heartbeat 0 at 0, which is the one
// that it does not learn from.
func newNFDE() *nfdeDetector {
	d := newDetector(DetectorNFDE, testInterval).(*nfdeDetector)
	d.Follow(-20*ms, testInterval)
	d.Heard(0, heartbeat(0))
	return d
}

// TestNFDEEstimate follows the estimate by hand. The α of all of them is 125 ms.
func TestNFDEEstimate(t *testing.T) {
	d := newNFDE()
	for _, step := range []struct {
		name    string
		arrival clock.Instant
		number  uint8
		// shifted is A − start − η·s of this arrival, for the reader.
		shifted  time.Duration
		expected clock.Instant
	}{
		{"the first that counts", 104 * ms, 1, 0, 204 * ms},
		{"early by 2", 202 * ms, 2, -2 * ms, 303 * ms},
		{"late by 6", 309 * ms, 3, 5 * ms, 405 * ms},
		{"one lost before", 504 * ms, 5, 0, 604*ms + 750*time.Microsecond},
		{"no news", 540 * ms, 5, 0, 604*ms + 750*time.Microsecond},
		{"late by a suspicion less 1 ms", 728*ms + 750*time.Microsecond, 6, 124*ms + 750*time.Microsecond, 729*ms + 550*time.Microsecond},
	} {
		d.Heard(step.arrival, heartbeat(step.number))
		assert.Is(t, step.expected, d.expected, "%s: the next one is expected", step.name)
		suspects(t, d, step.name, step.expected+125*ms)
	}
}

// TestNFDEFormula compares the detector with the formula as the paper has it, over true
// numbers and all arrivals, through loss, jitter and the wraps of the numbers.
func TestNFDEFormula(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	d := newNFDE()
	type arrival struct {
		at     clock.Instant
		number int64
	}
	var heard []arrival
	for number := int64(1); number < 2000; number++ {
		if rng.Float64() < 0.2 {
			continue
		}
		at := clock.Instant(number)*testInterval + time.Duration(rng.Int64N(int64(20*ms)))
		d.Heard(at, heartbeat(uint8(number)))
		heard = append(heard, arrival{at, number})
		heard = heard[max(0, len(heard)-rhythmSize):]
		var sum time.Duration
		for _, a := range heard {
			sum += a.at - time.Duration(a.number)*testInterval
		}
		want := sum/time.Duration(len(heard)) + time.Duration(number+1)*testInterval
		if diff := d.expected - want; diff < -1 || diff > 1 { // two divisions round
			t.Fatalf("after %d, the next one is expected at %v, want %v", number, d.expected, want)
		}
	}
}

// TestNFDEDrift: a leader whose timers are always late by 0.2 ms. The mean of 32
// lags behind by 15.5 times that, and by no more however long it takes.
func TestNFDEDrift(t *testing.T) {
	d := newNFDE()
	const pace = testInterval + 200*time.Microsecond
	var now clock.Instant
	for i := range 100_000 {
		now += pace
		d.Heard(now, heartbeat(uint8(i+1)))
	}
	suspects(t, d, "with a slow clock", now+225*ms-3100*time.Microsecond)
}

// TestNFDEJumps: a leader that has lost its rhythm is not held to the old one.
func TestNFDEJumps(t *testing.T) {
	for _, test := range []struct {
		name  string
		off   time.Duration // of the heartbeat after 100 punctual ones, and of all others from then on
		first time.Duration // when the leader becomes suspect after the first of them
		then  time.Duration // and after the second
	}{
		{"jitter", 20 * ms, 225*ms - 20*ms*31/32, 225*ms - 20*ms*30/32},
		{"early jitter", -20 * ms, 225*ms + 20*ms*31/32, 225*ms + 20*ms*30/32},
		{"late, but in time", 120 * ms, 225*ms - 120*ms*31/32, 225*ms - 120*ms*30/32},
		{"frozen for long", 3 * time.Second, 225 * ms, 225 * ms},
		{"answered the suspicion of another board", -60 * ms, 225 * ms, 225 * ms},
		{"at once after the one before", -100 * ms, 225 * ms, 225 * ms},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := newNFDE()
			for i := range 100 {
				d.Heard(clock.Instant(i+1)*testInterval, heartbeat(uint8(i+1)))
			}
			now := 101*testInterval + test.off
			d.Heard(now, heartbeat(101))
			suspects(t, d, "after the first", now+test.first)
			d.Heard(now+testInterval, heartbeat(102))
			suspects(t, d, "after the second", now+testInterval+test.then)
			for i := range 2 * rhythmSize {
				now += testInterval
				d.Heard(now+testInterval, heartbeat(uint8(103+i)))
			}
			suspects(t, d, "much later", now+testInterval+225*ms)
		})
	}
}

// TestNFDELateOnce: unlike a time-out, the estimate hardly moves with one
// heartbeat, whether it is too late to matter or not.
func TestNFDELateOnce(t *testing.T) {
	for _, late := range []time.Duration{60 * ms, 99 * ms} {
		d := newNFDE()
		for i := range 100 {
			d.Heard(clock.Instant(i+1)*testInterval, heartbeat(uint8(i+1)))
		}
		d.Heard(101*testInterval+late, heartbeat(101))
		suspects(t, d, "after a late one", 101*testInterval+225*ms+late/32)
		d.Evidence(101*testInterval + late) // of the same one
		suspects(t, d, "after others heard it too", 101*testInterval+225*ms+late/32)
		d.Heard(102*testInterval, heartbeat(102))
		suspects(t, d, "after the next", 102*testInterval+225*ms+late/32)
	}
}

// TestNFDEAnswerFirst: the first word of a leader may be an answer in the middle
// of its interval. It is no part of the rhythm.
func TestNFDEAnswerFirst(t *testing.T) {
	d := newNFDE()
	d.Follow(time.Second, testInterval)
	d.Heard(time.Second+80*ms, heartbeat(41))
	suspects(t, d, "after the answer", time.Second+80*ms+225*ms)
	for i := range uint8(3) {
		now := time.Second + 90*ms + clock.Instant(i)*testInterval
		d.Heard(now, heartbeat(42+i))
		suspects(t, d, "after a heartbeat", now+225*ms)
	}
}

// TestNFDEFollowSimilar: a leader whose heartbeats happen to come nearly when those of
// the one before would have come still has a rhythm of its own.
func TestNFDEFollowSimilar(t *testing.T) {
	d := newNFDE()
	for i := range 100 {
		d.Heard(clock.Instant(i+1)*testInterval, heartbeat(uint8(i+1)))
	}
	now := 100*testInterval + 15*ms
	d.Follow(now, testInterval)
	for i := range uint8(3) {
		d.Heard(now, heartbeat(200+i))
		suspects(t, d, "after a heartbeat of another leader", now+225*ms)
		now += testInterval
	}
}

// TestNFDEInterval: arrivals at another pace say nothing of the next one, even if
// they are few and the pace is similar.
func TestNFDEInterval(t *testing.T) {
	d := newNFDE()
	d.Heard(100*ms, heartbeat(1))
	d.Heard(200*ms, wire.Heartbeat{Interval: 80 * ms, Number: 2})
	suspects(t, d, "at another pace", 200*ms+180*ms)
}

// TestNFDENumbersLost: a board that only knows from others that the leader lives
// cannot tell how often the numbers have wrapped meanwhile.
func TestNFDENumbersLost(t *testing.T) {
	d := newNFDE()
	now := clock.Instant(0)
	for i := range 600 {
		now += testInterval
		if i < 50 {
			d.Heard(now, heartbeat(uint8(i+1)))
		} else {
			d.Evidence(now)
		}
	}
	for i := range 3 {
		now += testInterval
		d.Heard(now, heartbeat(uint8(601+i)))
		suspects(t, d, "heard again", now+225*ms)
	}
}
