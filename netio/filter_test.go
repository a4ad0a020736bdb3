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

// In a flood nothing passes but the replies that this board waits for.
func TestAwaitedFilter(t *testing.T) {
	own, their, third := hardwareAddr{2, 0, 0, 0, 0, 1}, hardwareAddr{2, 0, 0, 0, 0, 2}, hardwareAddr{2, 0, 0, 0, 0, 3}
	ownIP, theirIP, thirdIP := netip.MustParseAddr("10.77.0.1"), netip.MustParseAddr("10.77.0.2"), netip.MustParseAddr("10.77.0.3")
	waiting, idle := []netip.Addr{theirIP, testVIP}, []netip.Addr(nil)
	tests := []struct {
		name    string
		awaited []netip.Addr
		packet  arpPacket
		passes  bool
	}{
		{"a reply", waiting, arpPacket{arpReply, their, theirIP, own, ownIP}, true},
		{"a reply for the floating address", waiting, arpPacket{arpReply, their, testVIP, own, ownIP}, true},
		{"a reply of who was not asked", waiting, arpPacket{arpReply, third, thirdIP, own, ownIP}, false},
		{"a reply to another host", waiting, arpPacket{arpReply, their, theirIP, third, thirdIP}, false},
		{"a request of who was asked", waiting, request(their, theirIP, ownIP), false},
		{"an announcement", waiting, announcements(their, testVIP)[0], false},
		{"an announcement by a reply", waiting, announcements(their, testVIP)[1], false},
		{"a reply, and nobody was asked", idle, arpPacket{arpReply, their, theirIP, own, ownIP}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			vm, err := bpf.NewVM(awaitedFilter(own, test.awaited))
			must(t, err)
			n, err := vm.Run(test.packet.append(nil))
			must(t, err)
			if passes := n > 0; passes != test.passes {
				t.Errorf("passes: %t, want %t", passes, test.passes)
			}
		})
	}
}
