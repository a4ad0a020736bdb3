package daemon

import (
	"errors"
	"net/netip"
	"syscall"
	"time"

	"topdog/internal/console"
	"topdog/netio"
)

// linkChanged is told the state of the interface and of all addresses.
func (d *Daemon) linkChanged(s netio.Snapshot) {
	d.link.update(s)
	d.trace.linkSeen(s)
	d.reopenLink()
	d.address.restore(s)
}

// reopenLink brings what is open in line with the interface as it is.
func (d *Daemon) reopenLink() {
	local, problem := d.link.chooseLocal()
	if problem != "" {
		d.linkLost()
		d.closeLink()
		d.reporter.waiting(problem)
		return
	}
	if replaced := d.link.state.Index != d.link.index; d.link.open && (replaced || local != d.link.local) {
		if replaced {
			d.linkLost()
		}
		d.closeLink()
	}
	if !d.link.open {
		if err := d.openLink(local); err != nil {
			d.openFailed(err)
			d.linkLost() // a leader that cannot speak must not hold the address
			return
		}
	}
	if !d.link.state.Up {
		d.linkLost()
		d.reporter.warn(console.ProblemLink, d.link.name+" has no carrier: check the cable", forever)
		return
	}
	d.reporter.solved(console.ProblemLink)
	d.carryOut(d.core.Link(d.now(), true))
}

// openLink opens the sockets, and makes the core when the board's address is
// known for the first time.
func (d *Daemon) openLink(local netip.Addr) error {
	transport, err := d.platform.OpenTransport(d.link.name, local)
	if err != nil {
		return err
	}
	announcer, err := d.platform.OpenAnnouncer(d.link.state)
	if err != nil {
		transport.Close()
		return err
	}
	if d.core == nil {
		if err := d.join(local); err != nil {
			transport.Close()
			announcer.Close()
			return err
		}
	}
	d.reporter.solved(console.ProblemSockets)
	d.link.opened(local)
	d.group.open(transport, local)
	d.address.open(d.link.name, announcer)
	return nil
}

func (d *Daemon) openFailed(err error) {
	d.link.closed(d.now() + retryEvery)
	text := err.Error()
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		text += ": another topdog runs on this board already"
	case errors.Is(err, syscall.EPERM):
		text += ": run as root, or give the daemon CAP_NET_ADMIN and CAP_NET_RAW"
	}
	d.reporter.warn(console.ProblemSockets, text, forever)
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
	d.address.closeAnnouncer()
}

// maintainLink does what is due for the link.
func (d *Daemon) maintainLink(now time.Duration) {
	if now >= d.link.retryAt {
		d.reopenLink()
	}
	d.group.rejoin(now)
}
