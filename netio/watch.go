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
	"slices"
	"time"

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
	// to begin anew. An interruption loses nothing but a little time.
	Problem func(error)
}

// Watch calls notify with the state of the interface and of all addresses: once
// at the start, and after every change that a Snapshot can show. It
// never gives up; an interface that does not exist, or vanishes and comes back,
// is simply reported as such. It returns nil when ctx ends.
//
// notify is never called twice at the same time. Changes that come while it
// runs are kept by the kernel. If they are too many for its buffer, the
// kernel drops some and says so, which is a change as well.
func Watch(ctx context.Context, o WatchOptions, notify func(Snapshot)) error {
	w := &watcher{WatchOptions: o, notify: notify}
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
	s, err := (&watcher{WatchOptions: o}).look(handle)
	if err != nil {
		return Snapshot{}, fmt.Errorf("netio: look at links and addresses: %w", err)
	}
	return s, nil
}

type watcher struct {
	WatchOptions
	notify func(Snapshot)

	last  Snapshot
	inUse string // the interface that was chosen last; "" for none
}

// listEvery bounds how often everything is listed, however quickly one change follows another.
const listEvery = 10 * time.Millisecond

// follow lists what is there, and does so again after every change, until ctx ends or a call fails. It tells
// whether it got as far as a complete listing.
//
// It subscribes first: what changes before it has listed everything is seen twice,
// which does no harm, and the other way round it would not be seen at all.
func (w *watcher) follow(ctx context.Context) (listed bool, err error) {
	handle, err := openHandle()
	if err != nil {
		return false, err
	}
	defer handle.Close()
	changes, err := openRouteSocket(1<<(unix.RTNLGRP_LINK-1) | 1<<(unix.RTNLGRP_IPV4_IFADDR-1) | 1<<(unix.RTNLGRP_IPV6_IFADDR-1))
	if err != nil {
		return false, fmt.Errorf("subscribe to links and addresses: %w", err)
	}
	defer changes.Close()
	defer context.AfterFunc(ctx, func() { changes.Close() })()
	for gone := true; ; {
		s, err := w.look(handle)
		if err != nil {
			return listed, err
		}
		listed = true
		// An address that was put back and has gone again is a change: whoever put it back has to learn that.
		if gone || !reflect.DeepEqual(s, w.last) {
			w.last = s
			w.notify(s)
		}
		pause(ctx.Done(), listEvery)
		if gone, err = changes.await(&s); err != nil {
			return true, err
		}
	}
}

// look lists what is there. Unless an interface is configured, it chooses one. The one in use stays if no other fits,
// since it may get its address back.
func (w *watcher) look(handle *netlink.Handle) (Snapshot, error) {
	n, err := list(handle)
	if err != nil {
		return Snapshot{}, err
	}
	if w.Interface != "" {
		return n.snapshot(w.Interface), nil
	}
	found, err := choose(w.Floating, n.subnets(), w.inUse, n.defaultRoutes)
	if err == nil {
		w.inUse = found.Name
	}
	s := n.snapshot(w.inUse)
	s.Ambiguous = found.Ambiguous
	if w.inUse == "" {
		s.Missing = fmt.Sprintf("find the interface of %s: %v", w.Floating, err)
	}
	return s, nil
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

// isGone reports whether an address could not be removed because it is not there, or its device, or IPv6 on that device (ENXIO) or
// in this kernel (EOPNOTSUPP).
func isGone(err error) bool {
	gone := []error{unix.EADDRNOTAVAIL, unix.ENODEV, unix.ENXIO, unix.EOPNOTSUPP}
	return slices.ContainsFunc(gone, func(e error) bool { return errors.Is(err, e) })
}

// hostNet is addr alone as a network.
func hostNet(addr netip.Addr) *net.IPNet {
	return &net.IPNet{IP: addr.AsSlice(), Mask: net.CIDRMask(addr.BitLen(), addr.BitLen())}
}

// listAddrs lists the addresses of the host, but for those of IPv6 that are of one link only: every interface makes one for
// itself.
func listAddrs(handle *netlink.Handle) ([]netlink.Addr, error) {
	addrs, err := dump(func() ([]netlink.Addr, error) { return handle.AddrList(nil, netlink.FAMILY_ALL) })
	if err != nil {
		return nil, fmt.Errorf("list addresses: %w", err)
	}
	return slices.DeleteFunc(addrs, func(a netlink.Addr) bool {
		p, ok := prefixOf(a.IPNet)
		return !ok || p.Addr().Is6() && !p.Addr().IsGlobalUnicast()
	}), nil
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

// prefixOf converts netlink's form of an address.
func prefixOf(n *net.IPNet) (prefix netip.Prefix, ok bool) {
	if n == nil {
		return netip.Prefix{}, false
	}
	addr, ok := netip.AddrFromSlice(n.IP)
	ones, bits := n.Mask.Size()
	addr = addr.Unmap()
	return netip.PrefixFrom(addr, ones), ok && bits == addr.BitLen()
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
