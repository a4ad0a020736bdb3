package pi

import (
	"context"
	"testing"
	"time"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/netns"
)

var (
	dark     = Watch{Dark: 4500 * time.Millisecond}
	follower = Watch{Lit: 100 * time.Millisecond, Dark: 4400 * time.Millisecond, Pulses: 2}
	pulse    = Watch{Lit: 4 * time.Second, Dark: 500 * time.Millisecond, Pulses: 4}
	steady   = Watch{Lit: 4500 * time.Millisecond}
)

func lights(watches ...Watch) map[int]Watch {
	all := make(map[int]Watch)
	for i, w := range watches {
		if w != (Watch{}) { // off
			all[i+1] = w
		}
	}
	return all
}

func TestLeads(t *testing.T) {
	all := []int{1, 2, 3}
	for name, tc := range map[string]struct {
		v       View
		without []int
		want    bool
	}{
		"well":                           {View{[]int{2}, all, lights(follower, pulse, follower)}, nil, true},
		"a board is off":                 {View{[]int{2}, all, lights(follower, pulse, Watch{})}, nil, true},
		"nobody answers":                 {View{nil, all, lights(follower, pulse, follower)}, nil, false},
		"two answer":                     {View{[]int{1, 2}, all, lights(follower, pulse, follower)}, nil, false},
		"another answers":                {View{[]int{1}, all, lights(follower, pulse, follower)}, nil, false},
		"no light":                       {View{[]int{2}, all, lights(follower, dark, follower)}, nil, false},
		"a light that does not move":     {View{[]int{2}, all, lights(follower, steady, follower)}, nil, false},
		"two pulse":                      {View{[]int{2}, all, lights(pulse, pulse, follower)}, nil, false},
		"two pulse, one is out of sight": {View{[]int{2}, all, lights(pulse, pulse, follower)}, []int{1}, true},
		"a follower is dark":             {View{[]int{2}, all, lights(dark, pulse, follower)}, nil, false},
		"the dark one does not matter":   {View{[]int{2}, all, lights(dark, pulse, follower)}, []int{1}, true},
		"the leader always matters":      {View{[]int{2}, all, lights(follower, dark, follower)}, []int{2}, false},
		"the leader is native":           {View{[]int{2}, []int{3}, lights(Watch{}, Watch{}, follower)}, nil, true},
		"pulses, and a native answers":   {View{[]int{2}, []int{3}, lights(Watch{}, Watch{}, pulse)}, nil, false},
		"the leader is off":              {View{[]int{2}, all, lights(follower, Watch{}, follower)}, nil, false},
	} {
		for _, n := range tc.without { // as Look does
			delete(tc.v.Lights, n)
		}
		assert.Is(t, tc.want, tc.v.Leads(2), "%s: pi2 leads, in %s", name, tc.v)
	}
}

// This machine answers at its own address on the segment, and nobody at the boards' floating one.
func TestPing(t *testing.T) {
	netns.Reserve(t)
	machine, err := FindMachine("raspi3b")
	assert.NoError(t, err)
	l, err := Temporary(t.TempDir(), machine, 1, 0, "")
	assert.NoError(t, err)
	defer l.Close()
	answered, err := l.Ping(address(hostNumber).Addr())
	assert.NoError(t, err)
	defer answered.Close()
	silent, err := l.Ping(Floating)
	assert.NoError(t, err)
	defer silent.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for range 3 {
		_, err := answered.WaitAnswer(ctx, func(int) bool { return true })
		assert.NoError(t, err)
	}
	assert.Is(t, 0, silent.Report(time.Time{}).First.Board, "who has answered at %v", Floating)
}
