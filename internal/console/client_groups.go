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

// FollowGroups is Follow for each group of the daemon, which may have other groups when it starts again. It calls grouped with
// their names when they have become known, and whenever they have changed; no event comes meanwhile. each is told of which group
// an event is: "" while there is only one, or no daemon has told yet. Several goroutines may call each at once.
func (c *Client) FollowGroups(ctx context.Context, o WatchOptions, grouped func(names []string), each func(group string, t Transition) error) error {
	f := groupFollower{Client: c, options: o, each: each, labels: []string{""}, changed: make(chan struct{}, 1)}
	if names := f.regrouped(ctx); names != nil {
		grouped(names)
	}
	for {
		names, err := f.round(ctx)
		if err != nil {
			return err
		}
		grouped(names)
	}
}

// groupFollower is how far FollowGroups has come.
type groupFollower struct {
	*Client
	options WatchOptions
	each    func(string, Transition) error
	names   []string      // as the daemon told them last; nil before
	labels  []string      // what each is told
	changed chan struct{} // has an element if a stream has begun or ended

	mu    sync.Mutex
	heard map[string]bool // the labels of the groups of which a stream comes
}

// round follows the groups until there are others, whose names it returns, or until one cannot be followed any more.
func (f *groupFollower) round(ctx context.Context) (names []string, err error) {
	round, end := context.WithCancelCause(ctx)
	var streams sync.WaitGroup
	f.heard = map[string]bool{}
	for _, label := range f.labels {
		streams.Go(func() {
			end(f.Of(label).Follow(round, f.options, func(t Transition) error {
				f.note(label, t.Event)
				return f.each(label, t)
			}))
		})
	}
	for round.Err() == nil && names == nil {
		var again <-chan time.Time
		if !f.complete() {
			again = time.After(groupsAgain)
		}
		select {
		case <-f.changed:
		case <-again:
		case <-round.Done():
		}
		names = f.regrouped(round)
	}
	end(nil)
	streams.Wait()
	if names != nil {
		return names, nil
	}
	return nil, context.Cause(round)
}

// note notes that the stream of a group has begun or ended.
func (f *groupFollower) note(label string, event Event) {
	if event != EventSnapshot && event != EventDaemonGone {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.heard[label] = event == EventSnapshot
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// complete reports whether all groups are followed.
func (f *groupFollower) complete() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !slices.ContainsFunc(f.labels, func(label string) bool { return !f.heard[label] })
}

// regrouped asks the daemon which groups it has, and returns their names if they are others than before. If it does not answer,
// they are the same.
func (f *groupFollower) regrouped(ctx context.Context) []string {
	asking, cancel := context.WithTimeout(ctx, groupsWithin)
	defer cancel()
	names, err := f.Groups(asking)
	if err != nil || slices.Equal(names, f.names) {
		return nil
	}
	f.names, f.labels = names, names
	if len(names) == 1 {
		f.labels = []string{""} // its daemon may be older than the names
	}
	return names
}
