package console

import (
	"context"
	"slices"
	"sync"
	"time"
)

const (
	// groupsAgain is how long FollowGroups waits before it asks again which groups there are, while the stream of one is missing.
	groupsAgain = time.Second
	// groupsWithin bounds that question.
	groupsWithin = 2 * time.Second
)

// FollowGroups is Follow for each group of the daemon, which may have other groups when it starts again. It begins with several,
// if no daemon can tell the names yet. grouped is told the names at the beginning, and whenever each is told others; no event
// comes meanwhile. each is told of which group an event is: "" for an only one, since its daemon may be older than the names.
// Several goroutines may call each at once.
func (c *Client) FollowGroups(ctx context.Context, o WatchOptions, several []string, grouped func(names []string), each func(group string, t Transition) error) error {
	f := groupFollower{Client: c, options: o, each: each, names: several, changed: make(chan struct{}, 1)}
	if len(several) < 2 {
		f.names = []string{""}
	}
	f.regrouped(ctx)
	for {
		grouped(f.names)
		if err := f.round(ctx); err != nil {
			return err
		}
	}
}

// groupFollower is how far FollowGroups has come.
type groupFollower struct {
	*Client
	options WatchOptions
	each    func(string, Transition) error
	names   []string
	changed chan struct{} // has an element if a stream has begun or ended

	mu    sync.Mutex
	heard map[string]bool // the groups of which a stream comes
}

// round follows the groups until there are others. An error says why one cannot be followed any more.
func (f *groupFollower) round(ctx context.Context) error {
	round, end := context.WithCancelCause(ctx)
	var streams sync.WaitGroup
	f.heard = map[string]bool{}
	for _, name := range f.told() {
		streams.Go(func() {
			end(f.Of(name).Follow(round, f.options, func(t Transition) error {
				f.note(name, t.Event)
				return f.each(name, t)
			}))
		})
	}
	others := false
	for round.Err() == nil && !others {
		var again <-chan time.Time
		if !f.complete() {
			again = time.After(groupsAgain)
		}
		select {
		case <-f.changed:
		case <-again:
		case <-round.Done():
		}
		others = f.regrouped(round)
	}
	end(nil)
	streams.Wait()
	if others {
		return nil
	}
	return context.Cause(round)
}

// note notes that the stream of a group has begun or ended.
func (f *groupFollower) note(name string, event Event) {
	if event != EventSnapshot && event != EventDaemonGone {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.heard[name] = event == EventSnapshot
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// complete reports whether all groups are followed.
func (f *groupFollower) complete() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !slices.ContainsFunc(f.told(), func(name string) bool { return !f.heard[name] })
}

// regrouped asks the daemon which groups it has, and reports whether they are others than before. If it does not answer, they are
// the same.
func (f *groupFollower) regrouped(ctx context.Context) bool {
	asking, cancel := context.WithTimeout(ctx, groupsWithin)
	defer cancel()
	names, err := f.Groups(asking)
	if err != nil {
		return false
	}
	before := f.told()
	f.names = names
	return !slices.Equal(f.told(), before)
}

// told returns what each is told of the groups.
func (f *groupFollower) told() []string {
	if len(f.names) == 1 {
		return []string{""}
	}
	return f.names
}
