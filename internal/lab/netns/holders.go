package netns

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"topdog/internal/lab/frame"
	"topdog/internal/lab/observe"
)

// errEventsLost means that the kernel had to drop notifications because the
// reader was too slow.
var errEventsLost = errors.New("netlink notifications were lost")

// holderWatch tells which boards have an address, on any of their interfaces.
// The kernel itself reports every change; each is stamped when it is read.
//
// The notifications of all namespaces of a LAN come through one socket of the switch
// (NETLINK_LISTEN_ALL_NSID) instead of one per namespace. So they
// arrive in the order in which the kernel acted: an address that left board 1
// before it came to board 2 is never seen on both, however late this process
// gets to read. With a socket per namespace the order would be a matter of
// scheduling, and a test would count overlaps that never happened.
type holderWatch struct {
	lan    *LAN
	addr   netip.Addr
	events *frame.Raw
	on     map[int]map[int]bool // board -> indices of its interfaces that have the address
	record *observe.Holders
}

// WatchHolders starts watching an address on all boards. It ends with the LAN.
func (l *LAN) WatchHolders(addr netip.Addr) (*observe.Holders, error) {
	var w *holderWatch
	err := l.whileOpen(func() (err error) {
		if w, err = l.newHolderWatch(addr); err != nil {
			return err
		}
		w.follow()
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("netns: watch the holders of %s: %w", addr, err)
	}
	return w.record, nil
}

// newHolderWatch subscribes, and finds out who has the address to begin with.
func (l *LAN) newHolderWatch(addr netip.Addr) (w *holderWatch, err error) {
	w = &holderWatch{lan: l, addr: addr, on: make(map[int]map[int]bool)}
	// Subscribe first, then read what is there: nothing can fall in between.
	if err := l.fabric.do(w.subscribe); err != nil {
		return nil, fmt.Errorf("subscribe to netlink notifications in the switch: %w", err)
	}
	var boards []int
	for _, board := range l.boards {
		addrs, err := listAddrs(board.nl, familyOf(addr))
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

// subscribe opens the socket. It runs inside the switch.
func (w *holderWatch) subscribe() (err error) {
	// Room for tens of thousands of notifications; the least is about 1 KiB each.
	const room = 64 << 20
	addresses := &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: unix.RTMGRP_IPV4_IFADDR}
	if w.addr.Is6() {
		addresses.Groups = unix.RTMGRP_IPV6_IFADDR
	}
	w.events, err = frame.OpenRaw(unix.AF_NETLINK, unix.NETLINK_ROUTE, addresses, room, unix.SOL_NETLINK, unix.NETLINK_LISTEN_ALL_NSID)
	return err
}

// follow starts to follow the notifications, until the LAN is closed.
func (w *holderWatch) follow() {
	var running sync.WaitGroup
	running.Go(w.run)
	w.lan.atEnd(func() {
		w.events.Close()
		running.Wait()
	})
}

// run follows the notifications until the socket is closed, or some are lost: then nothing is known any more.
func (w *holderWatch) run() {
	for {
		err := w.next()
		if err == nil {
			continue
		}
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
}

// next waits for notifications, and follows them.
func (w *holderWatch) next() error {
	m, err := w.events.Receive()
	at := time.Now()
	switch {
	case errors.Is(err, unix.ENOBUFS):
		return errEventsLost
	case err != nil:
		return err
	}
	notifications, err := syscall.ParseNetlinkMessage(m.Bytes)
	if err != nil {
		return fmt.Errorf("parse a netlink notification: %w", err)
	}
	for _, n := range notifications {
		w.apply(at, namespaceOf(m.Control), n)
	}
	return nil
}

// apply takes one notification, and records it if it makes a difference for the board. The kernel reports the
// addresses of a vanishing interface one by one before.
func (w *holderWatch) apply(at time.Time, board int, n syscall.NetlinkMessage) {
	on, isBoard := w.on[board] // else the switch or the client
	index, addr := splitAddr(n)
	if !isBoard || addr != w.addr {
		return
	}
	held := len(on) > 0
	if n.Header.Type == unix.RTM_NEWADDR {
		on[index] = true
	} else {
		delete(on, index)
	}
	if holds := len(on) > 0; holds != held {
		w.record.Set(at, board, holds)
	}
}

// namespaceOf reads the namespace id, the number of a host, that the kernel attaches to
// notifications from other namespaces than the socket's own. Those from the switch itself have none.
func namespaceOf(control []unix.SocketControlMessage) int {
	for _, c := range control {
		if c.Header.Level == unix.SOL_NETLINK && c.Header.Type == unix.NETLINK_LISTEN_ALL_NSID && len(c.Data) >= 4 {
			return int(int32(nl.NativeEndian().Uint32(c.Data)))
		}
	}
	return -1
}

// splitAddr reads interface and address out of RTM_NEWADDR and RTM_DELADDR.
func splitAddr(n syscall.NetlinkMessage) (index int, addr netip.Addr) {
	if t := n.Header.Type; t != unix.RTM_NEWADDR && t != unix.RTM_DELADDR || len(n.Data) < unix.SizeofIfAddrmsg {
		return 0, netip.Addr{}
	}
	attrs, err := nl.ParseRouteAttr(n.Data[unix.SizeofIfAddrmsg:])
	if err != nil {
		return 0, netip.Addr{}
	}
	for _, a := range attrs {
		// On a point-to-point device IFA_ADDRESS is the other side's. IPv6 has no IFA_LOCAL elsewhere.
		if a.Attr.Type == unix.IFA_LOCAL || a.Attr.Type == unix.IFA_ADDRESS && !addr.IsValid() {
			addr, _ = netip.AddrFromSlice(a.Value)
		}
	}
	return int(nl.DeserializeIfAddrmsg(n.Data).Index), addr
}
