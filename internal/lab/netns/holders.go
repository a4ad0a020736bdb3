package netns

import (
	"errors"
	"fmt"
	"net/netip"

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
	record *observe.Holders
}

// WatchHolders starts watching an IPv4 address on all boards. It ends with the LAN.
func (l *LAN) WatchHolders(addr netip.Addr) (*observe.Holders, error) {
	var w *holderWatch
	err := l.whileOpen(func() (err error) {
		if w, err = l.newHolderWatch(addr); err != nil {
			return err
		}
		l.sockets.add(w.events)
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
	if w.events, err = l.fabric.subscribe(groupAddr4); err != nil {
		return nil, err
	}
	var boards []int
	for _, board := range l.boards {
		addrs, err := listAddrs(board.nl)
		if err != nil {
			w.events.Close()
			return nil, fmt.Errorf("list the addresses of %s: %w", board.Name, err)
		}
		w.on[board.number] = make(map[int]bool)
		for _, a := range addrs {
			if prefixOf(a).Addr() == addr {
				w.on[board.number][a.LinkIndex] = true
			}
		}
		if len(w.on[board.number]) > 0 {
			boards = append(boards, board.number)
		}
	}
	w.record = observe.NewHolders(boards...)
	return w, nil
}

// run follows the events until the socket is closed, or some are lost: then nothing is known any more.
func (w *holderWatch) run() {
	for {
		events, err := w.events.read()
		if err != nil {
			if errors.Is(err, errEventsLost) {
				w.record.Lose()
			}
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

// follow applies one notification, and records it if it makes a difference for the board. The kernel reports the
// addresses of a vanishing interface one by one before.
func (w *holderWatch) follow(e event) {
	on, isBoard := w.on[e.namespace] // else the switch or the client
	index, addr := splitAddr(e)
	if !isBoard || addr != w.addr {
		return
	}
	held := len(on) > 0
	if e.Header.Type == unix.RTM_NEWADDR {
		on[index] = true
	} else {
		delete(on, index)
	}
	if holds := len(on) > 0; holds != held {
		w.record.Set(e.at, e.namespace, holds)
	}
}

// splitAddr reads interface and address out of RTM_NEWADDR and RTM_DELADDR.
func splitAddr(e event) (index int, addr netip.Addr) {
	if t := e.Header.Type; t != unix.RTM_NEWADDR && t != unix.RTM_DELADDR || len(e.Data) < unix.SizeofIfAddrmsg {
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
