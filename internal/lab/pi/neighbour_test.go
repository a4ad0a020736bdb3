package pi

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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
	if diff := cmp.Diff(want, question); diff != "" {
		t.Errorf("question (-want +got):\n%s", diff)
	}

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

func TestOutage(t *testing.T) {
	start := time.Unix(1000, 0)
	at := func(ms ...int) []time.Time {
		var all []time.Time
		for _, m := range ms {
			all = append(all, start.Add(time.Duration(m)*time.Millisecond))
		}
		return all
	}
	for name, tc := range map[string]struct {
		answers    []time.Time
		since, now int
		longest    time.Duration
		count      int
	}{
		"always":       {at(0, 50, 100, 150), 60, 160, 50 * time.Millisecond, 2},
		"in between":   {at(0, 50, 900, 950), 60, 960, 850 * time.Millisecond, 2},
		"began before": {at(0, 900), 800, 910, 900 * time.Millisecond, 1},
		"still":        {at(0, 50), 10, 2000, 1950 * time.Millisecond, 1},
		"over before":  {at(0, 900, 950, 1000), 940, 1010, 50 * time.Millisecond, 2},
		"nobody since": {at(0), 100, 600, 600 * time.Millisecond, 0},
		"nobody ever":  {nil, 100, 600, 500 * time.Millisecond, 0},
	} {
		longest, count := outage(tc.answers, at(tc.since)[0], at(tc.now)[0])
		if longest != tc.longest || count != tc.count {
			t.Errorf("%s: %s and %d answers, want %s and %d", name, longest, count, tc.longest, tc.count)
		}
	}
}
