package examine

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"topdog/internal/console"
	"topdog/internal/daemon"
	"topdog/netio"
)

// askSpacing is how far apart the questions are who has an address, and how long the last one may be answered.
const askSpacing = 250 * time.Millisecond

// answers asks by ARP, in this board's own name, who has these addresses. To probe for one would look like a claim to a board that is
// about to take it (RFC 5227, section 2.1.1).
func answers(ctx context.Context, a *netio.Announcer, own netip.Addr, addrs []netip.Addr) (by map[netip.Addr][]string, err error) {
	var mu sync.Mutex
	by = map[netip.Addr][]string{}
	a.Rivals(addrs, func(addr netip.Addr, mac net.HardwareAddr) {
		mu.Lock()
		defer mu.Unlock()
		if !slices.Contains(by[addr], mac.String()) {
			by[addr] = append(by[addr], mac.String())
		}
	})
	var questions []netio.ARPQuestion
	for _, addr := range addrs {
		questions = append(questions, netio.ARPQuestion{Addr: addr})
	}
	for range netio.ProbeCount {
		if err := a.Ask(own, questions); err != nil {
			return nil, err
		}
		select {
		case <-time.After(askSpacing):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	a.Rivals(nil, nil)
	mu.Lock()
	defer mu.Unlock()
	return by, nil
}

// owners asks who has the floating addresses, and whether another machine has this board's own one. A board of the group may have a
// floating one. speaks says that a board of the group has spoken from this board's address.
func (b *Board) owners(ctx context.Context, add adder, n daemon.Network, peers []*peer, speaks, keyed bool) error {
	a, err := netio.OpenAnnouncer(n.Index, n.Local.Addr())
	if err != nil {
		add(console.TopicAddress, console.StateUnknown, err.Error(), "")
		return nil
	}
	defer a.Close()
	mac, found, err := a.Probe(ctx, n.Local.Addr(), 1, askSpacing)
	if err == nil && found && !n.Owns(mac) {
		text, yields := daemon.JudgeDuplicate(n, mac, speaks)
		state := console.StateLook
		if yields {
			state = console.StateWrong
		}
		add(console.TopicInterface, state, text, "")
	}
	var asked []netip.Addr
	for _, f := range b.Config.Addresses {
		asked = append(asked, f.IP)
	}
	for _, p := range peers {
		if text, _ := p.foreign(); p.accepted > 0 || text != "" {
			asked = append(asked, p.from)
		}
	}
	by, err := answers(ctx, a, n.Local.Addr(), asked)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	leader := b.leader(peers)
	for _, f := range b.Config.Addresses {
		switch {
		case err != nil:
			add(console.TopicAddress, console.StateUnknown, err.Error(), "")
		case leader != nil && len(by[f.IP]) == 0:
			add(console.TopicAddress, console.StateLook, fmt.Sprintf("%v leads, and nobody answers for %v", leader, f.IP), "topdog status there")
		case leader != nil:
			b.answered(add, f.IP, leader, by)
		case len(by[f.IP]) == 0:
			add(console.TopicAddress, console.StateRight, fmt.Sprintf("nobody has %v at the moment", f.IP), "")
		default:
			b.taken(add, f.IP, by, peers, keyed)
		}
	}
	return nil
}

// answered tells of a floating address of a leader for which somebody answers. Its interfaces in one network answer for all of its addresses.
func (b *Board) answered(add adder, address netip.Addr, leader *peer, by map[netip.Addr][]string) {
	for _, mac := range by[address] {
		if !slices.Contains(by[leader.from], mac) {
			add(console.TopicAddress, console.StateLook, fmt.Sprintf("%v leads, and %s answers for %v", leader, mac, address),
				"if that is no interface of that board, another machine has the address")
			return
		}
	}
	add(console.TopicAddress, console.StateRight, fmt.Sprintf("%v leads, and answers for %v", leader, address), "")
}

// taken tells of a machine that has a floating address while nobody leads. Which one it is, shows in the Ethernet address that boards have too.
func (b *Board) taken(add adder, address netip.Addr, by map[netip.Addr][]string, peers []*peer, keyed bool) {
	mac := by[address][0]
	if !keyed {
		add(console.TopicAddress, console.StateUnknown, fmt.Sprintf("the machine %s has %v, and without the key nobody can tell whether it may", mac, address), "")
		return
	}
	who, remedy := "the machine "+mac, "choose another address, on all boards, or take it from that machine"
	for _, p := range peers {
		text, do := p.foreign()
		switch same := slices.Contains(by[p.from], mac); {
		case same && p.from == address:
			who = fmt.Sprintf("the board %v, as its own address,", p)
		case same && text != "":
			who, remedy = fmt.Sprintf("%v, which %s,", p, text), do
		}
	}
	switch {
	case b.Config.TakeInUse:
		add(console.TopicAddress, console.StateLook, fmt.Sprintf("%s has %v, which this board would take from it, as take_in_use says", who, address), remedy)
	default:
		add(console.TopicAddress, console.StateWrong, fmt.Sprintf("%s has %v, and topdog takes no address that another machine has", who, address), remedy)
	}
}
