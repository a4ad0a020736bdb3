package netio

import (
	"net"
	"net/netip"
	"os"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"topdog/internal/lab/assert"
)

// needTUN skips where there is no TUN device to be had.
func needTUN(t testing.TB) {
	t.Helper()
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		t.Skipf("needs a TUN device: %v", err)
	}
}

// A persistent device of our name would outlive us, so taking it over makes it mortal.
func TestFloatingIPPersistentDevice(t *testing.T) {
	needTUN(t)
	b := newLAN(t, 1).boards[0]
	makePersistentTUN(t, b, DefaultDevice)
	f := openFloating(t, b, FloatingOptions{Method: HoldTUN, device: DefaultDevice})
	// Nobody else gets it meanwhile.
	_, err := b.newFloatingIP(FloatingOptions{Interface: "eth0", Addresses: []netip.Prefix{testFloating}, Method: HoldTUN, device: DefaultDevice})
	assert.ErrorIs(t, err, unix.EBUSY, "a second one with the same device")
	assert.ErrorContains(t, err, "the TUN device topdog0 belongs to another process", "a second one with the same device")
	must(t, f.Close())
	assert.Is(t, false, b.hasLink(t, DefaultDevice), "the device is there after Close")
}

// The device is switched on, as people expect of one with addresses, and does
// not speak IPv6: its router solicitations would pile up unread.
func TestTUNDevice(t *testing.T) {
	needTUN(t)
	l := newLAN(t, 1)
	b := l.boards[0]
	openFloating(t, b, FloatingOptions{Method: HoldTUN})
	addrs, err := dump(func() ([]netlink.Addr, error) {
		return b.handle.AddrList(l.link(b.handle, DefaultDevice), netlink.FAMILY_V6)
	})
	must(t, err)
	assert.Is(t, 0, len(addrs), "addresses of the device")
	assert.Is(t, net.FlagUp, b.link(t, DefaultDevice).Flags&net.FlagUp, "the device is switched on")
}

func makePersistentTUN(t testing.TB, b *board, name string) {
	t.Helper()
	b.do(t, func() error {
		file, _, err := openTUN(name)
		if err != nil {
			return err
		}
		defer file.Close()
		return unix.IoctlSetInt(int(file.Fd()), unix.TUNSETPERSIST, 1)
	})
}
