package daemon

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/wire"
)

// ProgramName is the version of a program as a HELLO can tell it.
func ProgramName(version string) string {
	if len(version) > wire.MaxName {
		version = version[:wire.MaxName]
	}
	if !wire.NameFits(version) {
		return ""
	}
	return version
}

// setting is one of them, as a configuration writes it.
type setting struct {
	key   string
	value func(wire.Settings) string
}

var settings = []setting{
	{"address", func(s wire.Settings) string {
		if len(s.Addresses) == 1 {
			return quoted(s.Addresses)
		}
		return "[" + quoted(s.Addresses) + "]"
	}},
	{"heartbeat", func(s wire.Settings) string { return config.Quote(s.Heartbeat.String()) }},
}

// member is a live board that has told its settings.
type member struct {
	id       wire.ID
	called   string // for people
	name     string
	settings wire.Settings
}

// members are this board and the others that are live, in the order of their ids.
func (d *Daemon) members(now time.Duration) []member {
	all := []member{{d.group.self, d.called(d.group.self), d.cfg.Name, d.group.settings}}
	for id, seen := range d.group.sightings {
		if id != d.group.self && seen.settings.Told() && d.hears(id, now) {
			all = append(all, member{id, d.called(id), seen.name, seen.settings})
		}
	}
	others := all[1:]
	sort.Slice(others, func(i, j int) bool { return others[i].id < others[j].id })
	return all
}

// differing returns a problem for each board that has a setting unlike the others: unlike most of them, or, if there are no
// most, unlike the first one, which asks.
func differing(members []member) (found []console.Problem) {
	unlike := make([][]string, len(members))
	for _, s := range settings {
		usual, by := usualValue(members, s)
		for i := range members {
			if value := s.value(members[i].settings); value != usual {
				unlike[i] = append(unlike[i], fmt.Sprintf("%s = %s where %s %s", s.key, value, by, usual))
			}
		}
	}
	for i, differences := range unlike {
		if len(differences) > 0 {
			found = append(found, console.Problem{Kind: console.ProblemSettings, Board: members[i].id.String(), Text: fmt.Sprintf(
				"%s has %s: make the configurations alike, and restart topdog on each board on which you change one", members[i].called, strings.Join(differences, ", and "))})
		}
	}
	return found
}

// usualValue returns the value that most members have, and who has it, in words.
func usualValue(members []member, s setting) (usual, by string) {
	counts := map[string]int{}
	for i := range members {
		counts[s.value(members[i].settings)]++
	}
	own := s.value(members[0].settings)
	for value, count := range counts {
		if 2*count > len(members) {
			return value, "the others have"
		}
	}
	return own, members[0].called + " has"
}

// namesakes returns a problem for each name that several boards have: people could not tell them apart.
func namesakes(members []member) (found []console.Problem) {
	members = slices.Clone(members)
	sort.Slice(members, func(i, j int) bool { return members[i].id < members[j].id })
	for len(members) > 0 {
		first, ids := members[0], []string(nil)
		members = slices.DeleteFunc(members, func(m member) bool {
			same := m.name == first.name
			if same {
				ids = append(ids, m.id.String())
			}
			return same
		})
		if len(ids) > 1 && first.name != "" {
			found = append(found, console.Problem{Kind: console.ProblemSameName, Board: ids[0], Text: fmt.Sprintf(
				"the boards %s are all called %s: give them different host names, or set `name`", strings.Join(ids, ", "), first.name)})
		}
	}
	return found
}

// settingsProblems says which live boards do not agree with the others.
func (d *Daemon) settingsProblems(now time.Duration) []console.Problem {
	members := d.members(now)
	return append(differing(members), namesakes(members)...)
}

// checkSettings tells people when a board has told other settings than before, and they differ from those of others.
func (d *Daemon) checkSettings() {
	if d.core == nil || !d.group.takeToldAnew() {
		return
	}
	found := d.settingsProblems(d.now())
	for _, p := range found {
		if !slices.Contains(d.differences, p) {
			d.reporter.log.Warn(p.Text)
		}
	}
	d.differences = found
}
