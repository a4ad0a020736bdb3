package pi

import (
	"net"
	"net/netip"
	"testing"

	"topdog/internal/lab/assert"
)

func TestARP(t *testing.T) {
	mac := net.HardwareAddr{2, 0, 0, 0, 0, 1}
	addr, host := netip.MustParseAddr("10.99.0.250"), netip.MustParseAddr("10.99.0.254")
	want := []byte{
		0, 1, 8, 0, 6, 4, 0, 1, // Ethernet, IPv4, 6, 4, request
		2, 0, 0, 0, 0, 1, 10, 99, 0, 254,
		0, 0, 0, 0, 0, 0, 10, 99, 0, 250,
	}
	question := arpQuestion(mac, host, addr)
	assert.Equal(t, want, question, "question")

	answer := []byte{
		0, 1, 8, 0, 6, 4, 0, 2,
		0xb8, 0x27, 0xeb, 0, 0, 3, 10, 99, 0, 250,
		2, 0, 0, 0, 0, 1, 10, 99, 0, 254,
	}
	if got, ok := arpAnswer(append(answer, make([]byte, 18)...), addr); !ok || got.String() != "b8:27:eb:00:00:03" {
		t.Errorf("answer from %s, %t", got, ok)
	}
	for name, packet := range map[string][]byte{
		"a question":    question,
		"about another": arpAnswerOf(answer, 10, 99, 0, 1),
		"cut off":       answer[:27],
		"empty":         nil,
	} {
		if got, ok := arpAnswer(packet, addr); ok {
			t.Errorf("%s is taken for an answer from %s", name, got)
		}
	}
}

func arpAnswerOf(answer []byte, ip ...byte) []byte {
	other := append([]byte(nil), answer...)
	copy(other[14:], ip)
	return other
}
