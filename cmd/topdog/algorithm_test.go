package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"topdog/election"
	"topdog/election/literature"
	"topdog/internal/console"
	"topdog/internal/lab/judge"
)

// promises says, of the algorithms in which the best board always takes the lead,
// which of three boards with equal priorities is the best. It is the papers' word.
var promises = map[string]int{"bully": 3, "score": 3, "modified": 3, "candidates": 3, "minid": 1}

// TestAlgorithms elects with each algorithm, pulls the leader's cable and puts it
// back. By unicast it does so with the two that have the most to say to single
// boards; the simulator and the fake LAN do it with all.
func TestAlgorithms(t *testing.T) {
	for _, name := range literature.Algorithms() {
		for _, fanout := range election.Fanouts() {
			if fanout == election.FanoutUnicast.String() && name != "candidates" && name != "agents" {
				continue
			}
			t.Run(name+"/"+fanout, judge.Of(func(t *judge.T) {
				c := newCluster(t, 3, settings{"algorithm": quote(name), "fanout": quote(fanout)})
				electPullReturn(c, promises[name])
			}))
		}
	}
}

// electPullReturn plays the three scenes that every algorithm must pass. best is
// the number of the board that always leads when it is there; 0 if there is none.
func electPullReturn(c *testCluster, best int) {
	c.t.Helper()
	c.start(c.boards...)
	var first *board
	if best > 0 {
		first = c.board(best)
		c.agreeOn(first, c.boards...)
	} else {
		first = c.agree()
	}

	// Of those that are left, whom the algorithm prefers is the same everywhere.
	pulled := time.Now()
	must(c.t, first.Pull())
	c.untilTakenFrom(first)
	rest := c.except(first)
	if best > 0 {
		slices.SortFunc(rest, func(a, b *board) int { return abs(a.Number-best) - abs(b.Number-best) })
		c.agreeOn(rest[0], rest...)
	}
	second := c.agree(rest...)
	// Whoever notices first holds an election, and takes a board for dead that
	// does not answer in time. On a busy machine this can be a living one; the
	// papers assume that it never is.
	c.twoHoldersAtMost(pulled, atOnce())

	plugged := time.Now()
	must(c.t, first.Plug())
	if best > 0 {
		c.agreeOn(first, c.boards...)
	} else {
		c.agreeOn(second, c.boards...)
		c.undisturbed(plugged, second)
	}
	c.twoHoldersAtMost(plugged, atOnce())
	for _, b := range c.boards {
		b.untilNoProblems()
	}
}

func abs(n int) int { return max(n, -n) }

// TestStatusOfAlgorithms: the status shows what is in use, in both forms. The board whose real command prints the greatest number
// leads; what becomes of a command that fails is tested in internal/daemon and internal/check.
func TestStatusOfAlgorithms(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 2, settings{
			"algorithm": quote("score"), "score_from": quote("command"), "fanout": quote("unicast"), "detector": quote("nfd-e"),
		})
		for n, b := range c.boards {
			b.set(settings{"score_command": fmt.Sprintf(`["/bin/echo", "%d"]`, 99-n)})
		}
		c.start(c.boards...)
		c.agreeOn(c.board(1), c.boards...)
		b := c.board(2)
		b.untilStatus("the scores", func(s console.Status) string {
			scores := map[string]uint32{}
			for _, b := range s.Boards {
				if b.Score != nil {
					scores[b.Name] = *b.Score
				}
			}
			return cmp.Diff(map[string]uint32{"pi1": 99, "pi2": 98}, scores)
		})
		for _, want := range []string{"algorithm score (detector nfd-e, fanout unicast, score from command)", "SCORE", " 99 ", " 98 "} {
			if o := b.topdog("status"); !strings.Contains(unwrapped(o.stdout), want) {
				t.Errorf("the text does not show %q:\n%s", want, o.stdout)
			}
		}
		var s console.Status
		if o := b.topdog("status", "--json"); json.Unmarshal([]byte(o.stdout), &s) != nil {
			t.Errorf("--json printed no JSON: %v", o)
		}
		if s.Algorithm != "score" || s.Fanout != "unicast" || s.Detector.Kind != "nfd-e" {
			t.Errorf("the JSON shows algorithm %q, fanout %q, detector %q", s.Algorithm, s.Fanout, s.Detector.Kind)
		}
	})
}
