package console

import (
	"fmt"
	"io"
	"strings"
)

// State is how something stands that `topdog check` has looked at. The values are part of the interface.
type State string

// The states, the best first.
const (
	StateRight   State = "right"
	StateLook    State = "look"    // it works, and a person should look at it
	StateUnknown State = "unknown" // it could not be found out
	StateWrong   State = "wrong"   // the daemon does not start with it, or waits; or a check fails
)

// Finding is what was found out about one thing.
type Finding struct {
	Topic  Topic  `json:"topic"`
	State  State  `json:"state"`
	Text   string `json:"text"`   // what was found, for people
	Remedy string `json:"remedy"` // what to do, for people; "" if nothing is, or the text says it
}

// Topic is what was looked at. The values are part of the interface.
type Topic string

// The topics.
const (
	TopicConfiguration Topic = "configuration" // the file
	TopicKey           Topic = "key"           // the file of the key
	TopicInterface     Topic = "interface"     // that of the group, and what the daemon makes of the network
	TopicPowerSave     Topic = "power_save"    // of the Wi-Fi interface
	TopicDHCP          Topic = "dhcp"          // whether a DHCP server hands out a floating address
	TopicAddress       Topic = "address"       // who has a floating address
	TopicSockets       Topic = "sockets"       // of the group, and the rights that they need
	TopicFirewall      Topic = "firewall"      // of this board
	TopicOtherBoard    Topic = "other_board"   // of the group
	TopicDaemon        Topic = "daemon"        // that of this board
	TopicProblem       Topic = "problem"       // that the daemon has
	TopicUnit          Topic = "unit"          // of systemd
	TopicLight         Topic = "light"
	TopicClock         Topic = "clock"
	TopicTried         Topic = "tried" // who has tried the checks
	TopicCheck         Topic = "check"
)

// Section are the findings about one part of a board.
type Section struct {
	Section  string    `json:"section"` // one of the Section constants
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

// Report is what `topdog check` has found. The names and identifiers in the JSON are part of the interface.
type Report struct {
	File     string    `json:"file"`  // the configuration
	State    State     `json:"state"` // wrong if something is, look if something should be looked at, else right
	Sections []Section `json:"sections"`
}

// Add adds a finding to a section, which is made if it is missing.
func (r *Report) Add(section string, f Finding) {
	if r.State == "" {
		r.State = StateRight
	}
	if f.State == StateWrong || f.State == StateLook && r.State == StateRight {
		r.State = f.State
	}
	for i := range r.Sections {
		if r.Sections[i].Section == section {
			r.Sections[i].Findings = append(r.Sections[i].Findings, f)
			return
		}
	}
	r.Sections = append(r.Sections, Section{section, []Finding{f}})
}

// verdicts are what people read first.
var verdicts = map[State]string{
	StateRight: "this board is ready",
	StateLook:  "this board is ready, and something should be looked at",
	StateWrong: "this board is not ready",
}

// looks are the styles of the states.
var looks = map[State]style{StateRight: plain, StateLook: notice, StateUnknown: dim, StateWrong: urgent}

// WriteReport shows a report as a tree: first the verdict, and then each thing that was looked at, with what to do.
func WriteReport(w io.Writer, r Report, o Options) error {
	p := newPage(o)
	p.item(strong, "", 0, fmt.Sprintf("%s (%s)", verdicts[r.State], r.File))
	for _, s := range r.Sections {
		p.line(strong, s.Section)
		for _, f := range s.Findings {
			p.item(looks[f.State], "  "+pad(string(f.State), 9, false), 11, strings.ReplaceAll(string(f.Topic), "_", " ")+": "+f.Text)
			if f.Remedy != "" {
				p.item(looks[f.State], "", 11, "→ "+f.Remedy)
			}
		}
	}
	_, err := io.WriteString(w, p.text.String())
	return err
}
