package wire

import (
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
		h := &g.message.Hello
		return make([]byte, scoreSize+keysSize+settingsSize+4*len(h.Settings.Addresses)+1+len(h.Program)-g.tail)
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
	m.Hello.Score, m.Election.Score, m.Hello.Keys, m.Hello.Settings = 0, 0, Keys{}, Settings{}
	m.Hello.Program = ""
	m.Coordinator.Score, m.Coordinator.Candidates = 0, nil
	return m
}

// TestTailless cuts off every tail, which gives the packet of a board that does not know of tails, and decodes it into a
// message that held one before: the tail reads as zeros, and nothing of the other packet is left. A tail costs nothing where it
// says nothing: such a message has the bytes that it had before there were tails.
func TestTailless(t *testing.T) {
	tails := 0
	variants(t, func(t *testing.T, c *Codec, g *golden, _ []byte) {
		if g.tail == 0 {
			return
		}
		tails++
		whole, cut := g.bytes(), g.bytes()[:len(g.plain)-g.tail]
		if c.Authenticated() {
			whole, cut = sign(c, whole), sign(c, cut)
		}
		var got Message
		assert.Is(t, Drop{}, c.Decode(&got, whole), "with its tail")
		assert.Is(t, Drop{}, c.Decode(&got, cut), "without its tail")
		got.Coordinator.Candidates = append([]ID(nil), got.Coordinator.Candidates...) // nil if empty
		assert.Equal(t, received(c, g.tailless()), got, "without its tail")

		m := g.tailless()
		m.Coordinator.Candidates = []ID{} // empty is as good as nil
		assert.Equal(t, cut, encoded(t, c, &m), "packet without a tail")
	})
	assert.Is(t, 2*7, tails, "tails")
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
