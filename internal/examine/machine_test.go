package examine

import (
	"fmt"
	"testing"

	"topdog/internal/lab/assert"
)

// What DHCP servers of a board write of the addresses that they hand out.
func TestPools(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"nothing", "", "[]"},
		{"dnsmasq", "dhcp-range=192.168.1.100,192.168.1.200,12h\n", "[{192.168.1.100 192.168.1.200}]"},
		{"with a tag and blanks", " dhcp-range = set:lan, 10.0.0.50 , 10.0.0.60 , 255.255.255.0, 1h # ours\n", "[{10.0.0.50 10.0.0.60}]"},
		{"of an interface", "dhcp-range=interface:eth0,10.0.0.50,10.0.0.60\n", "[{10.0.0.50 10.0.0.60}]"},
		{"two", "dhcp-range=10.0.0.2,10.0.0.3\ndhcp-range=10.0.1.2,10.0.1.3\n", "[{10.0.0.2 10.0.0.3} {10.0.1.2 10.0.1.3}]"},
		{"static hosts only", "dhcp-range=192.168.1.0,static\n", "[]"},
		{"static hosts only, with a netmask", "dhcp-range=192.168.1.0,static,255.255.255.0\n", "[]"},
		{"a proxy, with a netmask", "dhcp-range=192.168.1.0,proxy,255.255.255.0\n", "[]"},
		{"IPv6", "dhcp-range=::100,::1ff,constructor:eth0\n", "[]"},
		{"IPv6 of a prefix", "dhcp-range=fd00:1::100,fd00:1::1ff,64,12h\n", "[{fd00:1::100 fd00:1::1ff}]"},
		{"stateless IPv6", "dhcp-range=fd00:1::,ra-stateless\n", "[]"},
		{"a comment", "#dhcp-range=192.168.1.100,192.168.1.200\n", "[]"},
		{"Pi-hole", "[dns]\nactive = true\n[dhcp]\n  active = true ### CHANGED\n  start = \"192.168.1.201\"\n  end = \"192.168.1.251\"\n[webserver]\nstart = \"10.0.0.1\"\n", "[{192.168.1.201 192.168.1.251}]"},
		{"Pi-hole without DHCP", "[dhcp]\nactive = false\nstart = \"192.168.1.201\"\nend = \"192.168.1.251\"\n", "[]"},
		{"Pi-hole without a range", "[dhcp]\nactive = true\nstart = \"\"\nend = \"\"\n", "[]"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			for _, p := range pools(tc.text) {
				got = append(got, fmt.Sprintf("{%v %v}", p.first, p.last))
			}
			assert.Is(t, tc.want, fmt.Sprint(got), "the ranges")
		})
	}
}
