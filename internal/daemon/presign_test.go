package daemon

import (
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"topdog/internal/config"
	"topdog/internal/lab/assert"
	"topdog/netio"
	"topdog/wire"
)

// TestRouteAfterAPresignedResign: it comes last of all that one has heard of a dead board.
func TestRouteAfterAPresignedResign(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one, _, three, latest := l.armedThree(nil)
		three.freeze(time.Second)
		latest().untilFired(t)
		pass(time.Millisecond)
		one.onLoop(t, func() {
			assert.Is(t, netip.MustParseAddr("10.0.0.3"), one.group.addressOf(three.group.self), "where board 1 would send to")
		})
	})
}

func TestPresignedResignIsKeptUpToDate(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one, two, three, latest := l.armedThree(nil)
		d := latest()
		count := func() (n int) {
			d.get(func() { n = len(d.prepared) })
			return n
		}
		sequence := func() (s wire.Sequence) {
			three.onLoop(t, func() { s = three.group.sequence })
			return s
		}
		wantWill := func(successor wire.ID) wire.Message {
			t.Helper()
			_, resign := d.lastPrepared(t)
			want := wire.Message{
				Header: wire.Header{
					Type: wire.TypeResign, Algorithm: wire.AlgorithmHeir, Sender: three.group.self,
					Term: resign.Term, Incarnation: three.group.incarnation, Sequence: resign.Sequence,
					Key: three.cfg.Keys.Signs.Fingerprint(),
				},
				Resign: wire.Resign{Successor: successor},
			}
			assert.Equal(t, want, resign, "the RESIGN")
			if resign.Sequence <= sequence()+presignAhead/4 {
				t.Errorf("the RESIGN has number %d, and the board is at %d", resign.Sequence, sequence())
			}
			return resign
		}
		first := wantWill(two.group.self)
		before := count()
		pass(3 * time.Second)
		if n := count() - before; n > 0 {
			t.Errorf("nothing has changed, and it was signed %d times more", n)
		}

		two.Kill()
		pass(10 * time.Second)
		wantWill(one.group.self)

		// Numbers are used up.
		three.onLoop(t, func() { three.group.sequence += presignAhead*3/4 + 1 })
		pass(200 * time.Millisecond)
		if again := wantWill(one.group.self); again.Sequence <= first.Sequence {
			t.Errorf("the RESIGN has number %d, and had %d", again.Sequence, first.Sequence)
		}

		// Another term.
		before = count()
		three.onLoop(t, func() { three.carryOut(three.core.Step(three.now(), rivalOf(three))) })
		pass(200 * time.Millisecond)
		if _, resign := d.lastPrepared(t); resign.Term <= first.Term || count() == before {
			t.Errorf("the RESIGN is of term %d", resign.Term)
		}

		// Other peers.
		three.reload(func(c *config.Config) {
			c.Peers = []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.3")}
		})
		pass(200 * time.Millisecond)
		e, _ := d.lastPrepared(t)
		want := []netip.AddrPort{netip.MustParseAddrPort("224.0.0.254:9254"), netip.MustParseAddrPort("10.0.0.1:9254")}
		if !slices.Equal(e.To, want) {
			t.Errorf("the RESIGN goes to %v, want %v", e.To, want)
		}

		// Another address, and other sockets.
		before = count()
		three.change(func(s *netio.Snapshot) { s.Link.Addrs = []netip.Prefix{netip.MustParsePrefix("10.0.0.33/24")} })
		pass(200 * time.Millisecond)
		l.wantHolders(3)
		if count() == before {
			t.Error("the holder sends from an address that is gone")
		}
	})
}

// rivalOf is a message of a board that has led in a later term and does not any more.
func rivalOf(b *fakeBoard) *wire.Message {
	return &wire.Message{Header: wire.Header{
		Type: wire.TypeHello, Algorithm: wire.AlgorithmHeir, Sender: 99, Term: b.core.Signature().Term + 5,
		Incarnation: 1, Sequence: 1, Priority: 0,
	}, Hello: wire.Hello{Interval: time.Second}}
}

// TestOldPlanIsBetterThanNone has the holder refuse a new plan. That is no reason to
// let a leader be deposed that runs.
func TestOldPlanIsBetterThanNone(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		_, two, three, latest := l.armedThree(nil)
		d := latest()
		d.get(func() { d.refuses = errors.New("no room") })
		two.Kill()
		pass(20 * time.Second)
		l.wantHolders(3)
		if d.Fired() {
			t.Error("the lease of a leader that runs has run out")
		}
		three.wantLog(t, "no room", 1) // once a minute
		d.get(func() { d.refuses = nil })
		pass(200 * time.Millisecond)
		if _, resign := d.lastPrepared(t); resign.Resign.Successor != l.boards[0].group.self {
			t.Errorf("the RESIGN names %v", resign.Resign.Successor)
		}
	})
}
