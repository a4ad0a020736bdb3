package simpage

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"topdog/wire"
)

// Boards run for this long before something fails: they have agreed by then, and have measured the network.
const failsAt = 30 * time.Second

// failure is something that may fail, as flags of `topdog sim run`. In these stand
//
//	{hit}     the boards that fail
//	{next}    the board that comes after the leader
//	{highest} the board of the highest rank
//	{half}    the larger half of the boards, from the leader on, and {others} the rest
//	{at}      when it fails, and {for} for how long
type failure struct {
	Name        string `json:"name"`
	Text        string `json:"text"`
	Notice      bool   `json:"notice"` // one board may be chosen that notices alone
	LeastBoards int    `json:"least_boards"`

	hit   string        // leader, two (it and the next one) or half
	flags string        // of the command
	lasts time.Duration // and then it is over
	since string        // what has happened last, if that is not the failure
}

// A partition is long enough for a leader in each part with all algorithms. A leader stands still for longer than most algorithms
// wait, and for less than score does. A board that comes back was gone for long enough that the others have had another leader, and
// have measured the way to it; the crash is not counted.
var failures = []failure{
	{Name: "crash_leader", Text: "The leader crashes",
		Notice: true, LeastBoards: 2, hit: "leader", flags: "--kill {hit}@{at}"},
	{Name: "crash_leader_and_next", Text: "The leader and the next one crash together",
		Notice: true, LeastBoards: 3, hit: "two", flags: "--kill {hit}@{at}"},
	{Name: "crash_half", Text: "Half of the boards crash, the leader among them",
		Notice: true, LeastBoards: 3, hit: "half", flags: "--kill {hit}@{at}"},
	{Name: "pull_leader", Text: "The leader's cable is pulled",
		Notice: true, LeastBoards: 2, hit: "leader", flags: "--pull {hit}@{at}"},
	{Name: "pause_leader", Text: "The leader stands still for a second",
		LeastBoards: 2, hit: "leader", flags: "--freeze {hit}@{at}+{for}", lasts: time.Second, since: "the old leader has gone on"},
	{Name: "resign_leader", Text: "The leader resigns",
		LeastBoards: 2, hit: "leader", flags: "--resign {hit}@{at}"},
	{Name: "restart_highest", Text: "The board of the highest rank comes back",
		LeastBoards: 2, flags: "--kill {highest}@10s --start {highest}@{at} --trace-from {at}", since: "the board has come back"},
	{Name: "partition", Text: "The LAN falls into two parts, and heals",
		LeastBoards: 3, flags: "--split {others}/{half}@{at}+{for}", lasts: 4 * time.Second, since: "the LAN has healed"},
	{Name: "one_way", Text: "The next board does not hear the leader any more",
		LeastBoards: 3, hit: "leader", flags: "--one-way {hit}/{next}@{at}"},
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

// in are the flags of a failure in a group.
func (f *failure) in(g *group) string {
	half, highest := (g.boards+1)/2, g.ranks()[:1]
	ranked := g.fromLeader()
	return strings.NewReplacer("{hit}", ids(f.hits(g)), "{next}", ids(ranked[1:2]), "{highest}", ids(highest), "{half}", ids(ranked[:half]),
		"{others}", ids(ranked[half:]), "{at}", failsAt.String(), "{for}", f.lasts.String()).Replace(f.flags)
}

// hits are the boards that fail.
func (f *failure) hits(g *group) []int {
	n := map[string]int{"leader": 1, "two": 2, "half": (g.boards + 1) / 2}[f.hit]
	return g.fromLeader()[:n]
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

// ids writes boards in the order of their ids.
func ids(boards []int) string {
	var words []string
	for _, id := range slices.Sorted(slices.Values(boards)) {
		words = append(words, strconv.Itoa(id))
	}
	return strings.Join(words, ",")
}
