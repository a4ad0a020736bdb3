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
	group    string // "" until the only group of a board has told its name; for whoever holds the runner's mutex
	happened chan console.Transition
	states   *newest
	now      state
	told     map[script]state // the one that each script was told last
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

// of returns the instance that an event is about, which is new if there is none yet, and says in the event which group that is.
// The name by which a group is followed is "" where it is the only one. Such an event may say it, and then the instance is the
// same as when there were others: what it is told comes in one order.
func (r *runner) of(followed string, t *console.Transition) (i *instance, isNew bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i = r.only
	if name := cmp.Or(followed, t.Group); name != "" {
		at := slices.IndexFunc(r.instances, func(i *instance) bool { return i.group == name })
		switch {
		case at >= 0:
			i = r.instances[at]
		case followed == "" && i != nil && i.group == "":
			i.group = name
		default:
			i = nil
		}
	}
	if isNew = i == nil; isNew {
		i = &instance{group: cmp.Or(followed, t.Group), happened: make(chan console.Transition), states: newNewest(), told: map[script]state{}}
		i.states.wake = r.wake
		r.instances = append(slices.Clip(r.instances), i) // who has read the list goes on with it
	}
	if followed == "" {
		r.only = i
	}
	t.Group = i.group
	return i, isNew
}

// logOf returns the log for what concerns a group. It names the group where there is another.
func (r *runner) logOf(group string) *logrus.Entry {
	if !r.several.Load() {
		return r.Log
	}
	return r.Log.WithField("group", group)
}

// follow follows every group of the daemon until ctx ends.
func (r *runner) follow(ctx context.Context, c *console.Client) {
	var classifying sync.WaitGroup
	grouped := func(names []string) { r.several.Store(len(names) > 1) }
	_ = c.FollowGroups(ctx, console.WatchOptions{}, r.Groups, grouped, func(followed string, t console.Transition) error {
		i, isNew := r.of(followed, &t)
		if isNew {
			classifying.Go(func() { classify(ctx, i.happened, i.states.put) })
		}
		return heard(ctx, r.logOf(t.Group), i.happened, t)
	}) // it ends with ctx
	classifying.Wait()
}
