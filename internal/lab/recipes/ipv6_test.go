package recipes

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/cluster"
	"topdog/internal/lab/judge"
	"topdog/internal/lab/netns"
	"topdog/netio"
)

// vip128 is a floating address of IPv6 as the leader has it, and net64 is the network in which it is.
var (
	vip128 = netip.MustParsePrefix("fd00:1::250/128")
	net64  = netip.MustParsePrefix("fd00:1::/64")
)

// Each service that was set up as its recipe says answers at an address of IPv6 as well, with what the overview says must be
// added, wherever the leader has that address. The address comes while the service runs.
func TestIPv6(t *testing.T) {
	t.Parallel()
	overview, err := os.ReadFile(filepath.Join(pages, indexPage))
	assert.NoError(t, err)
	for i := range services {
		s := &services[i]
		t.Run(s.unit, judge.Of(func(t *judge.T) {
			s.installed(t)
			if !strings.Contains(string(overview), "`"+s.ipv6+"`") && s.ipv6 != "" {
				t.Errorf("%s does not say that %s needs %s", indexPage, s.unit, s.ipv6)
			}
			c, err := cluster.New(2)
			assert.NoError(t, err)
			t.Cleanup(func() { assert.NoError(t, c.Close()) })
			if s.beside != nil {
				s.beside(t, c)
			}
			client := c.LAN.Client()
			addIPv6(t, client, 9)
			for board, device := range map[int]string{1: netio.DefaultDevice, 2: "eth0"} {
				d := s.install(t, c, board)
				s.addForIPv6(t, d)
				addIPv6(t, d.Host, uint8(board))
				d.start(t)
				s.settle(client, d)
				assert.NoError(t, d.Do(func() error { return addOn(device, vip128) }))
				assert.NoError(t, client.Do(func() error { return knowAs(d.Host) }))
				for transport, ask := range s.asks {
					if err := eventually(func() error { return client.Do(func() error { return ask(vip128.Addr()) }) }); err != nil {
						t.Errorf("%s, with the address on %s: no answer by %s: %v\n%s", s.unit, device, transport, err, d.Log)
					}
				}
			}
		}))
	}
}

// addForIPv6 adds to the files of the recipe on a board what the overview says.
func (s *service) addForIPv6(t testing.TB, d *daemon) {
	t.Helper()
	if s.ipv6 == "" {
		return
	}
	before, added := here(s.before, d.Dir), 0
	for path := range files(t, s.page) {
		text, err := os.ReadFile(d.Dir + path)
		if err != nil {
			continue // what is not for the service
		}
		added += strings.Count(string(text), before)
		write(t, d.Dir+path, strings.ReplaceAll(string(text), before, before+"\n"+s.ipv6))
	}
	if added != 1 {
		t.Fatalf("%s has the line %q %d times", s.page, s.before, added)
	}
}

// addIPv6 gives a host an address of its own, at once: without a second in which Linux asks whether another host has it.
func addIPv6(t testing.TB, h *netns.Host, number uint8) {
	t.Helper()
	assert.NoError(t, setSysctl(h, "net.ipv6.conf.eth0.accept_dad = 0"))
	addr := net64.Addr().As16()
	addr[15] = number
	assert.NoError(t, h.AddAddress(netip.PrefixFrom(netip.AddrFrom16(addr), net64.Bits())))
}

// knowAs has this host's kernel know that a board has the floating address, as from the leader's announcement.
func knowAs(board *netns.Host) error {
	eth0, err := netlink.LinkByName("eth0")
	if err != nil {
		return err
	}
	return netlink.NeighSet(&netlink.Neigh{
		LinkIndex: eth0.Attrs().Index, State: netlink.NUD_PERMANENT, IP: vip128.Addr().AsSlice(), HardwareAddr: board.HardwareAddr,
	})
}
