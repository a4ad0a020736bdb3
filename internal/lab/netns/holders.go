package netns

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Holders watches which boards have an address, on any of their interfaces.
// The kernel itself reports every change, in the order in which they happened
// (see eventSocket); each is stamped when it is read.
type Holders struct {
	lan    *LAN
	addr   netip.Addr
	events *eventSocket
	done   chan struct{} // closed when the reader has ended

	mu      sync.Mutex
	on      map[int]map[int]bool // board -> indices of its interfaces that have the address
	record  record
	lost    int           // see Lost
	changed chan struct{} // closed at the next change or the end
	err     error         // why the reader ended
}

// WatchHolders starts watching an IPv4 address on all boards. It ends with
// Close or with the LAN.
func (l *LAN) WatchHolders(addr netip.Addr) (*Holders, error) {
	if !addr.Is4() {
		return nil, fmt.Errorf("lab: watch the holders of %s: only IPv4 is supported", addr)
	}
	h := &Holders{
		lan:     l,
		addr:    addr,
		done:    make(chan struct{}),
		on:      make(map[int]map[int]bool),
		changed: make(chan struct{}),
	}
	err := l.whileOpen(func() (err error) {
		// Subscribe first, then read what is there: nothing can fall in between.
		if h.events, err = l.fabric.subscribe(groupAddr4 | groupLink); err != nil {
			return err
		}
		if err = h.readAll(time.Now()); err != nil {
			h.events.Close()
			return err
		}
		l.parts.add(h)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("lab: watch the holders of %s: %w", addr, err)
	}
	// What was found to begin with is not a change. Of several holders nobody
	// knows which one was last.
	h.record = record{holders: h.record.current(), start: time.Now()}
	for b := range h.record.holders {
		h.record.last = max(h.record.last, b)
	}
	go h.watch()
	return h, nil
}

// Close ends the watching. What was recorded can still be read.
func (h *Holders) Close() {
	h.lan.parts.remove(h)
	h.events.Close()
	<-h.done
}

// Current returns the boards that have the address now, in ascending order.
func (h *Holders) Current() []int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return boardsOf(h.record.current())
}

// WaitFor waits until cond is true of the boards that have the address, in
// ascending order. It is asked about the present state and then about every
// single change in turn, so that no state is too short to be seen.
func (h *Holders) WaitFor(ctx context.Context, cond func(boards []int) bool) error {
	h.mu.Lock()
	seen := h.record.total()
	h.mu.Unlock()
	for {
		h.mu.Lock()
		boards := boardsOf(h.record.after(seen))
		behind := seen < h.record.total()
		changed, err := h.changed, h.err
		h.mu.Unlock()

		if cond(boards) {
			return nil
		}
		if behind {
			seen++
			continue
		}
		if err != nil {
			return fmt.Errorf("lab: holders of %s (now %v): %w", h.addr, boards, err)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("lab: holders of %s (now %v): %w", h.addr, boards, ctx.Err())
		}
	}
}

// Since returns who had the address when, from t (or the start of the
// watching, if that was later) until now.
func (h *Holders) Since(t time.Time) Timeline {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.record.timeline(t, time.Now())
}

// Lost returns how often the kernel had to drop notifications because this
// process was too slow to read them. Unless it is zero, the record may lack
// changes that were over soon, and a figure made of it is worth nothing.
func (h *Holders) Lost() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lost
}

// watch follows the events until the socket is closed.
func (h *Holders) watch() {
	defer close(h.done)
	for {
		events, err := h.events.read()
		if errors.Is(err, errEventsLost) {
			err = h.catchUp()
		}
		if err != nil {
			h.end(err)
			return
		}
		for _, e := range events {
			h.follow(e)
		}
	}
}

// catchUp reads anew what the lost notifications would have said.
func (h *Holders) catchUp() error {
	h.mu.Lock()
	h.lost++
	h.mu.Unlock()
	if err := h.events.discard(); err != nil {
		return err
	}
	return h.lan.whileOpen(func() error { return h.readAll(time.Now()) })
}

// end keeps the reason for the end and wakes everyone who waits.
func (h *Holders) end(err error) {
	if errors.Is(err, os.ErrClosed) {
		err = ErrClosed
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.err = err
	close(h.changed)
}

// follow applies one notification.
func (h *Holders) follow(e event) {
	if e.namespace < 1 || e.namespace > len(h.lan.boards) {
		return // the switch or the client
	}
	switch e.Header.Type {
	case unix.RTM_NEWADDR, unix.RTM_DELADDR:
		if index, addr := splitAddr(e); addr == h.addr {
			h.set(e.at, e.namespace, index, e.Header.Type == unix.RTM_NEWADDR)
		}
	case unix.RTM_DELLINK:
		// The kernel reports the addresses of a vanishing device one by
		// one before; this is for one that doesn't.
		if info, _ := splitLink(e); info != nil {
			h.set(e.at, e.namespace, int(info.Index), false)
		}
	}
}

// splitAddr reads interface and address out of RTM_NEWADDR and RTM_DELADDR.
func splitAddr(e event) (index int, addr netip.Addr) {
	if len(e.Data) < unix.SizeofIfAddrmsg {
		return 0, netip.Addr{}
	}
	attrs, err := nl.ParseRouteAttr(e.Data[unix.SizeofIfAddrmsg:])
	if err != nil {
		return 0, netip.Addr{}
	}
	for _, a := range attrs {
		// On a point-to-point device IFA_ADDRESS is the other side's.
		if a.Attr.Type == unix.IFA_LOCAL {
			addr, _ = netip.AddrFromSlice(a.Value)
		}
	}
	return int(nl.DeserializeIfAddrmsg(e.Data).Index), addr
}

// readAll brings the state up to date by asking the kernel.
func (h *Holders) readAll(at time.Time) error {
	for i, board := range h.lan.boards {
		addrs, err := listAddrs(board.nl)
		if err != nil {
			return fmt.Errorf("list the addresses of %s: %w", board.Name, err)
		}
		found := make(map[int]bool)
		for _, a := range addrs {
			if prefixOf(a).Addr() == h.addr {
				found[a.LinkIndex] = true
			}
		}
		for index := range found {
			h.set(at, i+1, index, true)
		}
		for _, index := range h.interfaces(i + 1) {
			if !found[index] {
				h.set(at, i+1, index, false)
			}
		}
	}
	return nil
}

// interfaces returns the indices of a board's interfaces that have the address.
func (h *Holders) interfaces(board int) (list []int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for index := range h.on[board] {
		list = append(list, index)
	}
	return list
}

// set notes that an interface has the address or has not, and records it if
// that makes a difference for the board.
func (h *Holders) set(at time.Time, board, index int, has bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	interfaces := h.on[board]
	if interfaces[index] == has {
		return
	}
	held := len(interfaces) > 0
	if has {
		if interfaces == nil {
			interfaces = make(map[int]bool)
			h.on[board] = interfaces
		}
		interfaces[index] = true
	} else {
		delete(interfaces, index)
	}
	if holds := len(interfaces) > 0; holds != held {
		h.record.add(change{at, board, holds})
		close(h.changed)
		h.changed = make(chan struct{})
	}
}
