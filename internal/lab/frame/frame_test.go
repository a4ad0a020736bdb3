package frame

import (
	"bytes"
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
	whole := Packet{
		FromMAC: testMAC, ToMAC: MulticastMAC(testTo.Addr()), From: testFrom.Addr(), To: testTo.Addr(),
		Protocol: unix.IPPROTO_UDP, TTL: 255, Ident: 7, Payload: UDP(testFrom, testTo, []byte("odd")),
	}
	for name, c := range map[string]struct {
		frame []byte
		want  string
	}{
		"datagram": {whole.Frame(), `01005e0000fe02000000000408004500
			001f00070000ff11d0770a4d0004e000
			00fe24262426000bf8d76f6464`},
		"ARP": {ARP{Reply: true, MAC: testMAC, Sender: netip.MustParseAddr("10.77.0.100"), Target: netip.MustParseAddr("10.77.0.9")}.Frame(Broadcast), `ffffffffffff02000000000408060001
			0800060400020200000000040a4d0064
			0000000000000a4d0009`},
	} {
		assert.Equal(t, strings.Fields(c.want), lines(c.frame), "%s", name)
	}
}

// The parts of a packet, put together, are its payload; all but the last are as long as the link allows.
func TestFragments(t *testing.T) {
	p := Packet{
		FromMAC: testMAC, ToMAC: Broadcast, From: testFrom.Addr(), To: testTo.Addr(),
		Payload: UDP(testFrom, testTo, make([]byte, 3000)),
	}
	parts := p.Fragments()
	var lengths []int
	for _, f := range parts {
		lengths = append(lengths, len(f)-EthernetLen-IPLen)
		assert.Is(t, 0, Checksum(f[EthernetLen:EthernetLen+IPLen]), "the checksum of a header, which contains it")
	}
	assert.Equal(t, []int{1480, 1480, 48}, lengths, "")
}

// What is written is read back, and what is cut off is not read.
func TestRead(t *testing.T) {
	board, asker := net.HardwareAddr{2, 0, 0, 0, 0, 1}, net.HardwareAddr{2, 0, 0, 0, 0xaa, 4}
	arp := ARP{Reply: true, MAC: board, Sender: netip.MustParseAddr("10.77.0.100"), TargetMAC: asker, Target: netip.MustParseAddr("10.77.0.201")}
	padded := append(arp.Frame(asker), make([]byte, 18)...) // the least that Ethernet carries is 60 bytes
	f := Frame{Bytes: padded}
	read, ok := f.ARP()
	assert.Is(t, true, ok, "it is read as ARP")
	assert.Equal(t, arp, read, "ARP")
	if !f.IsFrom(board) || !bytes.Equal(f.To(), asker) || f.IsFrom(asker) {
		t.Errorf("it is from %v to %v", f.From(), f.To())
	}

	echo := Packet{
		FromMAC: board, ToMAC: asker, From: arp.Sender, To: arp.Target, Protocol: unix.IPPROTO_ICMP, TTL: 64,
		Payload: Echo(0x1234, []byte{0, 0, 0, 1, 0x2a, 5, 0xf2, 0}),
	}
	assert.Is(t, "0800c9c412340000000000012a05f200", hex.EncodeToString(echo.Payload), "an echo request of a packet capture")
	assert.Is(t, 0, Checksum(echo.Payload), "the checksum of ICMP, which contains it")
	_, _, ok = echo.EchoReply()
	assert.Is(t, false, ok, "a request is taken for an answer")
	echo.Payload[0] = echoReply
	packet, ok := Frame{Bytes: echo.Frame()}.Packet()
	assert.Is(t, true, ok, "it is read as IPv4")
	assert.Equal(t, echo, packet, "IPv4")
	id, data, ok := packet.EchoReply()
	if !ok || id != 0x1234 || !bytes.Equal(data, echo.Payload[8:]) {
		t.Errorf("the answer is read as %x, %q, %v", id, data, ok)
	}
	options := bytes.Clone(echo.Frame())
	options[EthernetLen] = 0x46
	packet, _ = Frame{Bytes: options}.Packet()
	assert.Equal(t, echo.Payload[4:], packet.Payload, "the payload behind options")

	for n := range EthernetLen + arpLen {
		_, isARP := Frame{Bytes: padded[:n]}.ARP()
		_, isIP := Frame{Bytes: padded[:n]}.Packet()
		if isARP || isIP {
			t.Errorf("%d bytes of ARP are taken for a message", n)
		}
	}
	for n := range EthernetLen + IPLen + echoLen {
		packet, _ := Frame{Bytes: echo.Frame()[:n]}.Packet()
		if _, _, ok := packet.EchoReply(); ok {
			t.Errorf("%d bytes of an echo are taken for an answer", n)
		}
	}
	for name, change := range map[string]func([]byte){
		"another operation": func(b []byte) { b[EthernetLen+7] = 3 },
		"another hardware":  func(b []byte) { b[EthernetLen+4] = 8 },
		"IPv4":              func(b []byte) { b[13] = 0 },
	} {
		b := bytes.Clone(padded)
		change(b)
		_, ok := Frame{Bytes: b}.ARP()
		assert.Is(t, false, ok, "%s is taken for ARP", name)
	}
}
