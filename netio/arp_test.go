package netio

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

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
	for _, test := range []struct {
		name   string
		packet arpPacket
		want   string
	}{
		{"probe", probe(testVIP).from(ownMAC), head + "0001 020000000001 00000000 000000000000 0a4d0064"},
		{"announcement, request", announcements(testVIP)[0].from(ownMAC), head + "0001 020000000001 0a4d0064 000000000000 0a4d0064"},
		{"announcement, reply", announcements(testVIP)[1].from(ownMAC), head + "0002 020000000001 0a4d0064 020000000001 0a4d0064"},
	} {
		got := test.packet.append(nil)
		want, err := hex.DecodeString(strings.ReplaceAll(test.want, " ", ""))
		must(t, err)
		assert.Equal(t, hex.EncodeToString(want), hex.EncodeToString(got), "%s: packet", test.name)
		back, err := parseARP(append(got, make([]byte, 18)...)) // as Ethernet pads it
		must(t, err)
		assert.Is(t, test.packet, back, "%s: parsed to", test.name)
	}
}

func TestParseARPRejects(t *testing.T) {
	good := probe(testVIP).from(ownMAC).append(nil)
	with := func(i int, value byte) []byte {
		b := slices.Clone(good)
		b[i] = value
		return b
	}
	for _, test := range []struct {
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
	} {
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
	f.Add(probe(testVIP).from(ownMAC).append(nil))
	for _, p := range announcements(testVIP) {
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

// TestPacketsHeard says of packets what they mean to a board that wants the floating address: whether one conflicts with
// it, and whether it is a rival's claim; and whether it passes the filter, and in a flood the one for what is awaited.
func TestPacketsHeard(t *testing.T) {
	own, their, third := ownMAC, rivalMAC, hardwareAddr{2, 0, 0, 0, 0, 3}
	ownIP, theirIP, thirdIP := netip.MustParseAddr("10.77.0.1"), netip.MustParseAddr("10.77.0.2"), netip.MustParseAddr("10.77.0.3")
	second := netip.MustParseAddr("10.77.0.101") // floats as well
	floating, asked := []netip.Addr{testVIP, second}, []netip.Addr{theirIP, testVIP}
	filter, awaited, none := arpFilter(floating, asked, hardwareAddr{}, 0), arpFilter(nil, asked, hardwareAddr{}, 0), arpFilter(nil, nil, hardwareAddr{}, 0)
	watched, asks := arpFilter(floating, nil, their, arpReply), arpFilter(floating, nil, their, arpRequest)
	// What names this board as its target is sent to it alone, all else to everybody.
	passes := func(program []bpf.Instruction, packet arpPacket) bool {
		t.Helper()
		sentTo := uint32(unix.PACKET_BROADCAST)
		if packet.targetMAC == own && packet.senderMAC != own {
			sentTo = unix.PACKET_HOST
		}
		return runFilter(t, program, sentTo, packet.append(nil)) > 0
	}
	claimed := false
	a := &Announcer{}
	a.Rivals([]netip.Addr{testVIP}, func(addr netip.Addr, mac net.HardwareAddr) {
		claimed = true
		assert.Is(t, "10.77.0.100 at 02:00:00:00:00:02", fmt.Sprintf("%v at %v", addr, mac), "the claim")
	})
	for _, test := range []struct {
		name   string
		packet arpPacket
		want   string
	}{
		{"a reply to this board", arpPacket{arpReply, their, theirIP, own, ownIP}, "passes awaited watched"},
		{"the same for the floating address", arpPacket{arpReply, their, testVIP, own, ownIP}, "conflicts claims passes awaited"},
		{"the same of who was not asked", arpPacket{arpReply, third, thirdIP, own, ownIP}, ""},
		{"the same from an Ethernet address that ends in zeros", arpPacket{arpReply, hardwareAddr{2, 1}, thirdIP, own, ownIP}, ""},
		{"a reply to another host", arpPacket{arpReply, their, theirIP, third, thirdIP}, ""},
		{"the same for the second address", arpPacket{arpReply, their, second, third, thirdIP}, "passes"},
		{"a reply to a prober", arpPacket{arpReply, their, netip.IPv4Unspecified(), own, testVIP}, "passes"},
		{"an announcement", announcements(testVIP)[0].from(their), "conflicts claims passes"},
		{"an announcement by a reply", announcements(testVIP)[1].from(their), "conflicts claims passes"},
		{"our own announcement, reflected", announcements(testVIP)[1].from(own), "passes"},
		{"an announcement of another address", announcements(theirIP)[0].from(their), ""},
		{"a probe, which claims nothing", probe(testVIP).from(their), "conflicts passes"},
		{"a probe for the second address", probe(second).from(their), "passes"},
		{"a probe for another address", probe(thirdIP).from(their), ""},
		{"our own probe, reflected", probe(testVIP).from(own), "passes"},
		{"its owner asks for another host", arpPacket{arpRequest, their, testVIP, hardwareAddr{}, thirdIP}, "conflicts claims passes"},
		{"somebody asks for it", request(theirIP, testVIP).from(their), ""},
		{"somebody asks for this board", request(theirIP, ownIP).from(their), ""},
		{"who is watched asks this board", arpPacket{arpRequest, their, theirIP, own, second}, "asks"},
		{"who is watched asks another board", arpPacket{arpRequest, their, theirIP, third, second}, ""},
		{"another board asks this one", arpPacket{arpRequest, third, thirdIP, own, second}, ""},
	} {
		claimed = false
		a.receive(test.packet, own)
		var got []string
		for _, meaning := range []struct {
			holds bool
			word  string
		}{
			{test.packet.senderMAC != own && test.packet.conflictsWith(testVIP), "conflicts"},
			{claimed, "claims"},
			{passes(filter, test.packet), "passes"},
			{passes(awaited, test.packet), "awaited"},
			{passes(watched, test.packet) && !passes(arpFilter(floating, nil, hardwareAddr{}, 0), test.packet), "watched"},
			{passes(asks, test.packet) && !passes(watched, test.packet), "asks"},
		} {
			if meaning.holds {
				got = append(got, meaning.word)
			}
		}
		assert.Is(t, test.want, strings.Join(got, " "), "%s", test.name)
		assert.Is(t, false, passes(none, test.packet), "%s passes although nobody was asked", test.name)
	}
	assert.Is(t, 0, runFilter(t, filter, unix.PACKET_HOST, []byte{0, 1, 8, 0}), "bytes that pass of a packet that is cut off")
}

// runFilter returns how much of a packet passes that was sent so. The virtual machine knows no packet types.
func runFilter(t *testing.T, program []bpf.Instruction, sentTo uint32, packet []byte) int {
	t.Helper()
	program = slices.Clone(program)
	for i := range program {
		if program[i] == (bpf.LoadExtension{Num: bpf.ExtType}) {
			program[i] = bpf.LoadConstant{Dst: bpf.RegA, Val: sentTo}
		}
	}
	vm, err := bpf.NewVM(program)
	must(t, err)
	n, err := vm.Run(packet)
	must(t, err)
	return n
}
