package netio

import (
	"net"
	"net/netip"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/assert"
)

func TestControlMessages(t *testing.T) {
	for _, test := range []struct {
		name       string
		control    []byte
		ttl, index int
	}{
		{"none", nil, -1, 0},
		{"255", controlMessage(unix.IPPROTO_IP, unix.IP_TTL, 255), 255, 0},
		{"behind another", append(controlMessage(unix.SOL_SOCKET, unix.SO_TIMESTAMP, 7), controlMessage(unix.IPPROTO_IP, unix.IP_TTL, 64)...), 64, 0},
		{"with the interface", append(controlMessage(unix.IPPROTO_IP, unix.IP_PKTINFO, 3), controlMessage(unix.IPPROTO_IP, unix.IP_TTL, 255)...), 255, 3},
		{"cut off", controlMessage(unix.IPPROTO_IP, unix.IP_TTL, 255)[:unix.SizeofCmsghdr-1], -1, 0},
		{"without its value", controlMessage(unix.IPPROTO_IP, unix.IP_TTL, 255)[:unix.SizeofCmsghdr+1], -1, 0},
	} {
		ttl, index := ttlAndInterface(test.control)
		assert.Is(t, test.ttl, ttl, "%s: TTL", test.name)
		assert.Is(t, test.index, index, "%s: interface", test.name)
	}
}

// FuzzTTL: the kernel writes these bytes, but a parser of bytes never panics all the same.
func FuzzTTL(f *testing.F) {
	f.Add(controlMessage(unix.IPPROTO_IP, unix.IP_TTL, 255))
	f.Add(controlMessage(unix.IPPROTO_IP, unix.IP_PKTINFO, 3))
	f.Add(controlMessage(unix.SOL_SOCKET, unix.SO_TIMESTAMP, 7))
	f.Fuzz(func(t *testing.T, b []byte) { ttlAndInterface(b) })
}

// The options that no other test would miss.
func TestSocketOptions(t *testing.T) {
	b := newLAN(t, 1).boards[0]
	c, err := b.open(b.options())
	must(t, err)
	defer c.Close()
	for name, socket := range map[string]*net.UDPConn{"multicast": c.multicast, "unicast": c.unicast} {
		raw, err := socket.SyscallConn()
		must(t, err)
		got := map[string]int{}
		must(t, raw.Control(func(fd uintptr) {
			for option, at := range map[string][2]int{
				"TOS":      {unix.IPPROTO_IP, unix.IP_TOS},
				"priority": {unix.SOL_SOCKET, unix.SO_PRIORITY},
				"all":      {unix.IPPROTO_IP, unix.IP_MULTICAST_ALL},
				"loop":     {unix.IPPROTO_IP, unix.IP_MULTICAST_LOOP},
				"device":   {unix.SOL_SOCKET, unix.SO_BINDTOIFINDEX},
				"sends by": {unix.IPPROTO_IP, unix.IP_UNICAST_IF},
			} {
				value, err := unix.GetsockoptInt(int(fd), at[0], at[1])
				must(t, err)
				got[option] = value
			}
		}))
		want := map[string]int{"TOS": 0xc0, "priority": 6, "all": 0, "loop": 0, "device": c.index, "sends by": 0}
		if socket == c.unicast {
			want["device"], want["sends by"] = 0, int(htonl(uint32(c.index)))
		}
		assert.Equal(t, want, got, "options of the %s socket", name)
	}
}

func controlMessage(level, kind int32, value byte) []byte {
	b := make([]byte, unix.CmsgSpace(4))
	*header(b) = unix.Cmsghdr{Level: level, Type: kind}
	header(b).SetLen(unix.CmsgLen(4))
	b[unix.CmsgLen(0)] = value // little-endian, as every machine this runs on
	return b
}

// header is the control message's header in place, to write it as the kernel would.
func header(b []byte) *unix.Cmsghdr { return (*unix.Cmsghdr)(unsafe.Pointer(&b[0])) }

// TestPortOfAStranger: the error says how to find out who has bound to the port of the group.
func TestPortOfAStranger(t *testing.T) {
	o := onLoopback(1)[0]
	taken, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(netip.IPv4Unspecified(), o.Group.Port())))
	must(t, err)
	defer taken.Close()
	_, err = Open(o)
	assert.ErrorIs(t, err, unix.EADDRINUSE, "")
	assert.ErrorContains(t, err, "another topdog, or another program, has this port, see `ss -ulnp`", "")
}
