package bench

import (
	"net/netip"
	"testing"
	"time"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/judge"
	"topdog/internal/lab/observe"
)

// at is a moment of a test's own time.
func at(ms int) time.Time { return time.Unix(0, 0).Add(time.Duration(ms) * time.Millisecond) }

// held is the time from one millisecond to another during which a board had the address.
func held(board, from, to int) observe.Span {
	return observe.Span{Board: board, From: at(from), To: at(to)}
}

func TestUnexplained(t *testing.T) {
	silences := []observe.Span{{From: at(100), To: at(140)}, {From: at(400), To: at(450)}}
	gap := func(from, to, paused int) observe.Gap {
		return observe.Gap{From: at(from), To: at(to), Paused: time.Duration(paused) * time.Millisecond}
	}
	for _, c := range []struct {
		name string
		gaps []observe.Gap
		want int
	}{
		{"none", nil, 0},
		{"the silence alone, and the client's interval", []observe.Gap{gap(97, 144, 0), gap(396, 454, 0)}, 0},
		{"nobody answers for a while after it", []observe.Gap{gap(98, 200, 0)}, 62},
		{"the client did not ask", []observe.Gap{gap(98, 200, 58)}, 0},
		{"beside all silences", []observe.Gap{gap(200, 230, 0), gap(300, 310, 0)}, 30},
		{"over two silences", []observe.Gap{gap(100, 450, 0)}, 260},
	} {
		assert.Is(t, time.Duration(c.want)*time.Millisecond, unexplained(c.gaps, silences), "%s", c.name)
	}
}

func TestLastChange(t *testing.T) {
	for _, c := range []struct {
		name  string
		spans []observe.Span
		want  int
	}{
		{"one holder all the time", []observe.Span{held(1, 0, 1000)}, 0},
		{"two, and one lets go", []observe.Span{held(1, 0, 1000), held(2, 0, 40)}, 40},
		{"nobody, then one", []observe.Span{held(1, 300, 1000)}, 300},
		{"one after the other", []observe.Span{held(1, 0, 100), held(2, 160, 1000)}, 160},
	} {
		tl := observe.Timeline{From: at(0), To: at(1000), Spans: c.spans}
		assert.Is(t, time.Duration(c.want)*time.Millisecond, lastChange(tl), "%s", c.name)
	}
}

// Two boards of a real LAN have the address, then one: the prober sees both, and when it ends.
func TestProberHearsBoards(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		ctx := bounded(t)
		r, err := newRig(&topdog{key: "none"}, 3, variant{})
		assert.NoError(t, err)
		defer func() { assert.ErrorIs(t, r.close(), nil, "") }()
		p, err := r.probe()
		assert.NoError(t, err)
		defer p.Close()
		address := netip.PrefixFrom(vip, 32)
		answering := func(boards ...int) {
			t.Helper()
			from := time.Now()
			for {
				// The last answer of a board may have been under way then, and would count for ever.
				if time.Since(from) > 100*(5*probeInterval) {
					from = time.Now()
				}
				if err := wait(ctx, (5 * probeInterval)); err != nil {
					t.Fatalf("boards %v do not answer: %v", boards, err)
				}
				tl := p.Since(from)
				all := true
				for _, b := range boards {
					all = all && tl.Held(b) > 0
				}
				if all && (tl.Overlap() > 0) == (len(boards) > 1) {
					return
				}
			}
		}
		for n := 1; n <= 2; n++ {
			assert.NoError(t, r.boards[n-1].AddAddress(address))
		}
		answering(1, 2)
		assert.NoError(t, r.boards[0].DeleteAddress(address))
		answering(2)
		assert.Is(t, 0, p.Since(time.Now().Add(-time.Hour)).Held(3), "how long board 3 has answered, which never had the address")
	})
}
