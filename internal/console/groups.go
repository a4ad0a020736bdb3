package console

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"topdog/internal/web"
)

// Group is one of the groups that a [Server] answers for.
type Group struct {
	name        string
	server      *Server
	backend     Backend
	transitions *Transitions
	acts        atomic.Uint64 // how many commands this group was given
	statuses    *Cache
	traces      *Cache
}

// moreConnections is how many connections each user may have for each group after the first one: a stream and a request.
const moreConnections = 2

// Add has the server answer for a group too, by asking that backend. Call it for every group of this board, in the order
// of the configuration, before Run.
func (s *Server) Add(name string, backend Backend) *Group {
	g := &Group{name: name, server: s, backend: backend, transitions: NewTransitions(s.limits.kept, 0)}
	g.statuses = g.newCache(freshStatus, g.askStatus)
	g.traces = g.newCache(freshTrace, g.askTrace)
	if s.groups = append(s.groups, g); len(s.groups) > 1 {
		for _, l := range []*limiter{s.control, s.public, s.page} {
			l.places.Total += moreConnections
			l.places.Each += moreConnections
		}
	}
	return g
}

// Publish adds a transition to all streams of the group, with the next number. It never blocks.
func (g *Group) Publish(t Transition) { g.transitions.Add(t) }

// Published returns the number of the last transition, for Status.Transition.
func (g *Group) Published() uint64 { return g.transitions.Newest() }

// news returns a number that grows with everything that makes a fresh answer untrue.
func (g *Group) news() uint64 { return g.transitions.Newest() + g.acts.Load() }

// chosen returns the groups that a request is about: the one that ?group= names, or all if it names none.
func (s *Server) chosen(r *http.Request) ([]*Group, error) {
	asked := r.URL.Query().Get("group")
	if asked == "" {
		return s.groups, nil
	}
	for _, g := range s.groups {
		if g.name == asked {
			return []*Group{g}, nil
		}
	}
	return nil, Refuse(http.StatusNotFound, "this board has no group "+web.Excerpt(asked), "it has "+strings.Join(s.names(), ", "))
}

// one is like chosen, for what can be asked of one group only.
func (s *Server) one(r *http.Request) ([]*Group, error) {
	groups, err := s.chosen(r)
	if err == nil && len(groups) > 1 {
		err = Refuse(http.StatusBadRequest, "this board has several groups: "+strings.Join(s.names(), ", "),
			"say which one with --group, or with ?group= in a request")
	}
	return groups, err
}

// ofOne serves what can be asked of one group only.
func (s *Server) ofOne(serve func(*Group, http.ResponseWriter, *http.Request) error) serveFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		groups, err := s.one(r)
		if err != nil {
			return err
		}
		return serve(groups[0], w, r)
	}
}

// names returns the names of all groups.
func (s *Server) names() []string {
	names := make([]string, len(s.groups))
	for i, g := range s.groups {
		names[i] = g.name
	}
	return names
}

func (s *Server) serveGroups(w http.ResponseWriter, _ *http.Request) error {
	return web.WriteJSON(w, http.StatusOK, GroupNames{s.names()})
}

// askAll asks several groups at once. The answers are in the order of the groups. If some fail, the error is that of the
// first one.
func askAll[A any](ctx context.Context, groups []*Group, ask func(context.Context, *Group) (A, error)) ([]A, error) {
	answers, errs := make([]A, len(groups)), make([]error, len(groups))
	var all sync.WaitGroup
	for i, g := range groups {
		all.Go(func() {
			defer web.Recover(g.server.Report, &errs[i])
			answers[i], errs[i] = ask(ctx, g)
		})
	}
	all.Wait()
	for i, err := range errs {
		if err != nil && len(groups) > 1 {
			err = OfGroup(groups[i].name, err)
		}
		if err != nil {
			return nil, err
		}
	}
	return answers, nil
}

// OfGroup returns an error that begins with the name of the group that it is about.
func OfGroup(name string, err error) error {
	e := &web.Error{Err: err}
	if told, ok := errors.AsType[*web.Error](err); ok {
		e.Code = told.Code
	}
	message, hint := web.Explain(err)
	e.Message, e.Hint = name+": "+message, hint
	return e
}

// together returns one text for those of several groups: a line for each, unless they are all the same.
func together(groups []*Group, texts []string) string {
	if len(slices.Compact(slices.Clone(texts))) == 1 {
		return texts[0]
	}
	lines := make([]string, len(texts))
	for i, text := range texts {
		lines[i] = groups[i].name + ": " + text
	}
	return strings.Join(lines, "\n")
}

// joinHandovers returns one answer for those of several groups.
func joinHandovers(groups []*Group, answers []Handover) Handover {
	if len(answers) == 1 {
		return answers[0]
	}
	texts := make([]string, len(answers))
	for i, h := range answers {
		texts[i] = h.Text
	}
	return Handover{Text: together(groups, texts)}
}

// joinDone returns one answer for those of several groups.
func joinDone(groups []*Group, answers []Done) Done {
	texts := make([]string, len(answers))
	for i, d := range answers {
		texts[i] = d.Text
	}
	return Done{Text: together(groups, texts)}
}

// joinKeys returns one answer for those of several groups, which have one key file. A board that has told the same of its
// keys in several groups is in it once, as the group says that has heard it last.
func joinKeys(answers []Keys) (Keys, error) {
	all := answers[0]
	if len(answers) == 1 {
		return all, nil
	}
	for _, k := range answers[1:] {
		if k.SignsWith != all.SignsWith || k.AlsoAccepts != all.AlsoAccepts {
			return Keys{}, Refuse(http.StatusConflict, "the groups of this board have different keys", "systemctl reload topdog")
		}
		all.RunningNs = min(all.RunningNs, k.RunningNs)
		all.Boards = append(slices.Clip(all.Boards), k.Boards...)
	}
	slices.SortStableFunc(all.Boards, func(a, b BoardKeys) int { return cmp.Compare(a.HeardNs, b.HeardNs) })
	boards := []BoardKeys{}
	for _, b := range all.Boards {
		same := func(o BoardKeys) bool {
			return o.ID == b.ID && o.SignsWith == b.SignsWith && o.AlsoAccepts == b.AlsoAccepts
		}
		if i := slices.IndexFunc(boards, same); i >= 0 {
			boards[i].Live = boards[i].Live || b.Live
		} else {
			boards = append(boards, b)
		}
	}
	all.Boards = boards
	return all, nil
}
