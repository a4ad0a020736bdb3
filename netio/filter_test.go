package netio

import (
	"net/netip"
	"testing"

	"golang.org/x/net/bpf"
)

// The filter passes what concerns the board, and drops what other hosts ask each other.
func TestARPFilter(t *testing.T) {
	own, their, third := hardwareAddr{2, 0, 0, 0, 0, 1}, hardwareAddr{2, 0, 0, 0, 0, 2}, hardwareAddr{2, 0, 0, 0, 0, 3}
	ownIP, theirIP, thirdIP := netip.MustParseAddr("10.77.0.1"), netip.MustParseAddr("10.77.0.2"), netip.MustParseAddr("10.77.0.3")
	second := netip.MustParseAddr("10.77.0.101")
	vm, err := bpf.NewVM(arpFilter(own, []netip.Addr{testVIP, second}))
	must(t, err)
	tests := []struct {
		name   string
		packet arpPacket
		passes bool
	}{
		{"somebody asks for this board", request(their, theirIP, ownIP), false},
		{"a client asks for the floating address", request(their, theirIP, testVIP), false},
		{"somebody probes for another address", probe(their, thirdIP), false},
		{"somebody announces another address", announcements(their, theirIP)[0], false},
		{"a reply to another host", arpPacket{arpReply, their, theirIP, third, thirdIP}, false},
		{"a reply to this board", arpPacket{arpReply, their, theirIP, own, ownIP}, true},
		{"somebody probes for the floating address", probe(their, testVIP), true},
		{"somebody probes for the second one", probe(their, second), true},
		{"somebody announces the floating address", announcements(their, testVIP)[0], true},
		{"somebody announces it by a reply", announcements(their, testVIP)[1], true},
		{"somebody speaks as the second one", arpPacket{arpReply, their, second, third, thirdIP}, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			n, err := vm.Run(test.packet.append(nil))
			must(t, err)
			if passes := n > 0; passes != test.passes {
				t.Errorf("passes: %t, want %t", passes, test.passes)
			}
		})
	}
	if n, err := vm.Run([]byte{0, 1, 8, 0}); n > 0 || err != nil {
		t.Errorf("a packet that is cut off passes (error %v)", err)
	}
}
