package daemon

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"topdog/internal/console"
	"topdog/netio"
)

// holding is the state of the floating address on this board.
type holding struct {
	holder Holder
	wanted bool // the core wants it held
	taken  bool // it is held
	fresh  bool // it was taken just now, and nobody on this board was told yet

	unfit time.Duration // how long this board stands back because it could not take the address; doubles
	fitAt time.Duration // when it stands for the lead again; never if it does

	renewAt    time.Duration // when its lifetime is started over, or taking it is tried again
	announceAt time.Duration // when it is announced next
	announced  int           // how often it was since it was taken
	defendedAt time.Duration // when the announcements were last started over because of a rival
}

const (
	// renewEvery is how often the lifetime is started over, so that a renewal may
	// be late by as much again before the address is lost. From renewAfter
	// on it is done whenever the loop is awake anyway, as for a heartbeat: waking
	// costs more than renewing.
	renewEvery = netio.DefaultLifetime / 2
	renewAfter = netio.DefaultLifetime * 2 / 5
	// retakeEvery is how often a leader that cannot take the address tries again.
	retakeEvery = 500 * time.Millisecond

	// The probe at a cold start is RFC 5227's with shorter spacing: boards of a
	// LAN answer ARP within a millisecond, sleeping Wi-Fi stations within
	// three beacons of 102 ms, and the users wait for an address.
	probeCount   = 3
	probeSpacing = 35 * time.Millisecond
)

// due is when the address needs attention again.
func (h *holding) due() time.Duration {
	if !h.wanted {
		return h.fitAt
	}
	if !h.taken {
		return h.renewAt
	}
	return min(h.renewAt, h.announceAt)
}

// prefixes completes the configured addresses: without a prefix length they
// have that of the subnet in which they are found, or stand alone.
func (d *Daemon) prefixes() []netip.Prefix {
	var all []netip.Prefix
	for _, a := range d.cfg.Addresses {
		bits := a.Bits
		if bits <= 0 {
			bits = 32
			for _, p := range d.link.snapshot.Link.Addrs {
				if p.Contains(a.IP) && p.Addr() != a.IP {
					bits = p.Bits()
				}
			}
		}
		all = append(all, netip.PrefixFrom(a.IP, bits))
	}
	return all
}

// openHolder prepares to hold the address, so that a takeover finds everything open.
func (d *Daemon) openHolder() {
	if d.holding.holder != nil {
		return
	}
	holder, err := d.platform.OpenHolder(d.link.name, d.prefixes())
	if err != nil {
		if d.news.trouble(console.ProblemAddressNotHeld, err.Error(), forever) {
			d.log.Error(err)
		}
		return
	}
	d.news.over(console.ProblemAddressNotHeld)
	d.holding.holder = holder
	way, why := holder.Method()
	d.log.Infof("would hold %s on %s by %v (%s)", joined(d.prefixes()), holder.Device(), way, why)
}

// take takes the address and announces it, or announces it again.
func (d *Daemon) take() {
	d.holding.wanted = true
	if d.fired() {
		return // the core hears of it before anything else is done
	}
	now := d.now()
	d.holding.renewAt = now + retakeEvery
	d.openHolder()
	if d.holding.holder == nil {
		d.standBack()
		return
	}
	if err := d.holding.holder.Acquire(); err != nil {
		d.takeFailed(err)
		return
	}
	d.news.over(console.ProblemAddressNotHeld)
	d.holding.taken, d.holding.unfit = true, 0
	d.holding.renewAt = now + renewEvery
	d.holding.announced = 0
	d.announce()
	d.holding.fresh = true
}

// settleIn is what is left to do when the address was taken, and can wait until the
// others know.
func (d *Daemon) settleIn() {
	if !d.holding.fresh {
		return
	}
	d.holding.fresh = false
	if !d.holding.taken {
		return
	}
	d.listenForRivals()
	d.light()
	d.log.Infof("holds %s", joined(d.prefixes()))
}

// takeFailed tells of an address that could not be taken.
func (d *Daemon) takeFailed(err error) {
	d.holding.taken = false
	if d.news.trouble(console.ProblemAddressNotHeld, err.Error(), forever) {
		d.log.Error(err)
	}
	d.standBack()
}

// How long a board that could not take the address stands back. Without, boards
// that all lack the permission would hand the lead around as fast as they can
// send, and a broken one that preempts would take it again and again.
const (
	standBackMin = 10 * time.Second
	standBackMax = 5 * time.Minute
)

// standBack hands over to a board that perhaps can hold the address, and does
// not stand for the lead for a while. A board that is alone goes on trying.
func (d *Daemon) standBack() {
	d.light()
	// What is being carried out comes first: the core must not be called from within.
	d.tasks.Go(func() error {
		d.request(func() {
			if !d.holding.wanted || d.holding.taken {
				return
			}
			if _, ok := d.core.Successor(d.now()); !ok {
				return
			}
			d.holding.unfit = min(max(2*d.holding.unfit, standBackMin), standBackMax)
			d.holding.fitAt = d.now() + d.holding.unfit
			d.stand()
		})
		return nil
	})
}

// stand tells the core how this board stands for the lead.
func (d *Daemon) stand() {
	d.act(d.core.Reprioritise(d.now(), d.priority(), d.cfg.Preempt))
}

// priority is the configured one, unless the board stands back.
func (d *Daemon) priority() uint8 {
	if d.holding.fitAt != never {
		return 0
	}
	return d.cfg.Priority
}

// release lets go of the address. If even that fails, the kernel removes it
// when its lifetime ends, since nobody renews it.
func (d *Daemon) release() {
	d.holding.wanted, d.holding.taken = false, false
	if d.holding.holder != nil {
		d.report("release the address", d.holding.holder.Release())
	}
	d.disarm()
	if d.link.announcer != nil {
		d.link.announcer.Rivals(nil, nil)
	}
}

// letGo is the end: the address, and what could hold it.
func (d *Daemon) letGo() {
	d.release()
	if d.holding.holder != nil {
		d.report("close", d.holding.holder.Close())
	}
}

// announce tells the neighbours where the address is now, and plans the next time.
func (d *Daemon) announce() {
	if d.link.announcer == nil {
		return // the link was lost a moment ago; the core hears of it next
	}
	for _, a := range d.cfg.Addresses {
		d.sent(d.link.announcer.Announce(a.IP))
	}
	d.holding.announced++
	d.holding.announceAt = d.now() + netio.AnnouncementDelay(d.holding.announced)
}

// hold does what is due for the address.
func (d *Daemon) hold(now time.Duration) {
	h := &d.holding
	if now >= h.fitAt {
		h.fitAt = never
		d.stand()
	}
	switch {
	case !h.wanted || d.link.transport == nil:
		return
	case !h.taken:
		if now >= h.renewAt {
			d.take()
		}
		return
	}
	if now >= h.renewAt-(renewEvery-renewAfter) {
		d.renew(now)
	}
	if now >= h.announceAt {
		d.announce()
	}
}

// renew starts the lifetime of the address over.
func (d *Daemon) renew(now time.Duration) {
	if d.fired() {
		return // the core hears of it before anything else is done
	}
	d.holding.renewAt = now + renewEvery
	restored, err := d.holding.holder.Renew()
	switch {
	case errors.Is(err, netio.ErrExpired):
		// The core was asked before this and still leads.
		d.log.Warn("the lifetime of the address ended while this daemon did not run; acquiring it again")
		d.take()
	case err != nil:
		d.takeFailed(err)
	case restored:
		d.counts.restored++
		d.log.Warnf("something else deleted the address %s; it was put back", joined(d.prefixes()))
		d.holding.announced = 0
		d.announce()
	}
}

// seeAddresses looks whether somebody has deleted the address.
func (d *Daemon) seeAddresses(s netio.Snapshot) {
	if !d.holding.taken {
		return
	}
	for _, a := range d.cfg.Addresses {
		if !s.Has(a.IP) {
			// The snapshot may be older than the address; then nothing is restored.
			d.renew(d.now())
			return
		}
	}
}

// settled is how long after a change of leader, or a healed partition, the
// announcements of the former leader may still be heard.
const settled = 10 * time.Second

// listenForRivals defends the address: whoever claims it hears from us again
// (RFC 5227, section 2.4), at once and then not too often.
func (d *Daemon) listenForRivals() {
	if d.link.announcer == nil {
		return
	}
	addrs := make([]netip.Addr, 0, len(d.cfg.Addresses))
	for _, a := range d.cfg.Addresses {
		addrs = append(addrs, a.IP)
	}
	d.link.announcer.Rivals(addrs, func(addr netip.Addr, mac net.HardwareAddr) {
		d.tell(func() { d.defend(addr, mac) })
	})
}

func (d *Daemon) defend(addr netip.Addr, mac net.HardwareAddr) {
	now := d.now()
	// If this process was asleep, the rival may be our successor: the core must
	// know the time before anything is announced against it.
	d.act(d.core.Wake(now))
	if !d.holding.taken || (d.holding.defendedAt > 0 && now-d.holding.defendedAt < netio.DefendInterval) {
		return
	}
	d.holding.defendedAt = now
	// After a change of leader it is a board of the group that has just let go.
	if now-d.news.since > settled && now-d.news.rivalAt > settled {
		text := fmt.Sprintf("%v claims %v, which this board holds: find that machine and give it another address", mac, addr)
		if d.news.trouble(console.ProblemAddressConflict, text, time.Minute) {
			d.log.Warn(text)
		}
	}
	d.holding.announced = 0
	d.announce()
}

// probe asks whether a foreign machine has one of the addresses, beside the loop.
func (d *Daemon) probe() {
	d.probes++
	number, announcer := d.probes, d.link.announcer
	if announcer == nil {
		// The core waits for the answer, and so for room in the queue if it is full.
		lost := probeAnswer{err: errors.New("probe for the address: the link was lost")}
		d.tasks.Go(func() error { d.request(func() { d.probed(number, lost) }); return nil })
		return
	}
	answers := make(chan probeAnswer, len(d.cfg.Addresses))
	for _, a := range d.cfg.Addresses {
		d.tasks.Go(func() error {
			owner, found, err := announcer.Probe(d.ctx, a.IP, probeCount, probeSpacing)
			answers <- probeAnswer{a.IP, owner, found, err}
			return nil
		})
	}
	d.tasks.Go(func() error {
		var worst probeAnswer
		for range d.cfg.Addresses {
			if answer := <-answers; answer.found || answer.err != nil {
				worst = answer
			}
		}
		d.request(func() { d.probed(number, worst) })
		return nil
	})
}

// probeAnswer is what became of the probe for one address.
type probeAnswer struct {
	addr  netip.Addr
	owner net.HardwareAddr
	found bool
	err   error
}

// probed takes in the outcome. A probe that could not be made counts as
// taken: it is repeated soon, and the address may not be claimed blindly.
func (d *Daemon) probed(number int, a probeAnswer) {
	if number != d.probes {
		return // of a candidacy that is over
	}
	switch {
	case a.err != nil:
		if d.news.trouble(console.ProblemAddressNotFree, a.err.Error(), time.Minute) {
			d.log.Warn(a.err)
		}
	case a.found:
		text := fmt.Sprintf("%v already has the address %v: choose another floating address, or another address for that machine", a.owner, a.addr)
		if d.news.trouble(console.ProblemAddressNotFree, text, time.Minute) {
			d.log.Error(text)
		}
	default:
		d.news.over(console.ProblemAddressNotFree)
	}
	d.act(d.core.Probed(d.now(), a.found || a.err != nil))
}
