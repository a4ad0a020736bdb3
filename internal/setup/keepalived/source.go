package keepalived

import (
	"fmt"
	"path"
	"slices"

	"topdog/internal/config"
)

// source is the file that is converted, and what is noted about its lines.
type source struct {
	file    block
	hasUnit func(name string) bool
	all     []*conversion
	notes   []Note
	noted   map[Note]bool
}

// any reports whether a conversion suits.
func (src *source) any(suits func(*conversion) bool) bool { return slices.ContainsFunc(src.all, suits) }

// note notes what became of a statement, once: two groups can use one block. act says that somebody has to look at it.
func (src *source) note(s *statement, act bool, format string, args ...any) {
	n := Note{Place: s.place, Keyword: printable(s.keyword()), Text: fmt.Sprintf(format, args...), Act: act}
	if !src.noted[n] {
		src.noted[n] = true
		src.notes = append(src.notes, n)
	}
}

// look notes that somebody has to look at a statement.
func (src *source) look(s *statement, format string, args ...any) { src.note(s, true, format, args...) }

// originOf says where a block is, for a comment.
func originOf(s *statement) string {
	return fmt.Sprintf("%s %s, %s:%d", s.keyword(), printable(s.text(1)), printable(path.Base(s.place.file)), s.place.line)
}

// name gives the groups their names: an only one that of its router ID, which all boards have in common, and several those
// of their instances.
func (src *source) name() {
	taken := map[string]bool{}
	fits := func(name string) bool { return config.CheckGroup(name) == nil && !taken[name] }
	for i, c := range src.all {
		own, common := c.instance.text(1), ""
		if c.routerID > 0 {
			common = fmt.Sprintf("vrrp-%d", c.routerID)
		}
		if len(src.all) == 1 {
			c.Name = common
			return
		}
		c.Name = own
		if !fits(own) {
			c.Name = common
		}
		for n := i + 1; !fits(c.Name); n++ {
			c.Name = fmt.Sprintf("group-%d", n)
		}
		taken[c.Name] = true
		if c.Name != own {
			c.note(c.instance, false, "the group is called %s: a name has at most %d characters, all of them ASCII", c.Name, config.MaxGroupBytes)
		}
	}
}
