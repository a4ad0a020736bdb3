package hooks

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

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

// groupsAgain is how long to wait before the daemon is asked again which groups it has, while one cannot be followed.
const groupsAgain = time.Second

// follow follows every group of the daemon until ctx ends. A daemon that starts again may have other groups.
func (r *runner) follow(ctx context.Context, c *console.Client) {
	groups := r.Groups
	if len(groups) == 0 {
		groups = []string{""}
	}
	groups = askGroups(ctx, c, groups)
	var classifying sync.WaitGroup
	for ctx.Err() == nil {
		for _, group := range groups {
			if i, isNew := r.of(group); isNew {
				classifying.Go(func() { classify(ctx, i.happened, i.put) })
			}
		}
		groups = r.followThese(ctx, c, groups)
	}
	classifying.Wait()
}

// followThese follows groups until the daemon has others, and returns those.
func (r *runner) followThese(ctx context.Context, c *console.Client, groups []string) []string {
	ctx, end := context.WithCancel(ctx)
	var streams sync.WaitGroup
	defer streams.Wait()
	defer end()
	changed := make(chan struct{}, 1) // has an element when a stream has begun or ended
	var following atomic.Int32        // how many streams there are
	for _, group := range groups {
		i, _ := r.of(group)
		streams.Go(func() {
			_ = listen(ctx, c.Of(group), i.log, i.happened, func(begun bool) {
				if begun {
					following.Add(1)
				} else {
					following.Add(-1)
				}
				select {
				case changed <- struct{}{}:
				default:
				}
			})
		})
	}
	for {
		var again <-chan time.Time
		if int(following.Load()) < len(groups) {
			again = time.After(groupsAgain)
		}
		select {
		case <-changed:
		case <-again:
		case <-ctx.Done():
			return groups
		}
		if now := askGroups(ctx, c, groups); !slices.Equal(now, groups) {
			return now
		}
	}
}

// askGroups asks the daemon which groups it has. If it does not answer, they are those of before. One group has no name
// here: its daemon may be older than the names.
func askGroups(ctx context.Context, c *console.Client, before []string) []string {
	groups, err := c.Groups(ctx)
	switch {
	case err != nil:
		return before
	case len(groups) == 1:
		return []string{""}
	}
	return groups
}
