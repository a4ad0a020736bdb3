package netio

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"topdog/internal/lab/assert"
)

func (b *board) removeLeftovers(addresses ...netip.Prefix) ([]string, error) {
	return on(b, func() ([]string, error) { return RemoveLeftovers(addresses) })
}

func TestRemoveLeftovers(t *testing.T) {
	needTUN(t)
	b := newLAN(t, 1).boards[0]
	makePersistentTUN(t, b, DefaultDevice)
	vip := netip.PrefixFrom(testVIP, 32)
	b.addAddr(t, DefaultDevice, vip)
	b.addAddr(t, "eth0", vip)
	b.addAddr(t, "eth0", netip.MustParsePrefix("10.77.0.101/32")) // somebody else's
	b.addAddr(t, "eth0", netip.MustParsePrefix("10.77.0.102/24")) // ours by name, but a person's by its length

	addresses := []netip.Prefix{testFloating, netip.MustParsePrefix("10.77.0.102/24")}
	removed, err := b.removeLeftovers(addresses...)
	must(t, err)
	slices.Sort(removed)
	want := []string{"address 10.77.0.100 on eth0", "address 10.77.0.100 on topdog0", "device topdog0"}
	assert.Equal(t, want, removed, "removed")
	for addr, want := range map[string]bool{"10.77.0.1": true, "10.77.0.100": false, "10.77.0.101": true, "10.77.0.102": true} {
		assert.Is(t, want, b.has(t, "", netip.MustParseAddr(addr)), "the board has %s", addr)
	}
	removed, err = b.removeLeftovers(addresses...)
	if len(removed) > 0 || err != nil {
		t.Errorf("a second time: removed %q, error %v", removed, err)
	}
}

// What is not ours stays: interfaces of other kinds with our device's name, other
// programs' TUN devices, and all that another daemon on this board has, whether it
// leads or not.
func TestRemoveLeftoversSparesOthers(t *testing.T) {
	needTUN(t)
	b := newLAN(t, 1).boards[0]
	other := netip.MustParsePrefix("10.77.0.201/24")
	leads := openFloating(t, b, FloatingOptions{Method: HoldTUN, Addresses: []netip.Prefix{other}, lifetime: 30 * time.Second})
	must(t, leads.Acquire())
	follows := openFloating(t, b, FloatingOptions{Method: HoldTUN})
	must(t, b.handle.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "topdog7"}, PeerName: "topdog77"}))
	for _, name := range []string{"tun0", "topdog", "topdog08"} {
		makePersistentTUN(t, b, name)
	}
	makePersistentTUN(t, b, "topdog9") // left by nobody knows whom

	removed, err := b.removeLeftovers(testFloating)
	must(t, err)
	assert.Equal(t, []string{"device topdog9"}, removed, "removed")
	for _, name := range []string{leads.Device(), follows.Device(), "topdog7", "tun0", "topdog", "topdog08"} {
		b.link(t, name) // still there
	}
	assert.Is(t, "10.77.0.201/32 for 30 s", b.lease(t, leads.Device(), other.Addr()), "the other daemon's address on %s", leads.Device())
	if leads.Device() == follows.Device() {
		t.Errorf("both daemons use %s", leads.Device())
	}
}
