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
	// firstProber is the last octet of the first address from which a place asks. No machine has
	// it: the boards learn from the requests where it is.
	firstProber = 201
)

// place asks boards whether they answer for the floating address, and notes who does.
type place struct{ probers []*observe.Prober }

// atMachine opens the n-th place that a machine on the LAN is: one with a hardware address of its own,
// since the kernel of that machine must not care for the answers.
func (p *place) atMachine(n int, h *netns.Host, boards []*cluster.Topdog) error {
	mac := slices.Clone(h.HardwareAddr)
	mac[placeOctet] = placeMark
	socket, err := h.Capture(unix.ETH_P_ALL)
	return p.ask(n, socket, err, mac, boards)
}

// placeOctet is the octet of the lab's hardware addresses that tells ports from machines, and
// placeMark what it is for a place.
const placeOctet, placeMark = 4, 0xaa

// atPort adds the switch port of a board to a place, so that the board is asked whatever the
// switch does.
func (p *place) atPort(t *cluster.Topdog) error {
	socket, err := t.CaptureAtPort(unix.ETH_P_ALL)
	return p.ask(t.Number, socket, err, nil, []*cluster.Topdog{t})
}

// ask begins to ask through a socket, with the n-th addresses.
func (p *place) ask(n int, socket *frame.Socket, err error, mac net.HardwareAddr, boards []*cluster.Topdog) error {
	if err != nil {
		return fmt.Errorf("soak: ask the boards: %w", err)
	}
	probe := observe.Probe{Address: cluster.Address, Boards: map[int]net.HardwareAddr{}, MAC: mac, ARP: arpEvery, Echo: askEvery}
	for _, b := range boards {
		probe.Boards[b.Number] = b.HardwareAddr
	}
	for i := range arpRing {
		a := netns.Subnet.Addr().As4()
		a[3] = byte(firstProber + n*arpRing + i)
		probe.From = append(probe.From, netip.AddrFrom4(a))
	}
	p.probers = append(p.probers, observe.StartProber(socket, probe))
	return nil
}

// take returns for which times the boards have answered since the last call.
func (p *place) take() (spans []observe.Span) {
	for _, one := range p.probers {
		spans = append(spans, observe.SpansOf(one.Take())...)
	}
	return spans
}

// close ends the asking.
func (p *place) close() {
	for _, one := range p.probers {
		one.Close()
	}
}
