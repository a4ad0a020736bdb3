package keepalived

import (
	"net/netip"
	"slices"
)

// keepalived has an instance for each family, and topdog one group for both. So an instance of IPv6 addresses is converted
// together with the instance of IPv4 addresses that it moves with. It is called a partner of that one.

// instances are those that keepalived heeds: the first one of each name.
func (b block) instances() (all block) {
	seen := map[string]bool{}
	for _, s := range b.all("vrrp_instance") {
		if !seen[s.text(1)] {
			seen[s.text(1)] = true
			all = append(all, s)
		}
	}
	return all
}

// heads are the instances that become groups: those that are nobody's partner, and have more than IPv6 addresses. If there is
// none of that kind, those of IPv6 are returned, so that the error is about them.
func (b block) heads() (all block) {
	var alone block
	for _, s := range b.instances() {
		switch {
		case !s.isIPv6():
			all = append(all, s)
		case b.leader(s) == nil:
			alone = append(alone, s)
		}
	}
	if len(all) == 0 {
		return alone
	}
	return all
}

// addressLists are the keywords of the lists of floating addresses.
var addressLists = []string{"virtual_ipaddress", "virtual_ipaddress_excluded"}

// families reports which addresses an instance has.
func (s *statement) families() (ipv4, ipv6 bool) {
	for _, list := range s.block {
		if !slices.Contains(addressLists, list.keyword()) {
			continue
		}
		for _, line := range list.block {
			ipv4 = ipv4 || isAddress(line.keyword(), netip.Addr.Is4)
			ipv6 = ipv6 || isAddress(line.keyword(), netip.Addr.Is6)
		}
	}
	return ipv4, ipv6
}

// isIPv6 reports whether an instance has IPv6 addresses alone.
func (s *statement) isIPv6() bool {
	ipv4, ipv6 := s.families()
	return ipv6 && !ipv4
}

// partners are the instances of IPv6 that move with an instance.
func (b block) partners(of *statement) (found block) {
	for _, s := range b.instances() {
		if s.isIPv6() && b.leader(s) == of {
			found = append(found, s)
		}
	}
	return found
}

// leader returns the instance of IPv4 that an instance of IPv6 moves with, or nil. Both are on one interface. If a
// vrrp_sync_group has both, that says it. Otherwise they begin in the same state, and have the same virtual_router_id, or no
// other instance of IPv4 is in question.
func (b block) leader(of *statement) *statement {
	group := b.syncGroup(of)
	var all block
	for _, s := range b.instances() {
		ipv4, _ := s.families()
		if ipv4 && b.interfaceOf(s) == b.interfaceOf(of) && b.syncGroup(s) == group && (group != nil || stateOf(s) == stateOf(of)) {
			all = append(all, s)
		}
	}
	same := slices.IndexFunc(all, func(s *statement) bool { return routerID(s) == routerID(of) })
	switch {
	case same >= 0:
		return all[same]
	case len(all) == 1 || len(all) > 0 && group != nil:
		return all[0]
	}
	return nil
}

// syncGroup returns the vrrp_sync_group of an instance, or nil.
func (b block) syncGroup(instance *statement) *statement {
	for _, s := range b.all("vrrp_sync_group") {
		for _, list := range s.block.all("group") {
			for _, line := range list.block {
				if line.keyword() == instance.text(1) || slices.Contains(line.options(0), instance.text(1)) {
					return s
				}
			}
		}
	}
	return nil
}

// stateOf is the state in which an instance starts. keepalived's default is BACKUP.
func stateOf(instance *statement) string {
	if s := instance.block.last("state"); s != nil {
		return s.text(1)
	}
	return "BACKUP"
}

func routerID(instance *statement) string {
	if s := instance.block.last("virtual_router_id"); s != nil {
		return s.text(1)
	}
	return ""
}
