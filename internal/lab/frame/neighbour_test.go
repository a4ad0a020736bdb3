package frame

import (
	"encoding/hex"
	"net/netip"
	"testing"

	"topdog/internal/lab/assert"
)

// What is written is read back, its checksum is right, and what is cut off or has passed a router is not read.
func TestNeighbour(t *testing.T) {
	target := netip.MustParseAddr("fd00:1::250")
	group := SolicitedNode(target)
	assert.Is(t, "ff02::1:ff00:250", group.String(), "the group of whoever has the address")
	assert.Is(t, "33:33:ff:00:02:50", MulticastMAC(group).String(), "where Ethernet has it")
	for _, n := range []Neighbour{
		{Target: target, MAC: testMAC},
		{Advertises: true, Flags: NeighbourOverride, Target: target, MAC: testMAC},
		{Advertises: true, Flags: NeighbourSolicited | NeighbourRouter, Target: target},
	} {
		p := n.Packet(target, AllNodes, MulticastMAC(AllNodes))
		sum := Checksum(append(pseudo(p.From, p.To, p.Protocol, len(p.Payload)), p.Payload...))
		assert.Is(t, 0, sum, "the sum over a message with its checksum")
		if n.MAC == nil {
			p.FromMAC = testMAC
		}
		read, ok := Frame{Bytes: p.Frame()}.Packet()
		assert.Is(t, true, ok, "it is read as IPv6")
		assert.Equal(t, p, read, "IPv6")
		got, ok := read.Neighbour()
		assert.Is(t, true, ok, "it is read as Neighbor Discovery")
		assert.Equal(t, n, got, "Neighbor Discovery")

		for end := range neighbourLen {
			cut := p
			cut.Payload = p.Payload[:end]
			_, ok := cut.Neighbour()
			assert.Is(t, false, ok, "%d bytes are taken for a message", end)
		}
		read.TTL--
		_, ok = read.Neighbour()
		assert.Is(t, false, ok, "a message that has passed a router is taken for one of the link")
	}
	endless := Neighbour{Target: target, MAC: testMAC}.Packet(target, group, testMAC)
	endless.Payload[neighbourLen+1] = 0
	n, ok := endless.Neighbour()
	assert.Is(t, true, ok && n.MAC == nil, "an option without a length")
}

// An echo of IPv6 has another checksum than that of IPv4, and is read back by the same function.
func TestEcho6(t *testing.T) {
	board := netip.MustParseAddr("fd00:1::1")
	p := Packet{FromMAC: testMAC, ToMAC: testMAC, From: netip.MustParseAddr("fd00:1::2"), To: board, TTL: 64}.WithEcho(0x1234, []byte("data"))
	assert.Is(t, "80009abb1234000064617461", hex.EncodeToString(p.Payload), "an echo request")
	p.Payload[0] = echoReply6
	read, _ := Frame{Bytes: p.Frame()}.Packet()
	id, data, ok := read.EchoReply()
	if !ok || id != 0x1234 || string(data) != "data" {
		t.Errorf("the answer is read as %x, %q, %v", id, data, ok)
	}
}
