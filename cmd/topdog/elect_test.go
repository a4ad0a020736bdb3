package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"topdog/internal/console"
	"topdog/internal/lab/judge"
)

func TestThreeBoardsElect(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 3, nil)
		c.start(c.boards...)
		leader := c.agree()
		c.twoHoldersAtMost(c.began, 0)
		if moves := c.Holders.Since(c.began).Moves(); moves != 0 {
			t.Errorf("the address moved %d times before the boards agreed", moves)
		}
		for _, b := range c.boards {
			// The names come with the HELLOs, one a second.
			s := b.untilStatus("all boards by rank", func(s console.Status) string {
				var names []string
				for _, other := range s.Boards {
					names = append(names, other.Name)
				}
				return cmp.Diff([]string{"pi3", "pi2", "pi1"}, names)
			})
			// The highest rank of those that do not lead.
			heir := slices.MaxFunc(c.except(leader), func(a, b *board) int { return a.Number - b.Number })
			if s.HeirName != heir.String() {
				t.Errorf("%s takes %s for the heir, not %s", b, s.HeirName, heir)
			}
			if len(s.Problems) > 0 {
				t.Errorf("%s has problems: %q", b, s.Problems)
			}
			if d := cmp.Diff([]string{"10.77.0.100/24"}, s.Addresses); d != "" {
				t.Errorf("%s: %s", b, d)
			}
		}
	})
}

func TestStatus(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 2, nil)
		b := c.board(1)
		check := func(when string, want int, args ...string) outcome {
			t.Helper()
			o := b.topdog(append([]string{"status"}, args...)...)
			if o.status != want {
				t.Errorf("%s: exit status %d, want %d\n%v", when, o.status, want, o)
			}
			return o
		}
		if o := check("no daemon", 3); !strings.Contains(o.stderr, "does not run") {
			t.Errorf("no daemon: it is not said that it does not run: %v", o)
		}
		check("unknown flag", 2, "--nonsense")
		check("superfluous argument", 2, "nonsense")

		c.start(c.boards...)
		leader := c.agree()
		if o := check("held", 0); !strings.Contains(o.stdout, leader.String()) || !strings.Contains(o.stdout, vip.String()) {
			t.Errorf("held: leader or address are not shown:\n%s", o.stdout)
		}
		o := check("held", 0, "--json")
		var s console.Status
		if err := json.Unmarshal([]byte(o.stdout), &s); err != nil {
			t.Errorf("--json printed no JSON: %v\n%s", err, o.stdout)
		} else if s.LeaderName != leader.String() || len(s.Boards) != 2 {
			t.Errorf("--json says leader %q, %d boards", s.LeaderName, len(s.Boards))
		}

		must(t, b.Pull())
		b.untilProblem("eth0", "no carrier", "check the cable")
		check("isolated", 1)
		must(t, b.Plug())
		c.agree()

		b.signal(9)
		b.gone()
		if o := check("killed daemon", 3); !strings.Contains(o.stderr, "does not run any more") {
			t.Errorf("killed daemon: %v", o)
		}
	})
}
