package attack

import (
	"encoding/hex"
	"net"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/assert"
)

var (
	testMAC  = net.HardwareAddr{2, 0, 0, 0, 0, 4}
	testFrom = netip.MustParseAddrPort("10.77.0.4:9254")
	testTo   = netip.MustParseAddrPort("224.0.0.254:9254")
)

// lines is a frame in hexadecimal digits, 16 bytes to a line.
func lines(frame []byte) (text []string) {
	for ; len(frame) > 16; frame = frame[16:] {
		text = append(text, hex.EncodeToString(frame[:16]))
	}
	return append(text, hex.EncodeToString(frame))
}

func TestFrames(t *testing.T) {
	whole := packet{
		fromMAC: testMAC, toMAC: multicastMAC(testTo.Addr()), from: testFrom.Addr(), to: testTo.Addr(),
		protocol: unix.IPPROTO_UDP, ttl: 255, ident: 7, payload: udp(testFrom, testTo, []byte("odd")),
	}
	for name, c := range map[string]struct {
		frame []byte
		want  string
	}{
		"datagram": {whole.frame(), `01005e0000fe02000000000408004500
			001f00070000ff11d0770a4d0004e000
			00fe24262426000bf8d76f6464`},
		"ARP": {arp(arpReply, testMAC, netip.MustParseAddr("10.77.0.100"), netip.MustParseAddr("10.77.0.9")), `ffffffffffff02000000000408060001
			0800060400020200000000040a4d0064
			0000000000000a4d0009`},
	} {
		assert.Equal(t, strings.Fields(c.want), lines(c.frame), "%s", name)
	}
}

// The parts of a packet, put together, are its payload; all but the last are as long as the link allows.
func TestFragments(t *testing.T) {
	p := packet{
		fromMAC: testMAC, toMAC: broadcastMAC, from: testFrom.Addr(), to: testTo.Addr(),
		payload: udp(testFrom, testTo, make([]byte, 3000)),
	}
	parts := p.fragments()
	var lengths []int
	for _, f := range parts {
		lengths = append(lengths, len(f)-ethernetLen-ipLen)
		assert.Is(t, 0, checksum(f[ethernetLen:ethernetLen+ipLen]), "the checksum of a header, which contains it")
	}
	assert.Equal(t, []int{1480, 1480, 48}, lengths, "")
}
