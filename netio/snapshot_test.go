package netio

import (
	"net"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
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

// What the kernel says, and what eth0 looks like then.
func TestTable(t *testing.T) {
	newLink := func(index int, name string, flags uint32) any {
		return linkMessage(unix.RTM_NEWLINK, index, name, flags)
	}
	delLink := func(index int, name string) any { return linkMessage(unix.RTM_DELLINK, index, name, 0) }
	newAddr := func(index int, cidr string) any { return addrMessage(true, index, cidr) }
	delAddr := func(index int, cidr string) any { return addrMessage(false, index, cidr) }
	ofBridge := func(m any) any {
		u := m.(netlink.LinkUpdate)
		u.IfInfomsg.Family = unix.AF_BRIDGE
		return u
	}
	prefix := netip.MustParsePrefix
	eth0 := func(index int, up bool, addrs ...netip.Prefix) Link {
		return Link{Name: "eth0", Index: index, HardwareAddr: testMAC, Up: up, Addrs: addrs}
	}
	ten := prefix("10.0.0.1/24")

	tests := []struct {
		name     string
		messages []any
		want     Snapshot
	}{
		{"nothing", nil, Snapshot{}},
		{"another interface",
			[]any{newLink(1, "lo", cableIn|unix.IFF_LOOPBACK), newAddr(1, "127.0.0.1/8")},
			Snapshot{Local: []LocalAddr{{prefix("127.0.0.1/8"), 1}}}},
		{"an interface with its address",
			[]any{newLink(2, "eth0", cableIn), newAddr(2, "10.0.0.1/24")},
			Snapshot{true, eth0(2, true, ten), []LocalAddr{{ten, 2}}, []int{2}}},
		{"the address overtakes its link",
			[]any{newAddr(2, "10.0.0.1/24"), newLink(2, "eth0", cableIn)},
			Snapshot{true, eth0(2, true, ten), []LocalAddr{{ten, 2}}, []int{2}}},
		{"a cable is pulled",
			[]any{newLink(2, "eth0", cableIn), newLink(2, "eth0", cableOut)},
			Snapshot{true, eth0(2, false), nil, []int{2}}},
		{"switched off with the cable in",
			[]any{newLink(2, "eth0", unix.IFF_LOWER_UP)},
			Snapshot{true, eth0(2, false), nil, []int{2}}},
		{"carrier, but the Wi-Fi handshake is not done",
			[]any{newLink(2, "eth0", unix.IFF_UP|unix.IFF_LOWER_UP)},
			Snapshot{true, eth0(2, false), nil, []int{2}}},
		{"an address is refreshed",
			[]any{newLink(2, "eth0", cableIn), newAddr(2, "10.0.0.1/24"), newAddr(2, "10.0.0.1/24")},
			Snapshot{true, eth0(2, true, ten), []LocalAddr{{ten, 2}}, []int{2}}},
		{"an address is removed, and once more",
			[]any{newLink(2, "eth0", cableIn), newAddr(2, "10.0.0.1/24"), delAddr(2, "10.0.0.1/24"), delAddr(2, "10.0.0.1/24")},
			Snapshot{true, eth0(2, true), nil, []int{2}}},
		{"one address with two prefix lengths is two",
			[]any{newAddr(2, "10.0.0.1/24"), newAddr(2, "10.0.0.1/32"), delAddr(2, "10.0.0.1/24")},
			Snapshot{Local: []LocalAddr{{prefix("10.0.0.1/32"), 2}}}},
		{"an address on two interfaces, sorted",
			[]any{newAddr(3, "10.0.0.9/32"), newAddr(2, "10.0.0.9/32"), newAddr(3, "10.0.0.1/24")},
			Snapshot{Local: []LocalAddr{{ten, 3}, {prefix("10.0.0.9/32"), 2}, {prefix("10.0.0.9/32"), 3}}}},
		{"IPv6 is not our business",
			[]any{newLink(2, "eth0", cableIn), newAddr(2, "fe80::1/64")},
			Snapshot{true, eth0(2, true), nil, []int{2}}},
		{"deleted",
			[]any{newLink(2, "eth0", cableIn), newAddr(2, "10.0.0.1/24"), delLink(2, "eth0")},
			Snapshot{}},
		{"deleted and made again",
			[]any{newLink(2, "eth0", cableIn), newAddr(2, "10.0.0.1/24"), delLink(2, "eth0"), newLink(7, "eth0", cableIn), delAddr(2, "10.0.0.1/24")},
			Snapshot{true, eth0(7, true), nil, []int{7}}},
		{"renamed",
			[]any{newLink(2, "eth0", cableIn), newLink(2, "lan0", cableIn)},
			Snapshot{Interfaces: []int{2}}},
		{"others, and a TUN device of ours",
			[]any{newLink(5, "wlan0", cableOut), newLink(3, "topdog0", cableIn), newLink(4, "docker0", cableIn)},
			Snapshot{Interfaces: []int{4, 5}}},
		{"another one is deleted",
			[]any{newLink(5, "wlan0", cableOut), delLink(5, "wlan0")},
			Snapshot{}},
		{"leaves a bridge, which the bridge reports as deleted",
			[]any{newLink(2, "eth0", cableIn), ofBridge(delLink(2, "eth0"))},
			Snapshot{true, eth0(2, true), nil, []int{2}}},
		{"a wireless event without a name",
			[]any{newLink(2, "eth0", cableOut), newLink(2, "", cableIn)},
			Snapshot{true, eth0(2, true), nil, []int{2}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			table := newTable("eth0")
			for _, m := range test.messages {
				switch m := m.(type) {
				case netlink.LinkUpdate:
					table.link(m)
				case netlink.AddrUpdate:
					table.addr(m)
				}
			}
			if diff := cmp.Diff(test.want, table.snapshot(), cmpopts.EquateComparable(netip.Prefix{}), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("snapshot (-want +got):\n%s", diff)
			}
		})
	}
}

// equal must see every field, or a change would never be reported.
func TestSnapshotEqual(t *testing.T) {
	ten := netip.MustParsePrefix("10.0.0.1/24")
	make := func() Snapshot {
		return Snapshot{
			Present: true,
			Link:    Link{Name: "eth0", Index: 2, HardwareAddr: net.HardwareAddr{2, 0, 0, 0, 0, 1}, Up: true, Addrs: []netip.Prefix{ten}},
			Local:   []LocalAddr{{ten, 2}},

			Interfaces: []int{2, 3},
		}
	}
	assert.Is(t, true, make().equal(make()), "a snapshot is as itself")
	for name, change := range map[string]func(*Snapshot){
		"Present":      func(s *Snapshot) { s.Present = false },
		"Name":         func(s *Snapshot) { s.Link.Name = "eth1" },
		"Index":        func(s *Snapshot) { s.Link.Index++ },
		"HardwareAddr": func(s *Snapshot) { s.Link.HardwareAddr[5]++ },
		"Up":           func(s *Snapshot) { s.Link.Up = false },
		"Addrs":        func(s *Snapshot) { s.Link.Addrs = nil },
		"Local":        func(s *Snapshot) { s.Local[0].Index++ },
		"Interfaces":   func(s *Snapshot) { s.Interfaces[1]++ },
	} {
		s := make()
		change(&s)
		assert.Is(t, false, s.equal(make()), "a change of %s goes unnoticed", name)
	}
}

func TestSnapshotHas(t *testing.T) {
	s := Snapshot{Local: []LocalAddr{{netip.MustParsePrefix("10.0.0.1/24"), 2}}}
	if !s.Has(netip.MustParseAddr("10.0.0.1")) || s.Has(netip.MustParseAddr("10.0.0.2")) {
		t.Error("Has finds the wrong addresses")
	}
}
