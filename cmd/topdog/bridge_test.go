package main

import (
	"net/netip"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"topdog/internal/console"
	"topdog/internal/lab/judge"
	"topdog/internal/lab/netns"
	"topdog/netio"
)

// useBridge moves a board's address from eth0 to a bridge, whose uplink is a device on eth0, and which a container has a port of. The
// container speaks all the time, until the test ends.
func (b *board) useBridge() {
	b.c.t.Helper()
	must(b.c.t, b.Do(func() error {
		eth0, err := netlink.LinkByName(b.Interface)
		if err != nil {
			return err
		}
		bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "br0", HardwareAddr: eth0.Attrs().HardwareAddr}}
		if err := netlink.LinkAdd(bridge); err != nil {
			return err
		}
		uplink := &netlink.Macvlan{Mode: netlink.MACVLAN_MODE_PASSTHRU, LinkAttrs: netlink.LinkAttrs{Name: "uplink", ParentIndex: eth0.Attrs().Index, MasterIndex: bridge.Index}}
		port := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "port", MasterIndex: bridge.Index}, PeerName: "container"}
		for _, add := range []netlink.Link{uplink, port} {
			if err := netlink.LinkAdd(add); err != nil {
				return err
			}
		}
		container, err := netlink.LinkByName("container")
		if err != nil {
			return err
		}
		own, err := netlink.ParseAddr(b.Addr.String())
		if err != nil {
			return err
		}
		if err := netlink.AddrDel(eth0, own); err != nil {
			return err
		}
		for _, l := range []netlink.Link{bridge, uplink, port, container} {
			if err := netlink.LinkSetUp(l); err != nil {
				return err
			}
		}
		if own, err = netlink.ParseAddr(b.Addr.String()); err != nil {
			return err
		}
		if err := netlink.AddrAdd(bridge, own); err != nil {
			return err
		}
		inside := netip.AddrFrom4([4]byte{10, 77, 0, 77})
		announcer, err := netio.OpenAnnouncer(container.Attrs().Index, inside)
		if err != nil {
			return err
		}
		b.c.t.Cleanup(func() { _ = announcer.Close() })
		go func() {
			tick := time.NewTicker(10 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-b.c.t.Context().Done():
					return
				case <-tick.C:
					_ = announcer.Resolve(b.Addr.Addr())
				}
			}
		}()
		return nil
	}))
}

// TestBridge: the boards are on bridges, with a container each that speaks all the time. The uplink is what counts: a leader that is cut off
// lets go, and does not lead on its own side because it hears its container.
func TestBridge(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		for _, way := range []struct {
			name      string
			cut, mend func(*board) error
			says      string
		}{
			{"the cable is pulled", func(b *board) error { return b.Pull() }, func(b *board) error { return b.Plug() },
				"br0 has no carrier at uplink, by which it leads out of this board: check the cable"},
			{"the switch passes nothing", func(b *board) error { return b.c.LAN.Filter(netns.Cut(b.Port())...) }, func(b *board) error { return b.c.LAN.Filter() },
				"nothing arrives on this board's port (br0)"},
		} {
			t.Run(way.name, func(t *judge.T) {
				c := newCluster(t, 3, nil)
				for _, b := range c.boards {
					b.useBridge()
				}
				c.start(c.boards...)
				leader := c.agree()
				c.answeredBy(leader)
				must(t, way.cut(leader))
				leader.untilProblem(way.says)
				leader.untilStatusIs("it does not lead", func(s console.Status) bool { return s.Role != console.RoleLeader && !s.Holding })
				others := c.except(leader)
				next := c.agree(others...)
				c.answeredBy(next)
				c.watchFor(3 * time.Second)
				leader.untilStatusIs("it still does not lead", func(s console.Status) bool { return s.Role != console.RoleLeader && !s.Holding })
				mended := time.Now()
				must(t, way.mend(leader))
				c.agree(c.boards...)
				c.twoHoldersAtMost(mended, 0)
			})
		}
	})
}
