package page

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"

	"topdog/internal/console"
	"topdog/internal/web"
)

// group is what this page knows of a group of the daemon.
type group struct {
	source  *source
	events  *events
	history *history // page.mu is held for it

	mu     sync.Mutex
	name   string // "" if the daemon has no other group, or has not said yet which it has
	client *console.Client
}

// newGroup returns a group of that name, of which nothing is known yet.
func newGroup(ctx context.Context, client *console.Client, name string) *group {
	g := &group{events: newEvents(), history: newHistory()}
	g.source = newSource(ctx, func(ctx context.Context) ([]byte, error) { return g.daemon().StatusText(ctx) })
	g.rename(client, name)
	return g
}

// rename has the group ask the daemon under another name.
func (g *group) rename(client *console.Client, name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.name, g.client = name, client.Of(name)
}

// daemon returns the client that asks about this group.
func (g *group) daemon() *console.Client {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.client
}

// label returns the name by which the group is told from others; "" if there is no other.
func (g *group) label() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.name
}

// known returns the name of the group; "" if the daemon has not told it yet.
func (g *group) known() string {
	if name := g.label(); name != "" {
		return name
	}
	return g.source.now().Group
}

// all returns the groups, in the order of the daemon's configuration.
func (p *page) all() []*group {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.groups
}

// follow follows the daemon until ctx ends.
func (p *page) follow(ctx context.Context, client *console.Client) {
	_ = client.FollowGroups(ctx, console.WatchOptions{Alive: true}, nil,
		func(names []string) { p.regroup(ctx, client, names) },
		func(name string, t console.Transition) error {
			all := p.all()
			return p.heard(all[slices.IndexFunc(all, func(g *group) bool { return g.label() == name })], t)
		}) // it ends with ctx
}

// complete reports whether the page follows all groups.
func (p *page) complete() bool {
	return !slices.ContainsFunc(p.all(), func(g *group) bool { return g.source.now().Event == console.EventDaemonGone })
}

// regroup has the page show the groups of these names. What was seen of a group stays. One group has no name here: its daemon
// may be older than the names.
func (p *page) regroup(ctx context.Context, client *console.Client, names []string) {
	before := p.all()
	if len(names) == 1 && len(before) == 1 {
		before[0].rename(client, "")
		return
	}
	var now []*group
	for _, name := range names {
		i := slices.IndexFunc(before, func(g *group) bool { return g.known() == name })
		label := name
		if len(names) == 1 {
			label = ""
		}
		if i < 0 {
			now = append(now, newGroup(ctx, client, label))
			continue
		}
		before[i].rename(client, label)
		now = append(now, before[i])
	}
	p.mu.Lock()
	p.groups = now
	p.mu.Unlock()
	for _, g := range before {
		if !slices.Contains(now, g) {
			g.events.heard(console.Transition{Event: console.EventDaemonGone}) // its readers learn that there is no more
		}
	}
}

// ofOne serves what can be asked of one group only: of the one that ?group= names. Where there is only one, the query may be
// missing.
func (p *page) ofOne(serve func(*group, http.ResponseWriter, *http.Request) error) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		asked, all := r.URL.Query().Get("group"), p.all()
		if asked == "" && len(all) > 1 {
			return console.Refuse(http.StatusBadRequest, "this board has several groups: "+strings.Join(p.groupNames(), ", "), "say which one with ?group=")
		}
		for _, g := range all {
			if name := g.known(); asked == "" || name == asked || name == "" {
				return serve(g, w, r)
			}
		}
		return console.Refuse(http.StatusNotFound, "this board has no group "+web.Excerpt(asked), "it has "+strings.Join(p.groupNames(), ", "))
	}
}

// groupNames returns the names of the groups; none if no daemon has told them yet.
func (p *page) groupNames() []string {
	names := []string{}
	for _, g := range p.all() {
		if name := g.known(); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// serveGroups names the groups. A page that asks which there are asks again when its own is refused.
func (p *page) serveGroups(w http.ResponseWriter, _ *http.Request) error {
	return web.WriteJSON(w, http.StatusOK, console.GroupNames{Groups: p.groupNames()})
}
