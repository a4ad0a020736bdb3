package daemon

import (
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/internal/lab/assert"
	"topdog/netio"
)

// networkCases are states of a network, and what a board makes of them. The board is 10.0.0.1/24 on eth0, interface 2.
var networkCases = []struct {
	name    string
	address string // of the configuration; "" for 10.0.0.100; one of IPv6 is there beside that
	change  func(*netio.Snapshot)
	waits   string // for what; "" if it takes part
	note    string
}{
	{"all is well", "", nil, "", ""},
	{"with the prefix of the network", "10.0.0.100/24", nil, "", ""},
	{"with a longer prefix", "10.0.0.100/32", nil, "", ""},
	{"with a shorter prefix", "10.0.0.100/8", nil, "", "with 10.0.0.100/8 the leader takes all of 10.0.0.0/8 for its neighbours, and the network of eth0 is 10.0.0.0/24: write 10.0.0.100 without a prefix length"},
	{"the first address", "10.0.0.0", nil, "10.0.0.0 is not an address for a machine", ""},
	{"the last address", "10.0.0.255", nil, "10.0.0.255 is not an address for a machine", ""},
	{"the last address of a smaller network", "10.0.0.127", func(s *netio.Snapshot) { s.Link.Addrs = []netip.Prefix{netip.MustParsePrefix("10.0.0.1/25")} }, "10.0.0.127 is not an address for a machine", ""},
	{"a network of two", "10.0.0.0", func(s *netio.Snapshot) { s.Link.Addrs = []netip.Prefix{netip.MustParsePrefix("10.0.0.1/31")} }, "", ""},
	{"this board's own", "10.0.0.1", nil, "10.0.0.1 is this board's own address on eth0", ""},
	{"no address", "", func(s *netio.Snapshot) { s.Link.Addrs = nil }, "the interface eth0 has no IPv4 address (yet)", ""},
	{"no address yet, and another interface in the network", "", func(s *netio.Snapshot) {
		s.Link.Addrs = nil
		beside("10.0.0.51/24")(s)
	}, "the interface eth0 has no IPv4 address (yet)", ""},
	{"no interface", "", func(s *netio.Snapshot) { *s = netio.Snapshot{Missing: "find it: there is none"} }, "find it: there is none", ""},
	{"a tunnel", "", func(s *netio.Snapshot) { s.Link.HardwareAddr = nil }, "eth0 is no Ethernet and no Wi-Fi interface, so no other machine would learn where 10.0.0.100 is", ""},
	{"InfiniBand", "", func(s *netio.Snapshot) { s.Link.HardwareAddr = make(net.HardwareAddr, 20) }, "eth0 is no Ethernet", ""},
	{"a routed address", "192.168.9.9", nil, "", "192.168.9.9 is in none of the networks of eth0 (10.0.0.0/24): only who has a route to it reaches it, or, where its prefix length is written,"},
	{"the network of another interface", "192.168.9.9", beside("192.168.9.1/24"), "192.168.9.9 is in the network of eth1 (192.168.9.1/24), and this group is on eth0", ""},
	{"both networks have it", "", beside("10.0.0.51/24"), "", ""},
	{"another interface has it alone", "192.168.9.9", beside("192.168.9.9/24"), "", "192.168.9.9 is in none of the networks of eth0"},
	{"another interface has a /32", "192.168.9.9", beside("192.168.9.9/32"), "", "192.168.9.9 is in none of the networks of eth0"},
	{"IPv6", "fd00::100", also("fd00::1/64"), "", ""},
	{"IPv6 with the prefix of the network", "fd00::100/64", also("fd00::1/64"), "", ""},
	{"IPv6 with a shorter prefix", "fd00::100/48", also("fd00::1/64"), "", "with fd00::100/48 the leader takes all of fd00::/48 for its neighbours, and the network of eth0 is fd00::/64: write fd00::100 without a prefix length"},
	{"IPv6, which the interface has not", "fd00::100", nil, "", "fd00::100 is in none of the IPv6 networks of eth0 (it has none)"},
	{"IPv6, which only another interface has yet", "fd00::100", beside("fd00::51/64"), "", "fd00::100 is in none of the IPv6 networks of eth0 (it has none)"},
	{"IPv6 of another network", "fd00::100", also("2001:db8::1/64"), "", "fd00::100 is in none of the IPv6 networks of eth0 (2001:db8::/64)"},
	{"IPv6 of the network of another interface", "fd00::100", func(s *netio.Snapshot) { also("2001:db8::1/64")(s); beside("fd00::51/64")(s) }, "", "fd00::100 is in the network of eth1 (fd00::51/64), and this group is on eth0"},
	{"IPv6 of the routers", "fd00::", also("fd00::1/64"), "", "fd00:: is not an address for a machine: it is the first of the network of eth0, which is that of all routers; choose another one, on all boards"},
	{"IPv6 of this board", "fd00::1", also("fd00::1/64", "2001:db8::1/64"), "", "fd00::1 is this board's own address on eth0, and a floating address is one that no machine has for itself"},
	{"no IPv4 address, and one of IPv6", "fd00::100", func(s *netio.Snapshot) { s.Link.Addrs = nil; also("fd00::1/64")(s) }, "the interface eth0 has no IPv4 address (yet)", ""},
	{"an IPv6 address in front of the IPv4 one", "", func(s *netio.Snapshot) {
		s.Link.Addrs = append([]netip.Prefix{netip.MustParsePrefix("fd00::1/64")}, s.Link.Addrs...)
	}, "", ""},
	{"several fit", "", func(s *netio.Snapshot) { s.Ambiguous = "both eth0 and wlan0" }, "", "both eth0 and wlan0"},
}

// also gives the board more addresses on its interface.
func also(prefixes ...string) func(*netio.Snapshot) {
	return func(s *netio.Snapshot) {
		for _, p := range prefixes {
			s.Link.Addrs = append(s.Link.Addrs, netip.MustParsePrefix(p))
		}
	}
}

// beside gives the board an address on another interface.
func beside(prefix string) func(*netio.Snapshot) {
	return func(s *netio.Snapshot) {
		s.Interfaces = []int{2, 3}
		s.Local = append(s.Local, netio.LocalAddr{Prefix: netip.MustParsePrefix(prefix), Index: 3, Device: "eth1"})
	}
}

// TestNetworks: what JudgeNetwork calls right is what a daemon takes part with, and for what it refuses the daemon waits, with the same words.
func TestNetworks(t *testing.T) {
	for _, tc := range networkCases {
		t.Run(tc.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, l *fakeLAN) {
				var judged Network
				one := l.board(1, func(c *config.Config, b *fakeBoard) {
					if tc.address != "" {
						address, err := config.ParseAddress(tc.address)
						assert.NoError(t, err)
						if address.IP.Is6() {
							address, c.Addresses = c.Addresses[0], []config.Address{address}
						} else {
							c.Addresses = nil
						}
						c.Addresses = append(c.Addresses, address)
					}
					if tc.change != nil {
						tc.change(&b.state)
					}
					judged = JudgeNetwork(c, b.state)
				})
				pass(3 * time.Second)
				s := one.mustStatus(t)
				if (judged.Waits == "") != (tc.waits == "") || !strings.Contains(judged.Waits, tc.waits) {
					t.Errorf("it waits for %q, want %q", judged.Waits, tc.waits)
				}
				if notes := strings.Join(judged.Notes, "\n"); (notes == "") != (tc.note == "") || !strings.Contains(notes, tc.note) {
					t.Errorf("the notes are %q, want %q", notes, tc.note)
				}
				if leads := s.Role == console.RoleLeader && s.Holding; leads != (tc.waits == "") {
					t.Errorf("the daemon is %s, and waits for %q", s.Role, judged.Waits)
				}
				if tc.waits != "" {
					one.wantProblem(t, judged.Waits)
				}
			})
		})
	}
}

// TestAnotherInterfaceGetsTheAddress: a leader goes on when another interface gets the network of one of its addresses, and says so. It does so also
// after its own interface had no address for a while.
func TestAnotherInterfaceGetsTheAddress(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one := l.board(1, func(c *config.Config, _ *fakeBoard) {
			c.Addresses = append(c.Addresses, config.Address{IP: netip.MustParseAddr("192.168.9.9")})
		})
		pass(3 * time.Second)
		one.change(beside("192.168.9.1/24"))
		pass(3 * time.Second)
		one.wantProblem(t, "192.168.9.9 is in the network of eth1")
		own := slices.Clone(one.state.Link.Addrs)
		for _, addrs := range [][]netip.Prefix{own, nil, own} {
			one.change(func(s *netio.Snapshot) { s.Link.Addrs = addrs })
			pass(3 * time.Second)
			if s := one.mustStatus(t); (s.Role == console.RoleLeader && s.Holding) != (addrs != nil) {
				t.Errorf("with the addresses %v it is %s", addrs, s.Role)
			}
		}
	})
}
