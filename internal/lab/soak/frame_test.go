package soak

import (
	"bytes"
	"encoding/hex"
	"net"
	"net/netip"
	"testing"
	"time"

	"topdog/internal/lab/assert"
)

// An echo request is that of a packet capture, and its answer is read back; anything else is not.
func TestFrames(t *testing.T) {
	q := question{
		toMAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}, fromMAC: net.HardwareAddr{2, 0, 0, 0, 0xaa, 4},
		target: netip.MustParseAddr("10.77.0.100"), from: netip.MustParseAddr("10.77.0.201"),
	}
	const id, asked = 0x1234, 5 * time.Second
	echo := q.echo(id, asked)
	if got := hex.EncodeToString(echo); got != "020000000001"+"02000000aa04"+"0800"+
		"4500002400004000400125130a4d00c90a4d0064"+"0800c9c412340000"+"000000012a05f200" {
		t.Errorf("the echo request is %s", got)
	}
	assert.Is(t, 0, checksum(echo[ethernetLen:ethernetLen+ipLen]), "the checksum of its header, which contains it")
	assert.Is(t, 0, checksum(echo[ethernetLen+ipLen:]), "the checksum of ICMP, which contains it")
	// The answer of a board: addresses the other way round, and another type.
	answer := bytes.Clone(echo)
	copy(answer, append(bytes.Clone(q.fromMAC), q.toMAC...))
	copy(answer[ethernetLen+12:], append(q.target.AsSlice(), q.from.AsSlice()...))
	answer[ethernetLen+ipLen] = echoReply
	mac, when, ok := readEcho(answer, q.target, id)
	if !ok || !bytes.Equal(mac, q.toMAC) || when != asked {
		t.Errorf("the answer is read as %v, %v, %v", mac, when, ok)
	}
	if _, _, ok := readEcho(answer, q.target, id+1); ok {
		t.Error("an answer to another place is taken")
	}
	if _, _, ok := readEcho(echo, q.target, id); ok {
		t.Error("a request is taken for an answer")
	}

	reply := bytes.Clone(q.arp())
	reply[ethernetLen+7] = arpReply
	copy(reply[ethernetLen+8:], append(append(append(bytes.Clone(q.toMAC), q.target.AsSlice()...), q.fromMAC...), q.from.AsSlice()...))
	mac, to, ok := readARP(reply, q.target)
	if !ok || !bytes.Equal(mac, q.toMAC) || to != q.from {
		t.Errorf("the ARP reply is read as %v, %v, %v", mac, to, ok)
	}
	if _, _, ok := readARP(q.arp(), q.target); ok {
		t.Error("an ARP request is taken for a reply")
	}
	for n := range reply {
		_, _, isARP := readARP(reply[:n], q.target)
		_, _, isEcho := readEcho(answer[:n], q.target, id)
		if isARP || isEcho {
			t.Errorf("%d bytes are taken for an answer", n)
		}
	}
}
