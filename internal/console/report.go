package console

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// State is the result of something that `topdog check` has looked at. The values are part of the interface.
type State string

// The states, the best first.
const (
	StateRight   State = "right"
	StateLook    State = "look"    // it works, but needs a person's attention
	StateUnknown State = "unknown" // it could not be found out
	StateWrong   State = "wrong"   // the daemon does not start or has to wait because of it, or a check fails
)

// Finding is what was found out about something.
type Finding struct {
	Topic  Topic  `json:"topic"`
	State  State  `json:"state"`
	Text   string `json:"text"`   // what was found, for people
	Remedy string `json:"remedy"` // what to do, for people; "" if there is nothing to do, or if the text already says it
}

// Topic is what a finding is about. The values are part of the interface.
type Topic string

// The topics.
const (
	TopicConfiguration Topic = "configuration" // the file
	TopicKey           Topic = "key"           // the key file
	TopicInterface     Topic = "interface"     // the interface of the group, and the network that the daemon sees there
	TopicSecondPath    Topic = "second_path"   // the second path of the group
	TopicPowerSave     Topic = "power_save"    // of a Wi-Fi interface
	TopicDHCP          Topic = "dhcp"          // whether a DHCP server hands out a floating address
	TopicAddress       Topic = "address"       // who has a floating address
	TopicSockets       Topic = "sockets"       // the sockets of the group, and the rights that they need
	TopicFirewall      Topic = "firewall"      // of this board
	TopicOtherBoard    Topic = "other_board"   // another board of the group
	TopicDaemon        Topic = "daemon"        // the daemon of this board
	TopicProblem       Topic = "problem"       // a problem that the daemon has
	TopicUnit          Topic = "unit"          // a unit of systemd
	TopicLight         Topic = "light"
	TopicClock         Topic = "clock"
	TopicTried         Topic = "tried" // who has tried the checks
	TopicCheck         Topic = "check"
)

// Section has the findings about one part of a board.
type Section struct {
	Section  string    `json:"section"`         // one of the Section constants
	Group    string    `json:"group,omitempty"` // that it is about, if the board has several and the section is not about all
	Findings []Finding `json:"findings"`
}

// The sections of a report (Section.Section).
const (
	SectionFiles   = "files"
	SectionNetwork = "network"
	SectionGroup   = "group"
	SectionBoard   = "board"
	SectionChecks  = "checks"
)

// Report is what `topdog check` has found. The keys and identifiers in the JSON are part of the interface.
type Report struct {
	File     string    `json:"file"`  // the configuration
	State    State     `json:"state"` // the worst of all findings that are not unknown
	Sections []Section `json:"sections"`
}

// Add adds a finding to a section, which it creates if there is none yet. The group is "" for what is not about one of
// several.
func (r *Report) Add(group, section string, f Finding) {
	if r.State == "" {
		r.State = StateRight
	}
	if f.State == StateWrong || f.State == StateLook && r.State == StateRight {
		r.State = f.State
	}
	for i := range r.Sections {
		if s := &r.Sections[i]; s.Section == section && s.Group == group {
			s.Findings = append(s.Findings, f)
			return
		}
	}
	r.Sections = append(r.Sections, Section{section, group, []Finding{f}})
}

// Share moves what was found in a section of every group to a section without a group, before theirs: it concerns the board.
func (r *Report) Share(section string) {
	var of []*Section
	before := len(r.Sections)
	for i := range r.Sections {
		if s := &r.Sections[i]; s.Section == section && s.Group != "" {
			of = append(of, s)
			before = min(before, i)
		}
	}
	if len(of) == 0 {
		return
	}
	shared := Section{Section: section}
	for _, f := range of[0].Findings {
		if !slices.ContainsFunc(of, func(s *Section) bool { return !slices.Contains(s.Findings, f) }) {
			shared.Findings = append(shared.Findings, f)
		}
	}
	for _, s := range of {
		s.Findings = slices.DeleteFunc(s.Findings, func(f Finding) bool { return slices.Contains(shared.Findings, f) })
	}
	r.Sections = slices.Insert(r.Sections, before, shared)
	r.Sections = slices.DeleteFunc(r.Sections, func(s Section) bool { return len(s.Findings) == 0 })
}

// verdicts are the first line of a report.
var verdicts = map[State]string{
	StateRight: "this board is ready",
	StateLook:  "this board is ready, and something should be looked at",
	StateWrong: "this board is not ready",
}

// looks are the looks of the states.
var looks = map[State]style{StateRight: plain, StateLook: notice, StateUnknown: dim, StateWrong: urgent}

// WriteReport writes a report as a tree: first the verdict, and then every finding, with what to do.
func WriteReport(w io.Writer, r Report, o Options) error {
	p := newPage(o)
	p.item(strong, "", fmt.Sprintf("%s (%s)", verdicts[r.State], r.File))
	for _, s := range r.Sections {
		heading := s.Section
		if s.Group != "" {
			heading = s.Group + ": " + heading
		}
		p.line(strong, heading)
		for _, f := range s.Findings {
			p.item(looks[f.State], "  "+pad(string(f.State), 9, false), strings.ReplaceAll(string(f.Topic), "_", " ")+": "+f.Text)
			if f.Remedy != "" {
				p.item(looks[f.State], strings.Repeat(" ", 11), "→ "+f.Remedy)
			}
		}
	}
	_, err := io.WriteString(w, p.text.String())
	return err
}
