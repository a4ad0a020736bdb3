package daemon

import (
	"errors"
	"net/netip"
	"syscall"
	"time"

	"topdog/election"
	"topdog/internal/console"
	"topdog/netio"
)

// linkChanged handles a new state of the interface and of all addresses.
func (d *Daemon) linkChanged(s netio.Snapshot) {
	readdressed := d.link.update(s)
	d.link.report()
	d.trace.linkSeen(s)
	d.reopenLink()
	d.hearByOthers()
	d.address.restore(s)
	if readdressed && d.link.open {
		// The kernels of the boards and the clients keep the old one until they ask again.
		d.reporter.log.Infof("the Ethernet address of %s is %v now", d.link.name, d.link.seen.Link.HardwareAddr)
		d.address.announceAnew()
		d.lan.announce()
	}
}

// reopenLink opens and closes the sockets as the present state of the interface demands.
func (d *Daemon) reopenLink() {
	local, problem := d.link.chooseLocal()
	if problem != "" {
		d.linkLost()
		d.closeLink()
		if d.link.name != "" { // else the interface is the problem
			d.reporter.waiting(problem)
		}
		return
	}
	if d.link.open {
		replaced := d.link.seen.Link.Index != d.link.index
		if replaced {
			d.linkLost()
		}
		if replaced || local != d.link.local {
			d.closeLink()
		}
	}
	opens := !d.link.open
	if opens {
		if err := d.openLink(local); err != nil {
			d.openFailed(err)
			d.linkLost() // a leader that cannot speak must not hold the address
			return
		}
	}
	problem = d.link.noCarrier()
	d.reporter.set(console.ProblemLink, problem)
	if problem != "" {
		d.linkLost()
		return
	}
	if d.staysOut() {
		d.linkLost()
		return
	}
	wasDown := d.core.Role() == election.Isolated
	d.carryOut(d.core.Link(d.now(), true))
	if opens || wasDown {
		d.lan.findWitnesses()
	}
}

// hearByOthers sets whether the sockets receive by all interfaces, or by the group's only.
func (d *Daemon) hearByOthers() {
	if crowded, changed := d.link.crowding(); changed {
		d.group.byAnyInterface(crowded)
	}
}

// openLink opens the sockets, and makes the core when the board's address is
// known for the first time.
func (d *Daemon) openLink(local netip.Addr) error {
	d.reporter.beforeLong(d.now())
	transport, err := d.platform.OpenTransport(d.link.name, local)
	if err != nil {
		return err
	}
	var announcer Announcer
	if !d.witness {
		announcer, err = d.platform.OpenAnnouncer(d.link.seen.Link.Index, local)
	}
	if err == nil && d.core == nil {
		err = d.join(local, d.started)
	}
	if err != nil {
		transport.Close()
		if announcer != nil {
			announcer.Close()
		}
		return err
	}
	d.reporter.solved(console.ProblemSockets)
	if local != d.link.local {
		d.duplicate = duplicate{}
	}
	d.link.opened(local)
	d.group.open(transport, local)
	d.lan.open(announcer, d.link.seen.Link.Index, local)
	d.address.open(d.link.name, announcer)
	d.probeOwn()
	return nil
}

func (d *Daemon) openFailed(err error) {
	d.link.closed(d.now() + retryEvery)
	text := err.Error()
	if errors.Is(err, syscall.EPERM) {
		text += ": the holder lacks rights; look at topdog-holder.service, or, by hand, run topdog as root"
	}
	d.reporter.set(console.ProblemSockets, text)
}

// linkLost tells the core, which releases the address.
func (d *Daemon) linkLost() {
	if d.core != nil {
		d.carryOut(d.core.Link(d.now(), false))
	}
}

// closeLink closes what is open on the interface.
func (d *Daemon) closeLink() {
	d.link.closed(never)
	d.group.close()
	d.lan.close()
	d.address.closeAnnouncer()
}

// maintainLink does what is due for the link.
func (d *Daemon) maintainLink(now time.Duration) {
	if now >= d.link.retryAt {
		d.reopenLink()
	}
	d.group.rejoin(now)
	d.lan.maintain(now)
}
