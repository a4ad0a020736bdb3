package netio

import (
	"bytes"
	"encoding/hex"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"topdog/internal/lab/assert"
)

var (
	ownMAC   = hardwareAddr{2, 0, 0, 0, 0, 1}
	rivalMAC = hardwareAddr{2, 0, 0, 0, 0, 2}
	testVIP  = netip.MustParseAddr("10.77.0.100")
)

// The packets byte by byte, in the order of the drawing in arp.go.
func TestARPPackets(t *testing.T) {
	const head = "0001 0800 06 04 "
	tests := []struct {
		name   string
		packet arpPacket
		want   string
	}{
		{"probe", probe(ownMAC, testVIP), head + "0001 020000000001 00000000 000000000000 0a4d0064"},
		{"announcement, request", announcements(ownMAC, testVIP)[0], head + "0001 020000000001 0a4d0064 000000000000 0a4d0064"},
		{"announcement, reply", announcements(ownMAC, testVIP)[1], head + "0002 020000000001 0a4d0064 020000000001 0a4d0064"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := test.packet.append(nil)
			want, err := hex.DecodeString(strings.ReplaceAll(test.want, " ", ""))
			must(t, err)
			assert.Equal(t, hex.EncodeToString(want), hex.EncodeToString(got), "packet")
			back, err := parseARP(append(got, make([]byte, 18)...)) // as Ethernet pads it
			must(t, err)
			assert.Is(t, test.packet, back, "parsed to")
		})
	}
}

func TestParseARPRejects(t *testing.T) {
	good := probe(ownMAC, testVIP).append(nil)
	with := func(i int, value byte) []byte {
		b := slices.Clone(good)
		b[i] = value
		return b
	}
	tests := []struct {
		name string
		b    []byte
		want error
	}{
		{"empty", nil, errARPShort},
		{"one byte short", good[:27], errARPShort},
		{"Token Ring", with(1, 6), errARPKind},
		{"IPv6", with(3, 0xdd), errARPKind},
		{"hardware addresses of 8 bytes", with(4, 8), errARPKind},
		{"protocol addresses of 16 bytes", with(5, 16), errARPKind},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := parseARP(test.b)
			assert.ErrorIs(t, err, test.want, "")
		})
	}
}

// FuzzParseARP: whatever arrives, parsing does not panic, and what parses is
// encoded to the same bytes again.
func FuzzParseARP(f *testing.F) {
	f.Add([]byte{})
	f.Add(probe(ownMAC, testVIP).append(nil))
	for _, p := range announcements(ownMAC, testVIP) {
		f.Add(p.append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := parseARP(b)
		if err != nil {
			return
		}
		if got := p.append(nil); !bytes.Equal(got, b[:arpLength]) {
			t.Errorf("% x became % x", b[:arpLength], got)
		}
	})
}

func TestConflictsWith(t *testing.T) {
	elsewhere := netip.MustParseAddr("10.77.0.7")
	tests := []struct {
		name   string
		packet arpPacket
		want   bool
	}{
		{"an answer", arpPacket{operation: arpReply, senderMAC: rivalMAC, senderIP: testVIP, targetMAC: ownMAC}, true},
		{"an announcement", announcements(rivalMAC, testVIP)[0], true},
		{"a question by its owner", arpPacket{operation: arpRequest, senderMAC: rivalMAC, senderIP: testVIP, targetIP: elsewhere}, true},
		{"a probe for it", probe(rivalMAC, testVIP), true},
		{"our own probe, reflected", probe(ownMAC, testVIP), false},
		{"our own announcement, reflected", announcements(ownMAC, testVIP)[1], false},
		{"a question for it", arpPacket{operation: arpRequest, senderMAC: rivalMAC, senderIP: elsewhere, targetIP: testVIP}, false},
		{"a reply to a prober", arpPacket{operation: arpReply, senderMAC: rivalMAC, senderIP: netip.IPv4Unspecified(), targetIP: testVIP}, false},
		{"another address", announcements(rivalMAC, elsewhere)[0], false},
		{"a probe for another address", probe(rivalMAC, elsewhere), false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			assert.Is(t, test.want, test.packet.conflictsWith(testVIP, ownMAC), "")
		})
	}
}
