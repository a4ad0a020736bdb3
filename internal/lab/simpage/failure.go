package simpage

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"topdog/internal/lab/scenario"
	"topdog/wire"
)

// Boards run for this long before something fails: they have agreed by then, and have measured the network.
const failsAt = 30 * time.Second

// flag is one of `topdog sim run`.
type flag struct{ name, value string }

// failure is something that may fail.
type failure struct {
	Name        string `json:"name"`
	Text        string `json:"text"`
	Notice      bool   `json:"notice"` // one board may be chosen that notices alone
	LeastBoards int    `json:"least_boards"`

	faults func(g *group) []flag
	hits   func(g *group) []int // who fails, if one board notices alone
}

// All algorithms need less than three seconds for a leader, if they get one. With much loss
// the elections of score, of two seconds each, are repeated.
const (
	usuallyWatched = 3 * time.Second
	lossyWatched   = 8 * time.Second
)

// partitioned is for how long the LAN is in two parts: long enough for a leader in each with all algorithms.
const partitioned = 4 * time.Second

// paused is for how long the leader stands still: longer than most algorithms wait, and shorter than score does.
const paused = time.Second

var failures = []failure{
	{
		Name: "crash_leader", Text: "The leader crashes", Notice: true, LeastBoards: 2,
		faults: func(g *group) []flag { return []flag{g.at(scenario.Crash, g.leader)} },
		hits:   func(g *group) []int { return []int{g.leader} },
	},
	{
		Name: "crash_leader_and_next", Text: "The leader and the next one crash together", Notice: true, LeastBoards: 3,
		faults: func(g *group) []flag { return []flag{g.at(scenario.Crash, g.first(2)...)} },
		hits:   func(g *group) []int { return g.first(2) },
	},
	{
		Name: "crash_half", Text: "Half of the boards crash, the leader among them", Notice: true, LeastBoards: 3,
		faults: func(g *group) []flag { return []flag{g.at(scenario.Crash, g.half()...)} },
		hits:   (*group).half,
	},
	{
		Name: "pull_leader", Text: "The leader's cable is pulled", Notice: true, LeastBoards: 2,
		faults: func(g *group) []flag { return []flag{g.at(scenario.Pull, g.leader)} },
		hits:   func(g *group) []int { return []int{g.leader} },
	},
	{
		Name: "pause_leader", Text: "The leader stands still for a second", Notice: false, LeastBoards: 2,
		faults: func(g *group) []flag {
			return []flag{{scenario.Pause.String(), fmt.Sprintf("%d@%v+%v", g.leader, failsAt, paused)}}
		},
	},
	{
		Name: "resign_leader", Text: "The leader resigns", Notice: false, LeastBoards: 2,
		faults: func(g *group) []flag { return []flag{g.at(scenario.Resign, g.leader)} },
	},
	{
		Name: "restart_highest", Text: "The board of the highest rank comes back", Notice: false, LeastBoards: 2,
		// It is gone for long enough that the others have had another leader, and measured the way to it.
		faults: func(g *group) []flag {
			highest := g.ranks()[0]
			return []flag{
				{scenario.Crash.String(), fmt.Sprintf("%d@%v", highest, failsAt/3)},
				g.at(scenario.Restart, highest),
				{"trace-from", failsAt.String()}, // not with the crash
			}
		},
	},
	{
		Name: "partition", Text: "The LAN falls into two parts, and heals", Notice: false, LeastBoards: 3,
		faults: func(g *group) []flag {
			r := g.fromLeader()
			n := len(r) - len(r)/2
			return []flag{
				{scenario.Partition.String(), ids(r[n:]) + "/" + g.at(scenario.Partition, r[:n]...).value},
				{scenario.Heal.String(), (failsAt + partitioned).String()},
			}
		},
	},
	{
		Name: "one_way", Text: "The next board does not hear the leader any more", Notice: false, LeastBoards: 3,
		faults: func(g *group) []flag {
			return []flag{{scenario.OneWay.String(), fmt.Sprintf("%d/%d@%v", g.leader, g.first(2)[1], failsAt)}}
		},
	},
}

func failureNames() (names []string) {
	for _, f := range failures {
		names = append(names, f.Name)
	}
	return names
}

// failureNamed returns a failure whose name has been looked up.
func failureNamed(name string) *failure {
	return &failures[slices.IndexFunc(failures, func(f failure) bool { return f.Name == name })]
}

// group is the boards 1 to boards before something fails.
type group struct {
	algorithm string
	boards    int
	leader    int // who leads, or 0
}

// ranks are all boards, the first in rank first.
func (g *group) ranks() []int {
	var all []int
	for id := 1; id <= g.boards; id++ {
		all = append(all, id)
	}
	if g.algorithm != wire.AlgorithmMinID.String() {
		slices.Reverse(all)
	}
	return all
}

// fromLeader are the leader, and then the others as they come after it.
func (g *group) fromLeader() []int {
	others := slices.DeleteFunc(g.ranks(), func(id int) bool { return id == g.leader })
	return append([]int{g.leader}, others...)
}

// first are the leader and those that come next, n in all.
func (g *group) first(n int) []int { return g.fromLeader()[:n] }

// half is the larger half of the boards, from the leader on.
func (g *group) half() []int { return g.first((g.boards + 1) / 2) }

// at is a fault of boards when things fail.
func (g *group) at(kind scenario.FaultKind, boards ...int) flag {
	return flag{kind.String(), fmt.Sprintf("%s@%v", ids(boards), failsAt)}
}

// ids writes boards in the order of their ids.
func ids(boards []int) string {
	var words []string
	for _, id := range slices.Sorted(slices.Values(boards)) {
		words = append(words, strconv.Itoa(id))
	}
	return strings.Join(words, ",")
}
