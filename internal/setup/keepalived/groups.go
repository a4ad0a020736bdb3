package keepalived

import (
	"fmt"
	"slices"
	"strings"
)

// ChoiceError says that a file has several groups, of which one has to be chosen.
type ChoiceError struct {
	file  string
	names []string
	why   string
}

func (e *ChoiceError) Error() string {
	return fmt.Sprintf("%s %s: %s", e.file, e.why, strings.Join(e.names, ", "))
}

// file is what was read.
type file struct {
	path string
	top  []*statement
}

// all returns the blocks of a keyword.
func (f *file) all(keyword string) []*statement { return under(f.top, keyword) }

// under returns the statements of a keyword in a block.
func under(block []*statement, keyword string) (found []*statement) {
	for _, s := range block {
		if s.keyword() == keyword {
			found = append(found, s)
		}
	}
	return found
}

// last returns the last statement of a keyword in a block, or nil.
func last(block []*statement, keyword string) (found *statement) {
	for _, s := range block {
		if s.keyword() == keyword {
			found = s
		}
	}
	return found
}

// named returns the first block of a keyword that has this name, or nil. keepalived does not heed a second one.
func (f *file) named(keyword, name string) *statement {
	for _, s := range f.all(keyword) {
		if s.text(1) == name {
			return s
		}
	}
	return nil
}

// selection is what becomes one group of topdog.
type selection struct {
	group     *statement // a vrrp_sync_group, or nil
	instances []*statement
}

// blocks are those that track something, or notify somebody.
func (s selection) blocks() []*statement {
	if s.group != nil {
		return append(slices.Clone(s.instances), s.group)
	}
	return s.instances
}

func (s selection) name() string {
	if s.group != nil {
		return s.group.text(1)
	}
	return s.instances[0].text(1)
}

// members returns the instances of a sync group.
func (f *file) members(group *statement) (instances []*statement) {
	for _, list := range under(group.block, "group") {
		for _, line := range list.block {
			for _, w := range line.words {
				if s := f.named("vrrp_instance", w.text); s != nil {
					instances = append(instances, s)
				}
			}
		}
	}
	return instances
}

// selections are the groups of topdog that the file could become.
func (f *file) selections() (all []selection) {
	inGroup := map[*statement]bool{}
	for _, g := range f.all("vrrp_sync_group") {
		if f.named("vrrp_sync_group", g.text(1)) != g {
			continue
		}
		members := f.members(g)
		for _, s := range members {
			inGroup[s] = true
		}
		if len(members) > 0 {
			all = append(all, selection{group: g, instances: members})
		}
	}
	for _, s := range f.all("vrrp_instance") {
		if !inGroup[s] && f.named("vrrp_instance", s.text(1)) == s {
			all = append(all, selection{instances: []*statement{s}})
		}
	}
	return all
}

// choose finds what is to be converted.
func (f *file) choose(name string) (selection, error) {
	for _, s := range f.all("vrrp_instance") {
		if s.text(1) == "" {
			return selection{}, mistake(s.place, "write a name behind it", "this vrrp_instance has no name")
		}
	}
	all := f.selections()
	names := make([]string, len(all))
	for i, s := range all {
		names[i] = printable(s.name())
	}
	if name != "" {
		for _, s := range all {
			if s.name() == name {
				return s, nil
			}
		}
		if s := f.named("vrrp_instance", name); s != nil { // of a sync group
			return selection{instances: []*statement{s}}, nil
		}
		return selection{}, &ChoiceError{f.path, names, fmt.Sprintf("has no vrrp_instance %s, but", printable(name))}
	}
	switch len(all) {
	case 0:
		return selection{}, mistake(Place{file: f.path}, "topdog keeps addresses, which keepalived has in blocks vrrp_instance", "there is no vrrp_instance in it")
	case 1:
		return all[0], nil
	}
	return selection{}, &ChoiceError{f.path, names, "has several groups of addresses, which may be on different boards, and each is a daemon of topdog's own; choose one of"}
}
