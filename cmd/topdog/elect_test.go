package main

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"topdog/internal/console"
	"topdog/internal/lab/assert"
	"topdog/internal/lab/judge"
)

func TestThreeBoardsElect(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 3, nil)
		c.start(c.boards...)
		leader := c.agree()
		c.twoHoldersAtMost(c.began, 0)
		assert.Is(t, 0, c.Holders.Since(c.began).Moves(), "how often the address moved before the boards agreed")
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
			assert.Equal(t, []string{"10.77.0.100/24"}, s.Addresses, "the addresses that %s tells", b)
		}
	})
}

func TestStatus(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 2, nil)
		b := c.board(1)
		b.topdog("status").want(t, 3, "no daemon", "does not run")
		b.topdog("status", "--nonsense").want(t, exitUsage, "unknown flag")
		b.topdog("status", "nonsense").want(t, exitUsage, "superfluous argument")

		c.start(c.boards...)
		leader := c.agree()
		b.topdog("status").want(t, 0, "held", leader.String(), vip.String())
		o := b.topdog("status", "--json")
		o.want(t, 0, "held, in JSON")
		var s console.Status
		if err := json.Unmarshal([]byte(o.stdout), &s); err != nil {
			t.Errorf("--json printed no JSON: %v\n%s", err, o.stdout)
		} else if s.LeaderName != leader.String() || len(s.Boards) != 2 {
			t.Errorf("--json says leader %q, %d boards", s.LeaderName, len(s.Boards))
		}

		must(t, b.Pull())
		b.untilProblem("eth0", "no carrier", "check the cable")
		b.topdog("status").want(t, 1, "isolated")
		must(t, b.Plug())
		c.agree()

		b.signal(9)
		b.gone()
		b.topdog("status").want(t, 3, "killed daemon", "does not run any more")
	})
}
