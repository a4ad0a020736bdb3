package keepalived

import (
	"fmt"
	"net/netip"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"topdog/election"
	"topdog/internal/config"
)

// conversion is the state of Convert for one group.
type conversion struct {
	*source
	Group
	instance *statement
	partners block // of the instance
	first    Place // of the first address

	routerID     int // 0 if the file says none
	priority     int // 0 if the file says none
	preempt      bool
	preemptDelay time.Duration // 0 if the file says none
	peers        []string
}

// own returns the lines that are this board's own.
func (c *conversion) own() string {
	text := "#priority = 100\n"
	if c.priority != 0 {
		text = fmt.Sprintf("priority = %d\n", c.priority)
	}
	text += fmt.Sprintf("preempt = %v\n", c.preempt)
	if c.preemptDelay != 0 {
		text += "preempt_delay = " + config.Quote(c.preemptDelay.String()) + "\n"
	}
	if len(c.peers) > 0 {
		text += "peers = " + config.QuoteAll(c.peers) + "\n"
	}
	return text
}

// convert converts what the instance itself says.
func (c *conversion) convert() error {
	c.Origin = originOf(c.instance)
	iface := c.file.interfaceOf(c.instance)
	state := c.instance.block.last("state")
	for _, s := range c.instance.block {
		if err := isWhole(s); err != nil {
			return err
		}
		if err := c.line(s, iface); err != nil {
			return err
		}
		ignored := s.keyword() == "nopreempt" || s.keyword() == "preempt_delay"
		if ignored && state != nil && state.text(1) == "MASTER" {
			c.look(s, "keepalived does not heed it beside `state MASTER`, and topdog does. See whether it is meant")
		}
	}
	for _, s := range c.partners {
		if err := c.partner(s, iface); err != nil {
			return err
		}
	}
	isIPv6 := func(text string) bool { return isAddress(text, netip.Addr.Is6) }
	sort.SliceStable(c.Addresses, func(i, j int) bool { return !isIPv6(c.Addresses[i]) && isIPv6(c.Addresses[j]) })
	if len(c.Addresses) == 0 || isIPv6(c.Addresses[0]) {
		return mistake(c.instance.place, "write an IPv4 address into its virtual_ipaddress { … }, or convert the instance that has one",
			"%s has no IPv4 address, and by that the boards elect", printable(c.instance.text(1)))
	}
	if s := c.instance.block.last("interface"); s != nil && s.text(1) != c.Interface {
		c.look(s, "the addresses are on %s, so topdog elects there as well", printable(c.Interface))
	}
	c.Own = c.own()
	return nil
}

// partner converts the addresses of a partner.
func (c *conversion) partner(s *statement, iface string) error {
	c.look(s, "the addresses of %s, and the checks that it tracks, belong to the group of %s now: one election for both families. "+
		"Its other lines are left out", printable(s.text(1)), printable(c.instance.text(1)))
	for _, list := range s.block {
		if !slices.Contains(addressLists, list.keyword()) {
			continue
		}
		if err := isWhole(list); err != nil {
			return err
		}
		if err := c.addresses(list, iface); err != nil {
			return err
		}
	}
	return nil
}

// isWhole refuses a list that includes another file. Elsewhere, such a line gets a note: that the file is not read.
func isWhole(list *statement) error {
	for _, s := range list.block {
		if text := textOf(s.keyword()); text == textOf("include") && list.keyword() != "authentication" {
			return mistake(s.place, "", "%s: %s", s.keyword(), text)
		}
	}
	return nil
}

// line converts one statement of the instance.
func (c *conversion) line(s *statement, iface string) (err error) {
	source := c.instance.block.last("unicast_src_ip")
	switch s.keyword() {
	case "interface":
		err = interfaceName(s, 1)
	case "virtual_ipaddress", "virtual_ipaddress_excluded":
		err = c.addresses(s, iface)
	case "priority":
		err = c.takePriority(s)
	case "preempt", "nopreempt":
		c.preempt = s.keyword() == "preempt"
	case "preempt_delay":
		c.preemptDelay, err = seconds(s)
	case "virtual_router_id":
		c.routerID, err = number(s, 255, "from 1 to 255", "router ID")
	case "unicast_peer":
		err = c.takePeers(s, source)
	case "unicast_src_ip":
		if c.instance.block.last("unicast_peer") == nil {
			c.note(s, false, "%s", textOf("mcast_src_ip"))
		}
	case "track_interface":
		for _, other := range s.block {
			if other.keyword() != iface {
				c.look(other, "%s", textOf("track_interface"))
			}
		}
	}
	return err
}

// interfaceName makes sure that a word can be the name of an interface. Those of the kernel have at most 15 characters.
func interfaceName(s *statement, i int) error {
	if name := s.text(i); name == "" || len(name) > 15 || strings.ContainsAny(name, "/:$<>") {
		return mistake(s.at(i), "write a name that `ip link` shows", "%q is no interface", printable(name))
	}
	return nil
}

// number reads a number from 1 to most. example and what are for the message.
func number(s *statement, most int, example, what string) (int, error) {
	n, err := strconv.Atoi(s.text(1))
	if err != nil || n < 1 || n > most {
		return 0, mistake(s.at(1), "write a number "+example, "%q is no %s", printable(s.text(1)), what)
	}
	return n, nil
}

// interfaceOf returns the interface of an instance, or "".
func (b block) interfaceOf(instance *statement) string {
	if s := instance.block.last("interface"); s != nil {
		return s.text(1)
	}
	for _, g := range b.all("global_defs") {
		if s := g.block.last("default_interface"); s != nil {
			return s.text(1)
		}
	}
	return ""
}

// secondGroup says what to do with addresses that do not fit into the group.
const secondGroup = "take it out of a copy of the file, and convert that. " +
	"A second group can have the others: docs/config.md, Several groups on one board"

// addresses converts a list of floating addresses. The words behind an address are for `ip address`.
func (c *conversion) addresses(list *statement, iface string) error {
	for _, s := range list.block {
		if isAddress(s.keyword(), isLinkLocal6) {
			c.look(s, "left out: VRRPv3 demands a link-local address, and topdog does not. Every board has one of its own, "+
				"and hosts that have this one as their gateway need a router")
			continue
		}
		// These lengths are keepalived's defaults; topdog takes the subnet's.
		text, isIPv6 := s.keyword(), isAddress(s.keyword(), netip.Addr.Is6)
		if isIPv6 {
			text = strings.TrimSuffix(text, "/128")
		} else {
			text = strings.TrimSuffix(text, "/32")
		}
		address, err := config.ParseAddress(text)
		if err != nil {
			return mistake(s.place, "", "%v", err)
		}
		if isIPv6 {
			text = address.String()
		}
		name, rest := iface, s.options(0)
		if i := slices.Index(rest, "dev"); i >= 0 && i+1 < len(rest) {
			if err := interfaceName(s, i+2); err != nil {
				return err
			}
			name = rest[i+1]
			rest = slices.Delete(rest, i, i+2)
		}
		if len(rest) > 0 {
			another := isAddress(rest[0], netip.Addr.IsValid)
			c.note(s, another, "without %s: topdog takes one address from a line, and has a device of its own for it", printable(rest...))
		}
		switch other := c.otherWith(address.IP); {
		case other != nil:
			return mistake(s.place, "leave it in one of the two", "%s has %v too, and each group has addresses of its own",
				printable(other.instance.text(1)), address.IP)
		case len(c.Addresses) == 0:
			c.Interface, c.first = name, s.place
		case name != c.Interface:
			return mistake(s.place, secondGroup,
				"this address is on %s, and the one of %v is on %s: a group of topdog has its addresses on one interface",
				printable(name), c.first, printable(c.Interface))
		case c.keeps(address.IP):
			continue
		case len(c.Addresses) == config.MaxAddresses:
			return mistake(s.place, secondGroup, "this address is one too many: a group of topdog has %d at most", config.MaxAddresses)
		}
		c.Addresses = append(c.Addresses, text)
	}
	return nil
}

// keeps reports whether an address is among those that were converted.
func (c *conversion) keeps(ip netip.Addr) bool {
	return slices.ContainsFunc(c.Addresses, func(text string) bool {
		return isAddress(text, func(kept netip.Addr) bool { return kept == ip })
	})
}

// otherWith returns the other group that has an address, or nil.
func (c *conversion) otherWith(ip netip.Addr) *conversion {
	for _, other := range c.all {
		if other != c && other.keeps(ip) {
			return other
		}
	}
	return nil
}

func isLinkLocal6(ip netip.Addr) bool { return ip.Is6() && ip.IsLinkLocalUnicast() }

// isAddress reports whether a text is an address, perhaps with a prefix length, that suits.
func isAddress(text string, suits func(netip.Addr) bool) bool {
	host, _, _ := strings.Cut(text, "/")
	ip, err := netip.ParseAddr(host)
	return err == nil && suits(ip)
}

// takePriority converts the priority. keepalived gives 255 to the owner of an address, and topdog has no such owner.
func (c *conversion) takePriority(s *statement) error {
	n, err := number(s, 255, "from 1 to 255", "priority")
	if n > election.MaxPriority {
		c.look(s, "%d became %d, the highest. No board owns the address, which is not a board's own",
			n, election.MaxPriority)
	}
	c.priority = min(n, election.MaxPriority)
	return err
}

// takePeers converts a list of other boards, and adds this board: all boards get the same file.
func (c *conversion) takePeers(list, own *statement) error {
	if own == nil {
		c.look(list, "add this board's own address to `peers`: all boards get the same list")
	} else if err := c.peer(own, 1); err != nil {
		return err
	}
	for _, s := range list.block {
		if err := c.peer(s, 0); err != nil {
			return err
		}
		if rest := s.options(0); len(rest) > 0 {
			c.note(s, false, "without %s: %s", printable(rest...), textOf("unicast_ttl"))
		}
	}
	return nil
}

// peer converts the address of a board, which may be written with the prefix length of its network.
func (c *conversion) peer(s *statement, i int) error {
	host, _, _ := strings.Cut(s.text(i), "/")
	ip, err := netip.ParseAddr(host)
	switch {
	case err != nil:
		return mistake(s.at(i), "write the own address of a board", "%q is no address", printable(s.text(i)))
	case !ip.Is4():
		c.look(s, "topdog speaks IPv4 only: write the board's IPv4 address into `peers`, unless it is there")
	case !slices.Contains(c.peers, ip.String()):
		c.peers = append(c.peers, ip.String())
	}
	return nil
}
