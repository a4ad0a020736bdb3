package netio

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/judge"
)

var testFloating = netip.MustParsePrefix("10.77.0.100/24")

// testedMethods are those that can be in use.
var testedMethods = []HoldMethod{HoldTUN, HoldLifetime}

// judged is a test, or a part of one, for which the machine has to keep times of the product: how long a holder may take to
// answer, for instance.
func judged(test func(t *judge.T)) func(*testing.T) {
	return func(t *testing.T) {
		t.Helper()
		judge.RunTogether(t, test)
	}
}

func eachMethod(t *testing.T, test func(t *judge.T, method HoldMethod)) {
	for _, method := range testedMethods {
		t.Run(method.String(), judged(func(t *judge.T) { test(t, method) }))
	}
}

// floating is a FloatingIP that acts on a board: when the TUN device has gone it opens another.
type floating struct {
	*FloatingIP
	board *board
}

func (f floating) Acquire() error { return f.board.in(f.FloatingIP.Acquire) }

func (f floating) Renew() (restored bool, err error) { return on(f.board, f.FloatingIP.Renew) }

// renews wants a renewal to succeed, which had to restore something or not.
func (f floating) renews(t testing.TB, restores bool) {
	t.Helper()
	restored, err := f.Renew()
	must(t, err)
	assert.Is(t, restores, restored, "the renewal has restored something")
}

func openFloating(t testing.TB, b *board, o FloatingOptions) floating {
	t.Helper()
	o.Interface = "eth0"
	if o.Addresses == nil {
		o.Addresses = []netip.Prefix{testFloating}
	}
	f, err := b.newFloatingIP(o)
	must(t, err)
	t.Cleanup(func() { must(t, f.Close()) })
	return floating{f, b}
}

func TestCheckFloating(t *testing.T) {
	for addr, want := range map[string]string{
		"192.168.1.100": "",
		"224.0.0.1":     "is not a unicast address",
		"127.0.0.1":     "is a loopback address",
		"169.254.1.1":   "is a link-local address, which machines choose for themselves",
		"0.0.0.0":       "is not a unicast address",

		"fd00:1::250":          "",
		"fc00::1":              "",
		"2a01:4f8::250":        "",
		"2001:db8::250":        "", // of documentation: examples have these
		"::ffff:192.168.1.100": "is an IPv4 address in the form",
		"::1":                  "is a loopback address",
		"::":                   "is not a unicast address",
		"ff02::1":              "is not a unicast address",
		"fe80::1":              "is a link-local address, which every machine makes for itself",
		"fe80::1%eth0":         "is a link-local address",
		"fd00:1::250%eth0":     "names the interface eth0",
		"fec0::1":              "these are deprecated (RFC 3879)",
		"64:ff9b::1":           "is neither a global (2000::/3) nor a unique local address",
		"4000::1":              "is neither a global (2000::/3) nor a unique local address",
	} {
		assert.ErrorContains(t, CheckFloating(netip.MustParseAddr(addr)), want, "%s", addr)
	}
}

// What the kernel knows about the address on the device: its prefix and its
// lifetime in seconds (0 = for ever), or "" if it is not there.
func (b *board) lease(t testing.TB, device string, addr netip.Addr) string {
	t.Helper()
	addrs, err := listAddrs(b.handle)
	must(t, err)
	for _, a := range addrs {
		if p, ok := prefixOf(a.IPNet); ok && p.Addr() == addr && a.LinkIndex == b.link(t, device).Index {
			if uint32(a.ValidLft) == ^uint32(0) {
				return fmt.Sprintf("%s for ever", p)
			}
			return fmt.Sprintf("%s for %d s", p, a.ValidLft)
		}
	}
	return ""
}

func TestFloatingIP(t *testing.T) {
	eachMethod(t, func(t *judge.T, method HoldMethod) {
		needTUN(t)
		l := newLAN(t, 1)
		b := l.boards[0]
		second := netip.MustParsePrefix("10.77.0.101/24")
		f := openFloating(t, b, FloatingOptions{Method: method, lifetime: 30 * time.Second, Addresses: []netip.Prefix{testFloating, second}})
		device := map[HoldMethod]string{HoldTUN: DefaultDevice, HoldLifetime: "eth0"}[method]
		const lease = "/32 for 30 s"
		if got := f.State(); got != (HoldState{Method: method, Reason: "as configured", Device: device}) {
			t.Errorf("holds it by %s (%s) on %s, want %s on %s", got.Method, got.Reason, got.Device, method, device)
		}
		expect := func(when, want string) {
			t.Helper()
			for _, p := range []netip.Prefix{testFloating, second} {
				full := want
				if want != "" {
					full = p.Addr().String() + want
				}
				assert.Is(t, full, b.lease(t, device, p.Addr()), "%s, %s on %s", when, p, device)
			}
		}
		expect("before Acquire", "")
		must(t, f.Release()) // nothing to release is fine
		_, err := f.Renew()
		assert.ErrorIs(t, err, ErrNotHeld, "Renew before Acquire")
		must(t, f.Acquire())
		expect("after Acquire", lease)
		must(t, f.Acquire())
		expect("after acquiring it twice", lease)
		nearlyOver := netlinkAddr(b.link(t, device).Index, netip.PrefixFrom(testVIP, 32))
		nearlyOver.ValidLft, nearlyOver.PreferedLft = 9, 9
		must(t, b.handle.AddrReplace(nil, nearlyOver))
		f.renews(t, false)
		expect("after Renew", lease)

		b.delAddr(t, device, netip.PrefixFrom(second.Addr(), 32)) // an administrator, or networkd
		f.renews(t, true)
		expect("after it was deleted and renewed", lease)
		f.renews(t, false)

		must(t, f.Release())
		expect("after Release", "")
		must(t, f.Release())
		_, err = f.Renew()
		assert.ErrorIs(t, err, ErrNotHeld, "Renew after Release")
		expect("after a Renew that was refused", "")

		must(t, f.Acquire())
		b.delAddr(t, device, netip.PrefixFrom(second.Addr(), 32))
		must(t, f.Release()) // half of it is gone already
		expect("after releasing the other half", "")

		must(t, f.Acquire())
		must(t, b.handle.LinkDel(l.link(b.handle, device)))
		if device == "eth0" {
			l.plug(b) // a USB adapter that was pulled has the same interface under another index
			f.renews(t, true)
			expect("on the interface that came back", lease)
			must(t, b.handle.LinkDel(l.link(b.handle, device)))
			_, err := f.Renew()
			assert.ErrorIs(t, err, ErrLinkDown, "Renew without the interface")
			must(t, f.Release())
		} else {
			f.renews(t, true) // a fresh device
			expect("after the device was deleted", lease)
		}
		must(t, f.Close())
		assert.Is(t, false, b.has(t, "", testVIP), "the address is there after Close")
	})
}

// A process that was frozen must not take back what the kernel gave up.
// In virtual time the lease is over before anything reaches the kernel.
func TestRenewAfterTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &FloatingIP{held: true, expireAt: Now() + time.Second}
		time.Sleep(time.Second) // virtual
		_, err := f.Renew()
		assert.ErrorIs(t, err, ErrExpired, "Renew at the end of the lease")
	})
}

// TestDeviceDuringRenewal asks for the device while another goroutine waits for the kernel.
// A leader asks for it between two heartbeats.
func TestDeviceDuringRenewal(t *testing.T) {
	needTUN(t)
	f := openFloating(t, newLAN(t, 1).boards[0], FloatingOptions{Method: HoldTUN})
	must(t, f.Acquire())
	before := f.State().Device
	f.mu.Lock()
	defer f.mu.Unlock()
	asked := make(chan string, 1)
	go func() { asked <- f.State().Device }()
	select {
	case device := <-asked:
		assert.Is(t, before, device, "the device")
	case <-time.After(time.Second):
		t.Error("who asks has to wait for the kernel")
	}
}

// TestRenewAfterFailedRelease has a renewal wait for the kernel while the address is released, and the kernel
// not let go of it: the lifetime must go on to its end, since nobody leads here.
func TestRenewAfterFailedRelease(t *testing.T) {
	ends := map[string]func(*FloatingIP) error{"Release": (*FloatingIP).Release, "Close": (*FloatingIP).Close}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			b := newLAN(t, 1).boards[0]
			o := FloatingOptions{Interface: "eth0", Addresses: []netip.Prefix{testFloating}, Method: HoldLifetime, lifetime: longLease}
			opened, err := b.newFloatingIP(o)
			must(t, err)
			f := floating{opened, b}
			must(t, f.Acquire())
			short := netlinkAddr(b.link(t, "eth0").Index, netip.PrefixFrom(testVIP, 32))
			short.ValidLft, short.PreferedLft = 60, 60
			must(t, b.handle.AddrReplace(nil, short))

			f.mu.Lock() // whoever of the two has it next
			ended, renewed := make(chan error, 1), make(chan error, 1)
			go func() {
				_, err := onLesserThread(func() (bool, error) { return false, end(f.FloatingIP) }, unix.CAP_NET_ADMIN)
				ended <- err
			}()
			eventually(t, name+" is under way", f.ending.Load)
			go func() {
				_, err := f.Renew()
				renewed <- err
			}()
			f.mu.Unlock()
			assert.ErrorIs(t, receive(t, name, ended), unix.EPERM, "%s without the permission", name)
			assert.ErrorIs(t, receive(t, "the renewal", renewed), ErrNotHeld, "the renewal during it")
			_, err = f.Renew()
			assert.ErrorIs(t, err, ErrNotHeld, "a renewal after it")
			var seconds int
			if _, err := fmt.Sscanf(b.lease(t, "eth0", testVIP), "10.77.0.100/32 for %d s", &seconds); err != nil || seconds > 60 {
				t.Errorf("the address is there for %d s, want at most 60 (%v)", seconds, err)
			}
			if name == "Close" {
				return
			}
			must(t, f.Acquire())
			_, err = f.Renew()
			assert.ErrorIs(t, err, nil, "a renewal after the next Acquire")
			must(t, f.Close())
		})
	}
}

// TestReleaseWithoutPermission has a board not be allowed to add the address, nor to remove it. It has nothing
// to release: as long as that fails, it says nothing to the others.
func TestReleaseWithoutPermission(t *testing.T) {
	b := newLAN(t, 1).boards[0]
	f := openFloating(t, b, FloatingOptions{Method: HoldLifetime})
	forbidden := func(do func() error) error {
		_, err := onLesserThread(func() (bool, error) { return false, do() }, unix.CAP_NET_ADMIN)
		return err
	}
	assert.ErrorIs(t, forbidden(f.FloatingIP.Acquire), unix.EPERM, "Acquire")
	assert.ErrorIs(t, forbidden(f.FloatingIP.Release), nil, "Release of nothing")
	must(t, f.Acquire())
	assert.ErrorIs(t, forbidden(f.FloatingIP.Acquire), unix.EPERM, "Acquire once more")
	assert.ErrorIs(t, forbidden(f.FloatingIP.Release), unix.EPERM, "Release of an address that is there")
	must(t, f.Release())
	assert.Is(t, false, b.has(t, "eth0", testVIP), "the address is there")
}

// TestFileOfDeletedDevice has somebody delete the device between two heartbeats, and a renewal open another
// one, while somebody is about to keep the former one together with the fence.
func TestFileOfDeletedDevice(t *testing.T) {
	needTUN(t)
	l := newLAN(t, 1)
	f := openFloating(t, l.boards[0], FloatingOptions{Method: HoldTUN, lifetime: 30 * time.Second})
	must(t, f.Acquire())
	before := settledFiles(t)
	for range 3 {
		device := f.device.Load().tun
		must(t, l.boards[0].handle.LinkDel(l.link(l.boards[0].handle, f.State().Device)))
		f.renews(t, true)
		if int(device.Fd()) < 0 {
			t.Error("the file was closed")
		}
	}
	assert.Is(t, before+1, openFiles(t), "open files: only the latest former device may be")
	must(t, f.Close())
	if after := openFiles(t); after >= before {
		t.Errorf("%d files are open after Close", after)
	}
}

// TestARPIsIgnoredLater: an administrator, or a program such as a load balancer, sets arp_ignore while the address is held.
// On a TUN device nobody would find it any more.
func TestARPIsIgnoredLater(t *testing.T) {
	needTUN(t)
	for method, want := range map[HoldMethod]HoldState{
		HoldAuto: {Method: HoldLifetime, Reason: "a TUN device cannot be used here: net.ipv4.conf.{all,eth0}.arp_ignore is 1, so the kernel would not " +
			"answer ARP for an address that is not on eth0 itself", Device: "eth0"},
		HoldTUN: {Method: HoldTUN, Reason: "as configured", Device: DefaultDevice},
	} {
		b := newLAN(t, 1).boards[0]
		f := openFloating(t, b, FloatingOptions{Method: method})
		renew := func() (restored bool, err error) { return on(b, f.Renew) }
		b.do(t, f.Acquire)
		b.do(t, func() error { return os.WriteFile("/proc/sys/net/ipv4/conf/all/arp_ignore", []byte("1"), 0) })
		restored, err := renew()
		assert.NoError(t, err)
		assert.Is(t, false, restored, "moved before it was asked again")
		f.askARPAt = 0
		restored, err = renew()
		if method == HoldTUN {
			assert.ErrorContains(t, err, "hold it by tun+lifetime: net.ipv4.conf.{all,eth0}.arp_ignore is 1", "who insists on TUN")
		} else {
			assert.NoError(t, err)
			assert.Is(t, true, restored, "moved")
			assert.Is(t, false, b.has(t, DefaultDevice, testVIP), "on the TUN device")
		}
		assert.Equal(t, want, f.State(), "how it is held, with %v", method)
		assert.Is(t, true, b.has(t, want.Device, testVIP), "on %s", want.Device)
		must(t, f.Close())
		assert.Is(t, false, b.has(t, "", testVIP), "there after Close")
	}
}

func TestFloatingIPAuto(t *testing.T) {
	needTUN(t)
	sysctl := func(name, value string) func(testing.TB, *board) {
		return func(t testing.TB, b *board) {
			b.do(t, func() error {
				return os.WriteFile(filepath.Join("/proc/sys/net/ipv4/conf", name, "arp_ignore"), []byte(value), 0)
			})
		}
	}
	tests := []struct {
		name    string
		prepare func(testing.TB, *board)
		want    HoldMethod
		reason  string
		device  string
	}{
		{"an ordinary board", func(testing.TB, *board) {}, HoldTUN, "gone at once if the daemon is killed", DefaultDevice},
		{"arp_ignore for all", sysctl("all", "1"), HoldLifetime, "arp_ignore is 1, so the kernel would not answer", "eth0"},
		{"arp_ignore on the interface", sysctl("eth0", "2"), HoldLifetime, "conf.{all,eth0}.arp_ignore is 2", "eth0"},
		{"a second daemon", func(t testing.TB, b *board) {
			openFloating(t, b, FloatingOptions{Method: HoldTUN})
		}, HoldTUN, "gone at once if the daemon is killed", "topdog1"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := newLAN(t, 1).boards[0]
			test.prepare(t, b)
			f := openFloating(t, b, FloatingOptions{})
			got := f.State()
			if got.Method != test.want || !strings.Contains(got.Reason, test.reason) || got.Device != test.device {
				t.Errorf("got %s on %s because %q, want %s on %s because %q", got.Method, got.Device, got.Reason, test.want, test.device, test.reason)
			}
			if test.want == HoldLifetime {
				// Who insists on TUN is told instead of getting something else.
				_, err := b.newFloatingIP(FloatingOptions{Interface: "eth0", Addresses: []netip.Prefix{testFloating}, Method: HoldTUN})
				assert.ErrorContains(t, err, test.reason, "insisting on TUN")
			}
		})
	}
}

// talk asks a UDP service on vip at the board from the client, and checks both source addresses.
func talk(t testing.TB, b, client *board, vip, from netip.Addr) {
	t.Helper()
	service, asker := b.listen(t, netip.AddrPortFrom(vip, 0)), client.listen(t, netip.AddrPortFrom(from, 0))
	must(t, asker.SetDeadline(time.Now().Add(testTimeout)))
	serviceAt := service.LocalAddr().(*net.UDPAddr).AddrPort()
	buffer := make([]byte, 100)
	var askerAt netip.AddrPort
	eventually(t, "the service hears the client", func() bool {
		_, err := asker.WriteToUDPAddrPort([]byte("?"), serviceAt)
		must(t, err)
		must(t, service.SetReadDeadline(time.Now().Add(100*time.Millisecond)))
		_, askerAt, err = service.ReadFromUDPAddrPort(buffer)
		return err == nil
	})
	assert.Is(t, from, askerAt.Addr(), "who has asked the service")
	_, err := service.WriteToUDPAddrPort([]byte("!"), askerAt)
	must(t, err)
	_, source, err := asker.ReadFromUDPAddrPort(buffer)
	must(t, err)
	assert.Is(t, serviceAt, source, "who has answered the client")
}
