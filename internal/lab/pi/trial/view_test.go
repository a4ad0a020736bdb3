package trial

import (
	"strings"
	"testing"
	"time"

	"topdog/internal/console"
	"topdog/internal/lab/assert"
	"topdog/internal/lab/pi"
)

var (
	dark     = pi.Watch{Dark: 4500 * time.Millisecond}
	follower = pi.Watch{Lit: 100 * time.Millisecond, Dark: 4400 * time.Millisecond, Pulses: 2}
	pulse    = pi.Watch{Lit: 4 * time.Second, Dark: 500 * time.Millisecond, Pulses: 4}
	steady   = pi.Watch{Lit: 4500 * time.Millisecond}
)

func lights(watches ...pi.Watch) map[int]pi.Watch {
	all := make(map[int]pi.Watch)
	for i, w := range watches {
		if w != (pi.Watch{}) { // off
			all[i+1] = w
		}
	}
	return all
}

func seen(holders []int, lights map[int]pi.Watch, natives int) view {
	return view{pi.View{Holders: holders, Lights: lights}, natives}
}

func TestLeads(t *testing.T) {
	for name, tc := range map[string]struct {
		v       view
		without []int
		want    bool
	}{
		"well":                           {seen([]int{2}, lights(follower, pulse, follower), 0), nil, true},
		"a board is off":                 {seen([]int{2}, lights(follower, pulse, pi.Watch{}), 0), nil, true},
		"nobody answers":                 {seen(nil, lights(follower, pulse, follower), 0), nil, false},
		"two answer":                     {seen([]int{1, 2}, lights(follower, pulse, follower), 0), nil, false},
		"another answers":                {seen([]int{1}, lights(follower, pulse, follower), 0), nil, false},
		"no light":                       {seen([]int{2}, lights(follower, dark, follower), 0), nil, false},
		"a light that does not move":     {seen([]int{2}, lights(follower, steady, follower), 0), nil, false},
		"two pulse":                      {seen([]int{2}, lights(pulse, pulse, follower), 0), nil, false},
		"two pulse, one is out of sight": {seen([]int{2}, lights(pulse, pulse, follower), 0), []int{1}, true},
		"a follower is dark":             {seen([]int{2}, lights(dark, pulse, follower), 0), nil, false},
		"the dark one does not matter":   {seen([]int{2}, lights(dark, pulse, follower), 0), []int{1}, true},
		"the leader always matters":      {seen([]int{2}, lights(follower, dark, follower), 0), []int{2}, false},
		"the leader is native":           {seen([]int{2}, lights(pi.Watch{}, pi.Watch{}, follower), 2), nil, true},
		"pulses, and a native answers":   {seen([]int{2}, lights(pi.Watch{}, pi.Watch{}, pulse), 2), nil, false},
		"the leader is off":              {seen([]int{2}, lights(follower, pi.Watch{}, follower), 0), nil, false},
	} {
		assert.Is(t, tc.want, tc.v.leads(2, tc.without...), "%s: pi2 leads, in %s", name, tc.v)
	}
}

func TestCheckStatus(t *testing.T) {
	leader := &pi.Board{N: 2}
	well := func() console.Status {
		return console.Status{
			Board: console.Board{ID: "10.99.0.1"}, Role: console.RoleFollower,
			Leader: "10.99.0.2", LeaderName: "pi2", Boards: make([]console.Board, boards),
		}
	}
	assert.ErrorIs(t, checkStatus(well(), leader), nil, "")
	for name, change := range map[string]func(*console.Status){
		"another leader":      func(s *console.Status) { s.Leader = "10.99.0.3" },
		"no leader":           func(s *console.Status) { s.Leader = "" },
		"leads as well":       func(s *console.Status) { s.Role = console.RoleLeader },
		"holds the address":   func(s *console.Status) { s.Holding = true },
		"leads, not holding":  func(s *console.Status) { s.Board.ID, s.Role = s.Leader, console.RoleLeader },
		"knows too few":       func(s *console.Status) { s.Boards = s.Boards[:2] },
		"something is amiss":  func(s *console.Status) { s.Problems = []console.Problem{{Text: "the LED"}} },
		"leads and is unsure": func(s *console.Status) { s.Board.ID, s.Holding = s.Leader, true },
	} {
		s := well()
		change(&s)
		if checkStatus(s, leader) == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// Every line of the scene is one that the trial knows, however many boards are emulated.
func TestScene(t *testing.T) {
	steps := map[int]int{}
	for emulated := 1; emulated <= MaxEmulated; emulated++ {
		all, err := lines(emulated)
		assert.NoError(t, err)
		for _, l := range all {
			if strings.ContainsAny(l.text, "{}") && !strings.Contains(l.text, "status=0 }") {
				t.Errorf("nothing stands in for a name: %s", l.text)
			}
			if l.verb == "step" && (len(l.words) == 0 || emulated >= several) {
				steps[emulated]++
			}
		}
	}
	assert.Equal(t, map[int]int{1: 7, 2: 15, 3: 15}, steps, "steps by number of emulated boards")
	for _, wrong := range []string{"pi3 explode", "within x: pi3 leads", `pi3 sh "`} {
		if _, err := parse(wrong); err == nil {
			t.Errorf("%q is a line", wrong)
		}
	}
}
