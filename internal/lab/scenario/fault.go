package scenario

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"topdog/internal/lab/sim"
	"topdog/wire"
)

// FaultKind is something that can happen to boards, or to the LAN.
type FaultKind uint8

// The kinds. Their names are those of the flags of `topdog sim run`.
const (
	Crash FaultKind = iota
	Restart
	Pull
	Plug
	Mute
	Unmute
	Pause
	resume // the end of a pause
	Stop
	Resign
	Notice
	Partition
	OneWay
	Heal
	kindCount
)

// form is how a fault is written down.
type form uint8

const (
	formBoards form = iota // 3@2s, 3,4@2s
	formSpan               // 3@2s+500ms
	formNotice             // 3, 3@2s
	formGroups             // 1,2/3,4@2s
	formTwo                // the same with exactly two groups
	formTime               // 6s
)

var formExamples = [...]string{
	formBoards: "5@2s or 4,5@2s", formSpan: "3@2s+500ms", formNotice: "2 or 2@2.1s",
	formGroups: "1,2/3,4@2s", formTwo: "1,2/3,4@2s", formTime: "6s",
}

// kinds says how each kind is written and what it does to one board.
var kinds = [kindCount]struct {
	name, usage string
	form        form
	do          func(*sim.Board)
}{
	Crash:     {"crash", "these boards crash, or lose their power", formBoards, (*sim.Board).Crash},
	Restart:   {"restart", "they are switched on again", formBoards, func(b *sim.Board) { b.Crash(); b.Start() }},
	Pull:      {"pull", "their cables are pulled", formBoards, (*sim.Board).Pull},
	Plug:      {"plug", "their cables are put back", formBoards, (*sim.Board).Plug},
	Mute:      {"mute", "the switch drops their frames, and they do not notice", formBoards, (*sim.Board).Mute},
	Unmute:    {"unmute", "the switch passes their frames again", formBoards, (*sim.Board).Unmute},
	Pause:     {"pause", "their processes stand still for that long", formSpan, (*sim.Board).Freeze},
	resume:    {"resume", "", formBoards, (*sim.Board).Thaw},
	Stop:      {"stop", "their daemons are stopped; a leader hands over first", formBoards, (*sim.Board).Stop},
	Resign:    {"resign", "the leader is told to hand over", formBoards, func(b *sim.Board) { _ = b.Resign() }}, // who does not lead cannot
	Notice:    {"notice", "only this board notices at once that its leader is gone; without a time, it notices the first crash, pull, mute, pause or stop of a leader, which then happens just after the leader's next heartbeat", formNotice, (*sim.Board).Suspect},
	Partition: {"partition", "the groups do not hear each other any more; boards that are in none form one more", formGroups, nil},
	OneWay:    {"one-way", "the boards of the second group do not hear those of the first any more", formTwo, nil},
	Heal:      {"heal", "partitions end", formTime, nil},
}

// ends are the kinds that end those which have a duration.
var ends = map[FaultKind]FaultKind{Pause: resume}

// leaderEnders are the faults that --notice waits for.
var leaderEnders = []FaultKind{Crash, Pull, Mute, Pause, Stop}

// Kinds returns the faults that a person can write down.
func Kinds() []FaultKind {
	var all []FaultKind
	for k := range kindCount {
		if k != resume {
			all = append(all, k)
		}
	}
	return all
}

func (k FaultKind) String() string { return kinds[k].name }

// Usage says what the fault is, and Example how it is written.
func (k FaultKind) Usage() string { return kinds[k].usage }

// Example shows how the fault is written.
func (k FaultKind) Example() string { return formExamples[kinds[k].form] }

// Fault is something that happens at some moment.
type Fault struct {
	Kind   FaultKind
	Boards [][]wire.ID // groups of them; one, unless it is a partition
	At     time.Duration
	For    time.Duration // 0 is for good
	timed  bool
}

// parseFault reads a fault as people write it.
func parseFault(kind FaultKind, s string) (Fault, error) {
	f := Fault{Kind: kind}
	fail := func(err error) (Fault, error) {
		return Fault{}, fmt.Errorf("%q: %w; write it like %s", s, err, kind.Example())
	}
	boards, when, timed := strings.Cut(s, "@")
	if kinds[kind].form == formTime {
		if timed && boards != "" {
			return fail(fmt.Errorf("it is about no single board"))
		}
		if !timed {
			when = boards
		}
		timed = true
	}
	f.timed = timed
	if kinds[kind].form != formTime {
		if err := f.parseGroups(boards); err != nil {
			return fail(err)
		}
	}
	switch {
	case timed:
		if err := f.parseTimes(when); err != nil {
			return fail(err)
		}
	case kinds[kind].form != formNotice:
		return fail(fmt.Errorf("it does not say when"))
	}
	return f, nil
}

func (f *Fault) parseGroups(s string) error {
	groups := strings.Split(s, "/")
	switch form := kinds[f.Kind].form; {
	case form == formGroups && len(groups) < 2, form == formTwo && len(groups) != 2:
		return fmt.Errorf("it needs two groups with a / between them")
	case form != formGroups && form != formTwo && len(groups) > 1:
		return fmt.Errorf("it is about one group of boards, without a /")
	}
	var all []wire.ID
	for _, g := range groups {
		ids, err := parseIDs(g)
		if err != nil {
			return err
		}
		for _, id := range ids {
			if slices.Contains(all, id) {
				return fmt.Errorf("%s is in it twice", name(id))
			}
			all = append(all, id)
		}
		f.Boards = append(f.Boards, ids)
	}
	return nil
}

func parseIDs(s string) ([]wire.ID, error) {
	var ids []wire.ID
	for word := range strings.SplitSeq(s, ",") {
		n, err := strconv.ParseUint(word, 10, 32)
		if err != nil || n == 0 {
			return nil, fmt.Errorf("%q is no board: they are numbered from 1", word)
		}
		ids = append(ids, wire.ID(n))
	}
	return ids, nil
}

func (f *Fault) parseTimes(s string) (err error) {
	at, span, found := strings.Cut(s, "+")
	if found != (kinds[f.Kind].form == formSpan) {
		if found {
			return fmt.Errorf("it has no duration")
		}
		return fmt.Errorf("it does not say for how long")
	}
	if f.At, err = parseTime(at); err != nil || !found {
		return err
	}
	if f.For, err = parseTime(span); err == nil && f.For == 0 {
		err = fmt.Errorf("it must last for some time")
	}
	return err
}

func parseTime(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is no time, such as 2s or 500ms", s)
	}
	return d, nil
}

// check looks whether a fault can happen in a scenario.
func (f *Fault) check(s *Scenario) error {
	for _, g := range f.Boards {
		for _, id := range g {
			if int(id) > s.Nodes {
				return fmt.Errorf("--%v: there is no %s, only 1 to %d", f.Kind, name(id), s.Nodes)
			}
		}
	}
	if f.timed && f.At > s.For {
		return fmt.Errorf("--%v: %v is after the end at %v; see --for", f.Kind, f.At, s.For)
	}
	if f.Kind == Notice && !f.timed && !slices.ContainsFunc(s.Faults, func(o Fault) bool { return slices.Contains(leaderEnders, o.Kind) }) {
		return fmt.Errorf("--notice: there is nothing to notice; add a fault such as --crash, or say when: --notice 2@2s")
	}
	return nil
}

// apply makes it happen.
func (f *Fault) apply(lan *sim.Sim) {
	switch f.Kind {
	case Partition:
		lan.Partition(f.Boards...)
	case OneWay:
		lan.Cut(f.Boards[0], f.Boards[1])
	case Heal:
		lan.Heal()
	default:
		for _, id := range f.Boards[0] {
			kinds[f.Kind].do(lan.Board(id.String()))
		}
	}
}

// String says what happens, as it was written.
func (f *Fault) String() string {
	var groups []string
	for _, g := range f.Boards {
		var ids []string
		for _, id := range g {
			ids = append(ids, id.String())
		}
		groups = append(groups, strings.Join(ids, ","))
	}
	return strings.TrimSpace(f.Kind.String() + " " + strings.Join(groups, "/"))
}
