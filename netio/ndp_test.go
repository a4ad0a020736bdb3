package netio

import (
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/bpf"

	"topdog/internal/lab/assert"
)

var (
	testVIP6  = netip.MustParseAddr("fd00:77::100")
	otherVIP6 = netip.MustParseAddr("fd00:77::1:100") // its group is the same
)

// asks is a solicitation of a neighbour that has the address theirs.
func asks(theirs, target netip.Addr) ndpMessage {
	return ndpMessage{kind: solicitation, source: theirs, destination: solicitedNode(target), target: target}
}

var theirIP6 = netip.MustParseAddr("fe80::2")

// The packets byte by byte, in the order of the drawing in ndp.go. The checksums are what the kernel of Linux accepts.
func TestNDPPackets(t *testing.T) {
	const (
		vip  = "fd000077000000000000000000000100"
		none = "00000000000000000000000000000000"
		node = "ff0200000000000000000001ff000100"
		all  = "ff020000000000000000000000000001"
		they = "fe800000000000000000000000000002"
	)
	for _, test := range []struct {
		name   string
		packet ndpMessage
		want   string
	}{
		{"probe", probe6(testVIP6), "60000000 0018 3a ff " + none + node + "87 00 %s 00000000" + vip},
		{"solicitation", asks(theirIP6, testVIP6), "60000000 0020 3a ff " + they + node + "87 00 %s 00000000" + vip + "01 01 020000000001"},
		{"announcement", advertise(testVIP6, false), "60000000 0020 3a ff " + vip + all + "88 00 %s 20000000" + vip + "02 01 020000000001"},
		{"announcement of a router", advertise(testVIP6, true), "60000000 0020 3a ff " + vip + all + "88 00 %s a0000000" + vip + "02 01 020000000001"},
		{"answer", answerTo(asks(theirIP6, testVIP6), false), "60000000 0020 3a ff " + vip + they + "88 00 %s 60000000" + vip + "02 01 020000000001"},
		{"answer to a probe", answerTo(probe6(testVIP6), false), "60000000 0020 3a ff " + vip + all + "88 00 %s 20000000" + vip + "02 01 020000000001"},
	} {
		got := test.packet.appendFrom(nil, ownMAC)
		sum := hex.EncodeToString(got[ndpChecksumAt : ndpChecksumAt+2])
		assert.Is(t, strings.ReplaceAll(strings.Replace(test.want, "%s", sum, 1), " ", ""), hex.EncodeToString(got), "%s: packet", test.name)
		back, err := parseNDP(append(got, make([]byte, 18)...)) // as Ethernet pads it
		must(t, err)
		if test.name != "probe" {
			test.packet.mac = ownMAC
		}
		assert.Is(t, test.packet, back, "%s: parsed to", test.name)
	}
}

// TestChecksum6 has one packet that tcpdump called "icmp6 sum ok".
func TestChecksum6(t *testing.T) {
	p, err := hex.DecodeString("6000000000183aff00000000000000000000000000000000ff0200000000000000000001ff0000018700" +
		"7a2300000000fd000077000000000000000000000001")
	must(t, err)
	p[ndpChecksumAt], p[ndpChecksumAt+1] = 0, 0
	binary.BigEndian.PutUint16(p[ndpChecksumAt:], ^checksum6(p))
	assert.Is(t, uint16(0xffff), checksum6(p), "the sum with the checksum")
}

func TestParseNDPRejects(t *testing.T) {
	// with returns a packet with one byte changed, whose checksum is right again.
	with := func(m ndpMessage, at int, value byte) []byte {
		b := m.appendFrom(nil, ownMAC)
		b[at] = value
		b[ndpChecksumAt], b[ndpChecksumAt+1] = 0, 0
		binary.BigEndian.PutUint16(b[ndpChecksumAt:], ^checksum6(b))
		return b
	}
	said := advertise(testVIP6, false)
	good := said.appendFrom(nil, ownMAC)
	toAll := answerTo(asks(theirIP6, testVIP6), false)
	toAll.destination = allNodes
	elsewhere := probe6(testVIP6)
	elsewhere.destination = allNodes
	for _, test := range []struct {
		name string
		b    []byte
		want error
	}{
		{"empty", nil, errNDPShort},
		{"one byte short", good[:ndpBytes-1], errNDPShort},
		{"without its option", good[:ndpBytes], errNDPShort},
		{"IPv4", with(said, 0, 0x45), errNDPKind},
		{"UDP", with(said, ip6Next, 17), errNDPKind},
		{"an echo request", with(said, ndpKindAt, 128), errNDPKind},
		{"from beyond the link", with(said, ip6HopLimit, 254), errNDPInvalid},
		{"wrong checksum", append(slices.Clone(good[:len(good)-1]), 9), errNDPInvalid},
		{"a code", with(said, ndpCodeAt, 1), errNDPInvalid},
		{"for a multicast address", with(said, ndpSubjectAt, 0xff), errNDPInvalid},
		{"an option without length", with(said, ndpBytes+1, 0), errNDPInvalid},
		{"a cut option", with(said, ndpBytes+1, 2), errNDPInvalid},
		{"an answer to everybody", toAll.appendFrom(nil, ownMAC), errNDPInvalid},
		{"a probe to everybody", elsewhere.appendFrom(nil, ownMAC), errNDPInvalid},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := parseNDP(test.b)
			assert.ErrorIs(t, err, test.want, "")
		})
	}
}

// FuzzParseNDP: whatever arrives, parsing does not panic, and what parses says the same when it is encoded again.
func FuzzParseNDP(f *testing.F) {
	f.Add([]byte{})
	for _, m := range []ndpMessage{probe6(testVIP6), asks(theirIP6, testVIP6), advertise(testVIP6, true), answerTo(asks(theirIP6, testVIP6), false)} {
		f.Add(m.appendFrom(nil, ownMAC))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := parseNDP(b)
		if err != nil {
			return
		}
		back, err := parseNDP(m.appendFrom(nil, m.mac))
		if err != nil {
			t.Fatalf("% x became %v: %v", b, m, err)
		}
		if back != m {
			t.Errorf("% x became %v, and then %v", b, m, back)
		}
	})
}

// TestMessagesHeard says of messages what they mean to a board that wants the floating address: whether one conflicts with it,
// whether its sender has it, and whether it passes the filter.
func TestMessagesHeard(t *testing.T) {
	filter, none := ndpFilter([]netip.Addr{otherVIP6, testVIP6}), ndpFilter(nil)
	theirs := netip.MustParseAddr("fd00:77::2")
	asAddress := asks(testVIP6, theirs)
	lie := advertise(theirs, false) // from the floating address
	lie.source = testVIP6
	solicited := advertise(testVIP6, false)
	solicited.source = theirIP6
	for _, test := range []struct {
		name                       string
		m                          ndpMessage
		conflicts, rival, isPassed bool
	}{
		{"probe", probe6(testVIP6), true, false, true},
		{"probe for another", probe6(theirs), false, false, false},
		{"solicitation", asks(theirIP6, testVIP6), false, false, true},
		{"solicitation in its name", asAddress, true, true, true},
		{"solicitation for another", asks(theirIP6, theirs), false, false, false},
		{"announcement", advertise(testVIP6, false), true, true, true},
		{"announcement from a link-local address", solicited, true, true, true},
		{"announcement of another in its name", lie, true, true, true},
		{"announcement of another", advertise(theirs, false), false, false, false},
	} {
		packet := test.m.appendFrom(nil, rivalMAC)
		assert.Is(t, test.conflicts, test.m.conflictsWith(testVIP6), "%s: conflicts", test.name)
		assert.Is(t, test.rival, test.m.speaksAs(testVIP6), "%s: speaks as it", test.name)
		assert.Is(t, test.isPassed, passes6(t, filter, packet), "%s: passes the filter", test.name)
		assert.Is(t, false, passes6(t, none, packet), "%s: passes in a flood", test.name)
	}
	packet := advertise(otherVIP6, false).appendFrom(nil, rivalMAC)
	assert.Is(t, true, passes6(t, filter, packet), "the other address passes")
	packet[ndpKindAt] = 128
	assert.Is(t, false, passes6(t, filter, packet), "an echo request passes")
	packet[ip6Next] = 17
	assert.Is(t, false, passes6(t, filter, packet), "UDP passes")
}

func passes6(t *testing.T, program []bpf.Instruction, packet []byte) bool {
	t.Helper()
	vm, err := bpf.NewVM(program)
	must(t, err)
	n, err := vm.Run(packet)
	must(t, err)
	return n > 0
}

func TestSolicitedNode(t *testing.T) {
	for addr, want := range map[string]string{
		"fd00:77::100":         "ff02::1:ff00:100",
		"2001:db8::ab:cd12:3e": "ff02::1:ff12:3e",
	} {
		group := solicitedNode(netip.MustParseAddr(addr))
		assert.Is(t, want, group.String(), "the group of %s", addr)
	}
	assert.Is(t, hardwareAddr{0x33, 0x33, 0xff, 0, 1, 0}, etherMulticast(solicitedNode(testVIP6)), "its Ethernet address")
}
