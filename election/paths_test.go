package election

import (
	"testing"

	"topdog/wire"
)

// TestNoMulticastIsToldOnce: a board says in every HELLO that it gets no multicast. People are told
// when that begins, and not with each HELLO; a status says it as long as it is so.
func TestNoMulticastIsToldOnce(t *testing.T) {
	b := followerOf3(t, 20)
	notices := 0
	hear := func(lost bool) {
		for range 600 {
			b.sleep(testInterval)
			b.hear(3, wire.TypeHeartbeat, leading)
			for _, e := range b.hear(1, wire.TypeHello, func(m *wire.Message) { m.Hello.NoMulticast = lost }) {
				if e.Kind == EffectNotice && e.Notice == (Notice{Kind: NoticeNoMulticast, Board: 1}) {
					notices++
				}
			}
			if p, _ := b.Peer(1); p.NoMulticast != lost {
				t.Fatalf("board 1 is known to get no multicast: %v, want %v", p.NoMulticast, lost)
			}
		}
	}
	for want, lost := range []bool{false, true} {
		for range 5 {
			hear(lost)
		}
		if notices != want {
			t.Errorf("in five minutes in which it is so: %v, it was told %d times", lost, notices)
		}
	}
	hear(false)
	hear(true)
	if notices != 2 {
		t.Errorf("it was told %d times when it has begun for the second time", notices)
	}
}
