package netio

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"topdog/internal/lab/assert"
)

const (
	cableIn  = unix.IFF_UP | unix.IFF_LOWER_UP | unix.IFF_RUNNING
	cableOut = unix.IFF_UP
)

var testMAC = net.HardwareAddr{2, 0, 0, 0, 0, 1}

func linkMessage(kind uint16, index int, name string, flags uint32) netlink.LinkUpdate {
	u := netlink.LinkUpdate{Link: &netlink.Device{LinkAttrs: netlink.LinkAttrs{Name: name, Index: index}}}
	if name != "" {
		u.Link.Attrs().HardwareAddr = testMAC
	}
	u.Header.Type = kind
	u.IfInfomsg.Index = int32(index)
	u.IfInfomsg.Flags = flags
	return u
}

func addrMessage(added bool, index int, cidr string) netlink.AddrUpdate {
	ip, n, err := net.ParseCIDR(cidr)
	if err != nil {
		panic(err)
	}
	n.IP = ip
	return netlink.AddrUpdate{LinkAddress: *n, LinkIndex: index, NewAddr: added}
}

// tableSays tells a table what the kernel says: "link INDEX NAME FLAGS", "addr INDEX PREFIX", and the same with "no" before it.
func tableSays(table *table, message string) {
	words := strings.Fields(message)
	index := int(words[1][0] - '0')
	flags := map[string]uint32{
		"in": cableIn, "out": cableOut, "off": unix.IFF_LOWER_UP, "handshake": unix.IFF_UP | unix.IFF_LOWER_UP, "loopback": cableIn | unix.IFF_LOOPBACK,
	}
	switch words[0] {
	case "link":
		table.link(linkMessage(unix.RTM_NEWLINK, index, words[2], flags[words[3]]))
	case "wireless": // an event without a name
		table.link(linkMessage(unix.RTM_NEWLINK, index, "", cableIn))
	case "nolink":
		table.link(linkMessage(unix.RTM_DELLINK, index, words[2], 0))
	case "nobridge": // of which it was a part
		gone := linkMessage(unix.RTM_DELLINK, index, words[2], 0)
		gone.IfInfomsg.Family = unix.AF_BRIDGE
		table.link(gone)
	case "bridge", "port": // which has the bridge 9
		u := linkMessage(unix.RTM_NEWLINK, index, words[2], flags[words[3]])
		attrs := *u.Link.Attrs()
		u.Link = &netlink.Bridge{LinkAttrs: attrs}
		if words[0] == "port" {
			attrs.MasterIndex = 9
			u.Link = &netlink.GenericLink{LinkAttrs: attrs, LinkType: words[4]}
		}
		table.link(u)
	case "addr", "noaddr":
		table.addr(addrMessage(words[0] == "addr", index, words[2]))
	}
}

// text is a snapshot in words.
func (s Snapshot) text() string {
	var text []string
	if s.Present || s.Link.Name != "" || s.Link.Index != 0 || s.Link.HardwareAddr != nil || s.Link.Up || s.Link.Addrs != nil {
		l := s.Link
		text = append(text, fmt.Sprintf("present %t, %s %d %v, up %t %v", s.Present, l.Name, l.Index, l.HardwareAddr, l.Up, l.Addrs))
		for _, port := range l.Uplinks {
			text = append(text, fmt.Sprintf("by %s %d", port.Name, port.Index))
		}
	}
	for _, l := range s.Local {
		text = append(text, fmt.Sprintf("%v on %d", l.Prefix, l.Index))
	}
	return strings.Join(append(text, fmt.Sprint(s.Interfaces)), "; ")
}

// What the kernel says, and what eth0 looks like then.
func TestTable(t *testing.T) {
	const (
		up   = "present true, eth0 2 02:00:00:00:00:01, up true []"
		down = "present true, eth0 2 02:00:00:00:00:01, up false []"
		ten  = "present true, eth0 2 02:00:00:00:00:01, up true [10.0.0.1/24]; 10.0.0.1/24 on 2; [2]"
	)
	for _, test := range []struct{ name, messages, want string }{
		{"nothing", "", "[]"},
		{"another interface", "link 1 lo loopback, addr 1 127.0.0.1/8", "127.0.0.1/8 on 1; []"},
		{"an interface with its address", "link 2 eth0 in, addr 2 10.0.0.1/24", ten},
		{"the address overtakes its link", "addr 2 10.0.0.1/24, link 2 eth0 in", ten},
		{"a cable is pulled", "link 2 eth0 in, link 2 eth0 out", down + "; [2]"},
		{"switched off with the cable in", "link 2 eth0 off", down + "; [2]"},
		{"carrier, but the Wi-Fi handshake is not done", "link 2 eth0 handshake", down + "; [2]"},
		{"an address is refreshed", "link 2 eth0 in, addr 2 10.0.0.1/24, addr 2 10.0.0.1/24", ten},
		{"an address is removed, and once more",
			"link 2 eth0 in, addr 2 10.0.0.1/24, noaddr 2 10.0.0.1/24, noaddr 2 10.0.0.1/24", up + "; [2]"},
		{"one address with two prefix lengths is two",
			"addr 2 10.0.0.1/24, addr 2 10.0.0.1/32, noaddr 2 10.0.0.1/24", "10.0.0.1/32 on 2; []"},
		{"an address on two interfaces, sorted", "addr 3 10.0.0.9/32, addr 2 10.0.0.9/32, addr 3 10.0.0.1/24",
			"10.0.0.1/24 on 3; 10.0.0.9/32 on 2; 10.0.0.9/32 on 3; []"},
		{"IPv6 is not our business", "link 2 eth0 in, addr 2 fe80::1/64", up + "; [2]"},
		{"deleted", "link 2 eth0 in, addr 2 10.0.0.1/24, nolink 2 eth0", "[]"},
		{"deleted and made again", "link 2 eth0 in, addr 2 10.0.0.1/24, nolink 2 eth0, link 7 eth0 in, noaddr 2 10.0.0.1/24",
			"present true, eth0 7 02:00:00:00:00:01, up true []; [7]"},
		{"renamed", "link 2 eth0 in, link 2 lan0 in", "[2]"},
		{"others, and a TUN device of ours", "link 5 wlan0 out, link 3 topdog0 in, link 4 docker0 in", "[4 5]"},
		{"another one is deleted", "link 5 wlan0 out, nolink 5 wlan0", "[]"},
		{"leaves a bridge, which the bridge reports as deleted", "link 2 eth0 in, nobridge 2 eth0", up + "; [2]"},
		{"a wireless event without a name", "link 2 eth0 out, wireless 2", up + "; [2]"},
	} {
		table := newTable("eth0", netip.Addr{})
		for message := range strings.SplitSeq(test.messages, ", ") {
			if message != "" {
				tableSays(table, message)
			}
		}
		assert.Is(t, test.want, table.snapshot().text(), "%s", test.name)
	}
}

// Which of its ports a bridge needs.
func TestTableOfABridge(t *testing.T) {
	const up, down = "present true, br0 9 02:00:00:00:00:01, up true []", "present true, br0 9 02:00:00:00:00:01, up false []"
	for _, test := range []struct{ name, messages, want string }{
		{"without a port", "bridge 9 br0 in", up},
		{"with an uplink", "bridge 9 br0 in, port 2 eth0 in device", up + "; by eth0 2"},
		{"with an uplink, which was there before", "port 2 eth0 in device, bridge 9 br0 in", up + "; by eth0 2"},
		{"and a container", "bridge 9 br0 in, port 2 eth0 in device, port 3 veth0 in veth, port 4 tap0 in tuntap", up + "; by eth0 2"},
		{"whose uplink is pulled", "bridge 9 br0 in, port 2 eth0 in device, port 3 veth0 in veth, port 2 eth0 out device", down + "; by eth0 2"},
		{"with one of two uplinks pulled", "bridge 9 br0 in, port 2 eth0 out device, port 3 veth0 in veth, port 4 bond0 in bond", up + "; by eth0 2; by bond0 4"},
		{"with both pulled", "bridge 9 br0 in, port 2 eth0 out device, port 3 veth0 in veth, port 4 eth0.7 out vlan", down + "; by eth0 2; by eth0.7 4"},
		{"with ports of containers only, as in a container", "bridge 9 br0 in, port 2 eth0 in veth, port 3 veth0 out veth", up},
		{"whose uplink has left it", "bridge 9 br0 in, port 2 eth0 out device, port 3 veth0 in veth, link 2 eth0 out", up},
		{"whose uplink was deleted", "bridge 9 br0 in, port 2 eth0 out device, nolink 2 eth0", up},
		{"switched off", "bridge 9 br0 off, port 2 eth0 in device", down + "; by eth0 2"},
	} {
		table := newTable("br0", netip.Addr{})
		for message := range strings.SplitSeq(test.messages, ", ") {
			tableSays(table, message)
		}
		got, _, _ := strings.Cut(table.snapshot().text(), "; [")
		assert.Is(t, test.want, got, "a bridge %s", test.name)
	}
}

func TestSnapshotHas(t *testing.T) {
	ten := netip.MustParsePrefix("10.0.0.1/24")
	s := Snapshot{Local: []LocalAddr{{ten, 2, "eth0"}}}
	assert.Is(t, true, s.Has(ten.Addr()), "the address is there")
	assert.Is(t, false, s.Has(ten.Addr().Next()), "the next address is there")
}
