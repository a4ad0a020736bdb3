package daemon

import (
	"net/netip"
	"testing"
	"time"

	"topdog/internal/config"
	"topdog/internal/lab/assert"
	"topdog/netio"
	"topdog/wire"
)

// TestJunkTakesNoPlaces floods a board that leads with what no board of the group has sent, faster than its loop
// handles it: no place of the inbox is lost to it, all of it is counted, and people are told.
func TestJunkTakesNoPlaces(t *testing.T) {
	stranger, err := wire.NewCodec("test", make([]byte, wire.KeySize))
	assert.NoError(t, err)
	badTag, err := stranger.Append(nil, &wire.Message{
		Header:    wire.Header{Type: wire.TypeHeartbeat, Algorithm: wire.AlgorithmHeir, Sender: 7, Term: 9, Incarnation: 1, Sequence: 1},
		Heartbeat: wire.Heartbeat{Interval: 100 * time.Millisecond},
	})
	assert.NoError(t, err)
	for name, test := range map[string]struct {
		junk   []byte
		reason wire.DropReason
	}{
		"a bad tag":     {badTag, wire.BadTag},
		"half a header": {badTag[:5], wire.TooShort},
		"another group": {func() []byte { b := append([]byte(nil), badTag...); b[2] ^= 0xff; b[3] ^= 0xff; return b }(), wire.OtherGroup},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, l *fakeLAN) {
				one := l.board(1, func(c *config.Config, _ *fakeBoard) {})
				pass(3 * time.Second)
				const flood = 10 * inboxSize
				before := one.mustStatus(t).Counters
				one.onLoop(t, func() {
					for range flood {
						one.group.inbox.deliver(netio.Datagram{
							Data: test.junk, From: netip.MustParseAddrPort("10.0.0.77:9254"), Path: netio.PathMulticast, At: one.now(),
						})
					}
				})
				pass(time.Second)
				after := one.mustStatus(t).Counters
				if lost := after.ReceiveOverruns - before.ReceiveOverruns; lost > 0 {
					t.Errorf("there was no room in the inbox for %d packets", lost)
				}
				key := test.reason.Identifier()
				assert.Is(t, flood, after.DroppedByReason[key]-before.DroppedByReason[key], "packets that are counted as %s", key)
				if n := after.PacketsReceived - before.PacketsReceived; n < flood {
					t.Errorf("%d of %d were received", n, flood)
				}
			})
		})
	}
}

// TestStrangersAreLimited plays what a board of this group has signed, from addresses where none is known: new boards can join,
// and a recording does not keep the loop busy. Known boards are not concerned.
func TestStrangersAreLimited(t *testing.T) {
	inbox := newInbox(1, testCodec(t))
	packet, err := testCodec(t).Append(nil, &wire.Message{
		Header:    wire.Header{Type: wire.TypeHeartbeat, Algorithm: wire.AlgorithmHeir, Sender: 7, Term: 9, Incarnation: 1, Sequence: 1},
		Heartbeat: wire.Heartbeat{Interval: 100 * time.Millisecond},
	})
	assert.NoError(t, err)
	const flood = 20000 // in a second
	passed := map[bool]int{}
	for i := range flood {
		at := time.Hour + time.Duration(i)*time.Second/flood
		for _, known := range []bool{false, true} {
			inbox.deliver(netio.Datagram{Data: packet, Known: known, At: at})
			if len(inbox.messages) > 0 {
				passed[known]++
				inbox.clear()
			}
		}
	}
	want := map[bool]int{false: strangerRate.Burst + int(time.Second/strangerRate.Every) - 1, true: flood}
	assert.Equal(t, want, passed, "how many pass, of strangers and of known boards")
	assert.Is(t, flood-passed[false], int(inbox.overRate.Load()), "packets that are counted")
}

// TestLostPacketsExcuseTheLeader: a board whose sockets had no room waits for one more heartbeat, and no longer.
func TestLostPacketsExcuseTheLeader(t *testing.T) {
	silent := func(before, meanwhile uint64) (d time.Duration) {
		inBubble(t, func(t *testing.T, l *fakeLAN) {
			l.board(1, nil)
			pass(3 * time.Second)
			two := l.board(2, nil)
			pass(3 * time.Second)
			two.overflows.Add(before)
			pass(time.Second)
			two.get(func() { two.deaf = true })
			two.overflows.Add(meanwhile)
			for ; two.mustStatus(t).Role == "follower" && d < time.Second; d += time.Millisecond {
				pass(time.Millisecond)
			}
		})
		return d
	}
	none, former, some := silent(0, 0), silent(5, 0), silent(0, 5)
	if none != former {
		t.Errorf("the leader is replaced after %v, and after %v if packets were lost before it was heard last", none, former)
	}
	if more := some - none; more < 100*time.Millisecond || more > 200*time.Millisecond {
		t.Errorf("the leader is replaced after %v, and after %v if packets were lost; want one heartbeat more", none, some)
	}
}

// TestNoFloodDroppedByTheKernel has a board say once that its kernel drops no flood, however often its link comes and goes.
func TestNoFloodDroppedByTheKernel(t *testing.T) {
	const why = "attach the program topdog_admit: invalid argument (the kernel is too old)"
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one := l.board(1, func(_ *config.Config, b *fakeBoard) { b.unlimited = why })
		two := l.board(2, nil)
		pass(time.Second)
		for _, up := range []bool{false, true} {
			one.change(func(s *netio.Snapshot) { s.Link.Up = up })
			pass(time.Second)
		}
		const line = "the kernel drops no floods, so this daemon does, which takes more time: "
		one.wantLog(t, line+why, 1)
		two.wantLog(t, line, 0)
	})
}
