package netio

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/judge"
)

// heir is a board that watches the floating address of another one.
type heir struct {
	*lan
	us, leader, third *board
	announcer         *Announcer
	reports           chan WatchReport
	vip               netip.Prefix
}

// newHeir begins to watch once the leader has the address.
func newHeir(t *judge.T) *heir {
	l := newLAN(t, 3)
	h := &heir{lan: l, us: l.boards[0], leader: l.boards[1], third: l.boards[2], reports: make(chan WatchReport, 10_000)}
	h.vip = netip.PrefixFrom(testVIP, 32)
	h.announcer = openTestAnnouncer(t, h.us)
	h.announcer.Watched(func(w WatchReport) { h.reports <- w })
	h.leader.addAddr(t, "eth0", h.vip)
	eventually(t, "the bridge forwards", func() bool { return h.announcer.hasOwner(t, testVIP, 1, 10*time.Millisecond) })
	return h
}

// watch begins to watch, and waits until the address answers.
func (h *heir) watch(t *judge.T) {
	t.Helper()
	must(t, h.announcer.Watch(h.asks(h.leader)))
	h.wants(t, WatchAnswers)
}

// asks is the watch of a board.
func (h *heir) asks(b *board) AddressWatch {
	return AddressWatch{testVIP, b.link(h.t, "eth0").HardwareAddr, 10 * time.Millisecond}
}

// wants waits for a report, and returns it.
func (h *heir) wants(t *judge.T, why WatchState) WatchReport {
	t.Helper()
	w := receive(t, why.String(), h.reports)
	assert.Is(t, why, w.Why, "the report is %+v", w)
	return w
}

// hears counts the reports that come of something.
func (h *heir) hears(of func()) (reports []WatchReport) {
	for len(h.reports) > 0 {
		<-h.reports
	}
	of()
	for len(h.reports) > 0 {
		reports = append(reports, <-h.reports)
	}
	return reports
}

// missed are the reports of a miss.
func missed(reports []WatchReport) int {
	return len(slices.DeleteFunc(reports, func(w WatchReport) bool { return w.Why != WatchMissed }))
}

// TestWatchAddress: a kernel is asked for an address that it has, has no longer, and has again.
func TestWatchAddress(t *testing.T) { judge.RunTogether(t, testWatchAddress) }

func testWatchAddress(t *judge.T) {
	h := newHeir(t)
	h.watch(t)
	latencies := make([]time.Duration, 9)
	for i := range latencies {
		until(Now() + time.Duration(i)*time.Millisecond) // at any time between two questions
		before := Now()
		h.leader.delAddr(t, "eth0", h.vip)
		removed := Now()
		w := h.wants(t, WatchMissed)
		latencies[i] = Now() - removed
		if w.MissedSince < before-2*ms || w.MissedSince > Now() || w.Every != 10*ms {
			t.Errorf("removed from %v to %v, reported %+v", before, removed, w)
		}
		eventually(t, "more questions were asked than can get lost", func() bool {
			h.announcer.reading.Lock()
			defer h.announcer.reading.Unlock()
			return h.announcer.watching.rounds.questions > mostLost
		})
		h.leader.addAddr(t, "eth0", h.vip)
		w = h.wants(t, WatchAnswers)
		if w.MissedSince != 0 || w.RoundTrip <= 0 || w.RoundTrip > 5*ms {
			t.Errorf("reported %+v of an address that is back", w)
		}
	}
	slices.Sort(latencies)
	t.Logf("from the removal to the report: median %v, longest %v", latencies[4], latencies[8])
	if median := latencies[4]; median > 20*ms {
		t.Errorf("a removal was reported after %v", median)
	}
}

// TestWatchSilence: nothing answers, at first or any more, and that is told once.
func TestWatchSilence(t *testing.T) { judge.RunTogether(t, testWatchSilence) }

func testWatchSilence(t *judge.T) {
	h := newHeir(t)
	ignore := func(value string) {
		h.leader.do(t, func() error { return os.WriteFile("/proc/sys/net/ipv4/conf/all/arp_ignore", []byte(value), 0) })
	}
	ignore("8") // no address is answered for
	must(t, h.announcer.Watch(h.asks(h.leader)))
	assert.Equal(t, WatchReport{}, h.wants(t, WatchNoAnswer), "reported")
	ignore("0")
	assert.Is(t, 10*ms, h.wants(t, WatchAnswers).Every, "every")

	// A watch of another board begins anew, and one of the same goes on.
	must(t, h.announcer.Watch(h.asks(h.leader)))
	must(t, h.announcer.Watch(h.asks(h.third)))
	h.wants(t, WatchNoAnswer)
	// The board that announces the address is asked, whatever the watch says.
	theirs := openTestAnnouncer(t, h.leader)
	must(t, theirs.Announce(testVIP))
	h.wants(t, WatchAnswers)

	must(t, h.announcer.Watch(AddressWatch{}))
	must(t, h.announcer.Watch(AddressWatch{}))
	assert.Is(t, 0, len(h.hears(func() {
		h.leader.delAddr(t, "eth0", h.vip)
		until(Now() + 50*ms)
	})), "reports after the end of the watch")
	h.leader.addAddr(t, "eth0", h.vip)
	h.watch(t)
	must(t, h.announcer.Close())
	assert.ErrorIs(t, h.announcer.Watch(h.asks(h.leader)), net.ErrClosed, "a watch of a closed Announcer")
}

// TestWatchNobody: without an Ethernet address nobody is asked, until somebody announces the address.
func TestWatchNobody(t *testing.T) { judge.RunTogether(t, testWatchNobody) }

func testWatchNobody(t *judge.T) {
	h := newHeir(t)
	assert.Is(t, 0, len(h.hears(func() {
		must(t, h.announcer.Watch(AddressWatch{Addr: testVIP, Every: 10 * ms}))
		until(Now() + 50*ms)
	})), "reports before anybody was asked")
	must(t, openTestAnnouncer(t, h.leader).Announce(testVIP))
	h.wants(t, WatchAnswers)
}

// TestWatchAmongOthers: a watch misses nothing, whatever else goes on, and is in nobody's way.
func TestWatchAmongOthers(t *testing.T) { judge.RunTogether(t, testWatchAmongOthers) }

func testWatchAmongOthers(t *judge.T) {
	h := newHeir(t)
	theirs := openTestAnnouncer(t, h.leader)
	answers := make(chan ARPAnswer, 1000)
	h.announcer.Answers(func(a ARPAnswer) { answers <- a })
	h.watch(t)
	for name, do := range map[string]func(){
		"doubts": func() {
			for range 50 {
				must(t, h.announcer.Ask([]ARPQuestion{{Addr: testVIP, To: h.asks(h.leader).To}, {Addr: h.third.addr}}))
				got := map[netip.Addr]bool{receive(t, "an answer", answers).Addr: true, receive(t, "an answer", answers).Addr: true}
				assert.Equal(t, map[netip.Addr]bool{testVIP: true, h.third.addr: true}, got, "who answers")
				until(Now() + 2*ms)
			}
		},
		"probes": func() {
			for range 20 {
				assert.Is(t, true, h.announcer.hasOwner(t, testVIP, 1, testTimeout), "the address has an owner")
			}
		},
		"rivals": func() {
			rivals := make(chan string, 1000)
			h.announcer.Rivals([]netip.Addr{testVIP}, func(_ netip.Addr, mac net.HardwareAddr) { rivals <- mac.String() })
			assert.Is(t, h.leader.mac(t), receive(t, "the rival", rivals), "who answers for our address")
			h.announcer.Rivals(nil, nil)
		},
		// More than the limit of a flood would allow.
		"questions only": func() { until(Now() + 3*time.Second) },
	} {
		assert.Is(t, 0, missed(h.hears(do)), "%s: misses", name)
		assert.Is(t, false, h.throttled(), "%s: throttled", name)
	}
	own := hardwareAddr(h.us.link(t, "eth0").HardwareAddr)
	leader := hardwareAddr(h.asks(h.leader).To)
	for name, flood := range map[string]func(){
		"a flood of claims":         func() { theirs.sendAs(t, broadcast, announcements(testVIP)[0].from(leader)) },
		"a flood of forged answers": func() { theirs.sendAs(t, own, arpPacket{arpReply, leader, testVIP, own, h.us.addr}) },
	} {
		throttled := false
		misses := missed(h.hears(func() {
			for end := Now() + 500*ms; Now() < end; {
				flood()
				throttled = throttled || h.throttled()
			}
		}))
		assert.Is(t, true, throttled, "%s: throttled", name)
		assert.Is(t, 0, misses, "%s: misses", name)
		eventually(t, "the flood is over", func() bool { return !h.throttled() })
	}
	// What another machine says for the address is no answer: it may be a proxy.
	another := openTestAnnouncer(t, h.third)
	claim := arpPacket{arpReply, hardwareAddr(h.asks(h.third).To), testVIP, own, h.us.addr}
	assert.Is(t, 1, missed(h.hears(func() {
		h.leader.delAddr(t, "eth0", h.vip)
		for end := Now() + 50*ms; Now() < end; until(Now() + ms/2) {
			another.sendAs(t, own, claim)
		}
	})), "misses while another machine answers")
}

func (h *heir) throttled() bool {
	h.announcer.reading.Lock()
	defer h.announcer.reading.Unlock()
	return h.announcer.throttled
}

// TestWatchLinks: a link that is down is no miss, and another Ethernet address of this host costs one question.
func TestWatchLinks(t *testing.T) { judge.RunTogether(t, testWatchLinks) }

func testWatchLinks(t *judge.T) {
	h := newHeir(t)
	h.watch(t)
	eth0 := h.link(h.us.handle, "eth0")
	assert.Is(t, 0, missed(h.hears(func() {
		must(t, h.us.handle.LinkSetHardwareAddr(eth0, net.HardwareAddr{2, 0, 0, 0, 0, 0x99}))
		until(Now() + 100*ms)
	})), "misses with another Ethernet address")
	answered := func() (answered bool) {
		h.announcer.reading.Lock()
		defer h.announcer.reading.Unlock()
		return h.announcer.watching.rounds.answers > 0
	}
	assert.Is(t, 0, missed(h.hears(func() {
		must(t, h.us.handle.LinkSetDown(eth0))
		until(Now() + 50*ms)
		assert.Is(t, false, answered(), "the address answers without a link")
		must(t, h.us.handle.LinkSetUp(eth0))
		eventually(t, "the address answers again", answered)
	})), "misses without a link")
}

// frames is how many frames a board has received of late, in a time in which it would be asked 50 times.
func (b *board) frames(t testing.TB) int {
	t.Helper()
	before := b.link(t, "eth0").Statistics.RxPackets
	until(Now() + 500*ms)
	return int(b.link(t, "eth0").Statistics.RxPackets - before)
}

// watches has a board watch the address of another one, for a group of its own.
func watches(t testing.TB, b, leader *board, addr netip.Addr) (reports chan WatchReport) {
	t.Helper()
	a, err := on(b, func() (*Announcer, error) { return OpenAnnouncer(b.link(t, "eth0").Index, b.addr, addr) })
	must(t, err)
	t.Cleanup(func() { must(t, a.Close()) })
	reports = make(chan WatchReport, 10_000)
	a.Watched(func(w WatchReport) { reports <- w })
	must(t, a.Watch(AddressWatch{addr, leader.link(t, "eth0").HardwareAddr, 10 * ms}))
	return reports
}

// TestWatchesOfEachOther: of two boards, each leads a group. They ask no more than one of them would, and miss as much.
func TestWatchesOfEachOther(t *testing.T) { judge.RunTogether(t, testWatchesOfEachOther) }

func testWatchesOfEachOther(t *judge.T) {
	l := newLAN(t, 2)
	one, two := l.boards[0], l.boards[1]
	must(t, one.handle.LinkSetHardwareAddr(l.link(one.handle, "eth0"), net.HardwareAddr{2, 0, 0, 0, 0, 1})) // so it asks
	must(t, two.handle.LinkSetHardwareAddr(l.link(two.handle, "eth0"), net.HardwareAddr{2, 0, 0, 0, 0, 2}))
	first, second := netip.PrefixFrom(testVIP, 32), netip.PrefixFrom(testVIP.Next(), 32)
	one.addAddr(t, "eth0", first)
	two.addAddr(t, "eth0", second)
	oneHears, twoHears := watches(t, one, two, second.Addr()), watches(t, two, one, first.Addr())
	wants := func(reports chan WatchReport, why WatchState) {
		t.Helper()
		for receive(t, why.String(), reports).Why != why {
		}
	}
	wants(oneHears, WatchAnswers)
	wants(twoHears, WatchAnswers)
	fewer := func() bool { return one.frames(t) < 75 && two.frames(t) < 75 } // else 100
	eventually(t, "one asks, and the other goes by that", fewer)

	latencies := make([]time.Duration, 5)
	for i := range latencies {
		l.setCable(one, false)
		pulled := Now()
		wants(twoHears, WatchMissed)
		latencies[i] = Now() - pulled
		until(Now() + 60*ms) // so that the questions count as lost in an outage, and not on the way
		l.setCable(one, true)
		wants(twoHears, WatchAnswers)
		wants(oneHears, WatchAnswers)
		until(Now() + 2*settles*10*ms)
	}
	slices.Sort(latencies)
	if median := latencies[2]; median > 20*ms {
		t.Errorf("a pulled cable was reported after %v", median)
	}

	// The one that asks is deaf, as far as it knows. The other one asks it.
	two.delAddr(t, "eth0", second)
	wants(oneHears, WatchMissed)
	if n := one.frames(t); n < 25 {
		t.Errorf("who has no answer was asked %d times in half a second", n)
	}
	two.addAddr(t, "eth0", second)
	wants(oneHears, WatchAnswers)
	eventually(t, "one asks again, and the other goes by that", fewer)

	// The one that asks has lost its own address.
	one.delAddr(t, "eth0", first)
	wants(twoHears, WatchMissed)
}

// TestWatchesOfOneBoard: a board that leads two groups is asked no more often than one that leads a single group.
func TestWatchesOfOneBoard(t *testing.T) { judge.RunTogether(t, testWatchesOfOneBoard) }

func testWatchesOfOneBoard(t *judge.T) {
	l := newLAN(t, 2)
	us, leader := l.boards[0], l.boards[1]
	first, second := netip.PrefixFrom(testVIP, 32), netip.PrefixFrom(testVIP.Next(), 32)
	leader.addAddr(t, "eth0", first)
	leader.addAddr(t, "eth0", second)
	reports := watches(t, us, leader, second.Addr())
	watches(t, us, leader, first.Addr())
	eventually(t, "it is asked for the first address, and for the second hardly ever", func() bool { return leader.frames(t) < 75 })
	leader.delAddr(t, "eth0", second)
	for receive(t, "a miss", reports).Why != WatchMissed {
	}
}

// TestHolderWatches: the holder of an heir watches the address of a leader, whose processes do not matter, and tells the daemon
// of news alone. While it stands still it misses nothing.
func TestHolderWatches(t *testing.T) { judge.RunTogether(t, testHolderWatches) }

func testHolderWatches(t *judge.T) {
	leader, us, a := watchingHolder(t)
	reports := make(chan WatchReport, 1000)
	a.Watched(func(w WatchReport) { reports <- w })
	must(t, a.Watch(AddressWatch{testVIP, leader.link(t, "eth0").HardwareAddr, 10 * ms}))
	assert.Is(t, WatchAnswers, receive(t, "a report", reports).Why, "reported")
	for round := range 20 {
		freeze(t, us.PID())
		until(Now() + 20*ms + time.Duration(round)*5*ms)
		must(t, syscall.Kill(us.PID(), syscall.SIGCONT))
		until(Now() + time.Duration(round)*ms)
	}
	until(Now() + 50*ms)
	if len(reports) > 0 {
		t.Errorf("reported %+v of an address that answers", <-reports)
	}
	leader.delAddr(t, "eth0", netip.PrefixFrom(testVIP, 32))
	assert.Is(t, WatchMissed, receive(t, "a report", reports).Why, "reported")
	must(t, a.Watch(AddressWatch{}))
	leader.addAddr(t, "eth0", netip.PrefixFrom(testVIP, 32))
	until(Now() + 50*ms)
	assert.Is(t, 0, len(reports), "reports after the end of the watch")
	must(t, us.Close())
	must(t, a.Watch(AddressWatch{}))
}

// watchingHolder returns a board that has the address, and another one with a holder and its Announcer.
func watchingHolder(t testing.TB) (leader *board, us *guard, a *HeldAnnouncer) {
	l := newLAN(t, 2)
	leader = l.boards[0]
	leader.addAddr(t, "eth0", netip.PrefixFrom(testVIP, 32))
	us = l.boards[1].startGuard(t, HoldLifetime)
	t.Cleanup(func() { us.close() })
	must(t, l.boards[1].openSockets(t, us).Close())
	a, err := us.OpenAnnouncer(l.boards[1].link(t, "eth0").Index)
	must(t, err)
	return leader, us, a
}

// BenchmarkWatch is what a holder costs that watches an address, beside one that does not. Here the holder also pays for the
// switch and for the leader's kernel: they do their work within its system call, about 30 % of the whole (perf).
func BenchmarkWatch(b *testing.B) {
	for _, every := range []time.Duration{0, 10 * ms} {
		b.Run(every.String(), func(b *testing.B) {
			leader, us, a := watchingHolder(b)
			must(b, a.Watch(AddressWatch{testVIP, leader.link(b, "eth0").HardwareAddr, every}))
			until(Now() + time.Second)
			before, began := runTime(b, us.PID()), Now()
			for b.Loop() {
				until(Now() + 20*time.Second)
			}
			b.ReportMetric(100*float64(runTime(b, us.PID())-before)/float64(Now()-began), "%cpu")
		})
	}
}

// runTime is for how long the threads of a process have run.
func runTime(t testing.TB, pid int) (total time.Duration) {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	must(t, err)
	for _, thread := range threads {
		text, err := os.ReadFile(thread)
		must(t, err)
		var ran int64
		_, err = fmt.Sscan(string(text), &ran)
		must(t, err)
		total += time.Duration(ran)
	}
	return total
}

// TestWatchCloses: the watch ends while it is about to ask. To close its timer waits for that, which waits for the lock.
func TestWatchCloses(t *testing.T) {
	a := &Announcer{}
	timer, err := openWakeTimer()
	must(t, err)
	a.watching.timer = timer
	due, ask, closed := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go timer.each(func() {
		close(due)
		<-ask
		a.reading.Lock() // as watchDue does
		defer a.reading.Unlock()
	})
	timer.Set(0)
	receive(t, "the timer", due)
	go func() {
		a.closeWatch()
		close(closed)
	}()
	until(Now() + 20*ms) // it waits for the timer by now
	close(ask)
	receive(t, "the end of the watch", closed)
}
