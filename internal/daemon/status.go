package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sort"
	"strings"
	"time"

	"topdog/election"
	"topdog/election/literature"
	"topdog/gpio"
	"topdog/internal/console"
	"topdog/wire"
)

// Status returns what this board knows, for people.
func (d *Daemon) Status(ctx context.Context) (console.Status, error) {
	var s console.Status
	err := d.ask(ctx, func() { s = d.status(d.now()) })
	return s, err
}

// Resign hands the lead over, and returns when another board has it.
func (d *Daemon) Resign(ctx context.Context) (string, error) {
	var refused error
	followed := make(chan string, 1)
	err := d.ask(ctx, func() {
		if d.core == nil {
			refused = errors.New("this board does not lead: it has no network yet")
			return
		}
		if d.followed != nil {
			refused = errors.New("this board is handing over already")
			return
		}
		d.trace.asked()
		effects, err := d.core.Resign(d.now())
		if err == nil {
			d.followed = followed
		}
		refused = err
		d.act(effects) // also if it refuses: it may have found that it does not lead any more
	})
	if err = errors.Join(err, refused); err != nil {
		return "", err
	}
	defer d.request(func() {
		if d.followed == followed { // and not the channel of somebody who asked later
			d.followed = nil
		}
	})
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
func (d *Daemon) status(now time.Duration) console.Status {
	d.news.over(console.ProblemControlSocket) // or nobody could ask
	if d.led.state().Fail == nil {
		d.news.over(console.ProblemLED)
	}
	s := console.Status{
		Version:     d.version,
		Group:       d.cfg.Group,
		Algorithm:   d.cfg.Algorithm.String(),
		Fanout:      d.cfg.Fanout.String(),
		Detector:    console.Detector{Kind: literature.Detector(d.cfg.Algorithm, d.cfg.Detector).String()},
		Interface:   d.link.name,
		Role:        console.RoleIsolated,
		HeartbeatMs: console.Milliseconds(d.cfg.Interval),
		Holding:     d.holding.taken,
		Counters:    d.counters(),
		Problems:    append(d.news.current(), d.oneWayPaths(now)...),
	}
	if d.cfg.Algorithm == wire.AlgorithmScore {
		s.ScoreFrom = d.cfg.ScoreSource.String()
	}
	d.describeHolding(&s)
	d.describeLED(&s)
	for _, p := range d.prefixes() {
		s.Addresses = append(s.Addresses, p.String())
	}
	if d.core == nil {
		s.Board = console.Board{Name: d.cfg.Name, Priority: int(d.cfg.Priority), Self: true, Role: s.Role}
		s.Boards = []console.Board{s.Board}
		return s
	}
	d.describeElection(&s, now)
	return s
}

// describeElection fills in what the core knows.
func (d *Daemon) describeElection(s *console.Status, now time.Duration) {
	core := d.core.Status(now)
	s.Role = core.Role.String()
	s.Reason, s.ReasonText = d.news.last.Reason.Identifier(), d.news.last.Reason.String()
	s.RoleSinceMs = age(now - d.news.since)
	s.Term = uint32(core.Term)
	s.Leader, s.LeaderName = d.idAndName(core.Leader)
	s.Heir, s.HeirName = d.idAndName(core.Heir)
	for _, id := range core.Trust {
		s.Trusted = append(s.Trusted, id.String())
	}
	if core.Leader != wire.Nobody {
		s.HeldBy = s.Leader
		if len(d.news.history) > 0 {
			s.LeaderSinceMs = age(now - d.news.history[0].from)
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
	d.describeBoards(s, &core, now)
	for _, r := range d.news.history {
		c := console.Change{
			AgoMs: console.Milliseconds(now - r.from), Term: uint32(r.term),
			Reason: r.reason.Identifier(), ReasonText: r.reason.String(),
		}
		c.Leader, c.LeaderName = d.idAndName(r.leader)
		if r.gap > 0 {
			c.OutageMs = age(r.gap)
		}
		s.Changes = append(s.Changes, c)
	}
	for reason, count := range core.Counts {
		s.Counters.ChangesByReason[reason.Identifier()] = count
	}
}

// describeBoards lists all boards by rank.
func (d *Daemon) describeBoards(s *console.Status, core *election.Status, now time.Duration) {
	type ranked struct {
		rank  election.Rank
		board console.Board
	}
	up := (now - d.started).Seconds()
	self := console.Board{
		ID: d.self.String(), Name: d.cfg.Name, Address: addrText(d.link.local), Priority: int(core.Rank.Priority),
		Role: s.Role, Self: true, Following: idText(core.Leader), UpSeconds: &up,
	}
	if core.Heir == d.self && self.Role == console.RoleFollower {
		self.Role = console.RoleHeir
	}
	scored := d.cfg.Algorithm == wire.AlgorithmScore // the others compare none
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
			Following: idText(p.Following),
		}
		if way, ok := d.paths[p.ID]; ok {
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
	sort.Slice(all, func(i, j int) bool { return d.core.Above(all[i].rank, all[j].rank) })
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

func (d *Daemon) idAndName(id wire.ID) (text, name string) {
	switch id {
	case wire.Nobody:
		return "", ""
	case d.self:
		return id.String(), d.cfg.Name
	}
	p, _ := d.core.Peer(id)
	return id.String(), p.Name
}

// describeHolding says how the address is held, or would be.
func (d *Daemon) describeHolding(s *console.Status) {
	if d.holding.holder == nil {
		return
	}
	method, why := d.holding.holder.Method()
	s.HoldMethod = method.String()
	s.HoldText = fmt.Sprintf("%v on %s: %s", method, d.holding.holder.Device(), why)
}

// describeLED says what the light shows, or why it shows nothing.
func (d *Daemon) describeLED(s *console.Status) {
	state := d.led.state()
	switch {
	case state.Fail != nil:
		s.LEDText = state.Fail.Error()
	case state.LED == "" || state.LED == gpio.None.String():
		s.LEDText = state.LED
	default:
		pattern := d.led.showing()
		s.LEDPattern = pattern.String()
		s.LEDText = state.LED + ", " + pattern.Looks()
	}
}

// oneWayPaths returns a problem for each board whose address is configured as a
// peer and that is heard by one path only.
func (d *Daemon) oneWayPaths(now time.Duration) (found []console.Problem) {
	if len(d.cfg.Peers) == 0 {
		return nil
	}
	add := func(kind console.ProblemKind, id wire.ID, format string) {
		found = append(found, console.Problem{Kind: kind, Board: id.String(), Text: fmt.Sprintf(format, d.called(id))})
	}
	const fresh, stale = 5 * time.Second, 10 * time.Second
	for id, way := range d.paths {
		direct, multicast := now-way.directAt, now-way.multicastAt
		switch {
		case direct < fresh && multicast > stale:
			add(console.ProblemMulticastMissing, id, "unicast from %s arrives and multicast does not: the network between drops multicast")
		case multicast < fresh && direct > stale && slices.Contains(d.cfg.Peers, way.addr.Addr()):
			add(console.ProblemUnicastMissing, id, "multicast from %s arrives and unicast does not: list this board in its peers as well")
		}
	}
	slices.SortFunc(found, func(a, b console.Problem) int { return strings.Compare(a.Text, b.Text) })
	return found
}

// counters collects what is counted in several places.
func (d *Daemon) counters() console.Counters {
	c := console.Counters{
		PacketsReceived:      d.counts.received,
		PacketsSent:          d.counts.sent,
		ReceiveOverruns:      d.link.overruns.Load(),
		SendErrors:           d.counts.sendErrors,
		MessagesWithoutRoute: d.counts.unaddressed,
		AddressRestored:      d.counts.restored,
		GroupRejoined:        d.counts.rejoined,
		RivalLeadersHeard:    d.counts.rivals,
		DroppedByReason:      make(map[string]uint64),
		ChangesByReason:      make(map[string]uint64),
	}
	drop := func(reason string, count uint64) {
		if count > 0 {
			c.DroppedByReason[reason] += count
		}
	}
	for reason, count := range d.drops {
		drop(wire.DropReason(reason).Identifier(), count)
	}
	if d.link.transport != nil {
		drops := d.link.transport.Drops()
		drop(console.DroppedWrongTTL, drops.WrongTTL)
		drop(wire.TooLong.Identifier(), drops.Truncated)
		c.ReceiveErrors = drops.ReceiveErrors
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
