package main

import (
	"encoding/json"
	"slices"
	"strings"
	"syscall"
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

// TestNoSpare: a leader says so when no other board could take over, and another board too: the address is served, and is gone with it.
func TestNoSpare(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 2, nil)
		leads, spare := c.board(1), c.board(2)
		alone := func(b *board, why string) {
			b.untilProblem("no fit board could take over from", why)
			if o := b.topdog("status"); o.status != 5 || !strings.Contains(o.stdout, ", no fit board could take over; leader for") {
				t.Errorf("%s: %v", why, o)
			}
		}
		c.start(leads)
		c.agree(leads)
		alone(leads, "no other board has been heard")
		c.start(spare)
		c.agreeOn(leads, c.boards...)
		for _, b := range c.boards {
			b.untilStatusIs("there is a spare", func(s console.Status) bool { return s.Spares != nil && *s.Spares == 1 })
			b.topdog("status").want(t, 0, "with a spare")
		}
		spare.topdog("drain").want(t, 0, "drain")
		for _, b := range c.boards {
			alone(b, "pi2 is drained")
		}
		spare.topdog("undrain").want(t, 0, "undrain")
		for _, b := range c.boards {
			b.untilNoSpareIsOver()
		}
		must(t, spare.Pull())
		alone(leads, "pi2 is not heard any more")
		must(t, spare.Plug())
		c.agreeOn(leads, c.boards...)
		leads.untilNoSpareIsOver()
		spare.signal(syscall.SIGTERM)
		spare.ended()
		alone(leads, "pi2 has left")
	})
}

// untilNoSpareIsOver waits until another board could take over.
func (b *board) untilNoSpareIsOver() {
	b.c.t.Helper()
	b.untilStatusIs("another board could take over", func(s console.Status) bool {
		return !slices.ContainsFunc(s.Problems, func(p console.Problem) bool { return p.Kind == console.ProblemNoSpare })
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
