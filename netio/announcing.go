package netio

import (
	"net/netip"
	"slices"
	"sync"
	"time"
)

// announcing announces the addresses that this board holds again and again, for as long as its lease lasts. What could
// not be announced, because the lease was over or because the kernel sent nothing, is announced as soon as it can be. So
// no announcement is lost because it came at a bad moment.
type announcing struct {
	// say announces the addresses once. ask says that everybody is asked for them as well.
	say func(addrs []netip.Addr, ask bool) error

	mu       sync.Mutex // held while they are announced: after hold(nil) nothing is announced any more
	addrs    []netip.Addr
	lasts    func() bool // reports whether the lease lasts; nil for always
	sent     int         // how often they were announced since they were acquired
	failures int         // how often in a row the kernel sent nothing
	failed   func(error) // is told of the first failure, and then once in announceRetrySlow; nil for nobody
	timer    *time.Timer
}

// hold has these addresses announced from now on instead of others. It begins at once.
func (a *announcing) hold(addrs []netip.Addr, lasts func() bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.addrs, a.lasts, a.sent, a.failures = slices.Clone(addrs), lasts, 0, 0
	a.announce()
}

// anew announces the addresses as if they had been acquired now.
func (a *announcing) anew() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sent = 0
	a.announce()
}

// tell sets who is told that something could not be announced.
func (a *announcing) tell(failed func(error)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failed = failed
}

// answers reports whether this board may answer for an address now. It is called with mu locked: then it may until that is
// unlocked.
func (a *announcing) answers(addr netip.Addr) bool {
	return slices.Contains(a.addrs, addr) && (a.lasts == nil || a.lasts())
}

// again is called by the timer.
func (a *announcing) again() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.announce()
}

// announceRetry is how soon a failed announcement is tried again. After a second in which the kernel sent nothing, it
// is tried once in announceRetrySlow: a rule of a firewall may be what drops it, and that stays.
const (
	announceRetry     = 20 * time.Millisecond
	announceRetrySlow = time.Second
)

// announce announces the addresses, and sets when to do so again. It is called with mu locked.
func (a *announcing) announce() {
	if a.timer == nil {
		a.timer = time.AfterFunc(announceRetry, a.again)
	}
	if len(a.addrs) == 0 {
		a.timer.Stop()
		return
	}
	// While the lease is over, somebody else may have the address, and a fence that drops only incoming packets (FenceXDP)
	// would let an announcement out.
	delay := announcementDelay(a.sent + 1)
	if a.lasts != nil && !a.lasts() {
		a.sent = 0
		a.timer.Reset(announceRetry)
		return
	}
	if err := a.say(a.addrs, delay >= askOthersEvery); err != nil {
		a.sent = 0
		a.fail(err)
		return
	}
	a.sent++
	a.failures = 0
	a.timer.Reset(delay)
}

// fail sets when to try again what the kernel did not send, and tells of it. It is called with mu locked.
func (a *announcing) fail(err error) {
	slow := a.failures >= int(announceRetrySlow/announceRetry)
	if a.failed != nil && (slow || a.failures == 0) {
		a.failed(err)
	}
	a.failures++
	if slow {
		a.timer.Reset(announceRetrySlow)
		return
	}
	a.timer.Reset(announceRetry)
}

// askOthersEvery is how often a leader asks everybody for the addresses: with each late announcement. A machine that answers
// is a rival: a proxy, or one to which somebody gave the address.
const askOthersEvery = time.Minute

// announcementDelay says how long to wait before the next announcement, given
// how many have been sent since the address was acquired. The announcements
// go out at 0, 1.1, 2.2, 4.4 and 10 seconds, and then once a minute.
//
// The first tells almost everybody. The second comes 1.1 s later because a Linux
// neighbour ignores some changes to an entry that is less than a second old
// (locktime); shorter spacing has been seen to fail (metallb issue 172). The next
// ones are for switches whose ports were still learning and for packets that got
// lost, and the slow ones for devices that slept: about 60 bytes a minute.
func announcementDelay(sent int) time.Duration {
	switch {
	case sent <= 2:
		return 1100 * time.Millisecond
	case sent == 3:
		return 2200 * time.Millisecond
	case sent == 4:
		return 5600 * time.Millisecond
	default:
		return time.Minute
	}
}
