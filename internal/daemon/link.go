package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"topdog/internal/console"
	"topdog/netio"
)

// link is what the loop knows of the group's interface, and what it has opened on it.
type link struct {
	name      string // known once the interface was found
	snapshot  netio.Snapshot
	local     netip.Addr
	index     int
	transport Transport
	announcer Announcer
	readers   sync.WaitGroup
	overruns  atomic.Uint64

	retryAt     time.Duration // when opening is tried again; 0 for not
	multicastAt time.Duration // when multicast was heard last, or the group joined
}

const (
	// retryEvery is how often something that is missing is tried again, if no
	// change of the link says when.
	retryEvery = time.Second
	// rejoinAfter is how long multicast may stay away. The leader's heartbeats
	// or anybody's HELLO come far more often, and to join a group again costs
	// two packets.
	rejoinAfter = 30 * time.Second
)

// due is when the link needs attention again.
func (l *link) due() time.Duration {
	switch {
	case l.retryAt > 0:
		return l.retryAt
	case l.transport != nil:
		return l.multicastAt + rejoinAfter
	default:
		return never
	}
}

const never time.Duration = 1<<63 - 1

// findAndWatch finds the group's interface, however long that takes, and then
// watches it.
func (d *Daemon) findAndWatch(ctx context.Context) error {
	name := d.cfg.Interface
	for name == "" {
		found, _, err := d.platform.FindInterface(d.cfg.Addresses[0].IP)
		if err == nil {
			name = found
			break
		}
		d.request(func() {
			if d.news.trouble(console.ProblemInterface, err.Error(), forever) {
				d.log.Warnf("waiting for the interface: %v", err)
			}
		})
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(retryEvery):
		}
	}
	// The loop has to know the name before it is given the first snapshot.
	if d.ask(ctx, func() { d.link.name = name; d.news.over(console.ProblemInterface) }) != nil {
		return nil
	}
	trouble := func(err error) { d.tell(func() { d.log.Warn(err) }) }
	return d.platform.Watch(ctx, name, trouble, func(s netio.Snapshot) {
		// Only the newest snapshot counts; the loop may be busy.
		select {
		case <-d.snapshots:
		default:
		}
		d.snapshots <- s
	})
}

// see takes in the state of the interface and of all addresses.
func (d *Daemon) see(s netio.Snapshot) {
	d.link.snapshot = s
	d.trace.saw(s)
	d.mendLink()
	d.seeAddresses(s)
}

// mendLink brings what is open in line with the interface as it is.
func (d *Daemon) mendLink() {
	s := d.link.snapshot
	local, problem := d.chooseLocal(s)
	if problem != "" {
		d.linkLost()
		d.closeLink()
		if d.news.trouble(console.ProblemLink, problem, forever) {
			d.log.Warn(problem)
		}
		d.report("tell systemd", d.notifier.Status("waiting: "+problem))
		return
	}
	if d.link.transport != nil && (s.Link.Index != d.link.index || local != d.link.local) {
		if s.Link.Index != d.link.index {
			d.linkLost()
		}
		d.closeLink()
	}
	if d.link.transport == nil && !d.openLink(s.Link, local) {
		d.linkLost() // a leader that cannot speak must not hold
		return
	}
	if !s.Link.Up {
		d.linkLost()
		if d.news.trouble(console.ProblemLink, fmt.Sprintf("%s has no carrier: check the cable", d.link.name), forever) {
			d.log.Warnf("%s has no carrier: check the cable", d.link.name)
		}
		return
	}
	d.news.over(console.ProblemLink)
	d.act(d.core.Link(d.now(), true))
}

// chooseLocal returns the board's own address on the interface, or says in words
// why there is none. It is the one used so far if that is still there, else the one
// whose subnet contains the floating address, else the first.
func (d *Daemon) chooseLocal(s netio.Snapshot) (local netip.Addr, problem string) {
	if !s.Present {
		return local, fmt.Sprintf("the interface %s does not exist (yet)", d.link.name)
	}
	var first netip.Addr
	for _, p := range s.Link.Addrs {
		switch {
		case d.isFloating(p.Addr()):
		case p.Addr() == d.link.local:
			return p.Addr(), ""
		case p.Contains(d.cfg.Addresses[0].IP) && !local.IsValid():
			local = p.Addr()
		case !first.IsValid():
			first = p.Addr()
		}
	}
	if !local.IsValid() {
		local = first
	}
	if !local.IsValid() {
		return local, fmt.Sprintf("the interface %s has no IPv4 address (yet)", d.link.name)
	}
	return local, ""
}

func (d *Daemon) isFloating(addr netip.Addr) bool {
	for _, a := range d.cfg.Addresses {
		if a.IP == addr {
			return true
		}
	}
	return false
}

// openLink opens the sockets, and makes the core when the board's address is
// known for the first time. It reports whether everything is open.
func (d *Daemon) openLink(l netio.Link, local netip.Addr) bool {
	d.link.retryAt = 0
	transport, err := d.platform.OpenTransport(d.link.name, local)
	if err != nil {
		d.openFailed(err)
		return false
	}
	announcer, err := d.platform.OpenAnnouncer(l)
	if err != nil {
		transport.Close()
		d.openFailed(err)
		return false
	}
	if d.core == nil {
		if err := d.awaken(local); err != nil {
			transport.Close()
			announcer.Close()
			d.openFailed(err)
			return false
		}
	}
	d.news.over(console.ProblemSockets)
	d.link.transport, d.link.announcer = transport, announcer
	d.link.local, d.link.index = local, l.Index
	d.link.multicastAt = d.now()
	d.link.readers.Go(func() {
		if err := transport.Serve(d.deliver); err != nil {
			d.tell(func() { d.log.Errorf("read the sockets: %v", err) })
		}
	})
	d.openHolder()
	if d.holding.wanted {
		d.take() // the interface was made anew, or our address changed, while this board leads
	}
	return true
}

func (d *Daemon) openFailed(err error) {
	d.link.retryAt = d.now() + retryEvery
	text := err.Error()
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		text += ": another topdog runs on this board already"
	case errors.Is(err, syscall.EPERM):
		text += ": run as root, or give the daemon CAP_NET_ADMIN and CAP_NET_RAW"
	}
	if d.news.trouble(console.ProblemSockets, text, forever) {
		d.log.Warn(text)
	}
}

// linkLost tells the core, which lets go of the address.
func (d *Daemon) linkLost() {
	if d.core != nil {
		d.act(d.core.Link(d.now(), false))
	}
}

// closeLink closes what is open on the interface.
func (d *Daemon) closeLink() {
	d.link.retryAt = 0
	if d.link.transport == nil {
		return
	}
	d.report("close the sockets", d.link.transport.Close())
	d.report("close the announcer", d.link.announcer.Close())
	d.link.readers.Wait()
	d.link.transport, d.link.announcer = nil, nil
}

// mend does what is due for the link.
func (d *Daemon) mend(now time.Duration) {
	switch {
	case d.link.retryAt > 0 && now >= d.link.retryAt:
		d.mendLink()
	case d.link.transport != nil && now >= d.link.multicastAt+rejoinAfter:
		// Wi-Fi drivers and switches have been seen to lose a membership unnoticed.
		d.link.multicastAt = now
		d.counts.rejoined++
		d.sent(d.link.transport.Rejoin())
	}
}
