package lease

import (
	"testing"
	"time"

	"topdog/election/clock"
	"topdog/wire"
)

// TestPromise: a promise goes to one board, its end never moves back, and only a later word of
// the board that has it releases it.
func TestPromise(t *testing.T) {
	var p Promise
	say := func(sender wire.ID, incarnation wire.Incarnation, sequence wire.Sequence) *wire.Header {
		return &wire.Header{Sender: sender, Incarnation: incarnation, Sequence: sequence}
	}
	p.Make(say(3, 30, 7), 0, 100)
	p.Make(say(3, 30, 9), 0, 90)
	p.Make(say(3, 30, 8), 0, 95)
	if p.Until != 100 || p.sequence != 9 {
		t.Errorf("%+v", p)
	}
	for _, test := range []struct {
		now         clock.Instant
		id          wire.ID
		incarnation wire.Incarnation
		want        bool
	}{
		{99, 3, 30, true}, {99, 3, 31, false}, {99, 1, 30, false}, {100, 1, 30, true}, {100, 3, 31, true},
	} {
		if got := p.Allows(test.now, test.id, test.incarnation); got != test.want {
			t.Errorf("%+v: %t", test, got)
		}
	}
	for _, h := range []*wire.Header{say(3, 30, 9), say(3, 30, 8), say(3, 31, 10), say(1, 30, 10)} {
		if p.Release(50, h) || p.Free(99) {
			t.Errorf("released by %+v", h)
		}
	}
	if !p.Release(50, say(3, 30, 10)) || !p.Free(50) {
		t.Errorf("not released: %+v", p)
	}
	p.Make(say(1, 10, 2), 4, 60)
	if want := (Promise{To: 1, Incarnation: 10, Until: 60, sequence: 2, Number: 4}); p != want {
		t.Errorf("%+v, want %+v", p, want)
	}
}

// TestLeaseIsShorterThanPromise: by 2 % at least, whatever the interval and the grace.
func TestLeaseIsShorterThanPromise(t *testing.T) {
	for _, interval := range []time.Duration{10 * time.Millisecond, 100 * time.Millisecond, time.Second, 10 * time.Second} {
		for _, grace := range []time.Duration{0, time.Millisecond, interval / 50, interval / 10, interval, 5 * interval} {
			lease, promise := Leased(interval, grace), Promised(interval, grace)
			if slow, fast := float64(lease)/0.99, float64(promise)/1.01; slow > fast {
				t.Errorf("%v, %v: a lease of up to %v, a promise of %v at least", interval, grace, time.Duration(slow), time.Duration(fast))
			}
			if grace >= interval/10 && lease != interval+grace*3/4 {
				t.Errorf("%v, %v: a lease of %v", interval, grace, lease)
			}
		}
	}
}
