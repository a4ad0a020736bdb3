package main

import (
	"fmt"
	"testing"

	"topdog/internal/console"
	"topdog/internal/lab/judge"
)

// TestBoardsDisagree: one board was given another address. Every board names it, and nobody says that it holds what it does not.
// TestOtherSettings of internal/daemon has the variations, in virtual time.
func TestBoardsDisagree(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 3, nil)
		c.board(3).set(settings{"address": quote("10.77.0.101")})
		c.start(c.boards...)
		for _, b := range c.boards {
			who := "pi3 (10.77.0.3)"
			if b.Number == 3 {
				who = "this board"
			}
			b.untilProblem(who + ` has address = "10.77.0.101" where the others have "10.77.0.100"`)
			b.untilStatus("who holds the address", func(s console.Status) string {
				switch mine := s.LeaderName == b.String(); {
				case s.Leader == "":
					return "there is no leader"
				case mine != s.Holding, s.LeaderName == "pi3" && b.Number != 3 && s.HeldBy != "", s.LeaderName != "pi3" && b.Number == 3 && s.HeldBy != "":
					return fmt.Sprintf("%s leads, holding: %v, held by %q", s.LeaderName, s.Holding, s.HeldBy)
				}
				return ""
			})
		}
	})
}
