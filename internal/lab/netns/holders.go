package netns

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"topdog/internal/lab/observe"
)

// holderWatch tells which boards have an address, on any of their interfaces.
// The kernel itself reports every change, in the order in which they happened
// (see eventSocket); each is stamped when it is read.
type holderWatch struct {
	lan    *LAN
	addr   netip.Addr
	events *eventSocket
	on     map[int]map[int]bool // board -> indices of its interfaces that have the address
	record *observe.Holders     // nil until all is known that was there to begin with
}

// WatchHolders starts watching an IPv4 address on all boards. It ends with the LAN.
func (l *LAN) WatchHolders(addr netip.Addr) (*observe.Holders, error) {
	var w *holderWatch
	err := l.whileOpen(func() (err error) {
		if w, err = l.newHolderWatch(addr); err != nil {
			return err
		}
		l.observers.add(w.events)
		l.watches.Go(w.run)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("netns: watch the holders of %s: %w", addr, err)
	}
	return w.record, nil
}

// newHolderWatch subscribes, and finds out who has the address to begin with.
func (l *LAN) newHolderWatch(addr netip.Addr) (w *holderWatch, err error) {
	if !addr.Is4() {
		return nil, errors.New("only IPv4 is supported")
	}
	w = &holderWatch{lan: l, addr: addr, on: make(map[int]map[int]bool)}
	// Subscribe first, then read what is there: nothing can fall in between.
	if w.events, err = l.fabric.subscribe(groupAddr4 | groupLink); err != nil {
		return nil, err
	}
	if err := w.readAll(time.Now()); err != nil {
		w.events.Close()
		return nil, err
	}
	var boards []int
	for board, interfaces := range w.on {
		if len(interfaces) > 0 {
			boards = append(boards, board)
		}
	}
	w.record = observe.NewHolders(boards...)
	return w, nil
}

// run follows the events until the socket is closed.
func (w *holderWatch) run() {
	for {
		events, err := w.events.read()
		if errors.Is(err, errEventsLost) {
			err = w.catchUp()
		}
		if err != nil {
			// That the LAN is closed explains why a read from its socket fails.
			if closed := w.lan.whileOpen(func() error { return nil }); closed != nil {
				err = closed
			}
			w.record.End(err)
			return
		}
		for _, e := range events {
			w.follow(e)
		}
	}
}

// catchUp reads anew what the lost notifications would have said.
func (w *holderWatch) catchUp() error {
	w.record.Lose()
	if err := w.events.discard(); err != nil {
		return err
	}
	return w.lan.whileOpen(func() error { return w.readAll(time.Now()) })
}

// follow applies one notification.
func (w *holderWatch) follow(e event) {
	if e.namespace < 1 || e.namespace > len(w.lan.boards) {
		return // the switch or the client
	}
	switch e.Header.Type {
	case unix.RTM_NEWADDR, unix.RTM_DELADDR:
		if index, addr := splitAddr(e); addr == w.addr {
			w.set(e.at, e.namespace, index, e.Header.Type == unix.RTM_NEWADDR)
		}
	case unix.RTM_DELLINK:
		// The kernel reports the addresses of a vanishing device one by
		// one before; this is for one that doesn't.
		if info, _ := splitLink(e); info != nil {
			w.set(e.at, e.namespace, int(info.Index), false)
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
func (w *holderWatch) readAll(at time.Time) error {
	for i, board := range w.lan.boards {
		addrs, err := listAddrs(board.nl)
		if err != nil {
			return fmt.Errorf("list the addresses of %s: %w", board.Name, err)
		}
		found := make(map[int]bool)
		for _, a := range addrs {
			if prefixOf(a).Addr() == w.addr {
				found[a.LinkIndex] = true
			}
		}
		for index := range found {
			w.set(at, i+1, index, true)
		}
		for index := range w.on[i+1] {
			if !found[index] {
				w.set(at, i+1, index, false)
			}
		}
	}
	return nil
}

// set notes that an interface has the address or has not, and records it if
// that makes a difference for the board.
func (w *holderWatch) set(at time.Time, board, index int, has bool) {
	if w.on[board] == nil {
		w.on[board] = make(map[int]bool)
	}
	held := len(w.on[board]) > 0
	if has {
		w.on[board][index] = true
	} else {
		delete(w.on[board], index)
	}
	if holds := len(w.on[board]) > 0; holds != held && w.record != nil {
		w.record.Set(at, board, holds)
	}
}
