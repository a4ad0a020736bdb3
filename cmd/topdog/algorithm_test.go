package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
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

// TestStatusOfAlgorithms: the status shows what is in use, in both forms.
func TestStatusOfAlgorithms(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 2, settings{"algorithm": quote("bully"), "fanout": quote("unicast"), "detector": quote("nfd-e")})
		c.start(c.boards...)
		c.agreeOn(c.board(2), c.boards...)
		b := c.board(1)
		if o := b.topdog("status"); !strings.Contains(unwrapped(o.stdout), "algorithm bully (detector nfd-e, fanout unicast)") {
			t.Errorf("the text does not show what is in use:\n%s", o.stdout)
		}
		var s console.Status
		if o := b.topdog("status", "--json"); json.Unmarshal([]byte(o.stdout), &s) != nil {
			t.Errorf("--json printed no JSON: %v", o)
		}
		if s.Algorithm != "bully" || s.Fanout != "unicast" || s.Detector.Kind != "nfd-e" {
			t.Errorf("the JSON shows algorithm %q, fanout %q, detector %q", s.Algorithm, s.Fanout, s.Detector.Kind)
		}
	})
}

// print is what the board's score command prints from now on.
func (b *board) print(text string) {
	path := filepath.Join(b.Dir, "score")
	must(b.c.t, os.WriteFile(path+".new", []byte(text), 0o644))
	must(b.c.t, os.Rename(path+".new", path))
}

// TestScoreCommand: the real daemon runs a real command, and the board whose
// command prints the greatest number leads. When it fails, that is said once,
// and another board leads.
func TestScoreCommand(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		if _, ok := literature.AlgorithmNamed("score"); !ok {
			t.Skip("there is no algorithm score")
		}
		c := newCluster(t, 2, settings{"algorithm": quote("score"), "score_from": quote("command")})
		for _, b := range c.boards {
			b.set(settings{"score_command": fmt.Sprintf(`["/bin/sh", "-c", "cat %s/score"]`, b.Dir)})
			b.print(fmt.Sprint(100 - b.Number))
		}
		c.start(c.boards...)
		first, second := c.board(1), c.board(2)
		c.agreeOn(first, c.boards...)
		second.untilStatus("the scores", func(s console.Status) string {
			scores := map[string]uint32{}
			for _, b := range s.Boards {
				if b.Score != nil {
					scores[b.Name] = *b.Score
				}
			}
			return cmp.Diff(map[string]uint32{"pi1": 99, "pi2": 98}, scores)
		})
		if o := second.topdog("status"); !containsAll(unwrapped(o.stdout), []string{"SCORE", "score from command", " 99 ", " 98 "}) {
			t.Errorf("the text does not show the scores:\n%s", o.stdout)
		}

		first.print("none")
		first.untilProblem("score command", `printed "none"`)
		c.agreeOn(second, c.boards...)

		// A new command is applied on reload.
		first.set(settings{"score_command": `["/bin/echo", "4294967295"]`})
		first.signal(syscall.SIGHUP)
		c.agreeOn(first, c.boards...)
		first.untilNoProblems()
		first.untilLogged("works again")
		if logged := first.Log.Count("<4>", "score command"); logged != 1 {
			t.Errorf("that the command fails was logged %d times", logged)
		}
		c.twoHoldersAtMost(c.began, atOnce())
	})
}
