package wire

import (
	"bytes"
	"encoding/hex"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"topdog/internal/lab/assert"
)

// dropOf returns why a codec drops the packet.
func dropOf(c *Codec, packet []byte) Drop {
	var m Message
	return c.Decode(&m, packet)
}

func newCodec(t testing.TB, group string, key []byte) *Codec {
	t.Helper()
	c, err := NewCodec(group, key)
	assert.NoError(t, err)
	return c
}

// encoded returns the message as a packet of the codec.
func encoded(t testing.TB, c *Codec, m *Message) []byte {
	t.Helper()
	packet, err := c.Append(nil, m)
	assert.NoError(t, err)
	return packet
}

// decoded returns the message of a packet that the codec accepts.
func decoded(t testing.TB, c *Codec, packet []byte) (m Message) {
	t.Helper()
	if drop := c.Decode(&m, packet); drop.Dropped() {
		t.Fatal(drop)
	}
	return m
}

// variants calls f for every golden packet, plain and authenticated.
func variants(t *testing.T, f func(t *testing.T, c *Codec, g *golden, packet []byte)) {
	plain, authenticated := newCodec(t, goldenGroup, nil), newCodec(t, goldenGroup, goldenKey)
	for i := range goldens {
		g := &goldens[i]
		t.Run(g.message.Type.String(), func(t *testing.T) { f(t, plain, g, g.bytes()) })
		t.Run(g.message.Type.String()+"/authenticated", func(t *testing.T) { f(t, authenticated, g, g.authenticated()) })
	}
}

// TestGolden encodes and decodes every message. The mark tells two keys apart: where there is one key, or none, it means nothing,
// and programs that know no marks send 0.
func TestGolden(t *testing.T) {
	variants(t, func(t *testing.T, c *Codec, g *golden, packet []byte) {
		// Something is there already, and must stay, and not be covered by the tag.
		got, err := c.Append([]byte("before"), &g.message)
		assert.NoError(t, err)
		want := append([]byte("before"), packet...)
		assert.Equal(t, hex.Dump(want), hex.Dump(got), "packet")

		var m Message // for all of them, as in the receive loop
		for _, mark := range []byte{0, flagMark} {
			packet := g.bytes()
			packet[offFlags] |= mark
			if c.authenticated() {
				packet[offFlags] |= flagAuthenticated
				packet = append(packet, c.keys[0].tag(packet)...)
			}
			assert.Is(t, Drop{}, c.Decode(&m, packet), "mark %02x", mark)
			assert.Equal(t, received(c, g.message), m, "mark %02x: message", mark)
		}
		assert.Equal(t, received(c, g.message), decoded(t, c, packet), "message")
	})
}

// TestEveryTypeHasGolden makes whoever adds a message add its bytes as well.
func TestEveryTypeHasGolden(t *testing.T) {
	have := make(map[Type]bool)
	for _, g := range goldens {
		have[g.message.Type] = true
	}
	for i := range types {
		if kind := Type(i); kind.known() != have[kind] {
			t.Errorf("%v: exists %v, has a golden packet %v", kind, kind.known(), have[kind])
		}
	}
}

// TestTruncated cuts every packet at every byte. Whatever is missing, the packet
// is dropped; and where no tag gives that away, the reason names the place. Only
// a tail may be missing, and only as a whole: see TestTailMissing.
func TestTruncated(t *testing.T) {
	variants(t, func(t *testing.T, c *Codec, g *golden, packet []byte) {
		for n := range packet {
			drop := dropOf(c, packet[:n:n])
			switch {
			case !c.authenticated() && slices.Contains(g.tails, n):
			case !drop.Dropped():
				t.Errorf("accepted with %d of %d bytes", n, len(packet))
			case n < headerSize && drop != Drop{TooShort, n}:
				t.Errorf("%d of %d bytes: %v at %d", n, len(packet), drop.Reason, drop.offset)
			case c.authenticated() && n >= headerSize+tagSize && drop != Drop{BadTag, n - tagSize}:
				t.Errorf("%d of %d bytes: %v at %d", n, len(packet), drop.Reason, drop.offset)
			}
		}
		if !c.authenticated() {
			return
		}
		// A body that is too short under a good tag.
		for n := headerSize; n < len(packet)-tagSize; n++ {
			drop := dropOf(c, sign(c, packet[:n]))
			want := Drop{TooShort, n}
			switch g.message.Type {
			case TypeHello, TypeCoordinator, TypeReport, TypeOK:
				if drop.Reason == Malformed {
					continue // cut within a name or a list
				}
			}
			if slices.Contains(g.tails, n) {
				want = Drop{}
			}
			assert.Is(t, want, drop, "%d bytes and a good tag", n)
		}
	})
}

// sign returns a copy of the packet, which has no tag, with the flag and the tag.
func sign(c *Codec, packet []byte) []byte {
	packet = bytes.Clone(packet)
	packet[offFlags] = packet[offFlags]&^flagMark | c.signature()
	return append(packet, c.keys[0].tag(packet)...)
}

// received returns the message as it is when the codec has decoded it.
func received(c *Codec, m Message) Message {
	m.Key = c.Keys().Signs
	return m
}

// TestLonger is the promise to later versions: they may append to every message.
func TestLonger(t *testing.T) {
	variants(t, func(t *testing.T, c *Codec, g *golden, packet []byte) {
		plain := append(g.bytes(), g.missing()...) // or the first of what follows would be the tail
		for _, extra := range []int{1, 7, tagSize, MaxPacket - len(plain) - tagSize} {
			longer := append(bytes.Clone(plain), bytes.Repeat([]byte{0xee}, extra)...)
			if c.authenticated() {
				longer = sign(c, longer)
			}
			var got Message
			if drop := c.Decode(&got, longer); drop.Dropped() {
				t.Errorf("%d bytes more: %v", extra, drop)
				continue
			}
			assert.Equal(t, received(c, g.message), got, "%d bytes more", extra)
		}
	})
}

// TestTampered flips every bit of every authenticated packet.
func TestTampered(t *testing.T) {
	c := newCodec(t, goldenGroup, goldenKey)
	for i := range goldens {
		packet := goldens[i].authenticated()
		for bit := range 8 * len(packet) {
			packet[bit/8] ^= 1 << (bit % 8)
			var m Message
			if drop := c.Decode(&m, packet); !drop.Dropped() {
				t.Errorf("%v accepted with bit %d of byte %d flipped", goldens[i].message.Type, bit%8, bit/8)
			} else if !cmp.Equal(m, Message{}) {
				t.Errorf("%v was written to the message before its tag was verified", goldens[i].message.Type)
			}
			packet[bit/8] ^= 1 << (bit % 8)
		}
	}
}

// TestKeysAndGroups lets every pair of codecs talk, and only equal ones understand.
func TestKeysAndGroups(t *testing.T) {
	otherKey := bytes.Repeat([]byte{7}, KeySize)
	kinds := []struct {
		group string
		key   []byte
	}{{"a", nil}, {"a", goldenKey}, {"a", otherKey}, {"b", nil}, {"b", goldenKey}}
	// By row the sender, by column the receiver.
	want := [][]Drop{
		{{}, {Unauthenticated, 1}, {Unauthenticated, 1}, {OtherGroup, 2}, {OtherGroup, 2}},
		{{NotExpectingAuth, 1}, {}, {BadTag, 24}, {OtherGroup, 2}, {OtherGroup, 2}},
		{{NotExpectingAuth, 1}, {BadTag, 24}, {}, {OtherGroup, 2}, {OtherGroup, 2}},
		{{OtherGroup, 2}, {OtherGroup, 2}, {OtherGroup, 2}, {}, {Unauthenticated, 1}},
		{{OtherGroup, 2}, {OtherGroup, 2}, {OtherGroup, 2}, {NotExpectingAuth, 1}, {}},
	}
	for i, from := range kinds {
		packet := encoded(t, newCodec(t, from.group, from.key), &goldens[0].message)
		for j, to := range kinds {
			assert.Is(t, want[i][j], dropOf(newCodec(t, to.group, to.key), packet), "from %v to %v", from, to)
		}
	}
}

// TestKeyDependsOnGroup covers groups whose 16-bit tags collide: the group's name is in the
// key as well.
func TestKeyDependsOnGroup(t *testing.T) {
	a, b := newCodec(t, "a", goldenKey), newCodec(t, "b", goldenKey)
	b.group = a.group
	packet := encoded(t, a, &goldens[0].message)
	assert.Is(t, Drop{BadTag, 24}, dropOf(b, packet), "")
}

// TestOtherVersion: a board of this group is recognised in any version, and with a key only
// if it has the key.
func TestOtherVersion(t *testing.T) {
	plain, keyed := newCodec(t, goldenGroup, nil), newCodec(t, goldenGroup, goldenKey)
	of := func(change func([]byte)) []byte {
		p := goldens[0].bytes()
		p[offVersion] = 1<<versionShift | byte(TypeHeartbeat)
		change(p)
		return p
	}
	nothing := func([]byte) {}
	group := func(p []byte) { p[offGroup]++ }
	forged := sign(keyed, of(nothing))
	forged[len(forged)-1]++
	for _, test := range []struct {
		name   string
		codec  *Codec
		packet []byte
		want   DropReason
	}{
		{"no key", plain, of(nothing), OtherVersion},
		{"no key, another group", plain, of(group), BadVersion},
		{"no key, authenticated", plain, sign(keyed, of(nothing)), BadVersion},
		{"key", keyed, sign(keyed, of(nothing)), OtherVersion},
		{"key, another group", keyed, sign(keyed, of(group)), BadVersion},
		{"key, not authenticated", keyed, of(nothing), BadVersion},
		{"key, forged", keyed, forged, BadVersion},
		{"key, too short for a tag", keyed, sign(keyed, of(nothing))[:headerSize+tagSize-1], BadVersion},
	} {
		var m Message
		if drop := test.codec.Decode(&m, test.packet); drop.Reason != test.want {
			t.Errorf("%s: %v, want %v", test.name, drop, test.want)
		}
		if want := goldens[0].message; test.want == OtherVersion && (m.Sender != want.Sender || m.Leading != want.Leading) {
			t.Errorf("%s: from %v, leading %v", test.name, m.Sender, m.Leading)
		}
		if test.want == OtherVersion {
			assert.Is(t, test.codec.Keys().Signs, m.Key, "%s: the key", test.name)
		}
	}
}

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
		ipv4 := h.Settings.ipv4()
		ipv6 := len(h.Settings.Addresses) - ipv4
		// score, keys, settings, program, addresses of IPv6
		return make([]byte, 4+8+3+idSize*ipv4+1+len(h.Program)+1+ipv6Size*ipv6-g.tail)
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
		if c.authenticated() {
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
	assert.Is(t, 2*9, tails, "tails")
}

// TestBuildBefore: the build that knows no IPv6 addresses sends what comes before the last tail, byte for byte, so each of
// the two reads the other. What the older one does not know lies behind its message, and it ignores that (TestLonger).
func TestBuildBefore(t *testing.T) {
	// Recorded from that build: pi3 tells of 10.0.0.100, and that its version is 1.4.0.
	recorded := fromHex("4201467e0a000003000007641f2e3d4c0000002a0a00000500000e1005dc0000066bc3a4666967" +
		"000000000000000000000000" + "0064010a000064" + "05312e342e30")
	c := newCodec(t, goldenGroup, nil)
	m := decoded(t, c, recorded)
	assert.Is(t, "1.4.0", m.Hello.Program, "the version of the build before")
	assert.Equal(t, bothFamilies[:1], m.Hello.Settings.Addresses, "its addresses")

	m.Hello.Settings.Addresses = bothFamilies
	now := encoded(t, c, &m)
	assert.Equal(t, recorded, now[:len(recorded)], "what that build reads of ours")
	assert.Is(t, len(recorded)+1+2*ipv6Size, len(now), "the length of ours")
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
	hello := goldenOf(TypeHello).message
	hello.Hello.Name, hello.Hello.Program = strings.Repeat("n", MaxName), strings.Repeat("p", MaxName)
	hello.Hello.Settings = Settings{time.Second,
		append(slices.Repeat([]netip.Addr{here}, MaxBoards), slices.Repeat([]netip.Addr{netip.IPv6Loopback()}, MaxIPv6)...)}
	for _, test := range []struct {
		message *Message
		size    int
	}{{&ok, 25 + 4*255 + 16}, {&coordinator, 33 + 4*255 + 16}, {&report, 1320},
		{&hello, 50 + 32 + 4*255 + 32 + 16*20 + 16}} {
		packet, err := c.Append(nil, test.message)
		if err != nil || len(packet) != test.size || len(packet) > MaxPacket {
			t.Errorf("longest %v has %d bytes, error %v; want %d", test.message.Type, len(packet), err, test.size)
		}
		assert.Equal(t, received(c, *test.message), decoded(t, c, packet), "message")
	}
}
