package keepalived

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"topdog/election"
	"topdog/internal/config"
)

// Group is what keepalived's configuration says of one group of topdog.
type Group struct {
	Addresses    []string // as `address` takes them
	Interface    string   // "" if it says none
	Name         string   // "" if it says nothing to make one of
	Priority     int      // 0 if it says none
	Preempt      bool
	PreemptDelay time.Duration // 0 if it says none
	Peers        []string
	Checks       []Check
	Hook         []byte // a shell script that calls the notify scripts; nil if there are none

	Notes []Note // all that is not simply converted, in the order of the lines
}

// Convert reads keepalived's configuration and converts one of its groups: the one that has this name
// as a vrrp_instance or a vrrp_sync_group, or without a name the only one. Lines are converted, or are
// in the notes.
func Convert(path, name string, m Machine) (*Group, error) {
	r, err := read(path, m)
	if err != nil {
		return nil, err
	}
	f := &file{path: path, top: r.top.block}
	chosen, err := f.choose(name)
	if err != nil {
		return nil, err
	}
	c := &conversion{machine: m, file: f, Group: Group{Notes: r.notes, Preempt: true}}
	if err := c.instances(chosen); err != nil {
		return nil, err
	}
	if c.Checks, err = c.checks(chosen); err != nil {
		return nil, err
	}
	c.Hook = c.hook(chosen)
	c.others(chosen)
	sortNotes(c.Notes, r.files)
	return &c.Group, nil
}

// conversion is a Group in the making.
type conversion struct {
	Group
	machine Machine
	file    *file
	devices []*device // of the addresses, in their order
}

// device is where an address is.
type device struct {
	name     string
	at       Place // of the address
	instance *statement
}

// look notes that somebody has to look at a statement.
func (c *conversion) look(s *statement, format string, args ...any) {
	c.Notes = append(c.Notes, s.note(true, format, args...))
}

// instances converts what the instances themselves say.
func (c *conversion) instances(chosen selection) error {
	for _, instance := range chosen.instances {
		if err := c.instance(instance); err != nil {
			return err
		}
	}
	if len(c.Addresses) == 0 {
		s := chosen.instances[0]
		return mistake(s.place, "write an IPv4 address into its virtual_ipaddress { … }. topdog has no others", "%s has no address that topdog could keep", printable(s.text(1)))
	}
	return c.oneInterface(chosen)
}

// instance converts one vrrp_instance.
func (c *conversion) instance(instance *statement) error {
	iface := c.interfaceOf(instance)
	for _, s := range instance.block {
		if overruled(instance.block, s) || lacksBlock(s) {
			continue
		}
		var err error
		switch s.keyword() {
		case "interface":
			err = interfaceName(s, 1)
		case "virtual_ipaddress", "virtual_ipaddress_excluded":
			err = c.addresses(instance, s, iface)
		case "priority":
			err = c.priority(s)
		case "preempt", "nopreempt":
			c.Preempt = s.keyword() == "preempt"
		case "preempt_delay":
			c.PreemptDelay, err = seconds(s)
		case "virtual_router_id":
			err = c.routerID(s)
		case "unicast_peer":
			err = c.peers(s, last(instance.block, "unicast_src_ip"))
		case "unicast_src_ip":
			if last(instance.block, "unicast_peer") == nil {
				c.Notes = append(c.Notes, s.note(false, "%s", fromOwn))
			}
		case "track_interface":
			c.trackInterface(s, iface)
		}
		if err != nil {
			return err
		}
	}
	if state := last(instance.block, "state"); state != nil && state.text(1) == "MASTER" {
		for _, s := range instance.block {
			if s.keyword() == "nopreempt" && !c.Preempt || s.keyword() == "preempt_delay" {
				c.look(s, "keepalived does not heed it beside `state MASTER`, and topdog does. See whether it is meant")
			}
		}
	}
	return nil
}

// lists are the keywords that are followed by a block.
var lists = strings.Fields("virtual_ipaddress virtual_ipaddress_excluded unicast_peer track_script track_process track_interface authentication group")

// lacksBlock reports whether a block is missing.
func lacksBlock(s *statement) bool { return slices.Contains(lists, s.keyword()) && s.opened.line == 0 }

// overruled reports whether a keyword with one value stands in the block once more: keepalived takes the last one.
func overruled(block []*statement, s *statement) bool {
	return (slices.Contains(values, s.keyword()) || s.keyword() == "script") && s != last(block, s.keyword())
}

// interfaceName makes sure that a word can be the name of an interface, for which the kernel takes 15 characters.
func interfaceName(s *statement, i int) error {
	if name := s.text(i); name == "" || len(name) > 15 || strings.ContainsAny(name, "/:$<>") {
		return mistake(s.at(i), "write a name that `ip link` shows", "%q is no interface", printable(name))
	}
	return nil
}

// routerID makes the name of the group, unless another instance has already done so.
func (c *conversion) routerID(s *statement) error {
	id, err := strconv.ParseUint(s.text(1), 10, 8)
	if err != nil || id == 0 {
		return mistake(s.at(1), "write a number from 1 to 255", "%q is no router ID", printable(s.text(1)))
	}
	if c.Name == "" {
		c.Name = fmt.Sprintf("vrrp-%d", id)
	}
	return nil
}

// interfaceOf returns the interface of an instance, or "".
func (c *conversion) interfaceOf(instance *statement) string {
	if s := last(instance.block, "interface"); s != nil {
		return s.text(1)
	}
	for _, g := range c.file.all("global_defs") {
		if s := last(g.block, "default_interface"); s != nil {
			return s.text(1)
		}
	}
	return ""
}

// addresses converts a list of floating addresses. What stands behind an address is for `ip address`.
func (c *conversion) addresses(instance, list *statement, iface string) error {
	for _, s := range list.block {
		text, _ := strings.CutSuffix(s.keyword(), "/32") // keepalived's default; topdog takes the subnet's length
		host, _, _ := strings.Cut(text, "/")
		if ip, err := netip.ParseAddr(host); err == nil && ip.Is6() {
			c.look(s, "topdog has IPv4 addresses only")
			continue
		}
		if _, err := config.ParseAddress(text); err != nil {
			return mistake(s.place, "", "%v", err)
		}
		name, rest := iface, s.options()
		if i := slices.Index(rest, "dev"); i >= 0 && i+1 < len(rest) {
			if err := interfaceName(s, i+2); err != nil {
				return err
			}
			name = rest[i+1]
			rest = slices.Delete(rest, i, i+2)
		}
		if second := secondAddress(rest); second != "" {
			c.look(s, "without %s: keepalived takes one address for each line. Write it on a line of its own, and convert the file again", printable(second))
		} else if len(rest) > 0 {
			c.Notes = append(c.Notes, s.note(false, "without %s: topdog has a device of its own for the address", printable(strings.Join(rest, " "))))
		}
		if slices.Contains(c.Addresses, text) {
			continue
		}
		if len(c.Addresses) == config.MaxAddresses {
			return mistake(s.place, "take it and those below out of a copy of the file, and convert that. "+secondGroup,
				"this address is one too many: a group of topdog has %d at most", config.MaxAddresses)
		}
		c.Addresses = append(c.Addresses, text)
		c.devices = append(c.devices, &device{name, s.place, instance})
	}
	return nil
}

// secondAddress returns an address that stands among the options of another one, where no option takes an address.
func secondAddress(options []string) string {
	for i, option := range options {
		host, _, _ := strings.Cut(option, "/")
		if _, err := netip.ParseAddr(host); err != nil {
			continue
		}
		if i == 0 || !slices.Contains([]string{"brd", "broadcast", "peer", "via"}, options[i-1]) {
			return option
		}
	}
	return ""
}

// secondGroup is what to do with addresses that do not fit into the group.
const secondGroup = "A second group can have the others: docs/config.md, Two floating addresses"

// oneInterface makes sure that all addresses are on one interface.
func (c *conversion) oneInterface(chosen selection) error {
	differ := func(a, b *device, hint string) error {
		return mistake(b.at, hint, "this address is on %s, and the one of %v is on %s: a group of topdog has its addresses on one interface",
			printable(b.name), a.at, printable(a.name))
	}
	firsts := map[*statement]*device{} // the first address of each instance
	for _, d := range c.devices {
		if first, has := firsts[d.instance]; !has {
			firsts[d.instance] = d
		} else if first.name != d.name {
			return differ(first, d, "take the lines of one of the two interfaces out of a copy of the file, and convert that. "+secondGroup)
		}
	}
	first := c.devices[0]
	for _, d := range c.devices {
		if d.name != first.name {
			names := make([]string, len(chosen.instances))
			for i, s := range chosen.instances {
				names[i] = printable(s.text(1))
			}
			return differ(first, d, "convert one vrrp_instance by its name ("+strings.Join(names, ", ")+"), or take the address out of a copy of the file")
		}
	}
	c.Interface = first.name
	for _, instance := range chosen.instances {
		if s := last(instance.block, "interface"); s != nil && s.text(1) != c.Interface {
			c.look(s, "the addresses are on %s, so topdog elects there as well", printable(c.Interface))
		}
	}
	return nil
}

// priority converts the priority. keepalived's owner has 255, which topdog has not.
func (c *conversion) priority(s *statement) error {
	n, err := strconv.Atoi(s.text(1))
	if err != nil || n < 1 || n > 255 {
		return mistake(s.at(1), "write a number from 1 to 255", "%q is no priority", printable(s.text(1)))
	}
	switch {
	case n > election.MaxPriority:
		c.look(s, "%d became %d, the greatest. No board owns the address: it is none that a board has by itself", n, election.MaxPriority)
		n = election.MaxPriority
	case c.Priority != 0 && c.Priority != n:
		c.look(s, "left out: the group has one priority, that of its first instance (%d)", c.Priority)
		return nil
	}
	c.Priority = n
	return nil
}

// peers converts a list of other boards. This board is put into it: all boards get the same file.
func (c *conversion) peers(list, own *statement) error {
	if own == nil {
		c.look(list, "add this board's own address to `peers`: all boards get the same list")
	} else if err := c.peer(own, 1); err != nil {
		return err
	}
	for _, s := range list.block {
		if err := c.peer(s, 0); err != nil {
			return err
		}
		if rest := s.options(); len(rest) > 0 {
			c.Notes = append(c.Notes, s.note(false, "without %s: %s", printable(strings.Join(rest, " ")), onlyVRRP))
		}
	}
	return nil
}

// peer converts the address of a board, which somebody may have written with the prefix length of its network.
func (c *conversion) peer(s *statement, i int) error {
	host, length, has := strings.Cut(s.text(i), "/")
	if has {
		c.Notes = append(c.Notes, s.note(false, "without /%s: the address of a board has no prefix length", printable(length)))
	}
	ip, err := netip.ParseAddr(host)
	switch {
	case err != nil:
		return mistake(s.at(i), "write the own address of a board", "%q is no address", printable(s.text(i)))
	case !ip.Is4():
		c.look(s, "topdog speaks IPv4 only: write the board's IPv4 address into `peers`, unless it is there")
	case !slices.Contains(c.Peers, ip.String()):
		c.Peers = append(c.Peers, ip.String())
	}
	return nil
}

// trackInterface names the interfaces that topdog does not watch.
func (c *conversion) trackInterface(list *statement, iface string) {
	for _, s := range list.block {
		if s.keyword() != iface {
			c.look(s, noOther)
		}
	}
}

// others makes notes on all that no other function has looked at.
func (c *conversion) others(chosen selection) {
	used := map[*statement]bool{}
	for _, s := range chosen.blocks() {
		used[s] = true
	}
	for _, s := range c.file.top {
		switch keyword := s.keyword(); {
		case keyword == "global_defs":
			c.rest(s.block, globalDefs)
		case (keyword == "vrrp_instance" || keyword == "vrrp_sync_group") && c.file.named(keyword, s.text(1)) != s:
			c.look(s, "left out, as with keepalived: a block above has this name")
		case keyword == "vrrp_instance" && !used[s], keyword == "vrrp_sync_group" && !used[s] && !c.holdsAny(s, chosen):
			c.look(s, "%s is another group: convert it by its name, for a daemon of its own", printable(s.text(1)))
		case keyword == "vrrp_instance":
			c.rest(s.block, vrrpInstance)
			for _, a := range under(s.block, "authentication") {
				c.rest(a.block, authentication)
			}
		case keyword == "vrrp_sync_group" && !used[s]:
			c.look(s, "of %s only %s is converted, without the checks and scripts of the group", printable(s.text(1)), printable(chosen.name()))
		case keyword == "vrrp_sync_group":
			c.rest(s.block, syncGroup)
		case keyword == "vrrp_script", keyword == "vrrp_track_process": // with the checks
		default:
			c.rest([]*statement{s}, outside)
		}
	}
}

// holdsAny reports whether an instance that was chosen by its own name is in a sync group.
func (c *conversion) holdsAny(group *statement, chosen selection) bool {
	for _, s := range c.file.members(group) {
		if slices.Contains(chosen.instances, s) {
			return true
		}
	}
	return false
}

// values are the keywords with one value that is converted.
var values = strings.Fields("default_interface interface priority preempt_delay virtual_router_id unicast_src_ip interval timeout rise fall")

// rest makes notes on the keywords of a block that are not converted.
func (c *conversion) rest(block []*statement, known section) {
	for _, s := range block {
		e, ok := known.find(s.keyword())
		switch {
		case strings.HasPrefix(s.keyword(), "$"):
			c.look(s, "left out: no value of one line is defined for it")
		case !ok:
			c.look(s, "topdog's converter knows no such keyword here: see whether it is misspelled, or belongs into another block")
		case lacksBlock(s):
			c.look(s, "left out: what it lists belongs into a block, %s { … }", s.keyword())
		case overruled(block, s):
			c.look(s, "left out: it stands here once more, and keepalived takes the last one")
		case e.fate == converted && slices.Contains(values, s.keyword()) && len(s.words) > 2:
			c.look(s, "without %s: one value belongs here, the first one was taken", printable(strings.Join(s.options()[1:], " ")))
		case e.fate == converted, s.keyword() == "track_interface":
		case s.keyword() == "quorum" && s.text(1) == "1": // as with topdog
		default:
			c.Notes = append(c.Notes, s.note(e.fate == refused, "%s", e.text))
		}
	}
}
