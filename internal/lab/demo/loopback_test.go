package demo

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"topdog/internal/lab/assert"
	"topdog/netio"
)

func newTestLoopback(t *testing.T) *loopback {
	t.Helper()
	l, err := newLoopback(3, false)
	assert.NoError(t, err)
	t.Cleanup(func() {
		for n := range l.boards {
			l.boards[n].Close()
		}
		l.close()
	})
	for n := range l.boards {
		assert.NoError(t, l.link(n+1, true, true))
	}
	return l
}

// TestTwoHoldersAreSeen: without this, "0 ms with two holders" would mean nothing.
func TestTwoHoldersAreSeen(t *testing.T) {
	l := newTestLoopback(t)
	began := time.Now()
	for n := range 2 {
		assert.NoError(t, l.boards[n].Acquire())
	}
	if got := l.holders().Current(); len(got) != 2 {
		t.Errorf("the holders are %v, want two", got)
	}
	if l.holders().Since(began).Overlap() <= 0 {
		t.Error("two boards have the address, and the overlap is 0")
	}
	assert.NoError(t, l.link(1, false, true))
	if got := l.holders().Current(); len(got) != 1 || got[0] != 2 {
		t.Errorf("after the power cut of board 1 the holders are %v", got)
	}
	if err := l.boards[0].Acquire(); err == nil {
		t.Error("a board without power has acquired the address")
	}
	now := time.Now()
	assert.Is(t, 0, l.holders().Since(now).Overlap(), "two have the address, when one does")
}

// TestTwoLANs: a second demo gets another port.
func TestTwoLANs(t *testing.T) {
	if a, b := newTestLoopback(t), newTestLoopback(t); a.port == b.port {
		t.Errorf("both use port %d", a.port)
	}
}

// TestCable: a board whose cable is out neither hears nor is heard.
func TestCable(t *testing.T) {
	l := newTestLoopback(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()

	// Board 1 listens. It is seen when it judges a packet, so that the test knows
	// when one that was lost has been read and thrown away.
	heard, judged := make(chan string, 16), make(chan string, 16)
	listener := openCabled(t, l, 1)
	hears := listener.hears
	listener.hears = func(from netip.Addr) bool {
		comes := hears(from)
		judged <- "judged" // only now, since the test goes on to change the cable
		return comes
	}
	served := make(chan error, 1)
	go func() { served <- listener.Serve(func(d netio.Datagram) { heard <- string(d.Data) }) }()
	defer func() { listener.Close(); <-served }()

	speaker := openCabled(t, l, 2)
	defer speaker.Close()
	say := func(text string) {
		t.Helper()
		for _, err := range []error{
			speaker.Multicast([]byte(text)),
			speaker.Unicast([]byte(text), netip.AddrPortFrom(l.boards[0].addr(), l.port)),
		} {
			assert.NoError(t, err)
		}
	}
	both := func(what string, from <-chan string) { // ways
		t.Helper()
		for range 2 {
			select {
			case got := <-from:
				assert.Is(t, what, got, "")
			case <-ctx.Done():
				t.Fatalf("never %q", what)
			}
		}
	}

	say("one")
	both("judged", judged)
	both("one", heard)

	l.link(1, true, false)
	say("to nobody")
	both("judged", judged)
	l.link(1, true, true)

	l.link(2, true, false)
	say("by nobody")
	l.link(2, true, true)

	say("two")
	both("judged", judged)
	both("two", heard)
}

func openCabled(t *testing.T, l *loopback, n int) passing {
	t.Helper()
	transport, err := l.platform(n, nil).OpenTransport(loopbackInterface, l.boards[n-1].addr())
	assert.NoError(t, err)
	return transport.(passing)
}

// TestWatch: the link is reported at the start, and with every change of the cable.
func TestWatch(t *testing.T) {
	l := newTestLoopback(t)
	ctx, cancel := context.WithCancel(t.Context())
	reports := make(chan netio.Snapshot)
	done := make(chan error, 1)
	go func() {
		done <- l.platform(2, nil).Watch(ctx, netio.WatchOptions{}, func(s netio.Snapshot) { reports <- s })
	}()
	for i, up := range []bool{true, false, true} {
		if i > 0 {
			l.link(2, true, up)
		}
		s := <-reports
		if !s.Present || s.Link.Up != up || len(s.Link.Addrs) != 1 || s.Link.Addrs[0].Addr() != l.boards[1].addr() {
			t.Errorf("%d: the report is %+v, want up=%v", i, s, up)
		}
	}
	cancel()
	assert.ErrorIs(t, <-done, nil, "")
}
