package daemon

import (
	"fmt"
	"net"
	"net/netip"
	"time"

	"topdog/internal/console"
	"topdog/netio"
)

// announce tells the neighbours where the address is now, and plans the next time.
func (a *address) announce() {
	if a.announcer == nil {
		return // the link was lost a moment ago; the core hears of it next
	}
	for _, f := range a.floating {
		a.group.noteSend(a.announcer.Announce(f.IP))
	}
	a.announced++
	a.announceAt = a.now() + netio.AnnouncementDelay(a.announced)
}

// listenForRivals begins to defend the address: whoever claims it hears from us
// again (RFC 5227, section 2.4), at once and then not too often.
func (a *address) listenForRivals() {
	if a.announcer == nil {
		return
	}
	ours := make([]netip.Addr, 0, len(a.floating))
	for _, f := range a.floating {
		ours = append(ours, f.IP)
	}
	a.announcer.Rivals(ours, func(addr netip.Addr, mac net.HardwareAddr) {
		a.tasks.tryPost(func() { a.rivalHeard(addr, mac) })
	})
}

// defend announces the address against a machine that claims it.
func (a *address) defend(addr netip.Addr, rival net.HardwareAddr) {
	now := a.now()
	if !a.held || (a.defendedAt > 0 && now-a.defendedAt < netio.DefendInterval) {
		return
	}
	a.defendedAt = now
	if a.reporter.claimIsForeign(now) {
		text := fmt.Sprintf("%v claims %v, which this board holds: find that machine and give it another address", rival, addr)
		a.reporter.warn(console.ProblemAddressConflict, text, time.Minute)
	}
	a.announced = 0
	a.announce()
}

// closeAnnouncer is called when the link is closed.
func (a *address) closeAnnouncer() {
	if a.announcer != nil {
		a.reporter.failed("close the announcer", a.announcer.Close())
		a.announcer = nil
	}
}
