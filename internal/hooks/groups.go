package hooks

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/sirupsen/logrus"

	"topdog/internal/console"
)

// instance is this board in one group, as keepalived calls it, and what the scripts know of that.
type instance struct {
	group    string // "" if the board has no other
	log      *logrus.Entry
	happened chan console.Transition
	states   *newest
	now      state
	told     map[script]state // the one that each script was told last
}

// put stores a state. No daemon has told which group it is about if none has answered yet.
func (i *instance) put(s state) {
	s.Group = cmp.Or(s.Group, i.group)
	i.states.put(s)
}

// due reports whether a script must be told the present state.
func (i *instance) due(s script) bool {
	before := i.told[s]
	if s.eachLeader {
		return i.now.Leader != "" && i.now.Leader != before.Leader
	}
	return i.now.word != before.word
}

// known returns all instances. One whose group the daemon has no more stays, and its scripts are told that it stops.
func (r *runner) known() []*instance {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.instances
}

// of returns the instance of a group, which is new if there is none yet.
func (r *runner) of(group string) (i *instance, isNew bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at := slices.IndexFunc(r.instances, func(i *instance) bool { return i.group == group }); at >= 0 {
		return r.instances[at], false
	}
	i = &instance{group: group, log: r.Log, happened: make(chan console.Transition), states: newNewest(), told: map[script]state{}}
	i.states.wake = r.wake
	if group != "" {
		i.log = r.Log.WithField("group", group)
	}
	r.instances = append(slices.Clip(r.instances), i) // who has read the list goes on with it
	return i, true
}

// follow follows every group of the daemon until ctx ends.
func (r *runner) follow(ctx context.Context, c *console.Client) {
	var classifying sync.WaitGroup
	_ = c.FollowGroups(ctx, console.WatchOptions{}, r.Groups, func([]string) {}, func(group string, t console.Transition) error {
		i, isNew := r.of(group)
		if isNew {
			classifying.Go(func() { classify(ctx, i.happened, i.put) })
		}
		return heard(ctx, i.log, i.happened, t)
	}) // it ends with ctx
	classifying.Wait()
}
