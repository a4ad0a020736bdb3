package daemon

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sort"
	"time"

	"topdog/election"
	"topdog/election/literature"
	"topdog/election/silence"
	"topdog/gpio"
	"topdog/internal/boottime"
	"topdog/internal/console"
	"topdog/wire"
)

// Status returns what this board knows, for people.
func (d *Daemon) Status(ctx context.Context) (console.Status, error) {
	var s console.Status
	err := d.tasks.call(ctx, func() error { s = d.status(d.now()); return nil })
	return s, err
}

// Alive returns when the loop has turned.
func (d *Daemon) Alive(ctx context.Context) error {
	return d.tasks.call(ctx, func() error { return nil })
}

// status describes everything.
func (d *Daemon) status(now time.Duration) console.Status {
	d.reporter.solved(console.ProblemControlSocket) // or nobody could ask
	s := console.Status{
		Version:     d.version,
		Transition:  d.console.Published(),
		AsOf:        boottime.Instant(now),
		Group:       d.cfg.Group,
		Algorithm:   d.cfg.Algorithm.String(),
		Fanout:      d.cfg.Fanout.String(),
		Detector:    console.Detector{Kind: literature.Detector(d.cfg.Algorithm, d.cfg.Detector).String()},
		Interface:   d.link.name,
		SecondPath:  d.second.status(),
		Role:        console.RoleIsolated,
		HeartbeatMs: console.Milliseconds(d.cfg.Interval),
		Counters: console.Counters{
			DroppedByReason: make(map[string]uint64),
			ChangesByReason: make(map[string]uint64),
		},
	}
	if d.comparesScores() {
		s.ScoreFrom = d.cfg.ScoreSource.String()
	}
	for _, path := range d.paths() {
		path.counters(&s.Counters)
	}
	d.lease.status(&s, now)
	d.address.status(&s)
	if d.witness {
		s.Defences = nil // it holds no address that could answer
	}
	s.Defences = append(s.Defences, d.refusals...)
	d.lan.status(&s)
	d.checks.status(&s)
	d.drain.status(&s)
	if works := lightStatus(d.light.State(), &s); works {
		d.reporter.solved(console.ProblemLED)
	}
	over := func(kind console.ProblemKind, board wire.ID) bool { return d.addressQuestionOver(kind, board, now) }
	s.Problems = append(d.reporter.problems.current(over), d.group.oneWayProblems(now, d.called)...)
	if d.core == nil {
		s.Board = console.Board{Name: d.cfg.Name, Priority: int(d.cfg.Priority), Grade: wire.GradePassing.String(), Self: true, Role: s.Role}
		s.Boards = []console.Board{s.Board}
		return s
	}
	d.describeElection(&s, now)
	return s
}

// lightStatus fills in what the light shows, or why it shows nothing, and reports whether it works.
func lightStatus(light gpio.State, s *console.Status) (works bool) {
	switch {
	case light.Fail != nil:
		s.LEDText = light.Fail.Error()
	case light.LED == "" || light.LED == gpio.None.String():
		s.LEDText = light.LED
	default:
		s.LEDPattern = light.Pattern.String()
		s.LEDText = light.LED + ", " + light.Pattern.Looks()
	}
	return light.Fail == nil
}

// describeElection fills in what the core knows.
func (d *Daemon) describeElection(s *console.Status, now time.Duration) {
	core := d.core.Status(now)
	s.Role = core.Role.String()
	s.Term = uint32(core.Term)
	s.Leader, s.LeaderName = d.idAndName(core.Leader)
	if d.group.hasAddresses(core.Leader) {
		s.HeldBy = s.Leader
	}
	s.PortSilent = core.PortSilent
	s.Problems = append(s.Problems, d.noMulticastProblems(&core, now)...)
	if d.link.seen.Link.Up && !s.PortSilent { // else that is the problem
		s.Problems = append(s.Problems, d.lan.problems()...)
	}
	s.Heir, s.HeirName = d.idAndName(core.Heir)
	for _, id := range core.Trust {
		s.Trusted = append(s.Trusted, id.String())
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
	s.Patience, s.Watch = d.describePatience(&core.Patience, now), d.describeWatch()
	d.describeBoards(s, &core, now)
	s.Problems = append(s.Problems, d.unfitLeaderProblems(&core, now)...)
	d.describeVoters(s, &core, now)
	d.pauseStatus(s, now)
	spares := s.CountSpares()
	s.Spares = &spares
	if text := s.NoSpare(); text != "" {
		s.Problems = append(s.Problems, console.Problem{Kind: console.ProblemNoSpare, Text: text})
	}
	d.reporter.history.status(s, now, d.idAndName)
	for reason, count := range core.Counts {
		s.Counters.ChangesByReason[reason.Identifier()] = count
	}
}

// describePatience says how late a leader may be, and why.
func (d *Daemon) describePatience(p *election.Patience, now time.Duration) console.Patience {
	described := console.Patience{
		GraceNs: int64(p.Grace), DefaultGraceNs: int64(p.Default), LimitNs: int64(p.Limit),
		Learned: p.Lesson.Kind.String(), LateNs: int64(p.Lesson.Late),
	}
	if p.Lesson.Kind == silence.LessonNone {
		return described
	}
	id, name := d.idAndName(p.Lesson.Board)
	described.Board = id
	described.LearnedText = p.Lesson.Describe("board " + cmp.Or(name, id))
	described.LearnedAgoNs, described.HalvesInNs = int64(now-p.Lesson.At), int64(max(0, p.HalveAt-now))
	return described
}

// describeBoards lists all boards by rank.
func (d *Daemon) describeBoards(s *console.Status, core *election.Status, now time.Duration) {
	type ranked struct {
		rank  election.Rank
		board console.Board
	}
	s.Board = d.describeSelf(core, now)
	all := []ranked{{core.Rank, s.Board}}
	for i := range core.Peers {
		p := &core.Peers[i]
		all = append(all, ranked{p.Rank(), d.describePeer(p, core, now)})
	}
	sort.Slice(all, func(i, j int) bool { return d.core.Above(all[i].rank, all[j].rank) })
	for _, r := range all {
		s.Boards = append(s.Boards, r.board)
	}
}

func (d *Daemon) describeSelf(core *election.Status, now time.Duration) console.Board {
	up := (now - d.started).Seconds()
	b := console.Board{
		ID: d.group.self.String(), Name: d.cfg.Name, Address: addrText(d.link.local), Priority: int(core.Rank.Priority), Grade: core.Rank.Grade.String(), GradeText: gradeText(core.Rank.Grade),
		Role: core.Role.String(), Self: true, Following: idText(core.Leader), UpSeconds: &up,
	}
	b.SignsWith, b.AlsoAccepts = fingerprints(d.group.codec.Keys())
	b.Version, b.Floating = d.group.program, addrTexts(d.group.settings.Addresses)
	if core.Heir == d.group.self && b.Role == console.RoleFollower {
		b.Role = console.RoleHeir
	}
	if d.comparesScores() {
		b.Score = &core.Rank.Score
	}
	return b
}

func (d *Daemon) describePeer(p *election.Peer, core *election.Status, now time.Duration) console.Board {
	b := console.Board{
		ID: p.ID.String(), Name: p.Name, Priority: int(p.Priority), Grade: p.Grade.String(), GradeText: gradeText(p.Grade),
		Role: peerRole(p, core), HeardMs: age(now - p.LastHeard), Gone: p.Gone, Stale: !p.Gone && !p.Live(now),
		Following: idText(p.Following),
	}
	if seen := d.group.boards[p.ID]; seen != nil {
		b.Address = addrText(seen.addr)
		b.SignsWith, b.AlsoAccepts = fingerprints(seen.keys)
		b.Version, b.Floating = seen.program, addrTexts(seen.settings.Addresses)
	}
	if p.SecondPathOnly {
		b.HeardMs = nil
	}
	if p.SecondPathAt > 0 {
		b.HeardBySecondPathMs = age(now - p.SecondPathAt)
	}
	if d.comparesScores() && p.ScoreKnown {
		b.Score = &p.Score
	}
	if p.StartedAt != 0 {
		up := (now - p.StartedAt).Seconds()
		b.UpSeconds = &up
	}
	return b
}

// comparesScores reports whether scores are told: only one algorithm compares them.
func (d *Daemon) comparesScores() bool { return d.cfg.Algorithm == wire.AlgorithmScore }

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

// pauseStatus fills in what topdog status shows of it.
func (d *Daemon) pauseStatus(s *console.Status, now time.Duration) {
	leader, left, paused := d.core.Paused(now)
	if !paused {
		return
	}
	s.Paused, s.PauseLeader, s.PauseLeftNs = true, leader.String(), int64(max(0, left))
	s.Problems = append(s.Problems, console.Problem{Kind: console.ProblemPaused, Board: s.PauseLeader, Text: d.describePause()})
}

// unfitLeaderProblems tells people of a leader that will hand over as soon as it can.
func (d *Daemon) unfitLeaderProblems(core *election.Status, now time.Duration) []console.Problem {
	grade := core.Rank.Grade
	if core.Leader != d.group.self {
		if !d.hears(core.Leader, now) {
			return nil
		}
		p, _ := d.core.Peer(core.Leader)
		grade = p.Grade
	}
	if core.Leader == wire.Nobody || grade < wire.GradeDrained {
		return nil
	}
	why := "no other board is fitter"
	if _, _, paused := d.core.Paused(now); paused {
		why = "the group is paused"
	}
	text := fmt.Sprintf("%s leads on although it is %s, since %s", d.called(core.Leader), gradeText(grade), why)
	return []console.Problem{{Kind: console.ProblemLeaderUnfit, Board: core.Leader.String(), Text: text}}
}

// addressQuestionOver reports whether a problem is that the address of a silent board answers, and
// that board does not lead any more, or is not silent. The core tells of it once a minute, so
// the problem is kept for so long, in case it comes again.
func (d *Daemon) addressQuestionOver(kind console.ProblemKind, board wire.ID, now time.Duration) bool {
	switch kind {
	case console.ProblemKind(election.NoticeAddressAnswers.Identifier()), console.ProblemKind(election.NoticeAddressStays.Identifier()):
	default:
		return false
	}
	leader, _ := d.core.Peer(board)
	return d.core.Leader() != board || d.core.Role() != election.Candidate && now-leader.LastHeard < 2*d.cfg.Interval
}

// describeVoters fills in what the core knows of the voters.
func (d *Daemon) describeVoters(s *console.Status, core *election.Status, now time.Duration) {
	unheard := d.unheardVoters(now)
	s.MajorityUnheard = core.MajorityUnheard || len(core.Voters) > 0 && d.missesMajority(unheard)
	for _, v := range core.Voters {
		voter := console.Voter{Twice: v.Twice, Unheard: slices.Contains(unheard, v.ID)}
		voter.ID, voter.Name = d.idAndName(v.ID)
		if core.Role == election.Leader {
			voter.Supports = &v.Supports
		}
		s.Voters = append(s.Voters, voter)
	}
}
