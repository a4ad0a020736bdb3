package explore

import (
	"flag"
	"strings"
	"testing"
	"time"
)

var (
	moreFaults = flag.Int("explore.faults", 0, "explore up to so many faults in each run, instead of the number that fits into a minute")
	everywhere = flag.Bool("explore.everywhere", false, "let what has stopped go on at any later step, instead of where it may make a difference")
)

const (
	// driftMost is how wrong a clock goes, in millionths: 1 %. Above that a board does not take part in strict.
	driftMost = 10_000
	// aMoment is for how long two boards may answer in the default mode when more than one thing
	// has gone wrong: until a packet of the one has reached the other.
	aMoment = time.Millisecond
)

// threeBoards have agreed on a leader, board 3. Two heartbeats are due while things go wrong,
// and a successor has time to send some.
func threeBoards() scope {
	const settled = 1500 * time.Millisecond
	return scope{
		size: 3, interval: 100 * time.Millisecond, latency: 150 * time.Microsecond,
		from: settled, until: settled + 200*time.Millisecond, end: settled + 450*time.Millisecond,
		most: 1, judgeLease: true,
	}
}

// What goes wrong on a board that its neighbours or itself notice.
const (
	processes = pauseDaemon | pauseSwitch | killDaemon
	boards    = processes | powerOff | unplug | ask
	datagrams = late | duplicate | hold
)

// aroundOneHeartbeat lets things go wrong while one heartbeat is due and, if it does not come, until
// the first question.
func aroundOneHeartbeat(s *scope) { s.until = s.from + 66*time.Millisecond }

// TestExhaustive explores all runs with so many faults of these kinds.
func TestExhaustive(t *testing.T) {
	for _, test := range []struct {
		name  string
		kinds fault
		most  int
		set   func(s *scope)
	}{
		{"one fault", boards | datagrams | cut, 1, nil},
		{"one fault, leader's clock slow", boards | datagrams | cut, 1, func(s *scope) { s.drift = []int{driftMost, driftMost, -driftMost} }},
		{"one fault, leader's clock fast", boards | datagrams | cut, 1, func(s *scope) { s.drift = []int{-driftMost, -driftMost, driftMost} }},
		{"two boards, one fault", boards | datagrams, 1, func(s *scope) { s.size = 2 }},
		{"two faults of processes", processes, 2, func(s *scope) { aroundOneHeartbeat(s); s.tolerance = aMoment }},
		{"two boards, two faults", boards | datagrams, 2, func(s *scope) { aroundOneHeartbeat(s); s.size, s.tolerance = 2, aMoment }},
		{"frozen board", freezeBoard | suspendBoard, 1, func(s *scope) { s.tolerance = aMoment }},
		{"lease, one fault of any kind", everyFault, 1, func(s *scope) { s.tolerance = s.end }},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := threeBoards()
			s.kinds, s.most, s.everywhere = test.kinds, test.most, *everywhere
			if test.set != nil {
				test.set(&s)
			}
			if *moreFaults > 0 {
				s.most = *moreFaults
			}
			start := time.Now()
			r := explore(s)
			t.Logf("%v, in %v", &r, time.Since(start).Round(time.Millisecond))
			if r.violation != "" {
				t.Errorf("%s:\n%s", r.violation, strings.Join(r.story, "\n"))
			}
		})
	}
}
