package netio

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"topdog/internal/lab/assert"
)

// watching runs Watch on a board until the test ends.
type watching struct {
	snapshots chan Snapshot
	trouble   chan error
	gate      chan struct{} // if not nil, notify waits until it is closed
}

// watch watches eth0.
func watch(t testing.TB, b *board, gate chan struct{}) *watching {
	t.Helper()
	return watchBy(t, b, WatchOptions{Interface: "eth0"}, gate)
}

func watchBy(t testing.TB, b *board, o WatchOptions, gate chan struct{}) *watching {
	t.Helper()
	w := &watching{snapshots: make(chan Snapshot, 10_000), trouble: make(chan error, 100), gate: gate}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		err := b.in(func() error {
			o.Problem = func(err error) { w.trouble <- err }
			return Watch(ctx, o, func(s Snapshot) {
				w.snapshots <- s
				if w.gate != nil {
					<-w.gate
				}
			})
		})
		assert.ErrorIs(t, err, nil, "Watch")
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return w
}

// until takes snapshots until one is as wanted.
func (w *watching) until(t testing.TB, what string, wanted func(Snapshot) bool) Snapshot {
	t.Helper()
	for {
		if s := receive(t, what, w.snapshots); wanted(s) {
			return s
		}
	}
}

func TestWatch(t *testing.T) {
	l := newLAN(t, 1)
	b := l.boards[0]
	own := netip.PrefixFrom(b.addr, 24)
	w := watch(t, b, nil)

	s := w.until(t, "the link to be up", func(s Snapshot) bool { return s.Link.Up })
	eth0 := b.link(t, "eth0")
	want := Snapshot{
		Present: true,
		Link:    Link{Name: "eth0", Index: eth0.Index, HardwareAddr: eth0.HardwareAddr, Up: true, Addrs: []netip.Prefix{own}},
		Local:   []LocalAddr{{own, eth0.Index, "eth0"}, {netip.MustParsePrefix("127.0.0.1/8"), 1, "lo"}},

		Interfaces: []int{eth0.Index}, HardwareAddrs: []net.HardwareAddr{eth0.HardwareAddr},
	}
	if diff := cmp.Diff(want, s, cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
		t.Errorf("first snapshot (-want +got):\n%s", diff)
	}

	l.setCable(b, false)
	w.until(t, "the cable to be pulled", func(s Snapshot) bool { return s.Present && !s.Link.Up })
	l.setCable(b, true)
	w.until(t, "the cable to be back", func(s Snapshot) bool { return s.Link.Up })

	// An address on another interface is of interest too: it may be the floating IP.
	vip := netip.MustParsePrefix("10.77.0.100/32")
	b.addAddr(t, "lo", vip)
	w.until(t, "the address", func(s Snapshot) bool { return s.Has(vip.Addr()) && len(s.Link.Addrs) == 1 })
	b.delAddr(t, "lo", vip)
	w.until(t, "the address to go", func(s Snapshot) bool { return !s.Has(vip.Addr()) })

	must(t, b.handle.LinkDel(l.link(b.handle, "eth0")))
	w.until(t, "the interface to go", func(s Snapshot) bool { return !s.Present && len(s.Link.Addrs) == 0 })
	l.plug(b)
	s = w.until(t, "the interface to be back", func(s Snapshot) bool { return s.Link.Up && len(s.Link.Addrs) == 1 })
	if s.Link.Index == eth0.Index {
		t.Errorf("the new interface has the old index %d", s.Link.Index)
	}
}

// TestWatchChooses watches the interface whose subnet contains the floating address, whichever that is at the moment.
func TestWatchChooses(t *testing.T) {
	l := newLAN(t, 1)
	b := l.boards[0]
	own, second := netip.PrefixFrom(b.addr, 24), netip.MustParsePrefix("10.77.0.201/24")
	b.delAddr(t, "eth0", own)
	w := watchBy(t, b, WatchOptions{Floating: testVIP}, nil)
	is := func(what, iface, missing, ambiguous string) {
		t.Helper()
		w.until(t, what, func(s Snapshot) bool {
			return s.Present == (iface != "") && s.Link.Name == iface &&
				strings.Contains(s.Missing, missing) && (s.Missing == "") == (missing == "") &&
				strings.Contains(s.Ambiguous, ambiguous) && (s.Ambiguous == "") == (ambiguous == "")
		})
	}
	is("no address at all", "", "no interface has an IPv4 address yet", "")
	l.addSecond(t, b, "wlan0")
	b.addAddr(t, "wlan0", netip.MustParsePrefix("172.16.0.1/24"))
	is("another network", "", "there are wlan0 (172.16.0.1/24)", "")
	b.addAddr(t, "wlan0", second)
	is("Wi-Fi first", "wlan0", "", "")
	b.addAddr(t, "eth0", own)
	is("then the cable too", "wlan0", "", "uses wlan0:")
	b.delAddr(t, "wlan0", second)
	is("the address moves to the cable", "eth0", "", "")
	b.delAddr(t, "eth0", own)
	is("no address of the network is left", "eth0", "", "")
	b.addAddr(t, "wlan0", second)
	is("it comes back by Wi-Fi", "wlan0", "", "")
	must(t, b.handle.LinkDel(l.link(b.handle, "wlan0")))
	is("the Wi-Fi adapter is taken out", "", "", "")
	b.addAddr(t, "eth0", own)
	is("the cable again", "eth0", "", "")
}

func TestWatchBeforeTheInterfaceExists(t *testing.T) {
	l := newLAN(t, 0)
	b := &board{addr: netip.MustParseAddr("10.77.0.1"), port: "port1"}
	b.ns, b.handle = newNamespace(t)
	w := watch(t, b, nil)
	assert.Is(t, false, receive(t, "the first snapshot", w.snapshots).Present, "eth0 is present before it exists")
	l.plug(b)
	w.until(t, "the interface", func(s Snapshot) bool { return s.Link.Up && len(s.Link.Addrs) == 1 })
}

// A refreshed lifetime is an event for every listener on the host, four times
// a second. It must not wake the daemon.
func TestWatchIgnoresRefreshes(t *testing.T) {
	l := newLAN(t, 1)
	b := l.boards[0]
	w := watch(t, b, nil)
	w.until(t, "the link to be up", func(s Snapshot) bool { return s.Link.Up })
	vip := netlinkAddr(1, netip.PrefixFrom(testVIP, 32))
	vip.ValidLft, vip.PreferedLft = 10, 10
	refresh := func() { must(t, b.handle.AddrReplace(nil, vip)) }
	refresh()
	w.until(t, "the address", func(s Snapshot) bool { return s.Has(testVIP) })
	for range 20 {
		refresh()
	}
	must(t, b.handle.AddrDel(nil, vip))
	assert.Is(t, false, receive(t, "the next snapshot", w.snapshots).Has(testVIP), "a refresh was reported as a change")
}

// The kernel drops messages when its buffer is full. What changed meanwhile
// must be seen all the same.
func TestWatchSurvivesOverflow(t *testing.T) {
	t.Parallel()
	l := newLAN(t, 1)
	b := l.boards[0]
	gate := make(chan struct{})
	w := watch(t, b, gate)
	receive(t, "the first snapshot", w.snapshots) // from now on nothing is read
	const many = 4000
	lo := b.link(t, "lo").Index
	for i := range many {
		addr := netip.AddrFrom4([4]byte{10, 200, byte(i / 250), byte(i%250 + 1)})
		must(t, b.handle.AddrAdd(nil, netlinkAddr(lo, netip.PrefixFrom(addr, 32))))
	}
	l.setCable(b, false)
	close(gate)
	w.until(t, "the whole picture", func(s Snapshot) bool { return len(s.Local) == many+2 && !s.Link.Up })
	l.setCable(b, true)
	w.until(t, "what happens afterwards", func(s Snapshot) bool { return s.Link.Up })
}

// An address that was put back and deleted again, before anybody looked, is reported as gone.
func TestWatchReportsWhatHasGoneAgain(t *testing.T) {
	l := newLAN(t, 1)
	b := l.boards[0]
	gate := make(chan struct{})
	w := watch(t, b, gate)
	first := receive(t, "the first snapshot", w.snapshots)
	vip := netlinkAddr(1, netip.PrefixFrom(testVIP, 32))
	must(t, b.handle.AddrAdd(nil, vip))
	must(t, b.handle.AddrDel(nil, vip))
	close(gate)
	second := receive(t, "the second snapshot", w.snapshots)
	assert.Is(t, len(first.Local), len(second.Local), "addresses in the second snapshot")
}

// While no socket can be opened, the watch says so, and goes on trying.
func TestWatchTriesAgain(t *testing.T) {
	l := newLAN(t, 1)
	var limit unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	none := limit
	none.Cur = 0
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &none))
	allow := func() { must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)) }
	defer allow()
	w := watch(t, l.boards[0], nil)
	assert.ErrorIs(t, receive(t, "the trouble", w.trouble), unix.EMFILE, "trouble")
	allow()
	receive(t, "the first snapshot", w.snapshots)
}

func TestDelays(t *testing.T) {
	var retries []string
	for i := 1; i <= 10; i++ {
		retries = append(retries, retryDelay(i).String())
	}
	assert.Equal(t, "[0s 10ms 20ms 40ms 80ms 160ms 320ms 640ms 1s 1s]", fmt.Sprint(retries), "delays")
	assert.Is(t, time.Second, retryDelay(1e9), "the delay after very many failures")
}

func TestChoose(t *testing.T) {
	vip := netip.MustParseAddr("192.168.1.100")
	index := func(name string) int { return slices.Index([]string{"vpn0", "eth0", "wlan0", "wg0"}, name) }
	on := func(name, cidr string) subnet {
		name, down := strings.CutSuffix(name, " down")
		return subnet{name, index(name), name != "wg0", !down, netip.MustParsePrefix(cidr)}
	}
	both := []subnet{on("eth0", "192.168.1.5/24"), on("wlan0", "192.168.1.6/24")}
	tests := []struct {
		name string
		all  []subnet
		want string // "name prefix", or a part of the error after "error: "
	}{
		{"the only one", []subnet{on("eth0", "192.168.1.5/24")}, "eth0 192.168.1.5/24"},
		{"the longest prefix", []subnet{on("vpn0", "192.168.1.9/16"), on("eth0", "192.168.1.5/24"), on("wlan0", "192.168.2.5/16")}, "eth0 192.168.1.5/24"},
		{"the longest prefix comes first", []subnet{on("eth0", "192.168.1.5/24"), on("vpn0", "192.168.1.9/16")}, "eth0 192.168.1.5/24"},
		{"two addresses on one interface", []subnet{on("eth0", "192.168.1.6/24"), on("eth0", "192.168.1.5/24")}, "eth0 192.168.1.5/24"},
		{"two interfaces", both, "eth0 192.168.1.5/24 (both eth0 (192.168.1.5/24) and wlan0 (192.168.1.6/24) contain 192.168.1.100; " +
			`this board uses eth0: write interface = "eth0" into the config, or interface = "wlan0")`},
		{"the default route decides", both, "route wlan0: wlan0 192.168.1.6/24 (this board uses wlan0:)"},
		{"a default route elsewhere does not", both, "route wg0: eth0 192.168.1.5/24 (uses eth0:)"},
		{"one without a cable", []subnet{on("eth0 down", "192.168.1.5/24"), on("wlan0", "192.168.1.6/24")}, "route eth0: wlan0 192.168.1.6/24 (uses wlan0:)"},
		{"the one in use stays", both, "route wlan0, uses eth0: eth0 192.168.1.5/24 (uses eth0:)"},
		{"the one in use stays, with the shorter prefix", []subnet{on("eth0", "192.168.1.5/16"), on("wlan0", "192.168.1.6/24")},
			"uses eth0: eth0 192.168.1.5/16 (uses eth0:)"},
		{"the one in use does not fit any more", []subnet{on("eth0", "10.0.0.5/24"), on("wlan0", "192.168.1.6/24")}, "uses eth0: wlan0 192.168.1.6/24"},
		{"two that matter less", []subnet{on("vpn0", "192.168.1.7/16"), on("wlan0", "192.168.1.8/16"), on("eth0", "192.168.1.5/24")}, "eth0 192.168.1.5/24"},
		{"itself is no evidence", []subnet{on("eth0", "192.168.1.100/24")}, "error: 192.168.1.100 is this board's own address on eth0; a floating address is one that no machine has for itself"},
		{"a tunnel", []subnet{on("wg0", "192.168.1.5/24"), on("eth0", "10.0.0.5/24")},
			"error: wg0 (192.168.1.5/24) contains it, which is no Ethernet and no Wi-Fi interface, so no other machine would learn where it is; " +
				"choose an address in one of the networks of eth0 (10.0.0.5/24)"},
		{"a tunnel beside Ethernet", []subnet{on("wg0", "192.168.1.9/25"), on("eth0", "192.168.1.5/24")}, "eth0 192.168.1.5/24"},
		{"elsewhere", []subnet{on("eth0", "10.0.0.5/24"), on("wlan0", "10.1.0.5/24")},
			`error: there are eth0 (10.0.0.5/24), wlan0 (10.1.0.5/24); choose an address in one of these, or write interface = "eth0"`},
		{"nothing", nil, "error: no interface has an IPv4 address yet"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			given, want, found := strings.Cut(test.want, ": ")
			if !found || strings.HasPrefix(given, "eth0") || given == "error" {
				given, want = "", test.want
			}
			var inUse string
			var routes []int
			for fact := range strings.SplitSeq(given, ", ") {
				switch what, name, _ := strings.Cut(fact, " "); what {
				case "uses":
					inUse = name
				case "route":
					routes = append(routes, index(name))
				}
			}
			got, err := choose(vip, test.all, inUse, func() []int { return routes })
			if want, isErr := strings.CutPrefix(want, "error: "); isErr {
				assert.ErrorContains(t, err, want, "got %v", got)
				return
			}
			must(t, err)
			want, why, ambiguous := strings.Cut(strings.TrimSuffix(want, ")"), " (")
			assert.Is(t, want, got.Name+" "+got.Prefix.String(), "the choice")
			if ambiguous != (got.Ambiguous != "") || !strings.Contains(got.Ambiguous, why) {
				t.Errorf("it is said that %q, want %q", got.Ambiguous, why)
			}
		})
	}
}

func TestLastAddr(t *testing.T) {
	for subnet, want := range map[string]string{
		"192.168.1.0/24": "192.168.1.255", "10.0.0.0/8": "10.255.255.255", "10.0.0.8/30": "10.0.0.11", "0.0.0.0/0": "255.255.255.255",
		"fd00:1::/64": "fd00:1::ffff:ffff:ffff:ffff", "fd00:1::250/128": "fd00:1::250",
	} {
		assert.Is(t, want, LastAddr(netip.MustParsePrefix(subnet)).String(), "%s", subnet)
	}
}

func TestIsEdge(t *testing.T) {
	for _, test := range []struct {
		network string
		edges   []string
		inner   []string
	}{
		{"192.168.1.0/24", []string{"192.168.1.0", "192.168.1.255"}, []string{"192.168.1.1", "192.168.0.0", "fd00:1::"}},
		{"192.168.1.0/31", nil, []string{"192.168.1.0", "192.168.1.1"}},
		{"192.168.1.7/32", nil, []string{"192.168.1.7"}},
		{"fd00:1::/64", []string{"fd00:1::"}, []string{"fd00:1::1", "fd00:1::ffff:ffff:ffff:ffff", "192.168.1.0"}},
		{"fd00:1::8/126", []string{"fd00:1::8"}, []string{"fd00:1::b"}},
		{"fd00:1::8/127", nil, []string{"fd00:1::8", "fd00:1::9"}},
		{"fd00:1::8/128", nil, []string{"fd00:1::8"}},
	} {
		network := netip.MustParsePrefix(test.network)
		for _, edge := range test.edges {
			assert.Is(t, true, IsEdge(netip.MustParseAddr(edge), network), "%s in %s", edge, network)
		}
		for _, inner := range test.inner {
			assert.Is(t, false, IsEdge(netip.MustParseAddr(inner), network), "%s in %s", inner, network)
		}
	}
}

func TestFindInterface(t *testing.T) {
	l := newLAN(t, 1)
	b := l.boards[0]
	vip := netip.MustParseAddr("10.77.0.100")
	b.addAddr(t, "lo", netip.PrefixFrom(vip, 32)) // a left-over
	find := func(addr netip.Addr) (Choice, error) {
		return on(b, func() (Choice, error) { return FindInterface(addr) })
	}
	found, err := find(vip)
	must(t, err)
	assert.Is(t, Choice{Name: "eth0", Prefix: netip.PrefixFrom(b.addr, 24)}, found, "the interface")
	_, err = find(netip.MustParseAddr("172.16.0.1"))
	assert.ErrorContains(t, err, "there are eth0 (10.77.0.1/24);", "for an address elsewhere")

	// Wi-Fi in the same network: it gets the default route, and loses it to one with a smaller metric.
	l.addSecond(t, b, "wlan0")
	wlan0 := netip.MustParsePrefix("10.77.0.201/24")
	b.addAddr(t, "wlan0", wlan0)
	for i, step := range []struct{ routeBy, want string }{{"", "eth0"}, {"wlan0", "wlan0"}, {"eth0", "eth0"}} {
		if step.routeBy != "" {
			must(t, b.handle.RouteAdd(&netlink.Route{
				LinkIndex: b.link(t, step.routeBy).Index, Gw: netip.MustParseAddr("10.77.0.2").AsSlice(), Priority: 1000 - i,
			}))
		}
		found, err := find(vip)
		must(t, err)
		assert.Is(t, step.want, found.Name, "the interface when the default route is by %q", step.routeBy)
	}
}

// What a driver of Wi-Fi answers, and what is no answer.
func TestPowerSave(t *testing.T) {
	answer := func(attribute int, value []byte) []byte {
		return append(make([]byte, nl.SizeofGenlmsg), nl.NewRtAttr(attribute, value).Serialize()...)
	}
	for _, tc := range []struct {
		name      string
		answer    []byte
		on, known bool
	}{
		{"on", answer(nl80211AttrPSState, nl.Uint32Attr(1)), true, true},
		{"off", answer(nl80211AttrPSState, nl.Uint32Attr(0)), false, true},
		{"another attribute", answer(nl80211AttrIfindex, nl.Uint32Attr(1)), false, false},
		{"too short a value", answer(nl80211AttrPSState, []byte{1}), false, false},
		{"no attribute", make([]byte, nl.SizeofGenlmsg), false, false},
		{"too short", []byte{1}, false, false},
		{"garbage", append(make([]byte, nl.SizeofGenlmsg), 1, 0, 93, 0), false, false},
	} {
		if on, known := powerSaveOf(tc.answer); on != tc.on || known != tc.known {
			t.Errorf("%s: on %v, known %v", tc.name, on, known)
		}
	}
	if _, known := PowerSave("lo", 1); known {
		t.Error("the loopback interface has a radio")
	}
}

// What the kernel says when a lifetime is renewed is no change, and must not have everything listed.
func TestIsRefresh(t *testing.T) {
	message := func(kind, index int, prefix string) []byte {
		p := netip.MustParsePrefix(prefix)
		head := nl.NewIfAddrmsg(unix.AF_INET)
		head.Index, head.Prefixlen = uint32(index), uint8(p.Bits())
		request := nl.NewNetlinkRequest(kind, 0)
		request.AddData(head)
		request.AddData(nl.NewRtAttr(unix.IFA_ADDRESS, p.Addr().AsSlice()))
		request.AddData(nl.NewRtAttr(unix.IFA_LOCAL, p.Addr().AsSlice()))
		return request.Serialize()
	}
	seen := &Snapshot{Local: []LocalAddr{{netip.MustParsePrefix("10.0.0.1/24"), 2, "eth0"}, {netip.PrefixFrom(testVIP, 32), 3, "topdog0"}}}
	same := message(unix.RTM_NEWADDR, 3, "10.77.0.100/32")
	for name, test := range map[string]struct {
		message []byte
		want    bool
	}{
		"the same":             {same, true},
		"another address":      {message(unix.RTM_NEWADDR, 3, "10.77.0.101/32"), false},
		"of another length":    {message(unix.RTM_NEWADDR, 2, "10.0.0.1/16"), false},
		"on another interface": {message(unix.RTM_NEWADDR, 2, "10.77.0.100/32"), false},
		"removed":              {message(unix.RTM_DELADDR, 3, "10.77.0.100/32"), false},
		"a link":               {message(unix.RTM_NEWLINK, 3, "10.77.0.100/32"), false},
		"cut off":              {same[:len(same)-1], false},
		"nothing":              {nil, false},
	} {
		assert.Is(t, test.want, isRefresh(test.message, seen), "%s", name)
	}
}

func BenchmarkLook(b *testing.B) {
	for b.Loop() {
		if _, err := Look(WatchOptions{Interface: "eth0"}); err != nil {
			b.Fatal(err)
		}
	}
}
