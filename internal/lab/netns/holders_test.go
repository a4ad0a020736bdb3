package netns

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"topdog/internal/lab/assert"
)

// isHeldBy makes a condition for WaitFor.
func isHeldBy(want ...int) func([]int) bool {
	return func(got []int) bool { return slices.Equal(got, want) }
}

func TestHoldersFollowTheAddress(t *testing.T) {
	l := newLAN(t, 3)
	ctx := withTimeout(t)
	one, two := l.Board(1), l.Board(2)
	must(t, one.AddAddress(vip32)) // before anybody watches

	h, err := l.WatchHolders(vip)
	must(t, err)
	assert.Equal(t, []int{1}, h.Current(), "holders to begin with")
	start := time.Now()
	must(t, two.AddAddress(vip32))
	must(t, h.WaitFor(ctx, isHeldBy(1, 2)))
	// Renewing the lifetime of an address is no news.
	eth0, err := two.nl.LinkByName("eth0")
	must(t, err)
	timed := kernelAddr(vip32)
	timed.ValidLft, timed.PreferedLft = 1000, 1000
	must(t, two.nl.AddrReplace(eth0, timed))
	must(t, one.DeleteAddress(vip32))
	must(t, h.WaitFor(ctx, isHeldBy(2)))
	// The device goes, and the address with it.
	must(t, two.DeleteInterface())
	must(t, h.WaitFor(ctx, isHeldBy()))
	must(t, l.Board(3).AddAddress(vip32))
	must(t, h.WaitFor(ctx, isHeldBy(3)))
	must(t, l.Board(3).DeleteAddress(vip32))
	must(t, h.WaitFor(ctx, isHeldBy()))
	must(t, l.Board(3).AddAddress(vip32))
	must(t, h.WaitFor(ctx, isHeldBy(3)))

	tl := h.Since(start)
	var boards []int
	for _, s := range tl.Spans {
		boards = append(boards, s.Board)
	}
	assert.Equal(t, []int{1, 2, 3, 3}, boards, "boards in turn")
	if tl.Moves() != 2 || tl.Overlap() <= 0 || tl.Vacant() <= 0 {
		t.Errorf("%d moves, overlap %s, vacant %s", tl.Moves(), tl.Overlap(), tl.Vacant())
	}
}

// A TUN device that isn't persistent vanishes when its descriptor is closed,
// as it does when a process is killed.
func TestHoldersSeeATunDeviceVanish(t *testing.T) {
	l := newLAN(t, 2)
	ctx := withTimeout(t)
	h, err := l.WatchHolders(vip)
	must(t, err)
	tun := &netlink.Tuntap{
		LinkAttrs:  netlink.LinkAttrs{Name: "topdog0"},
		Mode:       netlink.TUNTAP_MODE_TUN,
		Queues:     1,
		NonPersist: true,
	}
	b := l.Board(2)
	must(t, b.Do(func() error {
		if err := netlink.LinkAdd(tun); err != nil {
			return err
		}
		if err := netlink.LinkSetUp(tun); err != nil {
			return err
		}
		return netlink.AddrAdd(tun, kernelAddr(vip32))
	}))
	must(t, h.WaitFor(ctx, isHeldBy(2)))
	// On a second interface as well: that is still one holder, and it
	// remains one when the first interface goes.
	must(t, b.AddAddress(vip32))
	start := time.Now()
	for _, f := range tun.Fds {
		must(t, f.Close())
	}
	must(t, b.DeleteAddress(vip32))
	must(t, h.WaitFor(ctx, isHeldBy()))
	if tl := h.Since(start); len(tl.Spans) != 1 {
		t.Errorf("%d spans, want 1: %v", len(tl.Spans), tl)
	}
}

// An address that is removed here before it is added there was never on both
// boards, however fast it goes and however busy the machine is.
func TestHoldersKeepTheOrderOfTheKernel(t *testing.T) {
	l := newLAN(t, 3)
	ctx := withTimeout(t)
	h, err := l.WatchHolders(vip)
	must(t, err)
	start := time.Now()
	const rounds = 100
	must(t, l.Board(1).AddAddress(vip32))
	for i := range rounds {
		from, to := l.Board(1+i%3), l.Board(1+(i+1)%3)
		must(t, from.DeleteAddress(vip32))
		must(t, to.AddAddress(vip32))
	}
	must(t, l.Board(1+rounds%3).DeleteAddress(vip32))
	must(t, l.Board(1+rounds%3).DeleteInterface())
	must(t, h.WaitFor(ctx, func([]int) bool { return h.Since(start).Moves() == rounds && len(h.Current()) == 0 }))
	assert.Is(t, 0, h.Since(start).Overlap(), "overlap")
}

// Every state is shown to the condition, even one that is over by then.
func TestWaitForSeesShortStates(t *testing.T) {
	l := newLAN(t, 2)
	h, err := l.WatchHolders(vip)
	must(t, err)
	waiting := make(chan struct{})
	result := make(chan error)
	ctx := withTimeout(t)
	go func() {
		first := true
		result <- h.WaitFor(ctx, func(boards []int) bool {
			if first {
				first = false
				close(waiting)
			}
			return slices.Equal(boards, []int{1, 2})
		})
	}()
	<-waiting
	must(t, l.Board(1).AddAddress(vip32))
	must(t, l.Board(2).AddAddress(vip32))
	must(t, l.Board(1).DeleteAddress(vip32))
	must(t, l.Board(2).DeleteAddress(vip32))
	must(t, <-result)
}

func TestWaitForEnds(t *testing.T) {
	l := newLAN(t, 1)
	h, err := l.WatchHolders(vip)
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := h.WaitFor(ctx, isHeldBy(1)); err == nil {
		t.Error("WaitFor ignored its context")
	}
	must(t, l.Close())
	assert.ErrorIs(t, h.WaitFor(t.Context(), isHeldBy(1)), errClosed, "the end of the watching")
}

// When the kernel has to drop notifications, the loss is known, and nobody waits for what will not come.
func TestHoldersKnowOfLostNotifications(t *testing.T) {
	l := newLAN(t, 2)
	w, err := l.newHolderWatch(vip)
	must(t, err)
	defer w.events.Close()
	must(t, w.events.SyscallConn().Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, 1) // The kernel makes it 2304.
	}))
	must(t, err)
	for range 20 {
		must(t, l.Board(1).AddAddress(vip32))
		must(t, l.Board(1).DeleteAddress(vip32))
	}
	must(t, l.Board(2).AddAddress(vip32))
	w.follow() // It comes too late to read all of it.
	h := w.record
	assert.ErrorIs(t, h.WaitFor(withTimeout(t), isHeldBy(2)), errEventsLost, "the wait for what was lost")
	if h.Lost() == 0 {
		t.Error("nothing was lost: the test has not tested anything")
	}
}
