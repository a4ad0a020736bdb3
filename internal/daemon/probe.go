package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"topdog/internal/config"
	"topdog/internal/console"
)

// The probe at a cold start is RFC 5227's with shorter spacing: boards of a LAN
// answer ARP within a millisecond, sleeping Wi-Fi stations within three beacons
// of 102 ms, and the users wait for an address.
const (
	probeCount   = 3
	probeSpacing = 35 * time.Millisecond
)

// probeAnswer is what became of the probe for one address.
type probeAnswer struct {
	addr  netip.Addr
	owner net.HardwareAddr
	found bool
	err   error
}

// probe asks, beside the loop, whether a foreign machine has one of the addresses.
// The loop is told by answered, unless another probe was begun meanwhile.
func (a *address) probe(answered func(taken bool)) {
	a.probes++
	number, announcer, floating := a.probes, a.announcer, a.floating
	a.tasks.start(func(ctx context.Context) error {
		worst := probeAll(ctx, announcer, floating)
		a.tasks.post(func() {
			if number == a.probes { // else it is of a candidacy that is over
				a.tellProbe(worst)
				answered(worst.found || worst.err != nil)
			}
		})
		return nil
	})
}

// probeAll probes for all addresses at once, and returns the worst answer.
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
		if answer := <-answers; answer.found || answer.err != nil {
			worst = answer
		}
	}
	return worst
}

// tellProbe tells people of the outcome. A probe that could not be made counts as
// if the address had an owner: it is repeated soon, and the address may not be
// claimed blindly.
func (a *address) tellProbe(answer probeAnswer) {
	switch {
	case answer.err != nil:
		a.reporter.warn(console.ProblemAddressNotFree, answer.err.Error(), time.Minute)
	case answer.found:
		text := fmt.Sprintf("%v already has the address %v: choose another floating address, or another address for that machine",
			answer.owner, answer.addr)
		a.reporter.alert(console.ProblemAddressNotFree, text, time.Minute)
	default:
		a.reporter.solved(console.ProblemAddressNotFree)
	}
}
