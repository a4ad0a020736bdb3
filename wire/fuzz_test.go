package wire

import (
	"bytes"
	"testing"
)

// FuzzDecode feeds anything to a plain and an authenticated codec. The fuzzer
// cannot guess tags, so the input is also tried with a good one. Nothing may
// panic, and what decodes must encode to the same bytes again, but for the two
// things that a receiver ignores: the reserved bits, and what follows the body. The mark is
// that of the key that signs.
func FuzzDecode(f *testing.F) {
	for i := range goldens {
		f.Add(goldens[i].bytes())
		f.Add(goldens[i].authenticated())
		f.Add(append(goldens[i].bytes(), goldens[i].missing()...)) // a tail of zeros
	}
	plain, authenticated := newCodec(f, goldenGroup, nil), newCodec(f, goldenGroup, goldenKey)
	both, second := newCodecOf(f, goldenKey, secondKey), newCodecOf(f, secondKey)
	f.Fuzz(func(t *testing.T, datagram []byte) {
		input := bytes.Clone(datagram)
		decodesOrNot(t, plain, datagram)
		decodesOrNot(t, authenticated, datagram)
		decodesOrNot(t, both, datagram)
		if len(datagram) >= headerSize && len(datagram) <= MaxPacket-tagSize {
			clear := bytes.Clone(datagram)
			clear[offFlags] &^= flagAuthenticated
			drop := decodesOrNot(t, plain, clear)
			if got := decodesOrNot(t, authenticated, sign(authenticated, clear)); got != drop {
				t.Errorf("plain: %v; authenticated: %v", drop, got)
			}
			for _, signer := range []*Codec{authenticated, second} {
				if got := decodesOrNot(t, both, sign(signer, clear)); got != drop {
					t.Errorf("plain: %v; with %v where two keys are accepted: %v", drop, signer.Keys(), got)
				}
			}
		}
		if !bytes.Equal(datagram, input) {
			t.Error("Decode has changed its input")
		}
	})
}

func decodesOrNot(t *testing.T, c *Codec, datagram []byte) Drop {
	t.Helper()
	var m Message
	drop := c.Decode(&m, datagram)
	if again := c.Decode(&m, datagram); again != drop {
		t.Errorf("%v; when it comes again: %v", drop, again)
	}
	if drop.Dropped() {
		if drop.offset < 0 || drop.offset > len(datagram) {
			t.Errorf("%v: outside of the %d bytes", drop, len(datagram))
		}
		return drop
	}
	// The buffer of a datagram is used again, so nothing of the message may lie in it.
	sent := bytes.Clone(datagram)
	clear(datagram)
	got, err := c.Append(nil, &m)
	copy(datagram, sent)
	if err != nil {
		t.Fatalf("decoded, but: %v", err)
	}
	body := len(got)
	if c.authenticated() {
		body -= tagSize
	}
	want := bytes.Clone(datagram[:body])
	clearReserved(want)
	if c.authenticated() {
		want = sign(c, want)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("got  %x\nwant %x", got, want)
	}
	return drop
}

// clearReserved clears the bits of a packet that its receiver ignores.
func clearReserved(packet []byte) {
	packet[offFlags] &^= flagMark
	switch Type(packet[offVersion] & typeMask) {
	case TypeHello:
		packet[headerSize+10] &= flagInBody
	case TypeElection:
		packet[headerSize+13] &= flagInBody
	}
}

// FuzzGuard lets the fuzzer be the adversary of world.
func FuzzGuard(f *testing.F) {
	f.Add([]byte("begin"), true, false)
	f.Add(bytes.Repeat([]byte{0, 10, 1, 10, 2, 3, 7, 1}, 40), true, true)
	f.Add(bytes.Repeat([]byte{0, 10, 1, 10, 2, 3, 7, 1}, 40), false, false)
	f.Fuzz(func(t *testing.T, choices []byte, authenticated, thief bool) {
		w := newWorld(t, authenticated, thief, func(n int) int {
			if len(choices) < 2 {
				return 0
			}
			k := int(choices[0]) | int(choices[1])<<8
			choices = choices[2:]
			return k % n
		})
		for len(choices) >= 2 {
			w.step()
		}
	})
}
