package scenario

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"topdog/internal/lab/scene"
	"topdog/wire"
)

// FaultFlag is a flag that is a line of a scene: a fault, or its end.
type FaultFlag struct {
	Name, Usage, Example string

	of  scene.Form
	end string // the line that ends it, or ""
}

// Notice is the flag of a board that notices that its leader is gone, and noticeLine what it does in a scene. heartbeatLine waits
// until the next heartbeat of the leader has arrived, if it is one of some boards: then nobody else misses it for a whole interval.
const (
	Notice        = "notice"
	noticeLine    = "notices"
	heartbeatLine = "heartbeat"
)

// leaderEnders are the faults that --notice waits for.
var leaderEnders = []string{"kill", "kill-daemon", "stop", "freeze", "freeze-daemon", "pull", "cut", "mute"}

// notSimulated are faults that a core alone does not have: it has no holder, and no other power than its process.
var notSimulated = []string{"kill-holder", "power-off"}

// FaultFlags are the flags of all faults that are simulated.
func FaultFlags() (flags []FaultFlag) {
	add := func(f FaultFlag) {
		if !slices.ContainsFunc(flags, func(other FaultFlag) bool { return other.Name == f.Name }) {
			flags = append(flags, f)
		}
	}
	examples := map[scene.Form]string{
		scene.OfBoards: "5@2s or 4,5@2s", scene.OfLAN: "2s", scene.OfGroups: "1,2/3,4@2s", scene.OfTwoGroups: "1,2/3,4@2s", scene.OfShare: "20%@2s",
	}
	for _, f := range scene.Faults {
		if slices.Contains(notSimulated, f.Name) {
			continue
		}
		example := examples[f.Of]
		if f.End != "" {
			example += "+500ms"
		}
		add(FaultFlag{Name: f.Name, Usage: f.Title, Example: example, of: f.Of, end: f.End})
		if f.End != "" && !strings.Contains(f.End, " ") {
			of := f.Of
			if of != scene.OfBoards {
				of = scene.OfLAN
			}
			add(FaultFlag{Name: f.End, Usage: f.Ended, Example: examples[of], of: of})
		}
	}
	return append(flags, FaultFlag{
		Name: Notice, Example: "2 or 2@2.1s",
		Usage: "only this board notices at once that its leader is gone; without a time, it notices the first fault of a leader, which then happens just after the leader's next heartbeat",
	})
}

// timedLines are lines of a scene that come at one time.
type timedLine struct {
	at   time.Duration
	text string
	kind string
}

// sceneOfFaults writes the faults as a scene, and says when the first one comes.
func (r *Request) sceneOfFaults() (text string, first time.Duration, err error) {
	var lines, notices []timedLine
	for _, f := range FaultFlags() {
		for _, value := range *r.Faults[f.Name] {
			more, err := r.readFault(f, value)
			if err != nil {
				return "", 0, fmt.Errorf("--%s: %w", f.Name, err)
			}
			if more[0].at < 0 {
				notices = append(notices, more...)
			} else {
				lines = append(lines, more...)
			}
		}
	}
	sort.SliceStable(lines, func(i, j int) bool { return lines[i].at < lines[j].at })
	text = fmt.Sprintf("boards %d run\n", r.Scenario.Nodes)
	noticed := len(notices) == 0
	for i := 0; i < len(lines); {
		now := lines[i:]
		if n := slices.IndexFunc(now, func(l timedLine) bool { return l.at != now[0].at }); n > 0 {
			now = now[:n]
		}
		i += len(now)
		var gone []string // the boards of which one may be the leader that is missed
		for _, l := range now {
			if boards, _, _ := strings.Cut(l.text, " "); !noticed && slices.Contains(leaderEnders, l.kind) {
				gone = append(gone, boards)
			}
		}
		if gone != nil {
			text += fmt.Sprintf("at %v: %s %s\n", now[0].at, strings.Join(gone, ","), heartbeatLine)
		}
		for _, l := range now {
			text += fmt.Sprintf("at %v: %s\n", l.at, l.text)
		}
		if gone != nil {
			for _, n := range notices {
				text += n.text + "\n"
			}
			noticed = true
		}
	}
	switch {
	case !noticed:
		return "", 0, errors.New("--notice: there is nothing to notice; add a fault such as --kill, or say when: --notice 2@2s")
	case len(lines) > 0:
		first = lines[0].at
	}
	return text, first, nil
}

// readFault reads a fault as people write it: its line, and that of its end if it says for how long it lasts. One that does not
// say when is before the beginning.
func (r *Request) readFault(f FaultFlag, value string) ([]timedLine, error) {
	lines, err := r.lines(f, value)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%q: %w; write it like %s", value, err, f.Example)
	case lines[0].at > r.Scenario.For:
		return nil, fmt.Errorf("%v is after the end at %v; see --for", lines[0].at, r.Scenario.For)
	}
	return lines, nil
}

func (r *Request) lines(f FaultFlag, value string) ([]timedLine, error) {
	what, when, timed := strings.Cut(value, "@")
	switch {
	case f.of == scene.OfLAN && timed && what != "":
		return nil, errors.New("it is about no single board")
	case f.of == scene.OfLAN && !timed:
		what, when, timed = "", what, true
	}
	line, err := r.line(f, what)
	switch {
	case err != nil:
		return nil, err
	case !timed && f.Name == Notice:
		return []timedLine{{-1, line, f.Name}}, nil
	case !timed:
		return nil, errors.New("it does not say when")
	}
	begins, lasts, spans := strings.Cut(when, "+")
	at, err := scene.ReadTime(begins)
	lines := []timedLine{{at, line, f.Name}}
	if err != nil || !spans {
		return lines, err
	}
	d, err := scene.ReadTime(lasts)
	switch {
	case err != nil:
		return nil, err
	case f.end == "":
		return nil, errors.New("it has no duration")
	case d == 0:
		return nil, errors.New("it must last for some time")
	}
	end := f.end
	if f.of == scene.OfBoards {
		end = strings.TrimSuffix(line, f.Name) + end
	}
	return append(lines, timedLine{at + d, end, f.end}), nil
}

// line is the line of a scene for what stands before the time.
func (r *Request) line(f FaultFlag, what string) (line string, err error) {
	switch f.of {
	case scene.OfLAN:
		return f.Name, nil
	case scene.OfShare:
		_, err := scene.ReadShare(what)
		return f.Name + " " + what, err
	}
	groups := strings.Split(what, "/")
	switch {
	case f.of == scene.OfGroups && len(groups) < 2, f.of == scene.OfTwoGroups && len(groups) != 2:
		return "", errors.New("it needs two groups with a / between them")
	case f.of == scene.OfBoards && len(groups) > 1:
		return "", errors.New("it is about one group of boards, without a /")
	}
	var all []wire.ID
	for i, g := range groups {
		ids, err := parseIDs(g)
		if err == nil {
			err = r.Scenario.have(ids)
		}
		if err != nil {
			return "", err
		}
		var names []string
		for _, id := range ids {
			if slices.Contains(all, id) {
				return "", fmt.Errorf("board %v is in it twice", id)
			}
			all, names = append(all, id), append(names, scene.Name(int(id)))
		}
		groups[i] = strings.Join(names, ",")
	}
	switch {
	case f.Name == Notice:
		return groups[0] + " " + noticeLine, nil
	case f.of == scene.OfBoards:
		return groups[0] + " " + f.Name, nil
	}
	return f.Name + " " + strings.Join(groups, " / "), nil
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
