package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"topdog/election"
	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/wire"
)

// announce has addresses announced for as long as the lease lasts; nil for none. While the link is closed it does nothing: the
// core is about to be told.
func (a *address) announce(addrs []netip.Addr) {
	if a.announcer == nil {
		return
	}
	a.announcer.Hold(addrs, func() bool { return a.lease.lasts() })
	if len(addrs) > 0 {
		a.trace.mark(console.StepAnnounced, false)
	}
}

// announceAnew announces the address as if it had been acquired now, if this board holds it.
func (a *address) announceAnew() {
	if a.held && a.announcer != nil {
		a.announcer.AnnounceAnew()
		a.trace.mark(console.StepAnnounced, false)
	}
}

// defences says how often a claim of a rival is answered, to whichever address: five at once, and then two a second. RFC 5227, section 2.4 (c),
// allows one answer in ten seconds (DEFEND_INTERVAL), so that two hosts do not flood the link, and is deliberately not
// followed: one forged announcement a second would leave the clients without the address for most of the time. Four packets
// a second flood nobody.
var defences = wire.Rate{Every: 500 * time.Millisecond, Burst: 5}

// defend announces the addresses against a machine that claims one of them (RFC 5227, section 2.4; IPv6 has no such rule, and
// is defended alike). rival is the machine's name for people.
func (a *address) defend(addr netip.Addr, rival string) {
	now := a.now()
	if !a.held || !a.defence.Allow(now, defences) {
		return
	}
	if a.reporter.claimIsForeign(now) {
		proxy := "proxy ARP"
		if addr.Is6() {
			proxy = "proxy for Neighbor Discovery"
		}
		text := fmt.Sprintf("%s answers for %v as well, which this board holds: find that machine, and take the address from it, or switch its %s off%s", rival, addr, proxy, a.group.otherGroup())
		a.reporter.warn(console.ProblemAddressConflict, text)
	}
	a.announceAnew()
}

// closeAnnouncer is called when the link is closed.
func (a *address) closeAnnouncer() {
	if a.announcer != nil {
		a.reporter.failed("close the announcer", a.announcer.Close())
		a.announcer = nil
	}
}

// The probe at a cold start is RFC 5227's with shorter spacing: boards of a LAN answer ARP within a millisecond, sleeping
// Wi-Fi stations within three beacons of 102 ms, and the users wait for an address.
const (
	probeCount   = 3
	probeSpacing = 35 * time.Millisecond
)

// probeAnswer is the result of the probe for one address.
type probeAnswer struct {
	addr  netip.Addr
	owner net.HardwareAddr
	found bool
	err   error
}

// probe asks, in a task, whether a foreign machine has one of the addresses. It then calls answered in the loop, unless
// another probe was begun meanwhile.
func (a *address) probe(answered func(probeAnswer)) {
	a.probes++
	number, announcer, floating := a.probes, a.announcer, a.floating
	a.tasks.start(func(ctx context.Context) {
		worst := probeAll(ctx, announcer, floating)
		a.tasks.post(func() {
			if number == a.probes { // else that candidacy is over
				a.tellProbe(worst)
				answered(worst)
			}
		})
	})
}

// probeAll probes for all addresses at once, and returns the worst answer: that a machine has one, or else an error.
func probeAll(ctx context.Context, announcer Announcer, floating []config.Address) (worst probeAnswer) {
	if announcer == nil {
		return probeAnswer{err: errors.New("probe for the address: the link was lost")}
	}
	answers := make(chan probeAnswer, len(floating))
	for _, f := range floating {
		go func() {
			owner, found, err := announcer.Probe(ctx, f.IP, probeCount, probeSpacing)
			answers <- probeAnswer{f.IP, owner, found, err}
		}()
	}
	for range floating {
		if answer := <-answers; answer.weight() > worst.weight() {
			worst = answer
		}
	}
	return worst
}

// weight orders answers: the one with the greatest counts.
func (p probeAnswer) weight() int {
	switch {
	case p.found:
		return 3
	case p.err != nil && !p.addr.Is6():
		return 2
	case p.err != nil:
		return 1
	}
	return 0
}

// inUse reports whether the addresses may not be claimed. A probe that could not be made counts as if the address had an
// owner: it must not be claimed blindly, and the probe is repeated soon. But on a board without IPv6, no probe for an IPv6
// address may succeed, and that must not keep everybody from the IPv4 one.
func (p probeAnswer) inUse() bool { return p.weight() > 1 }

// tellProbe reports the result to people.
func (a *address) tellProbe(answer probeAnswer) {
	switch {
	case answer.err != nil:
		a.reporter.warn(console.ProblemAddressNotFree, answer.err.Error())
	case answer.found:
		meanwhile := "no board takes it until that machine is silent, unless take_in_use = true"
		if a.takes {
			meanwhile = fmt.Sprintf("a board takes it when that has lasted for %v, since take_in_use = true", election.TakeInUseAfter)
		}
		a.reporter.addressTaken(fmt.Sprintf("%v already has the address %v: choose another floating address, or another address for that machine; %s%s",
			answer.owner, answer.addr, meanwhile, a.group.otherGroup()))
	default:
		a.reporter.addressFree()
	}
}

// tellTaken warns that this board has taken the address although another machine has it.
func (a *address) tellTaken(answer probeAnswer) {
	if answer.found {
		a.reporter.warn(console.ProblemAddressConflict, fmt.Sprintf("%v has had the address %v for %v, and this board takes it all the same, since take_in_use = true: find that machine and give it another address",
			answer.owner, answer.addr, election.TakeInUseAfter))
	}
}
