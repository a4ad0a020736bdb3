package wire

import (
	"strings"
	"testing"

	"topdog/internal/lab/assert"
)

// TestRejected has a packet for every rule of the specification, beside the
// ones about keys and groups (TestKeysAndGroups) and lengths (TestTruncated).
func TestRejected(t *testing.T) {
	for _, test := range []struct {
		name   string
		kind   Type
		change func(p []byte) []byte
		want   Drop
	}{
		{"nothing at all", TypeHeartbeat, func([]byte) []byte { return nil }, Drop{TooShort, 0}},
		{"no header", TypeHeartbeat, func(p []byte) []byte { return p[:12] }, Drop{TooShort, 12}},
		{"no body", TypeHeartbeat, func(p []byte) []byte { return p[:23] }, Drop{TooShort, 23}},
		{"too long", TypeHeartbeat, func(p []byte) []byte { return append(p, make([]byte, MaxPacket)...) }, Drop{TooLong, MaxPacket}},
		{"version 0", TypeHeartbeat, set(0, 0x01), Drop{OtherVersion, 0}},
		{"version 1", TypeHeartbeat, set(0, 0x21), Drop{OtherVersion, 0}},
		{"version 7", TypeHeartbeat, set(0, 0xe1), Drop{OtherVersion, 0}},
		{"other group", TypeHeartbeat, set(2, 0, 0), Drop{OtherGroup, 2}},
		{"type 0", TypeHeartbeat, set(0, 0x40), Drop{UnknownType, 0}},
		{"type 22", TypeHeartbeat, set(0, 0x56), Drop{UnknownType, 0}},
		{"type 31", TypeHeartbeat, set(0, 0x5f), Drop{UnknownType, 0}},
		{"algorithm 0", TypeHeartbeat, set(1, 0x40), Drop{Malformed, 1}},
		{"sender nobody", TypeHeartbeat, set(4, 0, 0, 0, 0), Drop{Malformed, 4}},
		{"sequence 0", TypeHeartbeat, set(16, 0, 0, 0, 0), Drop{Malformed, 16}},
		{"HEARTBEAT: interval 0", TypeHeartbeat, set(20, 0, 0), Drop{Malformed, 20}},
		{"HELLO: every 0", TypeHello, set(28, 0, 0), Drop{Malformed, 28}},
		{"HELLO: name too long", TypeHello, func(p []byte) []byte {
			p[32] = MaxName + 1
			return append(p[:33], strings.Repeat("x", MaxName+1)...)
		}, Drop{Malformed, 32}},
		{"HELLO: name beyond the packet", TypeHello, set(32, 7), Drop{Malformed, 32}},
		{"HELLO: name not UTF-8", TypeHello, set(36, 0xff), Drop{Malformed, 36}},
		{"HELLO: name cut in a character", TypeHello, set(32, 2), Drop{Malformed, 34}},
		{"HELLO: C0 control character", TypeHello, set(37, 0x1b), Drop{Malformed, 37}},
		{"HELLO: C1 control character", TypeHello, set(34, 0xc2, 0x9b), Drop{Malformed, 34}},
		{"HELLO: mark of direction", TypeHello, set(33, 0xe2, 0x80, 0xae), Drop{Malformed, 33}},
		{"COORDINATOR: nobody", TypeCoordinator, set(20, 0, 0, 0, 0), Drop{Malformed, 20}},
		{"COORDINATOR: interval 0", TypeCoordinator, set(24, 0, 0), Drop{Malformed, 24}},
		{"CHALLENGE: target nobody", TypeChallenge, set(20, 0, 0, 0, 0), Drop{Malformed, 20}},
		{"REPORT: count beyond the packet", TypeReport, set(28, 3), Drop{Malformed, 28}},
		{"REPORT: count far beyond the packet", TypeReport, set(28, 255), Drop{Malformed, 28}},
		{"REPORT: nobody in the second standing", TypeReport, set(34, 0, 0, 0, 0), Drop{Malformed, 34}},
		{"LEADER: nobody", TypeLeader, set(20, 0, 0, 0, 0), Drop{Malformed, 20}},
		{"RIVAL: nobody", TypeRival, set(20, 0, 0, 0, 0), Drop{Malformed, 20}},
		{"SUPPORT: nobody", TypeSupport, set(20, 0, 0, 0, 0), Drop{Malformed, 20}},
		{"VOTE: interval 0", TypeVote, set(25, 0, 0), Drop{Malformed, 25}},
		{"PAUSE: number 0", TypePause, set(20, 0, 0, 0, 0), Drop{Malformed, 20}},
		{"GRANT: nobody", TypeGrant, set(20, 0, 0, 0, 0), Drop{Malformed, 20}},
		{"OK: count beyond the packet", TypeOK, set(24, 3), Drop{Malformed, 24}},
		{"OK: count far beyond the packet", TypeOK, set(24, 255), Drop{Malformed, 24}},
		{"OK: nobody in the second place", TypeOK, set(29, 0, 0, 0, 0), Drop{Malformed, 29}},
		{"HELLO: score cut", TypeHello, more(0, 0, 1), Drop{TooShort, 42}},
		{"HELLO: keys cut", TypeHello, more(0, 0, 0, 9, 0, 0, 0, 7, 0, 0, 0), Drop{TooShort, 50}},
		{"HELLO: settings cut", TypeHello, hello(0, 100), Drop{TooShort, 53}},
		{"HELLO: addresses beyond the packet", TypeHello, hello(0, 100, 2, 10, 0, 0, 100, 10, 0, 0), Drop{Malformed, 53}},
		{"HELLO: version beyond the packet", TypeHello, hello(0, 100, 0, 2, 'x'), Drop{Malformed, 54}},
		{"HELLO: version too long", TypeHello, hello(append([]byte{0, 100, 0, 33}, make([]byte, 33)...)...), Drop{Malformed, 54}},
		{"HELLO: control character in the version", TypeHello, hello(0, 100, 0, 2, 'x', 0x1b), Drop{Malformed, 56}},
		{"ELECTION: score cut", TypeElection, more(9), Drop{TooShort, 35}},
		{"COORDINATOR: score cut", TypeCoordinator, more(0, 0, 0), Drop{TooShort, 31}},
		{"COORDINATOR: score without candidates", TypeCoordinator, more(0, 0, 0, 9), Drop{TooShort, 32}},
		{"COORDINATOR: count beyond the packet", TypeCoordinator, more(0, 0, 0, 9, 2, 0, 0, 0, 1, 0, 0, 0), Drop{Malformed, 32}},
		{"COORDINATOR: count far beyond the packet", TypeCoordinator, more(0, 0, 0, 9, 255), Drop{Malformed, 32}},
		{"COORDINATOR: nobody in the second place", TypeCoordinator, more(0, 0, 0, 9, 2, 0, 0, 0, 1, 0, 0, 0, 0), Drop{Malformed, 37}},
		{"COORDINATOR: interval before tail", TypeCoordinator, func(p []byte) []byte { clear(p[24:26]); return append(p, 1) }, Drop{Malformed, 24}},

		// The order of the tests, where a packet breaks two rules.
		{"length before version", TypeHeartbeat, func(p []byte) []byte { p[0] = 0; return p[:19] }, Drop{TooShort, 19}},
		{"version before group", TypeHeartbeat, set(0, 0x01, 0x41, 0, 0), Drop{BadVersion, 0}},
		{"group before type", TypeHeartbeat, set(0, 0x5f, 0x41, 0, 0), Drop{OtherGroup, 2}},
		{"type before its body", TypeHeartbeat, func(p []byte) []byte { p[0] = 0x5f; return p[:20] }, Drop{UnknownType, 0}},
		{"body's length before header's values", TypeHeartbeat, func(p []byte) []byte { clear(p[4:8]); return p[:22] }, Drop{TooShort, 22}},
	} {
		t.Run(test.name, func(t *testing.T) {
			packet := test.change(goldenOf(test.kind).bytes())
			c := newCodec(t, goldenGroup, nil)
			var m Message // holds what the packet has left in it when it comes again
			for range 2 {
				assert.Is(t, test.want, c.Decode(&m, packet), "plain")
			}
			if len(packet) < headerSize {
				return
			}
			// A key changes nothing if the tag is good.
			c = newCodec(t, goldenGroup, goldenKey)
			assert.Is(t, test.want, dropOf(c, sign(c, packet)), "authenticated")
		})
	}
}

// set returns a change that overwrites bytes at the offset.
func set(offset int, b ...byte) func([]byte) []byte {
	return func(p []byte) []byte {
		copy(p[offset:], b)
		return p
	}
}

// more returns a change that appends bytes.
func more(b ...byte) func([]byte) []byte {
	return func(p []byte) []byte { return append(p, b...) }
}

// hello returns a change that appends to a HELLO its score, its keys, and then what is behind them.
func hello(b ...byte) func([]byte) []byte {
	return more(append(make([]byte, 4+8), b...)...)
}

// TestTagBeforeContents: who does not have the key learns nothing but that.
func TestTagBeforeContents(t *testing.T) {
	c := newCodec(t, goldenGroup, goldenKey)
	packet := goldens[0].authenticated()
	packet[0] = 0x5f // unknown type
	clear(packet[4:8])
	assert.Is(t, Drop{BadTag, 24}, dropOf(c, packet), "")
	assert.Is(t, Drop{TooShort, headerSize + tagSize - 1}, dropOf(c, packet[:headerSize+tagSize-1]), "")
}

func TestDropError(t *testing.T) {
	for _, test := range []struct {
		drop Drop
		want string
	}{
		{Drop{}, "packet accepted"},
		{Drop{TooShort, 12}, "packet of 12 bytes dropped at byte 12: shorter than a header"},
		{Drop{TooShort, 23}, "packet dropped at byte 23: ends before its message does"},
		{Drop{OtherGroup, 2}, "packet dropped at byte 2: other group"},
		{Drop{DropReason(200), 2}, "packet dropped at byte 2: reason 200"},
	} {
		assert.Is(t, test.want, test.drop.Error(), "")
	}
	seen := make(map[string]bool)
	for r := range DropReasons {
		name := DropReason(r).String()
		if name == "" || seen[name] {
			t.Errorf("reason %d is called %q", r, name)
		}
		seen[name] = true
	}
}

// TestUnknownIsNotMalformed: purposes, algorithms and priorities of later
// versions get through to the election.
func TestUnknownIsNotMalformed(t *testing.T) {
	c := newCodec(t, goldenGroup, nil)
	for i := range goldens {
		packet := goldens[i].bytes()
		packet[offFlags] = 0x0f
		packet[offPriority] = 255
		if goldens[i].message.Type == TypeQuery {
			packet[headerSize] = 200
		}
		var m Message
		if drop := c.Decode(&m, packet); drop.Dropped() {
			t.Errorf("%v: %v", goldens[i].message.Type, drop)
		}
		if m.Algorithm != 15 || m.Priority != 255 {
			t.Errorf("algorithm %d, priority %d", m.Algorithm, m.Priority)
		}
	}
}
