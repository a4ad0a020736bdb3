package config

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"topdog/gpio"
	"topdog/wire"
)

// Groups are the configurations of the groups that a board is in, in the order of the file. There is always one.
// The keys of the whole board, such as the socket and the key file, have the same value in all of them.
type Groups []*Config

// MaxGroups is how many groups a board can be in. Each has its sockets and its timers, and the holder opens the
// sockets of one after the other while the daemon waits.
const MaxGroups = 8

// First returns the first group. It is for the keys of the whole board.
func (g Groups) First() *Config { return g[0] }

// Named returns the group of that name, or nil.
func (g Groups) Named(group string) *Config {
	for _, c := range g {
		if c.Group == group {
			return c
		}
	}
	return nil
}

// Names returns the names of the groups.
func (g Groups) Names() []string {
	names := make([]string, len(g))
	for i, c := range g {
		names[i] = c.Group
	}
	return names
}

// WithVoters returns the groups that have voters: those in which a witness takes part.
func (g Groups) WithVoters() Groups {
	return slices.DeleteFunc(slices.Clone(g), func(c *Config) bool { return len(c.Voters) == 0 })
}

// WithSecondPath returns the groups that have a second path.
func (g Groups) WithSecondPath() Groups {
	return slices.DeleteFunc(slices.Clone(g), func(c *Config) bool { return !c.SecondPath })
}

// ReadKeys reads the secrets from the key file, which is the same for all groups, unless there are none.
func (g Groups) ReadKeys() error {
	file := g.First().KeyFile
	if file == NoKey {
		return nil
	}
	keys, err := LoadKeys(file)
	for _, c := range g {
		c.Keys = keys
	}
	return err
}

// groupKey names a group: at the top level by a key, where there are several by tables. In a table the key is nameKey.
const (
	groupKey      = "group"
	nameKey       = "name"
	groupCheckKey = groupKey + "." + checkKey
)

// groupTable is a [[group]], and the checks below it.
type groupTable struct {
	table
	checks []table
}

// groupSettings lists the keys that a [[group]] takes.
func groupSettings(c *Config) (all []setting) {
	for _, k := range settings(c) {
		switch {
		case k.name == groupKey:
			k.name, k.example = nameKey, `"dns1"`
		case k.board:
			continue
		}
		all = append(all, k)
	}
	return all
}

// readGroups returns a reading for each group of the file.
func (r *reading) readGroups() []*reading {
	if len(r.groups) == 0 {
		return []*reading{r}
	}
	for _, key := range []string{groupKey, "address"} {
		r.refuseBeside(key)
	}
	var all []*reading
	for i, g := range r.groups {
		if i == MaxGroups {
			r.report(g.at, fmt.Sprintf("this is group %d of %d, more than %d", i+1, len(r.groups), MaxGroups),
				fmt.Sprintf("keep at most %d groups", MaxGroups))
			break
		}
		all = append(all, r.readGroup(i, g))
	}
	return all
}

// refuseBeside refuses a key of the top level that each [[group]] has for itself.
func (r *reading) refuseBeside(key string) {
	inTable := key
	if key == groupKey {
		inTable = nameKey
	}
	for _, e := range r.entries {
		if e.key == key {
			r.top.refuse(key, e.at, "here begin groups with [["+groupKey+"]], and each has its own "+inTable,
				"write "+inTable+" below each [["+groupKey+"]], and delete this line")
		}
	}
}

// readGroup reads the keys of a table over those of the top level.
func (r *reading) readGroup(place int, g groupTable) *reading {
	one := newReading(r.findings)
	one.at, one.checks = &g.at, r.checks
	own := one.newSection("", groupSettings(one.cfg))
	replaced := map[string]bool{groupKey: true, "address": true, checkKey: true}
	for _, e := range g.entries {
		if e.key != nameKey { // which is the board's at the top level
			replaced[e.key] = true
		}
		if e.key == checkKey {
			one.checks = nil
		}
	}
	if len(g.checks) > 0 {
		one.checks = nil
	}
	for _, e := range r.entries {
		if !replaced[e.key] {
			one.top.read(e)
		}
	}
	one.own = own
	own.readAll(g.entries)
	if _, listed := own.keys[checkKey]; listed && len(g.checks) > 0 {
		own.refuse(checkKey, g.checks[0].at, "the list of checks is complete already", "write all checks of this group as [["+groupCheckKey+"]]")
	}
	one.checks = append(slices.Clip(one.checks), g.checks...)
	if _, named := own.keys[nameKey]; !named && !own.bad[nameKey] && len(r.groups) > 1 {
		own.bad[nameKey] = true
		r.report(g.at, nameKey+" is missing, and there are several groups", "write "+nameKey+` = "dns1", or another name`)
	}
	if _, lit := own.keys["led"]; !lit && place > 0 {
		one.cfg.LED = gpio.Spec{} // a light shows one group
		delete(one.top.values, "led")
	}
	one.top.bad["address"] = r.top.bad["address"] // which is there, and in the wrong place
	for key, at := range own.keys {
		one.top.keys[atTop(key)] = at
	}
	for key, at := range own.values {
		one.top.values[atTop(key)] = at
	}
	for key, bad := range own.bad {
		one.top.bad[atTop(key)] = bad
	}
	return one
}

// atTop returns what the top level calls a key of a [[group]].
func atTop(key string) string {
	if key == nameKey {
		return groupKey
	}
	return key
}

// marks are those of a group in packets, by which boards tell groups and paths apart: of its first path, and of its second.
func (c *Config) marks() []wire.GroupTag {
	all := []wire.GroupTag{wire.TagOf(c.Group)}
	if c.SecondInterface != "" {
		all = append(all, wire.TagOf(wire.OnSecondPath(c.Group)))
	}
	return all
}

// validateGroups refuses groups, and paths of a group, that cannot be told apart.
func (r *reading) validateGroups(before []*reading) {
	marks := r.cfg.marks()
	if len(marks) > 1 && marks[0] == marks[1] {
		r.contradictsName("both paths of a group of this name have the same mark in packets, by which boards tell paths apart", "choose another name")
	}
	for _, other := range before {
		line, _ := r.position(other.at.offset)
		above := fmt.Sprintf("the group of line %d", line)
		c, o := r.cfg, other.cfg
		onOnePath := ""
		if len(marks) > 1 || len(o.marks()) > 1 {
			onOnePath = " on one path"
		}
		switch {
		case r.anyBad(groupKey) || other.anyBad(groupKey):
		case c.Group == o.Group:
			r.contradictsName(above+" is called so too", "write another name")
		case slices.ContainsFunc(marks, func(m wire.GroupTag) bool { return slices.Contains(o.marks(), m) }):
			r.contradictsName(fmt.Sprintf("%s, %s, has the same mark in packets%s, by which boards tell groups apart", quoted(o.Group), above, onOnePath),
				"choose another name for one of the two")
		}
		if !r.anyBad("address") {
			for i, a := range c.Addresses {
				if o.isFloating(a.IP) {
					r.contradicts("address", i, fmt.Sprintf("%s is an address of %s too", a.IP, above), "each group has addresses of its own")
				}
			}
		}
		if c.LED != (gpio.Spec{}) && c.LED == o.LED && !r.anyBad("led") {
			r.contradicts("led", 0, above+" has this light too, and a light shows one group", "write another light, or \"none\"")
		}
	}
}

// contradictsName reports a problem with the name of a group, which the file sets.
func (r *reading) contradictsName(message, hint string) {
	if r.own == nil {
		r.contradicts(groupKey, 0, message, hint)
		return
	}
	r.own.refuse(nameKey, r.own.values[nameKey][0], message, hint)
}

// floating returns the group whose floating address addr is, and says so; nil if it is none.
func (r *reading) floating(addr netip.Addr) (group *Config, whose string) {
	for _, other := range r.all {
		switch {
		case !other.cfg.isFloating(addr):
		case len(r.all) == 1:
			return other.cfg, "the floating address"
		default:
			return other.cfg, "the floating address of the group " + quoted(other.cfg.Group)
		}
	}
	return nil, ""
}

// What prefer makes of the priority: firstPreferred for the first board of the list, one less for the next, and so on.
const (
	firstPreferred = 150
	maxPreferred   = 16
)

// prefer turns the list of preferred boards into the priority of this board.
func (r *reading) prefer() {
	if len(r.cfg.Prefer) == 0 || r.anyBad("prefer", "priority", "preempt") {
		return
	}
	for _, key := range []string{"priority", "preempt"} {
		if len(r.top.values[key]) > 0 {
			r.contradicts("prefer", 0, key+" is set too, and prefer says what it is", "delete one of the two lines")
			return
		}
	}
	place := slices.IndexFunc(r.cfg.Prefer, func(name string) bool { return strings.EqualFold(name, r.cfg.Name) })
	if place >= 0 {
		r.cfg.Priority, r.cfg.Preempt = uint8(firstPreferred-place), true
	}
}
