package keepalived

import (
	_ "embed"
	"path"
	"slices"
	"strings"
)

// manual is the table with which docs/keepalived.md ends. Each row has three cells: keywords, what becomes of them, and what
// topdog has instead, or why it has nothing. An asterisk in a keyword stands for any letters. A keyword has the same
// meaning in all blocks.
//
//go:embed keywords.md
var manual string

// What becomes of a keyword, as the table has it.
const (
	converted = "converted"
	refused   = "look at it" // somebody has to decide what to do instead
)

// find returns what becomes of a keyword, and the text for people. It reports false for a keyword that is not in the
// table. If several rows match it, the first one counts.
func find(keyword string) (fate, text string, known bool) {
	for line := range strings.Lines(manual) {
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		for pattern := range strings.FieldsSeq(strings.ReplaceAll(cells[0], "`", "")) {
			if ok, err := path.Match(pattern, keyword); ok && err == nil && len(cells) == 3 {
				return cells[1], cells[2], true
			}
		}
	}
	return "", "", false
}

// textOf returns the text of a keyword that is in the table.
func textOf(keyword string) string {
	_, text, _ := find(keyword)
	return text
}

var (
	// lists are the keywords that are followed by a block.
	lists = strings.Fields("virtual_ipaddress virtual_ipaddress_excluded unicast_peer track_script track_process track_interface " +
		"authentication")
	// values are the keywords with one value that is converted.
	values = strings.Fields("default_interface interface priority preempt_delay virtual_router_id unicast_src_ip " +
		"interval timeout rise fall")
	// parts has for each block the keywords that are converted in it. keepalived knows none of them elsewhere.
	parts = map[string][]string{
		"global_defs": {"default_interface"},
		"vrrp_instance": strings.Fields("interface virtual_ipaddress virtual_ipaddress_excluded priority preempt nopreempt " +
			"preempt_delay virtual_router_id unicast_peer unicast_src_ip authentication track_interface track_script " +
			"track_process notify notify_master notify_backup notify_fault notify_stop"),
		"vrrp_script":        strings.Fields("script interval timeout rise fall"),
		"vrrp_track_process": {"process"},
	}
)

// convertible returns the statements of a block that are converted, and its `state`, which tells what others of them mean.
// Each statement that is not converted gets a note. in is the keyword of the block.
func (src *source) convertible(in string, b block) (good block) {
	for _, s := range b {
		fate, text, known := find(s.keyword())
		belongs := slices.Contains(parts[in], s.keyword())
		value := slices.Contains(values, s.keyword())
		switch {
		case !known:
			src.look(s, "left out: topdog has nothing for it, or it is misspelled (docs/keepalived.md has the keywords)")
		case fate == converted && !belongs:
			src.look(s, "left out: it does not belong here, and keepalived does not heed it either")
		case slices.Contains(lists, s.keyword()) && s.opened.line == 0:
			src.look(s, "left out: what it lists belongs in a block, %s { … }", s.keyword())
		case (value || s.keyword() == "script") && s != b.last(s.keyword()):
			src.look(s, "left out: the keyword comes again below, and keepalived takes the last one")
		case belongs:
			if value && len(s.words) > 2 {
				src.look(s, "without %s: one value belongs here, the first one was taken", printable(s.options(1)...))
			}
			good = append(good, s)
		case s.keyword() == "quorum" && s.text(1) == "1": // as with topdog
		default:
			src.note(s, fate == refused, "%s", text)
			if s.keyword() == "state" {
				good = append(good, s)
			}
		}
	}
	return good
}

// sift finds out which statements of the file are converted, and makes notes on all others. It removes those others from
// the chosen instances, and from global_defs.
func (src *source) sift() {
	for _, s := range src.file {
		switch keyword := s.keyword(); {
		case isCheck(s): // with the checks
		case keyword == "global_defs" || src.any(func(c *conversion) bool { return s == c.instance }):
			s.block = src.convertible(keyword, s.block)
			for _, a := range s.block.all("authentication") {
				src.convertible(a.keyword(), a.block)
			}
		case keyword == "vrrp_sync_group" && src.any(func(c *conversion) bool { return s == src.file.syncGroup(c.instance) && len(c.partners) > 0 }):
			src.look(s, "its instances of both families became one group, whose addresses always move together. "+
				"Its own checks and scripts, if it has any, are left out")
		case keyword != "vrrp_instance":
			src.convertible("", block{s})
		case src.file.named(keyword, s.text(1)) != s:
			src.look(s, "left out, as with keepalived: a block above has this name")
		case src.any(func(c *conversion) bool { return slices.Contains(c.partners, s) }): // with the addresses
		case s.isIPv6() && src.file.leader(s) != nil:
			src.look(s, "left out: %s goes with %s, which is another group", printable(s.text(1)), printable(src.file.leader(s).text(1)))
		case s.isIPv6():
			src.look(s, "left out: %s has IPv6 addresses alone, and a group elects by IPv4. Add them to the `address` of the group that they are to move with",
				printable(s.text(1)))
		case src.any(func(c *conversion) bool {
			return src.file.syncGroup(s) != nil && src.file.syncGroup(s) == src.file.syncGroup(c.instance)
		}):
			src.look(s, "left out: %s moves together with what is converted. The note on their vrrp_sync_group says what to do", printable(s.text(1)))
		default:
			src.look(s, "left out: %s is another group, and a [[group]] of its own can have its addresses", printable(s.text(1)))
		}
	}
}
