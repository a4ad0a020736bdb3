package bench

import (
	"net"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/frame"
	"topdog/internal/lab/netns"
	"topdog/internal/lab/observe"
)

// probeInterval is how often each board is asked by ARP whether it answers for the address.
const probeInterval = 2 * time.Millisecond

// probe begins to find out which boards answer ARP for the floating address, as seen from the client's place. It asks in the
// name of a host that does not exist, so that no kernel learns from the answers: the client knows of a new holder what it is
// told, as always.
func (r *rig) probe() (*observe.Prober, error) {
	client := r.LAN.Client()
	socket, err := client.Capture(unix.ETH_P_ARP)
	if err != nil {
		return nil, err
	}
	nobody := slices.Clone(client.HardwareAddr)
	nobody[len(nobody)-1]++
	probe := observe.Probe{Address: vip, Boards: map[int]net.HardwareAddr{}, MAC: nobody, ARP: probeInterval}
	for a := client.Addr.Addr().Next(); len(probe.From) < probeRing; a = a.Next() {
		probe.From = append(probe.From, a)
	}
	for _, b := range r.boards {
		probe.Boards[b.Number] = b.HardwareAddr
	}
	return observe.StartProber(socket, probe), nil
}

// probeRing is from how many addresses the boards are asked in turn.
const probeRing = 8

// firstBetween waits for the first frame that gets from one side to the other.
// What the client or the prober hears proves nothing to the boards.
func (r *rig) firstBetween(one, other []*board) (*firstFrame, error) {
	traffic := r.sys.traffic()
	wants := make(map[*netns.Host]func(frame.Frame) bool)
	side := func(here, there []*board) {
		for _, b := range here {
			wants[b.Host] = func(f frame.Frame) bool {
				if f.Outgoing {
					return false
				}
				for _, o := range there {
					if f.IsFrom(o.HardwareAddr) {
						return true
					}
				}
				// In CARP all boards have one hardware address. A board alone hears no
				// others of its side.
				return len(here) == 1 && traffic.Protocol == protocolVRRP && carries(f, traffic)
			}
		}
	}
	side(one, other)
	side(other, one)
	return firstOf(wants)
}
