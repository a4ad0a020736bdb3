package netio

import (
	"fmt"
	"net"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/judge"
)

// What is broadcast arrives without any membership, on the link only, and not at its sender.
func TestBroadcast(t *testing.T) {
	l := newLAN(t, 3)
	a, b, c := l.boards[0].inbox(t), l.boards[1].inbox(t), l.boards[2].inbox(t)
	warmUp(t, a, b, c)
	for _, in := range []*inbox{b, c} { // multicast is dead from now on
		must(t, leave(in.multicast, testGroup.Addr(), in.index))
	}
	must(t, a.Multicast([]byte("lost")))
	must(t, a.Broadcast([]byte("all")))
	b.expect(t, `broadcast "all" from 10.77.0.1:9254`)
	c.expect(t, `broadcast "all" from 10.77.0.1:9254`)
	must(t, b.Broadcast([]byte("back")))
	a.expect(t, `broadcast "back" from 10.77.0.2:9254`) // and not its own, which came before

	before := b.Drops()
	send(t, openForeign(t, l.boards[0]), 64, []byte("foreign"), b.self)
	eventually(t, "the packet is counted", func() bool { return b.Drops().WrongTTL > before.WrongTTL })
}

// Whoever holds the floating address gets what is sent to it, by a socket that was open
// before, and answers from its own address. Nobody else does.
func TestFloatingSocket(t *testing.T) {
	eachMethod(t, func(t *judge.T, method HoldMethod) {
		l := newLAN(t, 3)
		asker, holder, other := l.boards[0].inbox(t, testVIP), l.boards[1].inbox(t, testVIP), l.boards[2].inbox(t, testVIP)
		warmUp(t, asker, holder, other)
		f := openFloating(t, l.boards[1], FloatingOptions{Method: method})
		must(t, f.Acquire())
		must(t, asker.Unicast([]byte("who"), netip.AddrPortFrom(testVIP, testPort)))
		holder.expect(t, `floating "who" from 10.77.0.1:9254`)
		must(t, holder.Unicast([]byte("me"), asker.self))
		asker.expect(t, `unicast "me" from 10.77.0.2:9254`)
		if len(other.got) > 0 {
			t.Errorf("a board that does not hold the address heard %s", <-other.got)
		}
	})
}

// Drain delivers what has arrived before it returns, while the reader waits, and each
// datagram once.
func TestDrain(t *testing.T) {
	from, to := loopbackPair(t)
	to.admission.inKernel = true // nothing limits what one board says
	var mu sync.Mutex
	got := map[string]int{}
	serve(t, to, func(d Datagram) {
		mu.Lock()
		defer mu.Unlock()
		got[string(d.Data)]++
	})
	eventually(t, "the reader runs", func() bool {
		must(t, from.Unicast([]byte("first"), to.self))
		mu.Lock()
		defer mu.Unlock()
		return len(got) > 0
	})
	for i := range 500 {
		text := fmt.Sprint(i)
		send := from.Multicast
		if i%2 == 0 {
			send = func(b []byte) error { return from.Unicast(b, to.self) }
		}
		must(t, send([]byte(text)))
		to.Drain()
		mu.Lock()
		if got[text] != 1 {
			t.Fatalf("after Drain, datagram %d was delivered %d times, want once", i, got[text])
		}
		mu.Unlock()
	}
}

// A Conn that is closed, or not served yet, has nothing to drain.
func TestDrainNothing(t *testing.T) {
	c, err := Open(onLoopback(1)[0])
	must(t, err)
	c.Drain()
	must(t, c.Close())
	c.Drain()
}

// flakyReader fails as often as it is told, and then says that it is closed.
type flakyReader struct{ errs []error }

func (r *flakyReader) next() (err error) {
	if len(r.errs) == 0 {
		return net.ErrClosed
	}
	err, r.errs = r.errs[0], r.errs[1:]
	return err
}

// A read error must end neither the reading nor the machine's idleness.
func TestReceiveSurvivesErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := 0
		read := func(r *flakyReader) { readUntilClosed(make(chan struct{}), r.next, func() { failed++ }) }
		r := &flakyReader{errs: []error{unix.ECONNREFUSED}}
		start := time.Now()
		read(r)
		assert.Is(t, 0, time.Since(start), "the wait after one refused packet")

		for range 12 {
			r.errs = append(r.errs, unix.ENETDOWN)
		}
		start = time.Now()
		read(r)
		// 0 + 10+20+40+80+160+320+640 ms, and then a second for each of the last four.
		assert.Is(t, 1270*time.Millisecond+4*time.Second, time.Since(start), "the wait after 12 errors in a row")
		assert.Is(t, 13, failed, "errors")
	})
}
