package main

import (
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"topdog/internal/console"
	"topdog/internal/lab/judge"
)

// addWiFi gives a board a second interface in the same LAN, without an address.
func (b *board) addWiFi() {
	b.c.t.Helper()
	must(b.c.t, b.Do(func() error {
		eth0, err := netlink.LinkByName(b.Interface)
		if err != nil {
			return err
		}
		wlan0 := &netlink.Macvlan{LinkAttrs: netlink.LinkAttrs{Name: "wlan0", ParentIndex: eth0.Attrs().Index}, Mode: netlink.MACVLAN_MODE_BRIDGE}
		if err := netlink.LinkAdd(wlan0); err != nil {
			return err
		}
		return netlink.LinkSetUp(wlan0)
	}))
}

// alter adds an address to an interface, or deletes it there.
func (b *board) alter(alter func(netlink.Link, *netlink.Addr) error, iface string, address netip.Prefix) {
	b.c.t.Helper()
	must(b.c.t, b.Do(func() error {
		link, err := netlink.LinkByName(iface)
		if err != nil {
			return err
		}
		addr, err := netlink.ParseAddr(address.String())
		if err != nil {
			return err
		}
		return alter(link, addr)
	}))
}

// TestSecondInterface: boards that run on eth0 get Wi-Fi in the same network. All say so at once, and each comes back when
// its daemon is started again, also by Wi-Fi if the default route leads there.
func TestSecondInterface(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 3, nil)
		c.start(c.boards...)
		leader := c.agree()
		began := time.Now()
		for _, b := range c.boards {
			b.addWiFi()
			b.alter(netlink.AddrAdd, "wlan0", netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 77, 0, byte(100 + b.Number)}), 24))
		}
		for _, b := range c.boards {
			b.untilProblem("both eth0", "and wlan0", "this board uses eth0", `interface = "eth0"`)
		}
		c.undisturbed(began, leader)

		onWiFi := c.except(leader)[0]
		must(t, onWiFi.Do(func() error {
			wlan0, err := netlink.LinkByName("wlan0")
			if err != nil {
				return err
			}
			return netlink.RouteAdd(&netlink.Route{LinkIndex: wlan0.Attrs().Index, Gw: c.LAN.Client().Addr.Addr().AsSlice()})
		}))
		for _, b := range c.boards {
			b.signal(syscall.SIGTERM)
			b.ended()
			b.start()
			iface := "eth0"
			if b == onWiFi {
				iface = "wlan0"
			}
			b.untilStatusIs("it takes part by "+iface, func(s console.Status) bool { return s.Interface == iface && s.Held() })
			b.untilProblem("this board uses " + iface)
		}
		c.twoHoldersAtMost(began, 0)
		c.awayAtMost(began, slack)
	})
}

// TestAddressMovesToTheCable: a board's own address goes to Wi-Fi when its cable is taken out, and comes back, as some network
// managers have it. The board goes along each time.
func TestAddressMovesToTheCable(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 2, nil)
		moved := c.board(2)
		moved.addWiFi()
		c.start(c.boards...)
		c.agree()
		began := time.Now()
		for _, to := range []string{"wlan0", "eth0"} {
			from := map[string]string{"wlan0": "eth0", "eth0": "wlan0"}[to]
			moved.alter(netlink.AddrDel, from, moved.Addr)
			moved.alter(netlink.AddrAdd, to, moved.Addr)
			moved.untilStatusIs("it uses "+to, func(s console.Status) bool { return s.Interface == to })
			c.agree(c.boards...)
		}
		c.twoHoldersAtMost(began, 0)
	})
}
