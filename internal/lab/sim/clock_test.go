package sim

import (
	"math/rand/v2"
	"testing"
	"time"

	"topdog/wire"
)

func TestClock(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for range 20_000 {
		c := Clock{Origin: time.Duration(rng.Int64N(int64(1e18))), PPM: rng.IntN(2*MaxDrift+1) - MaxDrift}
		at := time.Duration(rng.Int64N(int64(48 * time.Hour)))
		shows := c.Local(at)
		if next := c.Local(at + 1); next < shows {
			t.Fatalf("%+v goes backwards at %v", c, at)
		}
		// A deadline at what the clock shows now is due now, or was just before.
		due := c.Global(shows)
		if due > at || c.Local(due) < shows || due > 0 && c.Local(due-1) >= shows {
			t.Fatalf("%+v shows %v at %v, and for the first time at %v", c, shows, at, due)
		}
	}
	if got, want := (Clock{PPM: 100}).Local(time.Hour), time.Hour+360*time.Millisecond; got != want {
		t.Errorf("a clock that is 100 ppm fast shows %v after an hour, want %v", got, want)
	}
}

// TestOwn holds that a datagram under way does not change when its sender uses its
// lists again.
func TestOwn(t *testing.T) {
	var sent wire.Message
	sent.Report.Standings = []wire.Standing{{ID: 1, Priority: 1}}
	sent.OK.Trust = []wire.ID{1}
	sent.Coordinator.Candidates = []wire.ID{1}
	under := own(&sent)
	sent.Report.Standings[0].ID, sent.OK.Trust[0], sent.Coordinator.Candidates[0] = 2, 2, 2
	if under.Report.Standings[0].ID != 1 || under.OK.Trust[0] != 1 || under.Coordinator.Candidates[0] != 1 {
		t.Errorf("what is under way has changed: %+v %+v %+v", under.Report, under.OK, under.Coordinator)
	}
}
