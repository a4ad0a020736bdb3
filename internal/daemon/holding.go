package daemon

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

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
func (n *Node) prefixes() []netip.Prefix {
	var all []netip.Prefix
	for _, a := range n.cfg.Addresses {
		bits := a.Bits
		if bits <= 0 {
			bits = 32
			for _, p := range n.link.snapshot.Link.Addrs {
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
func (n *Node) openHolder() {
	if n.holding.holder != nil {
		return
	}
	holder, err := n.around.OpenHolder(n.link.name, n.prefixes())
	if err != nil {
		if n.news.trouble("hold", err.Error(), forever) {
			n.log.Error(err)
		}
		return
	}
	n.news.over("hold")
	n.holding.holder = holder
	way, why := holder.Method()
	n.log.Infof("would hold %s on %s by %v (%s)", joined(n.prefixes()), holder.Device(), way, why)
}

// take takes the address and announces it, or announces it again.
func (n *Node) take() {
	n.holding.wanted = true
	if n.fired() {
		return // the core hears of it before anything else is done
	}
	now := n.now()
	n.holding.renewAt = now + retakeEvery
	n.openHolder()
	if n.holding.holder == nil {
		n.standBack()
		return
	}
	if err := n.holding.holder.Acquire(); err != nil {
		n.takeFailed(err)
		return
	}
	n.news.over("hold")
	n.holding.taken, n.holding.unfit = true, 0
	n.holding.renewAt = now + renewEvery
	n.holding.announced = 0
	n.announce()
	n.holding.fresh = true
}

// settleIn is what is left to do when the address was taken, and can wait until the
// others know.
func (n *Node) settleIn() {
	if !n.holding.fresh {
		return
	}
	n.holding.fresh = false
	if !n.holding.taken {
		return
	}
	n.listenForRivals()
	n.light()
	n.log.Infof("holds %s", joined(n.prefixes()))
}

// takeFailed tells of an address that could not be taken.
func (n *Node) takeFailed(err error) {
	n.holding.taken = false
	if n.news.trouble("hold", err.Error(), forever) {
		n.log.Error(err)
	}
	n.standBack()
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
func (n *Node) standBack() {
	n.light()
	// What is being carried out comes first: the core must not be called from within.
	n.tasks.Go(func() error {
		n.request(func() {
			if !n.holding.wanted || n.holding.taken {
				return
			}
			if _, ok := n.core.Successor(n.now()); !ok {
				return
			}
			n.holding.unfit = min(max(2*n.holding.unfit, standBackMin), standBackMax)
			n.holding.fitAt = n.now() + n.holding.unfit
			n.stand()
		})
		return nil
	})
}

// stand tells the core how this board stands for the lead.
func (n *Node) stand() {
	n.act(n.core.Reprioritise(n.now(), n.priority(), n.cfg.Preempt))
}

// priority is the configured one, unless the board stands back.
func (n *Node) priority() uint8 {
	if n.holding.fitAt != never {
		return 0
	}
	return n.cfg.Priority
}

// release lets go of the address. If even that fails, the kernel removes it
// when its lifetime ends, since nobody renews it.
func (n *Node) release() {
	n.holding.wanted, n.holding.taken = false, false
	if n.holding.holder != nil {
		n.report("release the address", n.holding.holder.Release())
	}
	n.disarm()
	if n.link.announcer != nil {
		n.link.announcer.Rivals(nil, nil)
	}
}

// letGo is the end: the address, and what could hold it.
func (n *Node) letGo() {
	n.release()
	if n.holding.holder != nil {
		n.report("close", n.holding.holder.Close())
	}
}

// announce tells the neighbours where the address is now, and plans the next time.
func (n *Node) announce() {
	if n.link.announcer == nil {
		return // the link was lost a moment ago; the core hears of it next
	}
	for _, a := range n.cfg.Addresses {
		n.sent(n.link.announcer.Announce(a.IP))
	}
	n.holding.announced++
	n.holding.announceAt = n.now() + netio.AnnouncementDelay(n.holding.announced)
}

// hold does what is due for the address.
func (n *Node) hold(now time.Duration) {
	h := &n.holding
	if now >= h.fitAt {
		h.fitAt = never
		n.stand()
	}
	switch {
	case !h.wanted || n.link.transport == nil:
		return
	case !h.taken:
		if now >= h.renewAt {
			n.take()
		}
		return
	}
	if now >= h.renewAt-(renewEvery-renewAfter) {
		n.renew(now)
	}
	if now >= h.announceAt {
		n.announce()
	}
}

// renew starts the lifetime of the address over.
func (n *Node) renew(now time.Duration) {
	if n.fired() {
		return // the core hears of it before anything else is done
	}
	n.holding.renewAt = now + renewEvery
	restored, err := n.holding.holder.Renew()
	switch {
	case errors.Is(err, netio.ErrLapsed):
		// The core was asked before this and still leads.
		n.log.Warn("the address had lapsed while this daemon was not running; taking it again")
		n.take()
	case err != nil:
		n.takeFailed(err)
	case restored:
		n.counts.restored++
		n.log.Warnf("something else deleted the address %s; it was put back", joined(n.prefixes()))
		n.holding.announced = 0
		n.announce()
	}
}

// seeAddresses looks whether somebody has deleted the address.
func (n *Node) seeAddresses(s netio.Snapshot) {
	if !n.holding.taken {
		return
	}
	for _, a := range n.cfg.Addresses {
		if !s.Has(a.IP) {
			// The snapshot may be older than the address; then nothing is restored.
			n.renew(n.now())
			return
		}
	}
}

// settled is how long after a change of leader, or a healed partition, the
// announcements of the former leader may still be heard.
const settled = 10 * time.Second

// listenForRivals defends the address: whoever claims it hears from us again
// (RFC 5227, section 2.4), at once and then not too often.
func (n *Node) listenForRivals() {
	if n.link.announcer == nil {
		return
	}
	addrs := make([]netip.Addr, 0, len(n.cfg.Addresses))
	for _, a := range n.cfg.Addresses {
		addrs = append(addrs, a.IP)
	}
	n.link.announcer.Rivals(addrs, func(addr netip.Addr, mac net.HardwareAddr) {
		n.tell(func() { n.defend(addr, mac) })
	})
}

func (n *Node) defend(addr netip.Addr, mac net.HardwareAddr) {
	now := n.now()
	// If this process was asleep, the rival may be our successor: the core must
	// know the time before anything is announced against it.
	n.act(n.core.Wake(now))
	if !n.holding.taken || (n.holding.defendedAt > 0 && now-n.holding.defendedAt < netio.DefendInterval) {
		return
	}
	n.holding.defendedAt = now
	// After a change of leader it is a board of the group that has just let go.
	if now-n.news.since > settled && now-n.news.rivalAt > settled {
		text := fmt.Sprintf("%v claims %v, which this board holds: find that machine and give it another address", mac, addr)
		if n.news.trouble("rival", text, time.Minute) {
			n.log.Warn(text)
		}
	}
	n.holding.announced = 0
	n.announce()
}

// probe asks whether a foreign machine has one of the addresses, beside the loop.
func (n *Node) probe() {
	n.probes++
	number, announcer := n.probes, n.link.announcer
	if announcer == nil {
		n.tell(func() { n.probed(number, probeAnswer{err: errors.New("probe for the address: the link was lost")}) })
		return
	}
	answers := make(chan probeAnswer, len(n.cfg.Addresses))
	for _, a := range n.cfg.Addresses {
		n.tasks.Go(func() error {
			owner, found, err := announcer.Probe(n.ctx, a.IP, probeCount, probeSpacing)
			answers <- probeAnswer{a.IP, owner, found, err}
			return nil
		})
	}
	n.tasks.Go(func() error {
		var worst probeAnswer
		for range n.cfg.Addresses {
			if answer := <-answers; answer.found || answer.err != nil {
				worst = answer
			}
		}
		n.request(func() { n.probed(number, worst) })
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
func (n *Node) probed(number int, a probeAnswer) {
	if number != n.probes {
		return // of a candidacy that is over
	}
	switch {
	case a.err != nil:
		if n.news.trouble("probe", a.err.Error(), time.Minute) {
			n.log.Warn(a.err)
		}
	case a.found:
		text := fmt.Sprintf("%v already has the address %v: choose another floating address, or another address for that machine", a.owner, a.addr)
		if n.news.trouble("probe", text, time.Minute) {
			n.log.Error(text)
		}
	default:
		n.news.over("probe")
	}
	n.act(n.core.Probed(n.now(), a.found || a.err != nil))
}
