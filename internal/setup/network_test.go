package setup

import (
	"net/netip"
	"strings"
	"testing"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/netns"
)

// A suggestion is an address at which nobody answered; where nobody could be
// asked there is none.
func TestSuggest(t *testing.T) {
	for _, tc := range []struct {
		name, own string // "" is a board without a network
		taken     string
		deaf      bool
		want      string // subnet and address
	}{
		{"free", "192.168.1.11/24", "", false, "192.168.1.0/24 192.168.1.250"},
		{"taken", "192.168.1.11/24", "192.168.1.250 192.168.1.249", false, "192.168.1.0/24 192.168.1.248"},
		{"its own", "10.0.0.250/24", "", false, "10.0.0.0/24 10.0.0.249"},
		{"large", "10.1.2.3/8", "", false, "10.0.0.0/8 10.255.255.250"},
		{"small", "10.1.2.3/29", "", false, "invalid Prefix invalid IP"},
		{"all taken", "192.168.1.11/24", "192.168.1.", false, "192.168.1.0/24 invalid IP"},
		{"nobody to ask", "192.168.1.11/24", "", true, "192.168.1.0/24 invalid IP"},
		{"no network", "", "", false, "invalid Prefix invalid IP"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			asked := 0
			n := network{
				owner: func(iface string, a netip.Addr) (string, bool) {
					asked++
					if tc.taken != "" && (strings.HasSuffix(tc.taken, ".") || strings.Contains(tc.taken, a.String())) {
						return "dc:a6:32:00:00:01", true
					}
					return "", !tc.deaf
				},
			}
			n.own = []ownAddress{{"eth0", netip.MustParsePrefix("fd00:1::11/64")}} // which changes nothing
			if own, err := netip.ParsePrefix(tc.own); err == nil {
				n.own = append(n.own, ownAddress{"eth0", own})
			}
			subnet, free := n.suggest()
			assert.Is(t, tc.want, subnet.String()+" "+free.String(), "")
			if asked > tries {
				t.Errorf("asked %d times", asked)
			}
		})
	}
}

// What is said of addresses before a configuration has them. This board is 10.0.0.1/24, fd00:1::1/64 and fd00:1::1:1/112, and
// on eth1 fd00:2::1/64.
func TestSuits(t *testing.T) {
	const first = "10.0.0.9 is in the network of eth0 (10.0.0.0/24)\nnobody has it at the moment\n"
	for _, tc := range []struct{ addresses, said, refused string }{
		{"10.0.0.9", first, ""},
		{"10.0.0.9 10.0.0.8", first + "10.0.0.8 is in a network of eth0 too (10.0.0.0/24)\nnobody has it at the moment\n", ""},
		{"10.0.0.9,fd00:1::9", first + "fd00:1::9 is in a network of eth0 too (fd00:1::/64)\nnobody has it at the moment\n", ""},
		{"fd00:1::9/64, 10.0.0.9", first + "fd00:1::9 is in a network of eth0 too (fd00:1::/64)\nnobody has it at the moment\n", ""},
		{"10.0.0.9 fd00:1::1:9", first + "fd00:1::1:9 is in a network of eth0 too (fd00:1::1:0/112)\nnobody has it at the moment\n", ""},
		{"10.0.0.9 fd00:1::7", first + "fd00:1::7 is in a network of eth0 too (fd00:1::/64)\nnote: dc:a6:32:00:00:01 has it at the moment. If that is not a board of this group, choose another\naddress: topdog does not take one that somebody else has.\n", ""},
		{"10.0.0.9 2001:db8::9", first + "note: 2001:db8::9 is in no network of eth0 that this board is in. Only machines that have a route to\nit by this LAN will reach it, or, if you write its prefix length, those that are in its network.\nnobody has it at the moment\n", ""},
		{"10.0.0.9 fd00:2::9", first + "note: fd00:2::9 is in no network of eth0 that this board is in. Only machines that have a route to\nit by this LAN will reach it, or, if you write its prefix length, those that are in its network.\nnobody has it at the moment\n", ""},
		{"10.0.0.9 fd00:1::1", first, "fd00:1::1 is this board's own address"},
		{"10.0.0.9 fd00:2::1", first, "fd00:2::1 is this board's own address"},
		{"10.0.0.9 fd00:1::", first, "fd00:1:: is not an address for a machine: it is the first, which is that of all routers, of eth0's network fd00:1::/64"},
		{"10.0.0.9 10.0.0.255", first, "10.0.0.255 is not an address for a machine: it is the first or the last of eth0's network 10.0.0.0/24"},
		{"10.0.0.255 fd00:1::9", "", "10.0.0.255 is not an address for a machine"},
		{"fd00:1::9", "", "an IPv4 address is missing"},
		{"10.0.0.9 fe80::9", "", "fe80::9 is a link-local address"},
	} {
		n := networkOf("10.0.0.1")
		n.own = append(n.own, ownAddress{"eth0", netip.MustParsePrefix("fd00:1::1:1/112")}, ownAddress{"eth1", netip.MustParsePrefix("fd00:2::1/64")})
		n.owner = func(_ string, a netip.Addr) (string, bool) {
			if a == netip.MustParseAddr("fd00:1::7") {
				return "dc:a6:32:00:00:01", true
			}
			return "", true
		}
		var out strings.Builder
		err := new(Board).suits(n, &out, SplitAddresses(tc.addresses))
		assert.ErrorContains(t, err, tc.refused, "%s", tc.addresses)
		assert.Is(t, tc.said, out.String(), "%s: what is said", tc.addresses)
	}
}

// On a real network, the suggestion with the first choice taken.
func TestSuggestOnANetwork(t *testing.T) {
	netns.Reserve(t)
	lan, err := netns.New(2)
	assert.NoError(t, err)
	defer lan.Close()
	assert.NoError(t, lan.Board(2).AddAddress(netip.MustParsePrefix("10.77.0.250/24")))
	err = lan.Board(1).Do(func() error {
		subnet, free := thisNetwork(t.Context()).suggest()
		assert.Is(t, "10.77.0.0/24 10.77.0.249", subnet.String()+" "+free.String(), "suggested")
		return nil
	})
	assert.ErrorIs(t, err, nil, "on the board")
}
