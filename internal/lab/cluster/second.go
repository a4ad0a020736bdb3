package cluster

import (
	"slices"
	"time"

	"topdog/internal/console"
)

// SecondPath are the settings of a board with a second path, on a LAN that has one (netns.LAN.AddSecondPath).
var SecondPath = Settings{"interface": `["eth0", "wlan0"]`}

// HearsBySecondPath reports whether a board with a second path has heard all of so many boards by it.
func HearsBySecondPath(s console.Status, boards int) bool {
	return s.SecondPath != nil && s.SecondPath.State == console.SecondPathWorks && len(s.Boards) == boards &&
		!slices.ContainsFunc(s.Boards, func(b console.Board) bool { return !b.Self && b.HeardBySecondPathMs == nil })
}

// HearsLeaderBySecondPath reports whether a board has heard its leader by the second path of late, or leads.
func HearsLeaderBySecondPath(s console.Status, ofLate time.Duration) bool {
	return s.Holding || slices.ContainsFunc(s.Boards, func(b console.Board) bool {
		return b.Name == s.LeaderName && b.HeardBySecondPathMs != nil && *b.HeardBySecondPathMs <= float64(ofLate)/float64(time.Millisecond)
	})
}
