package soak

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/cluster"
	"topdog/internal/lab/frame"
	"topdog/internal/lab/netns"
	"topdog/internal/lab/observe"
)

const (
	// askEvery is how often a place asks each board by ICMP, and arpEvery by ARP too.
	askEvery = 2 * time.Millisecond
	arpEvery = 5 * askEvery
	// arpRing is how many addresses a place asks from by ARP in turn.
	arpRing = 8
)

// place asks boards whether they answer for the floating address, and notes who does.
type place struct{ probers []*observe.Prober }

// asked is an address, and who asks for it.
type asked struct {
	address, first netip.Addr
	every          time.Duration // by ARP or Neighbor Discovery
}

// askers are who asks for the addresses, the last for that of the second group: their first addresses are those behind the subnet's machines. No machine has
// them: the boards learn from the requests where they are.
var askers = []asked{
	{cluster.Address, netip.MustParseAddr("10.77.0.201"), arpEvery},
	{cluster.Address6, netip.MustParseAddr("fd00:1::201"), observe.SolicitEvery},
	{cluster.Second, netip.MustParseAddr("10.77.0.161"), arpEvery},
}

// atMachine opens the n-th place that a machine on the LAN is: one with a hardware address of its own,
// since the kernel of that machine must not care for the answers.
func (p *place) atMachine(n int, h *netns.Host, boards []*cluster.Topdog, addresses []asked) error {
	mac := slices.Clone(h.HardwareAddr)
	mac[placeOctet] = placeMark
	return p.ask(n, h.Capture, mac, boards, addresses)
}

// placeOctet is the octet of the lab's hardware addresses that tells ports from machines, and
// placeMark what it is for a place.
const placeOctet, placeMark = 4, 0xaa

// atPort adds the switch port of a board to a place, so that the board is asked whatever the
// switch does.
func (p *place) atPort(t *cluster.Topdog, addresses []asked) error {
	return p.ask(t.Number, t.CaptureAtPort, nil, []*cluster.Topdog{t}, addresses)
}

// ask begins to ask for the addresses through sockets of their own, with the n-th addresses of each asker.
func (p *place) ask(n int, capture func(etherType uint16) (*frame.Socket, error), mac net.HardwareAddr, boards []*cluster.Topdog, addresses []asked) error {
	for _, a := range addresses {
		socket, err := capture(unix.ETH_P_ALL)
		if err != nil {
			return fmt.Errorf("soak: ask the boards: %w", err)
		}
		probe := observe.Probe{Address: a.address, Boards: map[int]net.HardwareAddr{}, MAC: mac, ARP: a.every, Echo: askEvery}
		for _, b := range boards {
			probe.Boards[b.Number] = b.HardwareAddr
		}
		from := a.first
		for i := range (n + 1) * arpRing {
			if i >= n*arpRing {
				probe.From = append(probe.From, from)
			}
			from = from.Next()
		}
		p.probers = append(p.probers, observe.StartProber(socket, probe))
	}
	return nil
}

// take returns for which times the boards have answered since the last call, for each address.
func (p *place) take() map[netip.Addr][]observe.Span {
	spans := map[netip.Addr][]observe.Span{}
	for i, one := range p.probers {
		address := askers[i%len(askers)].address
		spans[address] = append(spans[address], observe.SpansOf(one.Take())...)
	}
	return spans
}

// close ends the asking.
func (p *place) close() {
	for _, one := range p.probers {
		one.Close()
	}
}
