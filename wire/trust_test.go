package wire

import (
	"bytes"
	"hash"
	"testing"

	"topdog/internal/lab/assert"
)

// secondKey is that of the second example in the package comment. Its mark is 1.
var secondKey = []byte{
	0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28, 0x29, 0x2a, 0x2b, 0x2c, 0x2d, 0x2e, 0x2f,
	0x30, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38, 0x39, 0x3a, 0x3b, 0x3c, 0x3d, 0x3e, 0x3f,
}

// The fingerprints were computed by another implementation of HKDF, as the tags of the goldens.
const (
	goldenPrint Fingerprint = 0x030d726e
	secondPrint Fingerprint = 0xcc94506b
)

func newCodecOf(t testing.TB, keys ...[]byte) *Codec {
	t.Helper()
	c, err := NewCodec(goldenGroup, keys...)
	assert.NoError(t, err)
	return c
}

func TestFingerprints(t *testing.T) {
	for _, test := range []struct {
		key  []byte
		want Fingerprint
		mark uint8
	}{{goldenKey, goldenPrint, 0}, {secondKey, secondPrint, 1}} {
		if got := FingerprintOf(test.key); got != test.want || got.Mark() != test.mark {
			t.Errorf("fingerprint %v with mark %d, want %v with %d", got, got.Mark(), test.want, test.mark)
		}
	}
	for _, test := range []struct {
		keys [][]byte
		want Keys
	}{
		{nil, Keys{}},
		{[][]byte{nil}, Keys{}},
		{[][]byte{goldenKey}, Keys{Signs: goldenPrint}},
		{[][]byte{goldenKey, nil}, Keys{Signs: goldenPrint}},
		{[][]byte{goldenKey, secondKey}, Keys{Signs: goldenPrint, Also: secondPrint}},
		{[][]byte{secondKey, goldenKey}, Keys{Signs: secondPrint, Also: goldenPrint}},
	} {
		assert.Equal(t, test.want, newCodecOf(t, test.keys...).Keys(), "keys")
	}
}

// TestKeysRefused: what a board could not tell apart it does not accept.
func TestKeysRefused(t *testing.T) {
	alike := bytes.Repeat([]byte{1}, KeySize)
	for FingerprintOf(alike).Mark() != goldenPrint.Mark() {
		alike[0]++
	}
	for name, test := range map[string]struct {
		keys [][]byte
		says string
	}{
		"the same twice": {[][]byte{goldenKey, goldenKey}, "the same mark"},
		"the same mark":  {[][]byte{goldenKey, alike}, "the same mark"},
		"three":          {[][]byte{goldenKey, secondKey, alike}, "3 keys"},
		"a short one":    {[][]byte{goldenKey, secondKey[1:]}, "31 bytes"},
		"an empty one":   {[][]byte{{}}, "0 bytes"},
		"a long one":     {[][]byte{make([]byte, KeySize+1)}, "33 bytes"},
	} {
		_, err := NewCodec(goldenGroup, test.keys...)
		assert.ErrorContains(t, err, test.says, "%s", name)
	}
}

// TestSecondKey has the example of the package comment, whose tag was computed elsewhere.
func TestSecondKey(t *testing.T) {
	want := fromHex("41d1467e0a000003000007641f2e3d4c0000002a0064002903fe9978beb8c7b22718fc0ef01589cf")
	got := encoded(t, newCodecOf(t, secondKey, goldenKey), &goldens[0].message)
	assert.Equal(t, want, got, "packet")
}

// TestRotation lets boards in every state of a change of the key talk, an old program among them.
// Whoever accepts the key understands, in whichever order a board has its keys.
func TestRotation(t *testing.T) {
	states := []struct {
		name string
		keys [][]byte
		old  bool // sends no mark
	}{
		{"old program", [][]byte{goldenKey}, true},
		{"A", [][]byte{goldenKey}, false},
		{"A, accepts B", [][]byte{goldenKey, secondKey}, false},
		{"B, accepts A", [][]byte{secondKey, goldenKey}, false},
		{"B", [][]byte{secondKey}, false},
	}
	for _, from := range states {
		sender := newCodecOf(t, from.keys...)
		packet := encoded(t, sender, &goldens[0].message)
		if from.old {
			packet[offFlags] &^= flagMark
			packet = append(packet[:len(packet)-tagSize], sender.keys[0].tag(packet[:len(packet)-tagSize])...)
		}
		for _, to := range states {
			receiver := newCodecOf(t, to.keys...)
			var m Message
			drop := receiver.Decode(&m, packet)
			accepts := receiver.Keys().Accept(sender.Keys().Signs)
			switch {
			case accepts && (drop.Dropped() || m.Key != sender.Keys().Signs):
				t.Errorf("from %s to %s: %v, verified by %v", from.name, to.name, drop, m.Key)
			case !accepts && drop != Drop{BadTag, 24}:
				t.Errorf("from %s to %s: %v, want a bad tag", from.name, to.name, drop)
			}
		}
	}
}

// TestMarkIsAuthenticated: whoever turns the mark makes the tag a wrong one.
func TestMarkIsAuthenticated(t *testing.T) {
	for _, keys := range [][][]byte{{goldenKey}, {goldenKey, secondKey}, {secondKey, goldenKey}} {
		c := newCodecOf(t, keys...)
		packet := encoded(t, c, &goldens[0].message)
		packet[offFlags] ^= flagMark
		assert.Is(t, BadTag, dropOf(c, packet).Reason, "%v", c.Keys())
	}
}

// countingHash counts how often something is computed.
type countingHash struct {
	hash.Hash
	count *int
}

func (h countingHash) Sum(b []byte) []byte {
	*h.count++
	return h.Hash.Sum(b)
}

// TestJunkCostsOneHMAC holds what the mark is for.
func TestJunkCostsOneHMAC(t *testing.T) {
	c := newCodecOf(t, goldenKey, secondKey)
	count := 0
	for _, a := range c.keys {
		a.hash = countingHash{a.hash, &count}
	}
	for _, flags := range []byte{flagAuthenticated, flagAuthenticated | flagMark} {
		for _, first := range []byte{version << versionShift, 1 << versionShift} {
			junk := goldens[0].authenticated()
			junk[offVersion], junk[offFlags] = first|byte(TypeHeartbeat), flags|byte(AlgorithmHeir)
			junk[len(junk)-1]++
			count = 0
			if drop := dropOf(c, junk); !drop.Dropped() || count != 1 {
				t.Errorf("flags %02x, first byte %02x: %v after %d HMACs, want one", flags, first, drop, count)
			}
		}
	}
}

// TestTagIn: the tag is found in whatever is long enough to have one, before anything else of the packet is known.
func TestTagIn(t *testing.T) {
	packet := (&Header{}).appendTo(nil, TagOf(goldenGroup), 0)
	for n := range len(packet) + 1 {
		want := GroupTag(0)
		if n >= GroupTagEnd {
			want = TagOf(goldenGroup)
		}
		if tag, ok := TagIn(packet[:n]); tag != want || ok != (n >= GroupTagEnd) {
			t.Errorf("in %d bytes of a packet: tag %04x, %v", n, tag, ok)
		}
	}
}
