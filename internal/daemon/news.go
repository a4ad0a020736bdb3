package daemon

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"topdog/election"
	"topdog/internal/console"
	"topdog/wire"
)

// news is what people may want to know: what is wrong at the moment, and how
// the lead has changed. Both are short and kept in memory.
type news struct {
	now      func() time.Duration
	problems []problem
	history  []reign
	since    time.Duration   // when the present role was taken on
	last     election.Change // the change that led to it
	leader   wire.ID         // the last leader that there was
	rivalAt  time.Duration   // when another leader was heard
	lostAt   time.Duration   // when it was last known to be there
}

// problem is something that a person should look into. It ends when it is over,
// or when it has not been seen for a while.
type problem struct {
	kind  console.ProblemKind
	board wire.ID // which it is about, or wire.Nobody
	text  string
	seen  time.Duration // for the last time
	told  time.Duration // when it was logged
	lasts time.Duration
}

func (p *problem) is(kind console.ProblemKind, board wire.ID) bool {
	return p.kind == kind && p.board == board
}

// reign is one leader's.
type reign struct {
	leader wire.ID
	term   wire.Term
	reason election.Reason
	from   time.Duration
	gap    time.Duration // without a sign of a leader before it, as this board saw it; 0 if unknown
}

const (
	// forever is for problems that last until they are over.
	forever time.Duration = 1<<63 - 1
	// problemsMax and historyMax bound what is remembered.
	problemsMax = 32
	historyMax  = 32
	// tellEvery bounds how often the same problem is logged, and retellEvery how
	// often it is when it says something else.
	tellEvery   = 10 * time.Minute
	retellEvery = 10 * time.Second
)

// trouble notes a problem, and reports whether it should be logged: when it is
// new, or says something new, or was not logged for long.
func (n *news) trouble(kind console.ProblemKind, text string, lasts time.Duration) (tell bool) {
	return n.troubleWith(kind, wire.Nobody, text, lasts)
}

// troubleWith notes a problem with another board.
func (n *news) troubleWith(kind console.ProblemKind, board wire.ID, text string, lasts time.Duration) (tell bool) {
	now := n.now()
	i := slices.IndexFunc(n.problems, func(p problem) bool { return p.is(kind, board) })
	if i < 0 {
		if len(n.problems) == problemsMax {
			// What others cause gives way to what is wrong on this board.
			oldest := max(0, slices.IndexFunc(n.problems, func(p problem) bool { return p.lasts != forever }))
			n.problems = slices.Delete(n.problems, oldest, oldest+1)
		}
		n.problems = append(n.problems, problem{kind: kind, board: board, text: text, seen: now, told: now, lasts: lasts})
		return true
	}
	p := &n.problems[i]
	tell = now-p.told > tellEvery || (p.text != text && now-p.told > retellEvery)
	if tell {
		p.told = now
	}
	p.text, p.seen, p.lasts = text, now, lasts
	return tell
}

// over ends a problem.
func (n *news) over(kind console.ProblemKind) {
	n.problems = slices.DeleteFunc(n.problems, func(p problem) bool { return p.is(kind, wire.Nobody) })
}

// current returns the problems that exist.
func (n *news) current() (found []console.Problem) {
	now := n.now()
	n.problems = slices.DeleteFunc(n.problems, func(p problem) bool {
		return p.lasts != forever && now-p.seen > p.lasts
	})
	for _, p := range n.problems {
		found = append(found, console.Problem{Kind: p.kind, Board: idText(p.board), Text: p.text})
	}
	return found
}

// changed keeps the history of leaders. lastSeen is when the old leader was heard
// last, or 0 if that says nothing about how long nobody led.
func (n *news) changed(c election.Change, lastSeen time.Duration) {
	now := n.now()
	if c.From != c.To {
		n.since = now
	}
	n.last = c
	if c.To == election.Isolated {
		n.lostAt = 0 // the others may have a leader; this board cannot know
		return
	}
	if !c.LeaderChanged() {
		return
	}
	if c.NewLeader == wire.Nobody {
		n.lostAt = now
		return
	}
	lostAt := n.lostAt
	n.lostAt = 0
	if c.NewLeader == n.leader && len(n.history) > 0 && n.history[0].term == c.Term {
		return // the same reign, found again after a pause of this board
	}
	if lostAt == 0 {
		lostAt = lastSeen
	}
	r := reign{leader: c.NewLeader, term: c.Term, reason: c.Reason, from: now}
	if lostAt > 0 {
		r.gap = now - lostAt
	}
	n.leader = c.NewLeader
	n.history = slices.Insert(n.history, 0, r)
	if len(n.history) > historyMax {
		n.history = n.history[:historyMax]
	}
}

// describe puts a change into a line for the log.
func (d *Daemon) describe(c election.Change) string {
	switch {
	case c.To == election.Leader:
		return fmt.Sprintf("leads in term %d: %v", c.Term, c.Reason)
	case c.From == election.Leader && c.NewLeader != wire.Nobody:
		return fmt.Sprintf("released %s; %s leads: %v", joined(d.prefixes()), d.called(c.NewLeader), c.Reason)
	case c.From == election.Leader:
		return fmt.Sprintf("released %s: %v", joined(d.prefixes()), c.Reason)
	case c.To == election.Follower && c.NewLeader == wire.Nobody:
		return fmt.Sprintf("waits for a leader: %v", c.Reason)
	case c.To == election.Follower:
		return fmt.Sprintf("follows %s in term %d: %v", d.called(c.NewLeader), c.Term, c.Reason)
	case c.To == election.Barred:
		return fmt.Sprintf("stays out: %v", c.Reason)
	case c.To == election.Isolated:
		return fmt.Sprintf("is without a network: %v", c.Reason)
	default:
		return fmt.Sprintf("is a %v: %v", c.To, c.Reason)
	}
}

// statusLine is what systemctl status shows.
func (d *Daemon) statusLine(c election.Change) string {
	text := d.describe(c)
	return strings.ToUpper(text[:1]) + text[1:]
}

// called names a board for people: "pi3 (192.168.1.13)", or what is known of it.
func (d *Daemon) called(id wire.ID) string {
	if id == d.self {
		return "this board"
	}
	if p, ok := d.core.Peer(id); ok && p.Name != "" {
		return fmt.Sprintf("%s (%v)", p.Name, id)
	}
	return id.String()
}

// joined writes prefixes as a list.
func joined(prefixes []netip.Prefix) string {
	texts := make([]string, len(prefixes))
	for i, p := range prefixes {
		texts[i] = p.String()
	}
	return strings.Join(texts, ", ")
}
