package daemon

import (
	"fmt"
	"time"

	"topdog/internal/console"
	"topdog/netio"
)

// firewall tells whether something on this board keeps the packets of the group from the daemon: the interface receives them, and the
// sockets do not. Such a board hears nobody, and would take the address from a leader that it does not hear.
type firewall struct {
	at        time.Duration  // when it was looked at last
	arrivals  netio.Arrivals // by then
	suspected bool           // some were missing then. A daemon that has stood still may find them in its sockets
	blocks    bool
}

const (
	// firewallEvery is how often the counts are compared. Twice in a row something must be missing.
	firewallEvery = time.Second
	// FirewallLoss is how many packets must be missing, while none is heard. A board that leads sends ten a second, and a follower one.
	FirewallLoss = 3
)

// look compares the counts, and reports whether that has changed what is known.
func (f *firewall) look(now time.Duration, a netio.Arrivals) (changed bool) {
	f.at = now
	before := f.arrivals
	was := f.blocks
	switch {
	case !a.Counted || !before.Counted || a.Seen < before.Seen || a.Heard < before.Heard: // of other sockets than before
		f.suspected, f.blocks = false, f.blocks && a.Counted
	case a.Heard > before.Heard, a.Own > before.Own && a.Seen < before.Seen+FirewallLoss: // its own does not pass a reverse path filter
		f.suspected, f.blocks = false, false
	case a.Seen < before.Seen+FirewallLoss:
		return false // too few to tell; they count next time
	default:
		f.blocks = f.blocks || f.suspected
		f.suspected = true
	}
	f.arrivals = a
	return f.blocks != was
}

// due is when to look again though nothing happens.
func (f *firewall) due() time.Duration {
	if f.suspected || f.blocks {
		return f.at + firewallEvery
	}
	return never
}

// checkFirewall has a board that hears nobody behind its own firewall take no part. Such a board broadcasts a packet each time: it hears
// that itself when the firewall lets it, also if no other board lives.
func (d *Daemon) checkFirewall() {
	now := d.now()
	if now < d.firewall.at+firewallEvery {
		return
	}
	arrivals, ok := d.group.arrivals()
	if !ok {
		d.firewall.at = now
		return
	}
	d.checkDuplicate(now, arrivals)
	if d.firewall.look(now, arrivals) {
		d.reopenLink()
	}
	if d.firewall.blocks && d.link.state.Up {
		d.group.hearItself()
	}
}

// Blocked says what is wrong on a board behind its own firewall, and what to do.
func Blocked(iface string, port uint16) string {
	return fmt.Sprintf("the group's packets arrive on %s and do not reach this daemon, so a firewall on this board drops them, or its reverse path filter (rp_filter): "+
		"let UDP port %d in, with `ufw allow %[2]d/udp` or `firewall-cmd --permanent --add-port=%[2]d/udp` and `firewall-cmd --reload`. Until then this board takes no part", iface, port)
}

// reportFirewall tells people of it, or that it is over.
func (d *Daemon) reportFirewall() (blocks bool) {
	if !d.firewall.blocks {
		d.reporter.solved(console.ProblemFirewall)
		return false
	}
	d.reporter.warn(console.ProblemFirewall, Blocked(d.link.name, d.cfg.Multicast.Port()), forever)
	return true
}
