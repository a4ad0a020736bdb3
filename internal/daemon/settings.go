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

// setting is one that all boards of a group must have alike, as a configuration writes it.
type setting struct{ key, value string }

// settingsOf are those of a board.
func settingsOf(s wire.Settings) []setting {
	quoted := make([]string, len(s.Addresses))
	for i, addr := range s.Addresses {
		quoted[i] = config.Quote(addr.String())
	}
	address := strings.Join(quoted, ", ")
	if len(quoted) != 1 {
		address = "[" + address + "]"
	}
	return []setting{{"address", address}, {"heartbeat", config.Quote(s.Heartbeat.String())}}
}

// member is a live board that has told its settings.
type member struct {
	id       wire.ID
	name     string
	settings wire.Settings
}

// members are this board and the others that are live, in the order of their ids.
func (d *Daemon) members(now time.Duration) []member {
	all := []member{{d.group.self, d.cfg.Name, d.group.settings}}
	for id, b := range d.group.boards {
		if id != d.group.self && b.settings.Told() && d.hears(id, now) {
			all = append(all, member{id, b.name, b.settings})
		}
	}
	others := all[1:]
	sort.Slice(others, func(i, j int) bool { return others[i].id < others[j].id })
	return all
}

// differing says which members have a setting unlike the others: unlike most of them or, if there is no majority, unlike
// the first member, which asks. called names a board for people.
func differing(members []member, called func(wire.ID) string) map[wire.ID]string {
	if !slices.ContainsFunc(members, func(m member) bool { return !m.settings.Equal(members[0].settings) }) {
		return nil
	}
	unlike := map[wire.ID][]string{}
	for i, own := range settingsOf(members[0].settings) {
		values := make([]setting, len(members))
		counts := map[setting]int{}
		for k := range members {
			values[k] = settingsOf(members[k].settings)[i]
			counts[values[k]]++
		}
		usual, by := own, called(members[0].id)+" has"
		for s, count := range counts {
			if 2*count > len(members) {
				usual, by = s, "the others have"
			}
		}
		for k, s := range values {
			if id := members[k].id; s != usual {
				unlike[id] = append(unlike[id], fmt.Sprintf("%s = %s where %s %s", s.key, s.value, by, usual.value))
			}
		}
	}
	said := map[wire.ID]string{}
	for id, parts := range unlike {
		said[id] = fmt.Sprintf("%s has %s: make the configurations alike, and restart topdog on each board on which you change one",
			called(id), strings.Join(parts, ", and "))
	}
	return said
}

// namesakes says which names several boards have: people could not tell these boards apart.
func namesakes(members []member) map[wire.ID]string {
	ids := map[string][]wire.ID{} // by name
	for i := range members {
		if m := &members[i]; m.name != "" {
			ids[m.name] = append(ids[m.name], m.id)
		}
	}
	said := map[wire.ID]string{}
	for name, same := range ids {
		if len(same) > 1 {
			sort.Slice(same, func(i, j int) bool { return same[i] < same[j] })
			said[same[0]] = fmt.Sprintf("the boards %s are all called %s: give them different host names, or set `name`", joined(same), name)
		}
	}
	return said
}

// checkSettings tells people which live boards do not agree with the others.
func (d *Daemon) checkSettings(now time.Duration) {
	if d.core != nil {
		members := d.members(now)
		d.reporter.only(console.ProblemSettings, differing(members, d.called))
		d.reporter.only(console.ProblemSameName, namesakes(members))
	}
}
