package election

import (
	"testing"
	"time"

	"topdog/wire"
)

// TestLeaderHearsMulticastAgain: a board that got no multicast when it followed, and leads now, finds
// out from the first multicast of any board that it does, in whatever order the copies come.
func TestLeaderHearsMulticastAgain(t *testing.T) {
	for _, test := range []struct {
		name string
		hear func(b *board)
		lost bool // still
	}{
		{"broadcast alone", func(b *board) { b.StepDirect(b.clock, b.from(1, wire.TypeHello)) }, true},
		{"multicast alone", func(b *board) { b.hear(1, wire.TypeHello) }, false},
		{"broadcast, then the copy", func(b *board) {
			b.StepDirect(b.clock, b.from(1, wire.TypeHello))
			b.HeardMulticast(b.clock, 1)
		}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := followerOf3(t, 20)
			for range 2 * multicastMissed {
				b.sleep(testInterval)
				b.StepDirect(b.clock, b.from(3, wire.TypeHeartbeat, leading))
			}
			if !b.Status(b.clock).NoMulticast {
				t.Fatal("the follower does not find out that it gets no multicast")
			}
			b.sleep(2 * multicastMissed * testInterval)
			if b.role != Leader || !b.losesMulticast() {
				t.Fatalf("a %v, loses multicast: %v", b.role, b.losesMulticast())
			}
			test.hear(b)
			if s := b.Status(b.clock); s.NoMulticast != test.lost || b.losesMulticast() != test.lost {
				t.Errorf("it gets no multicast: %v, and broadcasts: %v", s.NoMulticast, b.losesMulticast())
			}
		})
	}
}

// TestNoMulticastFromNobody: that a board gets no multicast is only so while it hears somebody. To
// nobody it does not broadcast either.
func TestNoMulticastFromNobody(t *testing.T) {
	for _, test := range []struct {
		name  string
		lose  func(b *board)
		role  Role
		knows bool // when the leader is back, and is heard by broadcast alone, at once
	}{
		{"its own cable is pulled", func(b *board) {
			b.Link(b.clock, false)
		}, Isolated, false},
		{"the leader dies, and nobody is left", func(b *board) {
			b.sleep(time.Minute)
		}, Leader, true},
		{"its port receives nothing", func(b *board) {
			b.deaf = true
			b.sleep(time.Minute)
		}, Candidate, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := followerOf3(t, 20)
			for range 2 * multicastMissed {
				b.sleep(testInterval)
				b.StepDirect(b.clock, b.from(3, wire.TypeHeartbeat, leading))
			}
			if !b.Status(b.clock).NoMulticast || !b.losesMulticast() {
				t.Fatal("the follower does not find out that it gets no multicast")
			}
			test.lose(b)
			if b.role != test.role || b.Status(b.clock).NoMulticast || b.losesMulticast() {
				t.Errorf("a %v that hears nobody; gets no multicast: %v, and broadcasts: %v",
					b.role, b.Status(b.clock).NoMulticast, b.losesMulticast())
			}
			b.Link(b.clock, true)
			b.StepDirect(b.clock, b.from(3, wire.TypeHeartbeat, leading, func(m *wire.Message) { m.Term++ }))
			if got := b.Status(b.clock).NoMulticast; got != test.knows || b.losesMulticast() != test.knows {
				t.Errorf("when the leader is back, a %v gets no multicast: %v, and broadcasts: %v", b.role, got, b.losesMulticast())
			}
			b.hear(3, wire.TypeHeartbeat, leading, func(m *wire.Message) { m.Term++ })
			if b.Status(b.clock).NoMulticast || b.losesMulticast() {
				t.Error("a multicast was heard, and it is still said that there is none")
			}
		})
	}
}

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
