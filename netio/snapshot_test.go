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

// networkWith returns a network in which there is what the words say: "link INDEX NAME FLAGS", "addr INDEX PREFIX", a "bridge" with the
// index 9, and each "port" of it with its kind.
func networkWith(words string) (n network) {
	flags := map[string]uint32{
		"in": cableIn, "out": cableOut, "off": unix.IFF_LOWER_UP, "handshake": unix.IFF_UP | unix.IFF_LOWER_UP, "loopback": cableIn | unix.IFF_LOOPBACK,
	}
	for what := range strings.SplitSeq(words, ", ") {
		words := strings.Fields(what)
		if len(words) == 0 {
			continue
		}
		index := int(words[1][0] - '0')
		if words[0] == "addr" {
			n.addrs = append(n.addrs, LocalAddr{Prefix: netip.MustParsePrefix(words[2]), Index: index})
			continue
		}
		attrs := netlink.LinkAttrs{Name: words[2], Index: index, RawFlags: flags[words[3]], HardwareAddr: testMAC}
		var link netlink.Link = &netlink.Device{LinkAttrs: attrs}
		switch words[0] {
		case "bridge":
			link = &netlink.Bridge{LinkAttrs: attrs}
		case "port":
			attrs.MasterIndex = 9
			link = &netlink.GenericLink{LinkAttrs: attrs, LinkType: words[4]}
		}
		n.links = append(n.links, link)
	}
	return n
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

// What there is, and what eth0 looks like then.
func TestSnapshot(t *testing.T) {
	const (
		up   = "present true, eth0 2 02:00:00:00:00:01, up true []"
		down = "present true, eth0 2 02:00:00:00:00:01, up false []"
	)
	for _, test := range []struct{ name, there, want string }{
		{"nothing", "", "[]"},
		{"another interface", "link 1 lo loopback, addr 1 127.0.0.1/8", "127.0.0.1/8 on 1; []"},
		{"an interface with its address", "link 2 eth0 in, addr 2 10.0.0.1/24",
			"present true, eth0 2 02:00:00:00:00:01, up true [10.0.0.1/24]; 10.0.0.1/24 on 2; [2]"},
		{"an address whose link was not there yet", "addr 2 10.0.0.1/24", "10.0.0.1/24 on 2; []"},
		{"a cable is pulled", "link 2 eth0 out", down + "; [2]"},
		{"switched off with the cable in", "link 2 eth0 off", down + "; [2]"},
		{"carrier, but the Wi-Fi handshake is not done", "link 2 eth0 handshake", down + "; [2]"},
		{"addresses on two interfaces", "link 2 eth0 in, addr 2 10.0.0.9/32, addr 3 10.0.0.9/32",
			"present true, eth0 2 02:00:00:00:00:01, up true [10.0.0.9/32]; 10.0.0.9/32 on 2; 10.0.0.9/32 on 3; [2]"},
		{"another name", "link 2 lan0 in", "[2]"},
		{"others, and a TUN device of ours", "link 5 wlan0 out, link 3 topdog0 in, link 4 docker0 in", "[4 5]"},
		{"the port of a bridge", "bridge 9 br0 in, port 2 eth0 in device", up + "; [2 9]"},
	} {
		n := networkWith(test.there)
		assert.Is(t, test.want, n.snapshot("eth0").text(), "%s", test.name)
	}
}

// Which of its ports a bridge needs.
func TestSnapshotOfABridge(t *testing.T) {
	const up, down = "present true, br0 9 02:00:00:00:00:01, up true []", "present true, br0 9 02:00:00:00:00:01, up false []"
	for _, test := range []struct{ name, there, want string }{
		{"without a port", "bridge 9 br0 in, link 2 eth0 out", up},
		{"with an uplink", "bridge 9 br0 in, port 2 eth0 in device", up + "; by eth0 2"},
		{"with an uplink that is listed first", "port 2 eth0 in device, bridge 9 br0 in", up + "; by eth0 2"},
		{"and a container", "bridge 9 br0 in, port 2 eth0 in device, port 3 veth0 in veth, port 4 tap0 in tuntap", up + "; by eth0 2"},
		{"whose uplink is pulled", "bridge 9 br0 in, port 3 veth0 in veth, port 2 eth0 out device", down + "; by eth0 2"},
		{"with one of two uplinks pulled", "bridge 9 br0 in, port 2 eth0 out device, port 3 veth0 in veth, port 4 bond0 in bond", up + "; by eth0 2; by bond0 4"},
		{"with both pulled", "bridge 9 br0 in, port 4 eth0.7 out vlan, port 2 eth0 out device, port 3 veth0 in veth", down + "; by eth0 2; by eth0.7 4"},
		{"with ports of containers only, as in a container", "bridge 9 br0 in, port 2 eth0 in veth, port 3 veth0 out veth", up},
		{"switched off", "bridge 9 br0 off, port 2 eth0 in device", down + "; by eth0 2"},
	} {
		n := networkWith(test.there)
		got, _, _ := strings.Cut(n.snapshot("br0").text(), "; [")
		assert.Is(t, test.want, got, "a bridge %s", test.name)
	}
}

func TestSnapshotHas(t *testing.T) {
	ten := netip.MustParsePrefix("10.0.0.1/24")
	s := Snapshot{Local: []LocalAddr{{ten, 2, "eth0"}}}
	assert.Is(t, true, s.Has(ten.Addr()), "the address is there")
	assert.Is(t, false, s.Has(ten.Addr().Next()), "the next address is there")
}
