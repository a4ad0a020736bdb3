package bench

import (
	"encoding/hex"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/frame"
	"topdog/internal/lab/netns"
)

func frameOf(t *testing.T, text string) frame.Frame {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(text), ""))
	assert.NoError(t, err)
	return frame.Frame{Bytes: b, Length: len(b)}
}

const (
	ethernetIP  = "01005e0000fe 020000000001 0800 "
	ethernetARP = "ffffffffffff 020000000001 0806 "
)

// ip is a header with this protocol, and with four bytes of options if long.
func ip(protocol string, long bool) string {
	if long {
		return "46 00 0024 00000000 ff " + protocol + " 0000 0a4d0001 e00000fe 94040000 "
	}
	return "45 00 0020 00000000 ff " + protocol + " 0000 0a4d0001 e00000fe "
}

func TestFrameCarries(t *testing.T) {
	udp := netns.Traffic{Protocol: unix.IPPROTO_UDP, Port: 9254}
	vrrp := netns.Traffic{Protocol: protocolVRRP}
	const toPort, fromPort, other = "0001 2426 000c 0000", "2426 0001 000c 0000", "0001 0002 000c 0000"
	for _, test := range []struct {
		name, bytes string
		udp, vrrp   bool
	}{
		{"to the port", ethernetIP + ip("11", false) + toPort, true, false},
		{"from the port", ethernetIP + ip("11", false) + fromPort, true, false},
		{"another port", ethernetIP + ip("11", false) + other, false, false},
		{"behind options", ethernetIP + ip("11", true) + toPort, true, false},
		{"TCP", ethernetIP + ip("06", false) + toPort, false, false},
		{"VRRP", ethernetIP + ip("70", false) + other, false, true},
		{"ARP", ethernetARP + ip("70", false) + other, false, false},
		{"cut off in the ports", ethernetIP + ip("11", false) + "00", false, false},
		{"cut off in IP", ethernetIP + "4500", false, false},
		{"nothing", "", false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := frameOf(t, test.bytes)
			assert.Is(t, test.udp, carries(f, udp), "it is topdog's")
			assert.Is(t, test.vrrp, carries(f, vrrp), "it is VRRP")
		})
	}
}

func TestFrameAnnounces(t *testing.T) {
	const request, reply, vip, own = "0001080006040001", "0001080006040002", "0a4d0064", "0a4d0001"
	arp := func(op, sender, target string) string {
		return ethernetARP + op + "020000000001" + sender + "000000000000" + target
	}
	for bytes, want := range map[string]bool{
		arp(request, vip, vip): true,
		arp(reply, vip, vip):   true,
		arp(request, own, vip): false, // a question
		arp(reply, vip, own):   false, // an answer
		arp(request, own, own): false,
		ethernetARP + request:  false,
		"":                     false,
	} {
		assert.Is(t, want, announces(frameOf(t, bytes)), "%s", bytes)
	}
	if f := frameOf(t, ethernetARP); !f.IsFrom([]byte{2, 0, 0, 0, 0, 1}) || f.IsFrom([]byte{2, 0, 0, 0, 0, 2}) {
		t.Error("the source is taken for another")
	}
}
