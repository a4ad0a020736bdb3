package netio

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// WatchOptions say what Watch watches.
type WatchOptions struct {
	// Interface is the name of the interface, which need not exist. If it is "", Watch chooses the interface whose
	// subnet contains Floating, see FindInterface. It keeps that interface for as long as it fits, or no other one
	// does.
	Interface string
	Floating  netip.Addr
	// Problem, if not nil, is called when the watch was interrupted and is about
	// to be set up again. An interruption loses nothing but a little time.
	Problem func(error)
}

// Watch calls notify with the state of the interface and of all addresses: once
// at the start, after every interruption, and after every change that a Snapshot can show. It
// never gives up; an interface that does not exist, or vanishes and comes back,
// is simply reported as such. It returns nil when ctx ends.
//
// notify is never called twice at the same time. Changes that come while it
// runs are kept by the kernel. If they are too many for its buffer, the
// kernel drops some and says so; everything is then listed afresh.
func Watch(ctx context.Context, o WatchOptions, notify func(Snapshot)) error {
	w := &watcher{options: o, notify: notify, subscribe: subscribe}
	for failures := 0; ; {
		listed, err := w.follow(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if o.Problem != nil {
			o.Problem(fmt.Errorf("netio: watch links and addresses: %w", err))
		}
		failures++
		if listed {
			failures = 1
		}
		// Even the first wait is not zero: whatever flooded the kernel's buffer is probably still at it, and a full
		// listing is the most expensive answer there is.
		if !pause(ctx.Done(), retryDelay(1+failures)) {
			return nil
		}
	}
}

// Look returns the state that Watch would report first.
func Look(o WatchOptions) (Snapshot, error) {
	handle, err := openHandle()
	if err != nil {
		return Snapshot{}, err
	}
	defer handle.Close()
	t := (&watcher{options: o}).newTable()
	t.defaultRoutes = func() []int { return defaultLinks(handle) }
	if err := list(handle, t); err != nil {
		return Snapshot{}, fmt.Errorf("netio: look at links and addresses: %w", err)
	}
	return t.snapshot(), nil
}

// errOverflow is the usual reason for the end of a subscription: the kernel reports ENOBUFS.
var errOverflow = errors.New("the kernel dropped messages because they were not read in time; listing everything again")

// feed is a running subscription to links and addresses, and a handle to list them.
type feed struct {
	changes <-chan change
	list    func(*table) error
	// defaultRoutes returns the interfaces by which the default routes lead, the preferred one first.
	defaultRoutes func() []int
	cancel        func() // ends the channel and waits for its writer
}

type watcher struct {
	options   WatchOptions
	notify    func(Snapshot)
	subscribe func(WatchOptions) (*feed, error)

	last  Snapshot
	inUse string // the interface that was chosen last
}

// follow subscribes, lists what is there, and then follows the changes until
// ctx ends or the subscription breaks. It tells whether it got as far as a
// complete listing.
//
// The order matters: what changes between subscribing and listing is seen twice,
// which does no harm, and the other way round it would not be seen at all.
func (w *watcher) follow(ctx context.Context) (listed bool, err error) {
	feed, err := w.subscribe(w.options)
	if err != nil {
		return false, err
	}
	defer feed.cancel()
	t := w.newTable()
	t.defaultRoutes = feed.defaultRoutes
	if err := feed.list(t); err != nil {
		return false, err
	}
	w.report(t)
	for {
		select {
		case <-ctx.Done():
			return true, nil
		case c, ok := <-feed.changes:
			if !ok {
				return true, errOverflow
			}
			if c.link != nil {
				t.link(*c.link)
				break
			}
			t.addr(c.addr)
			// A burst of addresses is one change: a snapshot lists them all, and
			// one for each would be quadratic work.
			if len(feed.changes) > 0 {
				continue
			}
		}
		w.report(t)
	}
}

// newTable makes an empty table that goes on with the interface in use.
func (w *watcher) newTable() *table {
	if w.options.Interface != "" {
		return newTable(w.options.Interface, netip.Addr{})
	}
	return newTable(w.inUse, w.options.Floating)
}

// report notifies unless nothing has changed that a Snapshot shows. An address that was put back
// and has gone again is a change: whoever put it back has to learn that.
func (w *watcher) report(t *table) {
	s := t.snapshot()
	w.inUse = t.name
	if !t.gone && reflect.DeepEqual(s, w.last) {
		return
	}
	w.last, t.gone = s, false
	w.notify(s)
}

// subscribe opens the real subscription.
func subscribe(o WatchOptions) (*feed, error) {
	handle, err := openHandle()
	if err != nil {
		return nil, err
	}
	const groups = 1<<(unix.RTNLGRP_LINK-1) | 1<<(unix.RTNLGRP_IPV4_IFADDR-1)
	socket, err := openRouteSocket(groups)
	if err != nil {
		handle.Close()
		return nil, fmt.Errorf("subscribe to links and addresses: %w", err)
	}
	changes := make(chan change, 256)
	go socket.follow(changes)
	return &feed{
		changes: changes,
		list:    func(t *table) error { return list(handle, t) },

		defaultRoutes: func() []int { return defaultLinks(handle) },
		cancel: func() {
			_ = socket.Close()
			for range changes { // so that its writer cannot be left hanging
			}
			handle.Close()
		},
	}, nil
}

// list fills the table with what exists now, in the form of the same messages
// that report changes.
func list(handle *netlink.Handle, t *table) error {
	links, err := dump(handle.LinkList)
	if err != nil {
		return fmt.Errorf("list links: %w", err)
	}
	for _, link := range links {
		u := netlink.LinkUpdate{Link: link}
		u.Header.Type = unix.RTM_NEWLINK
		u.IfInfomsg.Index = int32(link.Attrs().Index)
		u.IfInfomsg.Flags = link.Attrs().RawFlags
		t.link(u)
	}
	addrs, err := listAddrs(handle)
	if err != nil {
		return err
	}
	for _, a := range addrs {
		t.addr(netlink.AddrUpdate{LinkAddress: *a.IPNet, LinkIndex: a.LinkIndex, NewAddr: true})
	}
	return nil
}

// openHandle opens a netlink socket that is kept open: a fresh one for each request costs three
// times as much.
func openHandle() (*netlink.Handle, error) {
	handle, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("netio: open a netlink socket: %w", err)
	}
	return handle, nil
}

// removeAddress removes a floating address from a device. The error is unix.EADDRNOTAVAIL if the address
// is not there, and unix.ENODEV if the device is not.
func removeAddress(handle *netlink.Handle, link int, addr netip.Addr) error {
	return handle.AddrDel(nil, &netlink.Addr{LinkIndex: link, IPNet: hostNet(addr)})
}

// isGone reports whether an address could not be removed because it, or its device, is not there.
func isGone(err error) bool {
	return errors.Is(err, unix.EADDRNOTAVAIL) || errors.Is(err, unix.ENODEV)
}

// hostNet is the /32 of addr.
func hostNet(addr netip.Addr) *net.IPNet {
	return &net.IPNet{IP: addr.AsSlice(), Mask: net.CIDRMask(32, 32)}
}

// listAddrs lists the IPv4 addresses of the host.
func listAddrs(handle *netlink.Handle) ([]netlink.Addr, error) {
	addrs, err := dump(func() ([]netlink.Addr, error) { return handle.AddrList(nil, netlink.FAMILY_V4) })
	if err != nil {
		return nil, fmt.Errorf("list addresses: %w", err)
	}
	return addrs, nil
}

// dump calls a listing again when something changed in the middle of it, which
// makes its result unreliable.
func dump[T any](list func() ([]T, error)) (all []T, err error) {
	for range 5 {
		if all, err = list(); !errors.Is(err, netlink.ErrDumpInterrupted) {
			return all, err
		}
	}
	return all, err
}

// prefixOf converts netlink's form of an address; it is not ok for anything but IPv4.
func prefixOf(n *net.IPNet) (prefix netip.Prefix, ok bool) {
	if n == nil || n.IP.To4() == nil {
		return netip.Prefix{}, false
	}
	addr, _ := netip.AddrFromSlice(n.IP.To4())
	ones, bits := n.Mask.Size()
	if bits != 32 {
		return netip.Prefix{}, false
	}
	return netip.PrefixFrom(addr, ones), true
}

// What nl80211 calls them (linux/nl80211.h). The library knows none of it.
const (
	nl80211GetPowerSave  = 0x3e
	nl80211AttrIfindex   = 3
	nl80211AttrPSState   = 0x5d
	nl80211PSEnabled     = 1
	nl80211Family        = "nl80211"
	nl80211FamilyVersion = 1
)

// PowerSave reports whether a Wi-Fi interface lets its radio sleep between the beacons of the access point. That is
// not known of other interfaces, and of drivers that do not report it.
func PowerSave(iface string, index int) (on, known bool) {
	if _, err := os.Stat(filepath.Join("/sys/class/net", iface, "phy80211")); err != nil {
		return false, false
	}
	family, err := netlink.GenlFamilyGet(nl80211Family)
	if err != nil {
		return false, false
	}
	request := nl.NewNetlinkRequest(int(family.ID), 0)
	request.AddData(&nl.Genlmsg{Command: nl80211GetPowerSave, Version: nl80211FamilyVersion})
	request.AddData(nl.NewRtAttr(nl80211AttrIfindex, nl.Uint32Attr(uint32(index))))
	answers, err := request.Execute(unix.NETLINK_GENERIC, 0)
	if err != nil || len(answers) == 0 {
		return false, false
	}
	return powerSaveOf(answers[0])
}

// powerSaveOf reads the answer.
func powerSaveOf(answer []byte) (on, known bool) {
	if len(answer) < nl.SizeofGenlmsg {
		return false, false
	}
	attrs, err := nl.ParseRouteAttr(answer[nl.SizeofGenlmsg:])
	if err != nil {
		return false, false
	}
	for _, a := range attrs {
		if a.Attr.Type == nl80211AttrPSState && len(a.Value) >= 4 {
			return nl.NativeEndian().Uint32(a.Value) == nl80211PSEnabled, true
		}
	}
	return false, false
}
