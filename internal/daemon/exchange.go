package daemon

import (
	"net/netip"
	"slices"
	"sync"

	"topdog/netio"
	"topdog/wire"
)

// exchange gives each packet to the group that it is for. The groups of a board share the port, and the kernel gives what is
// sent to this board alone to the sockets of any of them.
type exchange struct {
	mu   sync.RWMutex
	open []openGroup
}

// openGroup is a group whose sockets are open.
type openGroup struct {
	tag       wire.GroupTag
	inbox     *inbox
	local     netip.Addr
	transport Transport
}

// add begins to give a group what is for it.
func (e *exchange) add(o openGroup) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.open = append(e.open, o)
}

// remove ends that: once it has returned, its inbox gets nothing any more from the sockets of other groups.
func (e *exchange) remove(i *inbox) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.open = slices.DeleteFunc(e.open, func(o openGroup) bool { return o.inbox == i })
}

// deliver gives a datagram that has come to the sockets of one group to the group of its tag, if that is open at the same
// address. Otherwise it stays where it came to.
func (e *exchange) deliver(to openGroup, d netio.Datagram) {
	if d.Path == netio.PathUnicast {
		if tag, ok := wire.TagIn(d.Data); ok && tag != to.tag {
			e.mu.RLock()
			defer e.mu.RUnlock()
			for _, o := range e.open {
				if o.tag == tag && o.local == to.local {
					to = o
				}
			}
		}
	}
	to.inbox.deliver(d)
}

// at returns the transports to which comes what is sent to an address of this board alone.
func (e *exchange) at(local netip.Addr) (transports []Transport) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	for _, o := range e.open {
		if o.local == local {
			transports = append(transports, o.transport)
		}
	}
	return transports
}
