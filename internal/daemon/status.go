package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sort"
	"time"

	"topdog/election"
	"topdog/gpio"
	"topdog/internal/console"
	"topdog/wire"
)

// Status returns what this board knows, for people.
func (n *Node) Status(ctx context.Context) (console.Status, error) {
	var s console.Status
	err := n.ask(ctx, func() { s = n.status(n.now()) })
	return s, err
}

// Resign hands the lead over, and returns when another board has it.
func (n *Node) Resign(ctx context.Context) (string, error) {
	var refused error
	followed := make(chan string, 1)
	err := n.ask(ctx, func() {
		if n.core == nil {
			refused = errors.New("this board does not lead: it has no network yet")
			return
		}
		if n.followed != nil {
			refused = errors.New("this board is handing over already")
			return
		}
		n.trace.asked()
		effects, err := n.core.Resign(n.now())
		if err == nil {
			n.followed = followed
		}
		refused = err
		n.act(effects) // also if it refuses: it may have found that it does not lead any more
	})
	if err = errors.Join(err, refused); err != nil {
		return "", err
	}
	defer n.request(func() { n.followed = nil })
	select {
	case name := <-followed:
		return "handed over to " + name, nil
	case <-time.After(resignWithin):
		return "", errors.New("resigned, but no other board has taken over yet: look at topdog status")
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// resignWithin is how long a successor may take. If none answers this board
// claims the lead itself again, after a few heartbeats.
const resignWithin = 2 * time.Second

// status describes everything.
func (n *Node) status(now time.Duration) console.Status {
	n.news.over("console") // or nobody could ask
	if n.led.state().Fail == nil {
		n.news.over("led")
	}
	s := console.Status{
		Version:     n.cfg.Version,
		Group:       n.cfg.Group,
		Algorithm:   n.cfg.Algorithm.String(),
		Fanout:      n.cfg.Fanout.String(),
		Detector:    console.Detector{Kind: n.cfg.Detector.For(n.cfg.Algorithm).String()},
		Interface:   n.link.name,
		Role:        console.RoleIsolated,
		HeartbeatMs: console.Milliseconds(n.cfg.Heartbeat),
		Holding:     n.holding.taken,
		Way:         n.way(),
		LED:         n.lightText(),
		Counters:    n.counters(),
		Problems:    append(n.news.current(), n.oneWayPaths(now)...),
	}
	if n.cfg.Algorithm == wire.AlgorithmScore {
		s.Measure = n.cfg.Measure.String()
	}
	for _, p := range n.prefixes() {
		s.Addresses = append(s.Addresses, p.String())
	}
	if n.core == nil {
		s.Board = console.Board{Name: n.cfg.Name, Priority: int(n.cfg.Priority), Self: true, Role: s.Role}
		s.Boards = []console.Board{s.Board}
		return s
	}
	n.describeElection(&s, now)
	return s
}

// describeElection fills in what the core knows.
func (n *Node) describeElection(s *console.Status, now time.Duration) {
	core := n.core.Status(now)
	s.Role = core.Role.String()
	s.Reason = n.news.last.Reason.String()
	s.RoleSinceMs = age(now - n.news.since)
	s.Term = uint32(core.Term)
	s.Leader, s.LeaderName = n.idAndName(core.Leader)
	s.Heir, s.HeirName = n.idAndName(core.Heir)
	for _, id := range core.Trust {
		s.Trusted = append(s.Trusted, id.String())
	}
	if core.Leader != wire.Nobody {
		s.HeldBy = s.Leader
		if len(n.news.history) > 0 {
			s.LeaderSinceMs = age(now - n.news.history[0].from)
		}
	}
	q := core.Quality
	s.Detector = console.Detector{
		Kind:            s.Detector.Kind,
		LossPercent:     100 * q.Loss,
		MarginMs:        console.Milliseconds(q.Margin),
		RoundTripMs:     console.Milliseconds(q.RoundTrip),
		Questions:       q.Questions.Count,
		QuestionEveryMs: console.Milliseconds(q.Questions.Spacing),
		AnswerWithinMs:  console.Milliseconds(q.Questions.Within),
	}
	n.describeBoards(s, &core, now)
	for _, r := range n.news.history {
		c := console.Change{AgoMs: console.Milliseconds(now - r.from), Term: uint32(r.term), Reason: r.reason.String()}
		c.Leader, c.LeaderName = n.idAndName(r.leader)
		if r.gap > 0 {
			c.OutageMs = age(r.gap)
		}
		s.Changes = append(s.Changes, c)
	}
	for reason, count := range core.Counts {
		s.Counters["changes because "+reason.String()] = count
	}
}

// describeBoards lists all boards by rank.
func (n *Node) describeBoards(s *console.Status, core *election.Status, now time.Duration) {
	type ranked struct {
		rank  election.Rank
		board console.Board
	}
	up := (now - n.started).Seconds()
	self := console.Board{
		ID: n.self.String(), Name: n.cfg.Name, Address: addrText(n.link.local), Priority: int(core.Rank.Priority),
		Role: s.Role, Self: true, Following: followingText(core.Leader), UpSeconds: &up,
	}
	if core.Heir == n.self && self.Role == console.RoleFollower {
		self.Role = console.RoleHeir
	}
	scored := n.cfg.Algorithm == wire.AlgorithmScore // the others compare none
	if scored {
		self.Score = &core.Rank.Score
	}
	s.Board = self
	all := []ranked{{core.Rank, self}}
	for i := range core.Peers {
		p := &core.Peers[i]
		b := console.Board{
			ID: p.ID.String(), Name: p.Name, Priority: int(p.Priority), Role: peerRole(p, core),
			HeardMs: age(now - p.LastHeard), Gone: p.Gone, Stale: !p.Gone && !p.Live(now),
			Following: followingText(p.Following),
		}
		if way, ok := n.paths[p.ID]; ok {
			b.Address = addrText(way.addr.Addr())
		}
		if scored && p.ScoreKnown {
			b.Score = &p.Score
		}
		if p.StartedAt != 0 {
			seconds := (now - p.StartedAt).Seconds()
			b.UpSeconds = &seconds
		}
		all = append(all, ranked{p.Rank(), b})
	}
	sort.Slice(all, func(i, j int) bool { return n.core.Above(all[i].rank, all[j].rank) })
	for _, r := range all {
		s.Boards = append(s.Boards, r.board)
	}
}

func peerRole(p *election.Peer, core *election.Status) string {
	switch {
	case p.Leading:
		return console.RoleLeader
	case p.ID == core.Heir:
		return console.RoleHeir
	case p.Following != wire.Nobody:
		return console.RoleFollower
	default:
		return ""
	}
}

func (n *Node) idAndName(id wire.ID) (text, name string) {
	switch id {
	case wire.Nobody:
		return "", ""
	case n.self:
		return id.String(), n.cfg.Name
	}
	p, _ := n.core.Peer(id)
	return id.String(), p.Name
}

// way says how the address is held, or would be.
func (n *Node) way() string {
	if n.holding.holder == nil {
		return ""
	}
	way, why := n.holding.holder.Method()
	return fmt.Sprintf("%v on %s: %s", way, n.holding.holder.Device(), why)
}

func (n *Node) lightText() string {
	state := n.led.state()
	if state.Fail != nil {
		return state.Fail.Error()
	}
	if state.LED == "" || state.LED == gpio.None.String() {
		return state.LED
	}
	return state.LED + ", " + n.led.showing().Looks()
}

// oneWayPaths says in words when a board whose address is configured as a peer
// is heard by one path only.
func (n *Node) oneWayPaths(now time.Duration) (texts []string) {
	if len(n.cfg.Peers) == 0 {
		return nil
	}
	const fresh, stale = 5 * time.Second, 10 * time.Second
	for id, way := range n.paths {
		direct, multicast := now-way.directAt, now-way.multicastAt
		switch {
		case direct < fresh && multicast > stale:
			texts = append(texts, fmt.Sprintf("unicast from %s arrives and multicast does not: the network between drops multicast", n.called(id)))
		case multicast < fresh && direct > stale && slices.Contains(n.cfg.Peers, way.addr.Addr()):
			texts = append(texts, fmt.Sprintf("multicast from %s arrives and unicast does not: list this board in its peers as well", n.called(id)))
		}
	}
	slices.Sort(texts)
	return texts
}

// counters are for people who look for the cause of something.
func (n *Node) counters() map[string]uint64 {
	c := map[string]uint64{
		"packets received":      n.counts.received,
		"packets sent":          n.counts.sent,
		"send errors":           n.counts.sendErrors,
		"address unknown":       n.counts.unaddressed,
		"receive queue overrun": n.link.overruns.Load(),
		"address restored":      n.counts.restored,
		"group joined again":    n.counts.rejoined,
		"rival leaders heard":   n.counts.rivals,
	}
	for reason, count := range n.drops {
		if count > 0 {
			c["dropped: "+wire.DropReason(reason).String()] = count
		}
	}
	if n.link.transport != nil {
		d := n.link.transport.Drops()
		c["dropped: from beyond the link"] = d.WrongTTL
		c["dropped: too long"] += d.Truncated
		c["receive errors"] = d.ReceiveErrors
	}
	return c
}

func age(d time.Duration) *float64 {
	ms := console.Milliseconds(d)
	return &ms
}

func addrText(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

func followingText(id wire.ID) string {
	if id == wire.Nobody {
		return ""
	}
	return id.String()
}
