package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"topdog/internal/console"
	"topdog/internal/lab/judge"
)

// TestAlgorithm elects with another algorithm, fanout and detector than the default ones, pulls the leader's cable and puts it
// back. The board whose real command prints the greatest number always leads when it is there, and the status shows what is in use,
// in both forms. TestAlgorithms of internal/daemon does so with all of them.
func TestAlgorithm(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 3, settings{
			"algorithm": quote("score"), "score_from": quote("command"), "fanout": quote("unicast"), "detector": quote("nfd-e"),
		})
		for n, b := range c.boards {
			b.set(settings{"score_command": fmt.Sprintf(`["/bin/echo", "%d"]`, 99-n)})
		}
		c.start(c.boards...)
		best, second := c.board(1), c.board(2)
		c.agreeOn(best, c.boards...)
		second.untilStatus("the scores", func(s console.Status) string {
			scores := map[string]uint32{}
			for _, b := range s.Boards {
				if b.Score != nil {
					scores[b.Name] = *b.Score
				}
			}
			return cmp.Diff(map[string]uint32{"pi1": 99, "pi2": 98, "pi3": 97}, scores)
		})
		text := unwrapped(second.topdog("status").stdout)
		for _, want := range []string{"algorithm score (detector nfd-e, fanout unicast, score from command)", "SCORE", " 99 ", " 98 "} {
			if !strings.Contains(text, want) {
				t.Errorf("the text does not show %q:\n%s", want, text)
			}
		}
		var s console.Status
		if o := second.topdog("status", "--json"); json.Unmarshal([]byte(o.stdout), &s) != nil {
			t.Errorf("--json printed no JSON: %v", o)
		}
		if s.Algorithm != "score" || s.Fanout != "unicast" || s.Detector.Kind != "nfd-e" {
			t.Errorf("the JSON shows algorithm %q, fanout %q, detector %q", s.Algorithm, s.Fanout, s.Detector.Kind)
		}

		pulled := time.Now()
		must(t, best.Pull())
		c.untilTakenFrom(best)
		c.agreeOn(second, c.except(best)...)
		must(t, best.Plug())
		c.agreeOn(best, c.boards...)
		// Whoever notices first holds an election, and takes a board for dead that does not answer in time. On a busy machine
		// this can be a living one; the papers assume that it never is.
		c.twoHoldersAtMost(pulled, atOnce())
		for _, b := range c.boards {
			b.untilNoProblems()
		}
	})
}
