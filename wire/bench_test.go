package wire

import (
	"testing"
	"time"

	"topdog/internal/lab/assert"
)

// TestNoAllocations holds what the receive and send loops rely on.
func TestNoAllocations(t *testing.T) {
	none := func(what string, f func()) {
		t.Helper()
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v allocations, want 0", what, n)
		}
	}
	for _, key := range [][]byte{nil, goldenKey} {
		c := newCodec(t, goldenGroup, key)
		buffer := make([]byte, 0, MaxPacket)
		var m Message
		for i := range goldens {
			g := &goldens[i]
			packet := encoded(t, c, &g.message)
			if drop := c.Decode(&m, packet); drop.Dropped() { // makes room for name and standings
				t.Fatal(drop)
			}
			none("Append "+g.message.Type.String(), func() { buffer, _ = c.Append(buffer[:0], &g.message) })
			none("Decode "+g.message.Type.String(), func() { c.Decode(&m, packet) })
			none("Decode of less", func() { c.Decode(&m, packet[:len(packet)-1]) })
			packet[offGroup] ^= 1
			none("Decode of another group's", func() { c.Decode(&m, packet) })
			none("message on the stack", func() {
				m := Message{Header: g.message.Header, Heartbeat: Heartbeat{Interval: time.Second}}
				m.Type = TypeHeartbeat
				buffer, _ = c.Append(buffer[:0], &m)
			})
		}
	}

	for _, authenticated := range []bool{false, true} {
		g, a, b := newGuard(authenticated), newSpeaker(2, 20), newSpeaker(3, 30)
		meet(t, g, 0, a)
		m := a.says(TypeHeartbeat)
		none("Admit", func() {
			m.Sequence++
			if v := g.Admit(0, here, m); v.Drop != Accepted {
				t.Fatal(v.Drop)
			}
		})
		none("Admit of a duplicate", func() { g.Admit(0, here, m) })
		if authenticated {
			m := b.says(TypeHeartbeat)
			g.Admit(0, here, m)
			none("Admit of a stranger", func() { g.Admit(0, here, m) })
		}
	}
}

func benchmarkCodec(b *testing.B, f func(b *testing.B, c *Codec, packet []byte)) {
	for _, variant := range []struct {
		name string
		key  []byte
	}{{"plain", nil}, {"authenticated", goldenKey}} {
		b.Run(variant.name, func(b *testing.B) {
			c := newCodec(b, goldenGroup, variant.key)
			packet, err := c.Append(nil, &goldens[0].message)
			assert.NoError(b, err)
			b.ReportAllocs()
			f(b, c, packet)
		})
	}
}

func BenchmarkEncodeHeartbeat(b *testing.B) {
	benchmarkCodec(b, func(b *testing.B, c *Codec, packet []byte) {
		for b.Loop() {
			packet, _ = c.Append(packet[:0], &goldens[0].message)
		}
	})
}

func BenchmarkDecodeHeartbeat(b *testing.B) {
	benchmarkCodec(b, func(b *testing.B, c *Codec, packet []byte) {
		var m Message
		for b.Loop() {
			c.Decode(&m, packet)
		}
	})
}

// BenchmarkReject is what a flood of forged packets costs.
func BenchmarkReject(b *testing.B) {
	benchmarkCodec(b, func(b *testing.B, c *Codec, packet []byte) {
		packet[len(packet)-1] ^= 1
		clear(packet[offSender:offTerm])
		var m Message
		for b.Loop() {
			if !c.Decode(&m, packet).Dropped() {
				b.Fatal("accepted")
			}
		}
	})
}

func BenchmarkAdmit(b *testing.B) {
	g, a := newGuard(true), newSpeaker(2, 20)
	meet(b, g, 0, a)
	m := a.says(TypeHeartbeat)
	b.ReportAllocs()
	for b.Loop() {
		m.Sequence++
		g.Admit(0, here, m)
	}
}
