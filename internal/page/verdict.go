package page

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	"topdog/internal/boottime"
	"topdog/internal/console"
	"topdog/internal/web"
	"topdog/wire"
)

const (
	// leaderFresh is how old a status may be for the page to say, because of it, that this board leads.
	leaderFresh = 100 * time.Millisecond
	// leaderWithin is how long a request for /leader waits for another status. Load balancers give a check a second or
	// two.
	leaderWithin = 250 * time.Millisecond
)

// verdict is the answer to a question: yes or no, and why in a line.
type verdict struct {
	yes  bool
	text string
}

func yes(format string, a ...any) verdict { return verdict{true, fmt.Sprintf(format, a...)} }
func no(format string, a ...any) verdict  { return verdict{false, fmt.Sprintf(format, a...)} }

// unknown is the answer if the daemon has not said what the answer depends on.
func unknown(what string, err error) verdict {
	message, _ := web.Explain(err)
	return no("it is not known %s: %s", what, message)
}

// leads tells whether this board leads, has the address, and may answer for it at this instant. It may until the lease that
// the daemon has reported is over. The lease counts from the moment when the daemon looked, on the clock that both processes
// share. So a daemon that has been frozen since then leads no longer than its lease.
func (s *source) leads(ctx context.Context) verdict {
	if v, known := s.letGo(); known {
		return v
	}
	began := boottime.Now()
	a, err := s.until(ctx, leaderWithin, func(a *console.Answer) bool { return settles(a, began) })
	if err != nil {
		return unknown("whether this board leads", err)
	}
	status := a.Status
	if !status.Leads() {
		return no("%s", doesNotLead(status.Board.Name, status.Role))
	}
	if v, known := s.letGo(); known {
		return v
	}
	left := leaseOf(a, boottime.Now())
	switch {
	case left <= 0:
		return no("%s leads, but its lease is over", status.Board.Name)
	case status.LeaseEndsInNs == console.NoLeaseEnd:
		return yes("%s leads and has the address", status.Board.Name)
	}
	return yes("%s leads and has the address; its lease lasts for another %v", status.Board.Name, left.Round(time.Millisecond))
}

// letGo says that this board does not lead, if the stream says so. The stream is ahead of every status.
func (s *source) letGo() (v verdict, known bool) {
	t := s.now()
	if t.Event == console.EventDaemonGone || t.Leads() {
		return verdict{}, false
	}
	return no("%s", doesNotLead(t.BoardName, t.Role)), true
}

func doesNotLead(name, role string) string {
	if role == console.RoleLeader {
		return name + " leads without the address"
	}
	return name + " does not lead: its role is " + role
}

// settles reports whether an answer is good enough for a question that was asked at a moment. A lease that has ended
// since the daemon looked may have been extended, so the daemon is asked again.
func settles(a *console.Answer, asked boottime.Instant) bool {
	now := boottime.Now()
	if leaseOf(a, now) > 0 {
		return a.Asked >= asked || now.Sub(a.Asked) <= leaderFresh
	}
	return a.Asked >= asked && (a.Status == nil || !a.Status.Leads() || a.Status.LeaseEndsInNs == 0)
}

// leaseOf returns for how long after now this board may answer for the address, according to an answer of the daemon.
func leaseOf(a *console.Answer, now boottime.Instant) time.Duration {
	switch {
	case a.Status == nil || !a.Status.Leads():
		return 0
	case a.Status.LeaseEndsInNs == console.NoLeaseEnd:
		return time.Duration(console.NoLeaseEnd)
	}
	return a.Status.AsOf.Add(time.Duration(a.Status.LeaseEndsInNs)).Sub(now)
}

// follows tells whether this board follows a live leader.
func (s *source) follows(ctx context.Context) verdict {
	a, err := s.shown(ctx)
	if err != nil {
		return unknown("whom this board follows", err)
	}
	switch status := a.Status; {
	case status.Role == console.RoleLeader:
		return no("%s leads", status.Board.Name)
	case !status.Held():
		return no("%s follows nobody who has the address: its role is %s", status.Board.Name, status.Role)
	}
	return yes("%s follows %s", a.Status.Board.Name, cmp.Or(a.Status.LeaderName, a.Status.Leader))
}

// fit tells whether this board leads, or could take over.
func (s *source) fit(ctx context.Context) verdict {
	a, err := s.shown(ctx)
	if err != nil {
		return unknown("whether this board is fit", err)
	}
	status := a.Status
	name := status.Board.Name
	switch {
	case status.Role != console.RoleLeader && status.Role != console.RoleFollower && status.Role != console.RoleCandidate:
		return no("%s could not take over: its role is %s", name, status.Role)
	case status.Grade != wire.GradePassing.String():
		return no("%s should not lead: its grade is %s", name, status.Grade)
	case status.Board.Priority == 0:
		return no("%s never leads: its priority is 0", name)
	case status.PortSilent:
		return no("%s could not take over: nothing arrives on its port", name)
	case status.MajorityUnheard:
		return no("%s could not lead: it does not hear the majority of the voters", name)
	}
	return yes("%s is fit to lead", name)
}

// serveHealth tells that this process serves, and whether the daemon answers.
func (p *page) serveHealth(w http.ResponseWriter, _ *http.Request) error {
	v := yes("this page serves; the daemon answers")
	if !p.complete() {
		v = yes("this page serves; the daemon does not answer")
	}
	return v.write(w)
}

// inText answers a question about a group with 200 or 503, and a line of text.
func inText(ask func(*source, context.Context) verdict) func(*group, http.ResponseWriter, *http.Request) error {
	return func(g *group, w http.ResponseWriter, r *http.Request) error {
		return ask(g.source, r.Context()).write(w)
	}
}

func (v verdict) write(w http.ResponseWriter) error {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if !v.yes {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_, _ = fmt.Fprintln(w, v.text) // a client that has gone is no failure
	return nil
}
