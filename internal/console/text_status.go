package console

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Options say what the text is written to.
type Options struct {
	Width int  // columns of the terminal; 0 if it is none, and lines are not broken then
	Color bool // ECMA-48 sequences are understood
}

// The limits of the text. The JSON has everything.
const (
	minWidth    = 40 // narrower terminals break the lines themselves
	maxChanges  = 5
	maxProblems = 20
	maxBoards   = 255 // the largest group
	labelWidth  = 12
	narrow      = 60 // columns below which labels have no column of their own

	defaultFanout = "multicast" // is not worth a word
	detectorAsk   = "ask"
	reasonDeaf    = "deaf" // the identifier of election.ReasonDeaf
)

// WriteStatus writes the status for people: first who holds the address, last what
// should be looked into. docs/status.md explains every line.
func WriteStatus(w io.Writer, s Status, o Options) error {
	p := newPage(o)
	look := good
	switch {
	case !s.Held():
		look = urgent
	case s.verdict() == unguarded:
		look = notice
	}
	p.item(look, "", 0, s.headline())
	p.line(plain, "")
	p.facts(&s)
	p.checks(&s)
	p.boards(&s)
	p.changes(&s)
	p.problems(&s)
	_, err := io.WriteString(w, p.text.String())
	return err
}

// headline answers the question that was asked.
func (s *Status) headline() string {
	what, is, was := s.addresses()
	holder := s.holderName(s.HeldBy)
	switch s.verdict() {
	case contested:
		var who []string
		for _, b := range s.leaders() {
			who = append(who, s.fullName(b.ID, b.Name))
		}
		return fmt.Sprintf("%s %s claimed by %d boards: %s", what, is, len(who), list(who))
	case unknown:
		return fmt.Sprintf("unknown who holds %s: %s", what, s.whyNotHeld())
	case nobody:
		if s.leaderHolds() > 0 {
			what = "all of " + what
		}
		return fmt.Sprintf("nobody holds %s: %s", what, s.whyNotHeld())
	case silent:
		if b := s.board(s.HeldBy); b != nil && b.HeardMs != nil {
			text := fmt.Sprintf("%s %s last held by %s, which was last heard %s", what, was, holder, ago(*b.HeardMs))
			if s.MajorityUnheard {
				text += "; " + s.majorityUnheard()
			}
			return text
		}
		return fmt.Sprintf("%s %s last held by %s, of which nothing more is known", what, was, holder)
	case suspected:
		return fmt.Sprintf("%s %s held by %s, whose heartbeat is late: this board is asking whether it lives", what, is, holder)
	}
	text := fmt.Sprintf("%s %s held by %s", what, is, holder)
	next := ","
	if s.verdict() == unguarded {
		text += ", no fit board could take over"
		next = ";"
	}
	if s.LeaderSinceMs != nil && s.Leader == s.HeldBy {
		text += next + " leader for " + span(*s.LeaderSinceMs)
	}
	return text + fmt.Sprintf(", term%c%d", joint, s.Term)
}

// leaderHolds counts the addresses of this board that the leader has in its configuration.
func (s *Status) leaderHolds() (n int) {
	leader := s.board(s.Leader)
	if leader == nil || leader.Self {
		return 0
	}
	for _, text := range s.Addresses {
		addr, _, _ := strings.Cut(text, "/")
		if slices.Contains(leader.Floating, addr) {
			n++
		}
	}
	return n
}

// whyNotHeld says why nobody holds the address, or why this board cannot know.
func (s *Status) whyNotHeld() string {
	switch s.Role {
	case RoleIsolated:
		if slices.ContainsFunc(s.Problems, func(p Problem) bool { return p.Kind == ProblemFirewall }) {
			return "a firewall on this board drops the group's packets"
		}
		if slices.ContainsFunc(s.Problems, func(p Problem) bool { return p.Kind == ProblemOwnAddress }) {
			return "another board has this board's own address"
		}
		return "this board has no link"
	case RoleListener:
		return "this board is listening for a leader"
	case RoleBarred:
		return "this board stays out: " + cmp.Or(s.ReasonText, "unknown why")
	case RoleCandidate:
		if s.PortSilent {
			return "this board asks, and nothing arrives on its port: look at its cable and its switch"
		}
		if s.MajorityUnheard {
			return s.majorityUnheard()
		}
		if len(s.Voters) > 0 {
			return "this board is asking the voters whether it may lead"
		}
		return "this board is asking whether anybody leads"
	case RoleLeader:
		if s.MajorityUnheard {
			return "this board leads, but does not hear the majority of the voters, so it does not answer"
		}
		return "this board leads, but does not have it on " + cmp.Or(s.Interface, "its interface")
	case RoleFollower:
		if s.MajorityUnheard {
			return s.majorityUnheard()
		}
		if leader := s.board(s.Leader); leader != nil && len(leader.Floating) > 0 {
			return s.holderName(s.Leader) + " leads, and its configuration has " + list(leader.Floating)
		}
		if s.Leader != "" {
			return s.holderName(s.Leader) + " leads, but is not known to have it"
		}
		if s.Heir != "" {
			return "there is no leader, and " + s.holderName(s.Heir) + " is next"
		}
		return "there is no leader, and no board that could become one"
	default:
		return cmp.Or(s.ReasonText, "unknown why")
	}
}

// facts adds what concerns this board.
func (p *page) facts(s *Status) {
	fact := func(label, text string) {
		if p.width >= narrow {
			p.item(plain, pad(label, labelWidth, false), labelWidth, text)
			return
		}
		lines := wrap(clean(label+": "+text), p.width, p.width-spacing)
		for i, line := range lines {
			p.line(plain, strings.Repeat(" ", min(i, 1)*spacing)+line)
		}
	}
	fact("this board", s.thisBoard())
	if text := s.grade(); text != "" {
		fact("grade", text)
	}
	if len(s.Addresses) > 3 {
		fact("addresses", strings.Join(s.Addresses, ", "))
	}
	if s.Holding {
		fact("holding", cmp.Or(s.HoldText, "unknown"))
	}
	if len(s.Defences) > 0 {
		fact("defences", s.defences())
	}
	fact("LED", cmp.Or(s.LEDText, "unknown"))
	fact("heartbeats", s.heartbeats())
	if text := s.patience(); text != "" {
		fact("patience", text)
	}
	if len(s.Voters) > 0 {
		fact("voters", s.voters())
	}
	if text := s.rotation(); text != "" {
		fact("key", text)
	}
	fact("group", fmt.Sprintf("%s, algorithm %s, topdog %s",
		cmp.Or(s.Group, "unknown"), s.algorithm(), cmp.Or(s.Version, "of an unknown version")))
}

// defenceNames are the lines of defence for people.
var defenceNames = map[string]string{
	DefenceFence: "fence", DefenceSwitch: "dead man's switch", DefenceTUN: "TUN device", DefenceLifetime: "lifetime",
	DefenceNoExec: "seccomp",
}

// defences names the lines of defence that this board has, and then says why one is missing.
func (s *Status) defences() string {
	var on, off []string
	for _, d := range s.Defences {
		name := cmp.Or(defenceNames[d.Kind], d.Kind)
		switch {
		case !d.On:
			off = append(off, fmt.Sprintf("no %s: %s", name, d.Text))
		case d.Method != "":
			on = append(on, fmt.Sprintf("%s (%s)", name, d.Method))
		default:
			on = append(on, name)
		}
	}
	return strings.Join(append([]string{cmp.Or(strings.Join(on, ", "), "none")}, off...), "; ")
}

// algorithm names the algorithm, and what it was combined with.
func (s *Status) algorithm() string {
	var with []string
	if s.Detector.Kind != "" {
		with = append(with, "detector "+s.Detector.Kind)
	}
	if s.Fanout != "" && s.Fanout != defaultFanout {
		with = append(with, "fanout "+s.Fanout)
	}
	if s.ScoreFrom != "" {
		with = append(with, "score from "+s.ScoreFrom)
	}
	text := cmp.Or(s.Algorithm, "unknown")
	if len(with) > 0 {
		text += " (" + strings.Join(with, ", ") + ")"
	}
	return text
}

// thisBoard says what this board is, since when and why.
func (s *Status) thisBoard() string {
	text := s.fullName(s.Board.ID, s.Board.Name)
	if s.Interface != "" {
		text += " on " + s.Interface
	}
	role := cmp.Or(s.Role, "role unknown")
	if s.Role == RoleFollower && s.Heir != "" && s.Heir == s.Board.ID {
		role = "follower and heir"
	}
	text += ": " + role
	if s.RoleSinceMs != nil {
		text += " for " + span(*s.RoleSinceMs)
	}
	if s.ReasonText != "" {
		text += " (" + s.ReasonText + ")"
	}
	return text
}

// heartbeats says what the failure detector sees and how fast it is. What it has
// learned says nothing where there is no leader to hear.
func (s *Status) heartbeats() string {
	if s.HeartbeatMs == 0 {
		return "unknown"
	}
	every := "every " + span(s.HeartbeatMs)
	leader := s.board(s.Leader)
	switch {
	case s.Role == RoleLeader:
		return "this board sends one " + every
	case leader != nil && !leader.live() && leader.HeardMs != nil:
		return every + ", none for " + span(*leader.HeardMs)
	case leader != nil && leader.live() && (s.Role == RoleFollower || s.Role == RoleCandidate):
		d := s.Detector
		text := fmt.Sprintf("%s, %s lost, late by up to %s; ", every, percent(d.LossPercent), span(d.MarginMs))
		if d.Kind == detectorAsk || d.Kind == "" { // a daemon that names none has no other
			return text + fmt.Sprintf("a dead leader is replaced after about %s", span(s.replacedAfterMs()))
		}
		// How long the election takes that follows is up to the algorithm.
		return text + fmt.Sprintf("a dead leader is missed after about %s", span(s.HeartbeatMs+d.MarginMs))
	}
	return every + ", none at the moment"
}

// voters lists the voters, and who of them acknowledges this leader.
func (s *Status) voters() string {
	var texts []string
	acknowledge := 0
	for _, v := range s.Voters {
		text := s.fullName(v.ID, v.Name)
		switch {
		case v.Twice:
			text += " (there twice, does not count)"
		case v.Unheard && s.Role != RoleLeader:
			text += " (not heard)"
		case v.Supports == nil:
		case *v.Supports:
			acknowledge++
		default:
			text += " (silent)"
		}
		texts = append(texts, text)
	}
	text := fmt.Sprintf("%d: %s", len(s.Voters), strings.Join(texts, ", "))
	if s.Role == RoleLeader {
		text += fmt.Sprintf("; acknowledged by %d, of which %d are needed", acknowledge, len(s.Voters)/2+1)
	}
	return text
}

// majorityUnheard says how many voters this board hears, which it misses, and what follows.
func (s *Status) majorityUnheard() string {
	var missing []string
	for _, v := range s.Voters {
		if v.Unheard {
			missing = append(missing, s.shortName(v.ID, v.Name))
		}
	}
	return fmt.Sprintf("this board hears %d of the %d voters (%s missing), and nobody takes the address without %d of them",
		len(s.Voters)-len(missing), len(s.Voters), list(missing), len(s.Voters)/2+1)
}

// replacedAfterMs is the time from the last heartbeat of a leader that dies to
// the claim of the next: one heartbeat that does not come, the margin that it is
// given, and the questions that nobody answers.
func (s *Status) replacedAfterMs() float64 {
	d := s.Detector
	within := d.AnswerWithinMs
	if within == 0 { // a daemon that does not tell gives it the time of the others
		within = d.QuestionEveryMs
	}
	return s.HeartbeatMs + d.MarginMs + float64(d.Questions-1)*d.QuestionEveryMs + within
}

// patience says what was learned, from what, and what it costs; nothing if nothing was.
func (s *Status) patience() string {
	p := &s.Patience
	if p.GraceNs <= p.DefaultGraceNs {
		return ""
	}
	ms := func(ns int64) string { return span(float64(ns) / 1e6) }
	text := fmt.Sprintf("a leader may be late by %s instead of %s, so a dead one is replaced that much later", ms(p.GraceNs), ms(p.DefaultGraceNs))
	if k := s.Detector.Kind; s.HeartbeatMs > 0 && (k == detectorAsk || k == "") {
		text += fmt.Sprintf(" (on average %s after it died)", span(s.HeartbeatMs/2+float64(p.GraceNs)/1e6))
	}
	if p.LearnedText == "" {
		return text
	}
	return text + fmt.Sprintf(". Learned %s: %s. Halved in %s unless it is needed", ago(float64(p.LearnedAgoNs)/1e6), p.LearnedText, ms(p.HalvesInNs))
}

// changes adds the last changes of leader.
func (p *page) changes(s *Status) {
	if len(s.Changes) == 0 {
		return
	}
	p.line(plain, "")
	p.line(strong, "last changes of leader")
	shown := s.Changes[:min(len(s.Changes), maxChanges)]
	indent := 0
	for i := range shown {
		indent = max(indent, width(ago(shown[i].AgoMs)))
	}
	for i := range shown {
		c := &shown[i]
		who := "nobody"
		switch {
		case c.Leader != "":
			who = s.fullName(c.Leader, c.LeaderName)
		case c.Reason == reasonDeaf:
			who = "unknown who"
		}
		text := fmt.Sprintf("%s, term%c%d: %s", who, joint, c.Term, cmp.Or(c.ReasonText, "unknown why"))
		if c.OutageMs != nil {
			text += fmt.Sprintf("; nobody led for %s", span(*c.OutageMs))
		}
		p.item(plain, "  "+pad(ago(c.AgoMs), indent, true)+"  ", indent+4, text)
	}
}

// problems adds what a person should look into.
func (p *page) problems(s *Status) {
	if len(s.Problems) == 0 {
		return
	}
	p.line(plain, "")
	p.line(strong, "to look into")
	for i, problem := range s.Problems {
		if i == maxProblems {
			p.item(notice, "  ! ", 4, fmt.Sprintf("and %d more: topdog status --json", len(s.Problems)-i))
			break
		}
		p.item(notice, "  ! ", 4, problem.Text)
	}
}

// The identifiers that decide how a check, and the grade, are shown.
const (
	gradePassing   = "passing"
	gradeProbation = "probation"
	stateFailing   = "failing"
	stateNotJudged = "not_judged"
)

// grade says how fit this board is to lead, and why; nothing of a board without checks that is.
func (s *Status) grade() string {
	if s.Grade == "" || s.Grade == gradePassing && len(s.Checks) == 0 {
		return ""
	}
	text := s.Grade
	if s.Starting {
		text = "starting"
	}
	if s.GradeText != "" {
		text += ": " + s.GradeText
	}
	if s.GradeEndsInNs > 0 {
		text += ", for another " + span(float64(s.GradeEndsInNs)/1e6)
	}
	return text
}

// checks adds the checks of this board.
func (p *page) checks(s *Status) {
	if len(s.Checks) == 0 {
		return
	}
	p.line(plain, "")
	p.line(strong, "checks of this board")
	states, times := make([]string, len(s.Checks)), make([]string, len(s.Checks))
	stateWidth, timeWidth := 0, 0
	for i := range s.Checks {
		c := &s.Checks[i]
		states[i], times[i] = c.state(), span(float64(c.SinceNs)/1e6)
		stateWidth, timeWidth = max(stateWidth, width(states[i])), max(timeWidth, width(times[i]))
	}
	for i := range s.Checks {
		c := &s.Checks[i]
		look := plain
		if c.State == stateFailing {
			look = notice
		}
		text := cmp.Or(c.NameText, strings.TrimSpace(c.Kind+" "+c.Target))
		if c.Text != "" {
			text += ": " + c.Text
		}
		p.item(look, "  "+pad(states[i], stateWidth, false)+"  "+pad(times[i], timeWidth, true)+"  ", stateWidth+timeWidth+6, text)
	}
}

// state names the state of a check for people.
func (c *Check) state() string {
	switch c.State {
	case stateNotJudged:
		return "not judged"
	case "":
		return "unknown"
	}
	return c.State
}

// rotation says how far the group is with the change of its key; "" if it does not change it.
func (s *Status) rotation() string {
	own := &s.Board
	if own.SignsWith == "" {
		return ""
	}
	signing := map[string]int{}
	order := []string{own.SignsWith}
	boards, changing := 0, own.AlsoAccepts != ""
	var without []string // who does not accept the other key of this board
	for i := range s.Boards {
		b := &s.Boards[i]
		if !b.Self && !b.live() {
			continue
		}
		boards++
		if b.SignsWith != own.SignsWith || b.AlsoAccepts != own.AlsoAccepts {
			changing = changing || b.SignsWith != ""
			if other := own.AlsoAccepts; other != "" && b.SignsWith != other && b.AlsoAccepts != other {
				without = append(without, s.shortName(b.ID, b.Name))
			}
		}
		if b.SignsWith == "" {
			continue
		}
		if signing[b.SignsWith]++; signing[b.SignsWith] == 1 && b.SignsWith != own.SignsWith {
			order = append(order, b.SignsWith)
		}
	}
	if !changing {
		return ""
	}
	text := "changing: this board signs with " + own.SignsWith
	if own.AlsoAccepts != "" {
		text += " and accepts " + own.AlsoAccepts + " as well"
	}
	var counts []string
	for _, key := range order {
		counts = append(counts, fmt.Sprintf("%d with %s", signing[key], key))
	}
	text += fmt.Sprintf("; of %d boards sign %s", boards, strings.Join(counts, ", "))
	if len(without) > 0 {
		text += fmt.Sprintf("; %s is not accepted by %s yet", own.AlsoAccepts, list(without))
	}
	return text
}
