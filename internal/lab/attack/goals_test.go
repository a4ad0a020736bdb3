package attack

import (
	"testing"
	"time"

	"topdog/internal/lab/assert"
)

const ms = time.Millisecond

// A result that misses a goal is an error; one of another system, or without a promise, is none.
func TestJudge(t *testing.T) {
	list := []attack{
		{Key: "flood", Defended: true, goals: []goal{steady}}, {Key: "spoof"}, {Key: "dark", goals: []goal{bright}}, {Key: "slow", goals: []goal{soon}},
		{Key: "user", goals: []goal{served}}, {Key: "failure", goals: []goal{within(mostReplaced)}},
	}
	took := make([]time.Duration, 20)
	took[19] = time.Second
	for name, c := range map[string]struct {
		result Result
		want   string
	}{
		"nothing happened":   {Result{System: "topdog", Attack: "flood", Longest: 20 * ms, Outage: time.Second}, ""},
		"moved":              {Result{System: "topdog", Attack: "flood", Moves: 2}, "flood moved the address 2 times"},
		"disturbed":          {Result{System: "topdog", Attack: "flood", Moves: 1, Late: time.Second}, "stood still for up to 1000 ms, in the last of 3 attempts"},
		"client waited":      {Result{System: "topdog", Attack: "flood", Longest: 21 * ms}, "flood kept the client waiting for 21 ms"},
		"dark":               {Result{System: "topdog", Attack: "dark", For: 6 * time.Second, Outage: 61 * ms}, "dark kept the client from the address for 61 ms of 6000 ms"},
		"bright":             {Result{System: "topdog", Attack: "dark", For: 6 * time.Second, Outage: 60 * ms, Longest: 60 * ms}, ""},
		"never":              {Result{System: "topdog", Attack: "slow", Took: []time.Duration{coldFor}, Never: true}, "slow took longer than it was watched, 20000 ms"},
		"soon":               {Result{System: "topdog", Attack: "slow", Took: []time.Duration{time.Second}}, ""},
		"replaced":           {Result{System: "topdog", Attack: "failure", Took: took}, ""},
		"replaced late":      {Result{System: "topdog", Attack: "failure", Took: took[18:]}, "failure took 1000 ms, and not 250 ms at most"},
		"not replaced":       {Result{System: "topdog", Attack: "failure", Took: took[18:], Never: true}, "failure took longer than it was watched"},
		"root waited":        {Result{System: "topdog", Attack: "user", StatusMost: 101 * ms}, "user had root's `topdog status` take 101 ms"},
		"root waited long":   {Result{System: "topdog", Attack: "user", StatusMost: 10 * ms, StatusFailed: 3}, "user kept root's `topdog status` from an answer 3 times"},
		"root did not wait":  {Result{System: "topdog", Attack: "user", StatusMost: 100 * ms}, ""},
		"two holders":        {Result{System: "topdog", Attack: "flood", Two: ms}, "two boards had it for 1.0 ms"},
		"failed":             {Result{System: "topdog", Attack: "spoof", Note: "no such thing"}, "spoof: no such thing"},
		"no promise":         {Result{System: "topdog", Attack: "spoof", Moves: 2, Longest: time.Second, StatusFailed: 1}, ""},
		"not by this topdog": {Result{System: "before", Attack: "flood", Moves: 2}, ""},
		"not by another":     {Result{System: "keepalived", Attack: "dark", Outage: time.Second}, ""},
	} {
		err := (&report{Attacks: list, Results: []Result{c.result}}).judge()
		assert.ErrorContains(t, err, c.want, "%s", name)
	}
}

// Whoever attacks another build alone wants to know which goals it misses.
func TestJudgeAnotherBuild(t *testing.T) {
	r := &report{Systems: []system{{Name: "before"}}, Attacks: []attack{{Key: "flood", Defended: true}}, Results: []Result{{System: "before", Attack: "flood", Moves: 2}}}
	assert.ErrorContains(t, r.judge(), "flood moved the address 2 times", "")
	r.Systems = append(r.Systems, system{Name: "topdog"})
	assert.ErrorIs(t, r.judge(), nil, "")
}

// An attack is made again if something happens while the machine stands still, and only then.
func TestAgain(t *testing.T) {
	flood := attack{Key: "flood", Defended: true, goals: []goal{steady}}
	for name, c := range map[string]struct {
		attack attack
		result Result
		want   bool
	}{
		"moved":                  {flood, Result{Moves: 1}, false},
		"moved while late":       {flood, Result{Moves: 1, Late: 11 * ms}, true},
		"moved, without promise": {attack{}, Result{Moves: 1, Late: 11 * ms}, true},
		"waited":                 {flood, Result{Longest: 21 * ms, Late: 10 * ms}, false},
		"waited while late":      {flood, Result{Longest: 21 * ms, Late: 11 * ms}, true},
		"nothing while late":     {flood, Result{Longest: 20 * ms, Late: 40 * ms}, false},
		"often late":             {attack{goals: []goal{bright}}, Result{For: time.Second, Outage: 11 * ms, Late: 3 * ms, LateInAll: 11 * ms}, true},
		"seldom late":            {attack{goals: []goal{bright}}, Result{For: time.Second, Outage: 11 * ms, Late: 3 * ms, LateInAll: 9 * ms}, false},
		"could not be made":      {flood, Result{Note: "no such thing", Moves: 1, Late: time.Second}, false},
	} {
		assert.Is(t, c.want, c.attack.again(c.result), "%s: again", name)
	}
}
