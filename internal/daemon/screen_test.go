package daemon

import (
	"net/netip"
	"testing"
	"time"

	"topdog/internal/config"
	"topdog/netio"
	"topdog/wire"
)

// TestJunkTakesNoPlaces floods a board that leads with what no board of the group has sent, faster than its loop
// handles it: no place of the inbox is lost to it, all of it is counted, and people are told.
func TestJunkTakesNoPlaces(t *testing.T) {
	stranger, err := wire.NewCodec("test", make([]byte, wire.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	badTag, err := stranger.Append(nil, &wire.Message{
		Header:    wire.Header{Type: wire.TypeHeartbeat, Algorithm: wire.AlgorithmHeir, Sender: 7, Term: 9, Incarnation: 1, Sequence: 1},
		Heartbeat: wire.Heartbeat{Interval: 100 * time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
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
				if err := one.tasks.call(t.Context(), func() {
					for range flood {
						one.group.deliver(netio.Datagram{
							Data: test.junk, From: netip.MustParseAddrPort("10.0.0.77:9254"), Path: netio.PathMulticast, At: one.now(),
						})
					}
				}); err != nil {
					t.Fatal(err)
				}
				pass(time.Second)
				after := one.mustStatus(t).Counters
				if lost := after.ReceiveOverruns - before.ReceiveOverruns; lost > 0 {
					t.Errorf("there was no room in the inbox for %d packets", lost)
				}
				key := test.reason.Identifier()
				if n := after.DroppedByReason[key] - before.DroppedByReason[key]; n != flood {
					t.Errorf("%d of %d are counted as %s: %v", n, flood, key, after.DroppedByReason)
				}
				if n := after.PacketsReceived - before.PacketsReceived; n < flood {
					t.Errorf("%d of %d were received", n, flood)
				}
			})
		})
	}
}
