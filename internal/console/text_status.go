package console

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Options describe the terminal or file that the text is written to.
type Options struct {
	Width int  // columns of the terminal; 0 if it is no terminal, so that lines are not broken
	Color bool // it understands ECMA-48 sequences
}

// The limits of the text. The JSON has everything.
const (
	minWidth     = 40 // narrower terminals break the lines themselves
	maxChanges   = 5
	maxAddresses = 3 // in the headline

	defaultFanout = "multicast" // is not worth a word
	detectorAsk   = "ask"
	reasonDeaf    = "deaf" // the identifier of election.ReasonDeaf
)

// WriteStatus writes the status for people: first who holds the address, last what needs attention. docs/status.md
// explains every line.
func WriteStatus(w io.Writer, s Status, o Options) error {
	p := newPage(o)
	look := good
	switch {
	case !s.Held():
		look = urgent
	case s.verdict() == unguarded:
		look = notice
	}
	p.item(look, "", s.headline())
	p.line(plain, "")
	p.facts(&s)
	p.checks(&s)
	p.boards(&s)
	p.changes(&s)
	p.problems(&s)
	_, err := io.WriteString(w, p.text.String())
	return err
}

// facts adds the lines about this board, without those that have no text.
func (p *page) facts(s *Status) {
	all := ""
	if len(s.Addresses) > maxAddresses { // else the headline has them
		all = strings.Join(s.Addresses, ", ")
	}
	var list []row
	for _, fact := range []struct{ label, text string }{
		{"this board", s.thisBoard()},
		{"second path", s.secondPath()},
		{"grade", s.grade()},
		{"addresses", all},
		{"holding", s.holding()},
		{"defences", s.defences()},
		{"LED", cmp.Or(s.LEDText, "unknown")},
		{"heartbeats", s.heartbeats()},
		{"watch", s.watch()},
		{"patience", s.patience()},
		{"voters", s.voters()},
		{"key", s.rotation()},
		{"group", s.group()},
	} {
		if fact.text != "" {
			list = append(list, row{cells: []string{fact.label}, text: fact.text})
		}
	}
	p.list("", "<", list)
}

// holding says how this board holds the addresses.
func (s *Status) holding() string {
	if !s.Holding {
		return ""
	}
	return cmp.Or(s.HoldText, "unknown")
}

// group names the group of this board, its algorithm and its version.
func (s *Status) group() string {
	return fmt.Sprintf("%s, algorithm %s, topdog %s",
		cmp.Or(s.Group, "unknown"), s.algorithm(), cmp.Or(s.Version, "of an unknown version"))
}

// defenceNames are the names of the defences for people.
var defenceNames = map[string]string{
	DefenceFence: "fence", DefenceSwitch: "dead man's switch", DefenceTUN: "TUN device", DefenceLifetime: "lifetime",
	DefenceNoExec: "seccomp",
}

// defences names the defences that this board has, and says why the others are missing.
func (s *Status) defences() string {
	if len(s.Defences) == 0 {
		return ""
	}
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

// algorithm names the algorithm, and what it is combined with.
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

// thisBoard says which role this board has, for how long, and why.
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

// secondPath says whether this board's second path works, or why not. It is "" if there is none.
func (s *Status) secondPath() string {
	p := s.SecondPath
	switch {
	case p == nil:
		return ""
	case p.Text != "":
		return p.Text
	}
	return strings.TrimSpace(p.Interface+" "+p.Address) + ", " + cmp.Or(p.State, "unknown")
}

// heartbeats says what the failure detector has measured and how fast it is. Without a leader to hear, it does not tell what
// was measured.
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
		if d.Kind == detectorAsk {
			return text + fmt.Sprintf("a dead leader is replaced within about %s", span(s.replacedAfterMs()))
		}
		// The algorithm decides how long the election takes after that.
		return text + fmt.Sprintf("a dead leader is missed after about %s", span(s.HeartbeatMs+d.MarginMs))
	}
	return every + ", none at the moment"
}

// voters lists the voters, and says which of them acknowledge this leader.
func (s *Status) voters() string {
	if len(s.Voters) == 0 {
		return ""
	}
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

// majorityUnheard says how many voters this board hears, which are missing, and what follows from that.
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

// replacedAfterMs returns the time from the last heartbeat of a leader that dies to the claim of the next one: an interval,
// the margin for a late heartbeat, and the time for the questions that nobody answers.
func (s *Status) replacedAfterMs() float64 {
	d := s.Detector
	return s.HeartbeatMs + d.MarginMs + float64(d.Questions-1)*d.QuestionEveryMs + d.AnswerWithinMs
}

// patience says how late a leader may be by now, what that costs, and from what it was learned.
func (s *Status) patience() string {
	p := &s.Patience
	if p.GraceNs <= p.DefaultGraceNs {
		return ""
	}
	text := fmt.Sprintf("a leader may be late by %s instead of %s, so a dead one is replaced that much later",
		ns(p.GraceNs), ns(p.DefaultGraceNs))
	if s.HeartbeatMs > 0 && s.Detector.Kind == detectorAsk {
		text += fmt.Sprintf(" (on average %s after it died)", span(s.replacedOnAverageMs()))
	}
	if p.LearnedText == "" {
		return text
	}
	return text + fmt.Sprintf(". Learned %s: %s. Halved in %s unless it is needed",
		ago(float64(p.LearnedAgoNs)/1e6), p.LearnedText, ns(p.HalvesInNs))
}

// changes adds the last changes of leader.
func (p *page) changes(s *Status) {
	if len(s.Changes) == 0 {
		return
	}
	p.heading("last changes of leader")
	var list []row
	for _, c := range s.Changes[:min(len(s.Changes), maxChanges)] {
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
		list = append(list, row{cells: []string{ago(c.AgoMs)}, text: text})
	}
	p.list("  ", ">", list)
}

// problems adds what needs a person's attention.
func (p *page) problems(s *Status) {
	if len(s.Problems) == 0 {
		return
	}
	p.heading("needs attention")
	for _, problem := range s.Problems {
		p.item(notice, "  ! ", problem.Text)
	}
}

// The identifiers that the text of checks and grades depends on.
const (
	gradePassing   = "passing"
	gradeProbation = "probation"
	stateFailing   = "failing"
)

// grade says how fit this board is to lead, and why. It is "" for a board that passes and has no checks.
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
	p.heading("checks of this board")
	var list []row
	for i := range s.Checks {
		c := &s.Checks[i]
		r := row{cells: []string{cmp.Or(strings.ReplaceAll(c.State, "_", " "), "unknown"), span(float64(c.SinceNs) / 1e6)}}
		r.text = cmp.Or(c.NameText, strings.TrimSpace(c.Kind+" "+c.Target))
		if c.State == stateFailing {
			r.style = notice
		}
		if c.Text != "" {
			r.text += ": " + c.Text
		}
		list = append(list, r)
	}
	p.list("  ", "<>", list)
}

// rotation says how far the group is with a change of its key.
func (s *Status) rotation() string {
	own := &s.Board
	signing, also := map[string]int{}, own.AlsoAccepts
	order := []string{own.SignsWith}
	boards, changing := 0, also != ""
	for i := range s.Boards {
		b := &s.Boards[i]
		if !b.Self && !b.live() {
			continue
		}
		boards++
		if b.SignsWith == "" {
			continue
		}
		changing = changing || b.SignsWith != own.SignsWith || b.AlsoAccepts != also
		if signing[b.SignsWith]++; !slices.Contains(order, b.SignsWith) {
			order = append(order, b.SignsWith)
		}
	}
	if !changing || own.SignsWith == "" {
		return ""
	}
	text := "changing: this board signs with " + own.SignsWith
	if also != "" {
		text += " and accepts " + also + " as well"
	}
	var counts []string
	for _, key := range order {
		counts = append(counts, fmt.Sprintf("%d with %s", signing[key], key))
	}
	return text + fmt.Sprintf("; of %d boards sign %s", boards, strings.Join(counts, ", "))
}
