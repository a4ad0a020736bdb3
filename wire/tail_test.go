package wire

import (
	"bytes"
	"slices"
	"testing"

	"topdog/internal/lab/assert"
)

// goldenOf returns the first golden packet of a type, which has no tail, or nil.
func goldenOf(kind Type) *golden {
	for i := range goldens {
		if goldens[i].message.Type == kind {
			return &goldens[i]
		}
	}
	return nil
}

// missing returns the optional tail, spelled out in zeros, of a packet that has none.
func (g *golden) missing() []byte {
	if g.message.Type == TypeHello {
		return make([]byte, scoreSize+keysSize-g.tail)
	}
	if g.tail > 0 {
		return nil
	}
	switch g.message.Type {
	case TypeElection:
		return make([]byte, 4) // score
	case TypeCoordinator:
		return make([]byte, 5) // score and number of candidates
	default:
		return nil
	}
}

// tailless returns the message without what a tail carries.
func (g *golden) tailless() Message {
	m := g.message
	m.Hello.Score, m.Election.Score, m.Hello.Keys = 0, 0, Keys{}
	m.Coordinator.Score, m.Coordinator.Candidates = 0, nil
	return m
}

// TestTailMissing cuts off every tail, which gives the packet of a board that
// does not know of tails, and decodes it into a message that held one before: the
// tail reads as zeros, and nothing of the other packet is left.
func TestTailMissing(t *testing.T) {
	tails := 0
	variants(t, func(t *testing.T, c *Codec, g *golden, _ []byte) {
		if g.tail == 0 {
			return
		}
		tails++
		var got Message
		plain := g.bytes()
		for _, plain := range [][]byte{plain, plain[:len(plain)-g.tail]} {
			if c.Authenticated() {
				plain = sign(c, plain)
			}
			if drop := c.Decode(&got, plain); drop.Dropped() {
				t.Fatal(drop)
			}
		}
		got.Coordinator.Candidates = append([]ID(nil), got.Coordinator.Candidates...) // nil if empty
		assert.Equal(t, received(c, g.tailless()), got, "without its tail")
	})
	if want := 2 * 5; tails != want {
		t.Errorf("looked at %d tails, want %d", tails, want)
	}
}

// TestTailLeftAway holds that a tail costs nothing where it says nothing: such a
// message has the bytes that it had before there were tails.
func TestTailLeftAway(t *testing.T) {
	variants(t, func(t *testing.T, c *Codec, g *golden, _ []byte) {
		if g.tail == 0 {
			return
		}
		m := g.tailless()
		m.Coordinator.Candidates = []ID{} // empty is as good as nil
		got := encoded(t, c, &m)
		plain := g.bytes()
		want := plain[:len(plain)-g.tail]
		if c.Authenticated() {
			want = sign(c, want)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("got  %x\nwant %x", got, want)
		}
	})
}

// TestTailHalfEmpty has a score without candidates, and the other way round.
func TestTailHalfEmpty(t *testing.T) {
	c := newCodec(t, goldenGroup, nil)
	base := goldenOf(TypeCoordinator)
	for _, test := range []struct {
		name       string
		score      uint32
		candidates []ID
		tail       []byte
	}{
		{"a score", 258, nil, []byte{0, 0, 1, 2, 0}},
		{"a candidate", 0, []ID{7}, []byte{0, 0, 0, 0, 1, 0, 0, 0, 7}},
	} {
		want := base.message
		want.Coordinator.Score, want.Coordinator.Candidates = test.score, test.candidates
		packet := encoded(t, c, &want)
		assert.Equal(t, append(base.bytes(), test.tail...), packet, "only %s: packet", test.name)
		assert.Equal(t, want, decoded(t, c, packet), "only %s: message", test.name)
	}
}

// TestLongestLists has the greatest lists, which must fit a packet, tag and all.
func TestLongestLists(t *testing.T) {
	c := newCodec(t, goldenGroup, goldenKey)
	ids := make([]ID, MaxBoards)
	for i := range ids {
		ids[i] = ID(i + 1)
	}
	ok, coordinator, report := goldenOf(TypeOK).message, goldenOf(TypeCoordinator).message, goldenOf(TypeReport).message
	ok.OK.Trust, coordinator.Coordinator.Candidates = ids, ids
	report.Report.Standings = slices.Repeat([]Standing{{1, 1}}, MaxBoards)
	for _, test := range []struct {
		message *Message
		size    int
	}{{&ok, 25 + 4*255 + 16}, {&coordinator, 33 + 4*255 + 16}, {&report, 1320}} {
		packet, err := c.Append(nil, test.message)
		if err != nil || len(packet) != test.size || len(packet) > MaxPacket {
			t.Errorf("longest %v has %d bytes, error %v; want %d", test.message.Type, len(packet), err, test.size)
		}
		assert.Equal(t, received(c, *test.message), decoded(t, c, packet), "message")
	}
}
