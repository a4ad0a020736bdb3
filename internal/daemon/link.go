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
func (n *Node) findAndWatch(ctx context.Context) error {
	name := n.cfg.Interface
	for name == "" {
		found, _, err := n.around.FindInterface(n.cfg.Addresses[0].IP)
		if err == nil {
			name = found
			break
		}
		n.request(func() {
			if n.news.trouble("interface", err.Error(), forever) {
				n.log.Warnf("waiting for the interface: %v", err)
			}
		})
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(retryEvery):
		}
	}
	// The loop has to know the name before it is given the first snapshot.
	if n.ask(ctx, func() { n.link.name = name; n.news.over("interface") }) != nil {
		return nil
	}
	trouble := func(err error) { n.tell(func() { n.log.Warn(err) }) }
	return n.around.Watch(ctx, name, trouble, func(s netio.Snapshot) {
		// Only the newest snapshot counts; the loop may be busy.
		select {
		case <-n.snapshots:
		default:
		}
		n.snapshots <- s
	})
}

// see takes in the state of the interface and of all addresses.
func (n *Node) see(s netio.Snapshot) {
	n.link.snapshot = s
	n.trace.saw(s)
	n.mendLink()
	n.seeAddresses(s)
}

// mendLink brings what is open in line with the interface as it is.
func (n *Node) mendLink() {
	s := n.link.snapshot
	local, problem := n.chooseLocal(s)
	if problem != "" {
		n.linkLost()
		n.closeLink()
		if n.news.trouble("link", problem, forever) {
			n.log.Warn(problem)
		}
		n.report("tell systemd", n.notifier.Status("waiting: "+problem))
		return
	}
	if n.link.transport != nil && (s.Link.Index != n.link.index || local != n.link.local) {
		if s.Link.Index != n.link.index {
			n.linkLost()
		}
		n.closeLink()
	}
	if n.link.transport == nil && !n.openLink(s.Link, local) {
		n.linkLost() // a leader that cannot speak must not hold
		return
	}
	if !s.Link.Up {
		n.linkLost()
		if n.news.trouble("link", fmt.Sprintf("%s has no carrier: check the cable", n.link.name), forever) {
			n.log.Warnf("%s has no carrier: check the cable", n.link.name)
		}
		return
	}
	n.news.over("link")
	n.act(n.core.Link(n.now(), true))
}

// chooseLocal returns the board's own address on the interface, or says in words
// why there is none. It is the one used so far if that is still there, else the one
// whose subnet contains the floating address, else the first.
func (n *Node) chooseLocal(s netio.Snapshot) (local netip.Addr, problem string) {
	if !s.Present {
		return local, fmt.Sprintf("the interface %s does not exist (yet)", n.link.name)
	}
	var first netip.Addr
	for _, p := range s.Link.Addrs {
		switch {
		case n.isFloating(p.Addr()):
		case p.Addr() == n.link.local:
			return p.Addr(), ""
		case p.Contains(n.cfg.Addresses[0].IP) && !local.IsValid():
			local = p.Addr()
		case !first.IsValid():
			first = p.Addr()
		}
	}
	if !local.IsValid() {
		local = first
	}
	if !local.IsValid() {
		return local, fmt.Sprintf("the interface %s has no IPv4 address (yet)", n.link.name)
	}
	return local, ""
}

func (n *Node) isFloating(addr netip.Addr) bool {
	for _, a := range n.cfg.Addresses {
		if a.IP == addr {
			return true
		}
	}
	return false
}

// openLink opens the sockets, and makes the core when the board's address is
// known for the first time. It reports whether everything is open.
func (n *Node) openLink(l netio.Link, local netip.Addr) bool {
	n.link.retryAt = 0
	transport, err := n.around.OpenTransport(n.link.name, local)
	if err != nil {
		n.openFailed(err)
		return false
	}
	announcer, err := n.around.OpenAnnouncer(l)
	if err != nil {
		transport.Close()
		n.openFailed(err)
		return false
	}
	if n.core == nil {
		if err := n.awaken(local); err != nil {
			transport.Close()
			announcer.Close()
			n.openFailed(err)
			return false
		}
	}
	n.news.over("open")
	n.link.transport, n.link.announcer = transport, announcer
	n.link.local, n.link.index = local, l.Index
	n.link.multicastAt = n.now()
	n.link.readers.Go(func() {
		if err := transport.Serve(n.deliver); err != nil {
			n.tell(func() { n.log.Errorf("read the sockets: %v", err) })
		}
	})
	n.openHolder()
	if n.holding.wanted {
		n.take() // the interface was made anew, or our address changed, while this board leads
	}
	return true
}

func (n *Node) openFailed(err error) {
	n.link.retryAt = n.now() + retryEvery
	text := err.Error()
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		text += ": another topdog runs on this board already"
	case errors.Is(err, syscall.EPERM):
		text += ": run as root, or give the daemon CAP_NET_ADMIN and CAP_NET_RAW"
	}
	if n.news.trouble("open", text, forever) {
		n.log.Warn(text)
	}
}

// linkLost tells the core, which lets go of the address.
func (n *Node) linkLost() {
	if n.core != nil {
		n.act(n.core.Link(n.now(), false))
	}
}

// closeLink closes what is open on the interface.
func (n *Node) closeLink() {
	n.link.retryAt = 0
	if n.link.transport == nil {
		return
	}
	n.report("close the sockets", n.link.transport.Close())
	n.report("close the announcer", n.link.announcer.Close())
	n.link.readers.Wait()
	n.link.transport, n.link.announcer = nil, nil
}

// mend does what is due for the link.
func (n *Node) mend(now time.Duration) {
	switch {
	case n.link.retryAt > 0 && now >= n.link.retryAt:
		n.mendLink()
	case n.link.transport != nil && now >= n.link.multicastAt+rejoinAfter:
		// Wi-Fi drivers and switches have been seen to lose a membership unnoticed.
		n.link.multicastAt = now
		n.counts.rejoined++
		n.sent(n.link.transport.Rejoin())
	}
}
