package netio

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

var (
	// ErrNotHeld is what Renew says when the addresses are not held, or no longer to be held.
	ErrNotHeld = errors.New("the floating address is not held")
	// ErrExpired is what Renew says when it comes later than the lifetime: the
	// process was frozen or starved. The kernel has removed the addresses, or is
	// about to, and another board may hold them by now. Make sure of being
	// the leader still, and then Acquire them again.
	ErrExpired = errors.New("the lifetime of the floating address is over: it was not renewed in time")
)

// FloatingIP holds the floating addresses while this board leads.
//
// Each address is added alone, as a /32 or /128, which creates no route to a subnet, never
// becomes the board's main address, and is not deleted together with another one.
//
// The addresses of IPv6 never keep those of IPv4 from being held, by which the boards find each other. If the kernel refuses one, as
// it does while IPv6 is switched off, HoldState.Problem says so.
//
// All methods may be called from any goroutine.
type FloatingIP struct {
	options FloatingOptions
	handle  *netlink.Handle
	renewal routeSocket // adds the addresses, and renews their lifetimes

	// ending says that Release or Close was called since the last Acquire. Neither waits for the
	// kernel to say so: a renewal that comes later renews nothing, even if the release fails.
	ending atomic.Bool

	// mu is held for as long as the kernel takes to change something. Where other programs
	// configure interfaces meanwhile, that can be tens of milliseconds.
	mu       sync.Mutex
	held     bool
	present  bool          // one of the addresses may be there
	expireAt time.Duration // when the lifetimes end, on the clock of Now
	routes   []*netlink.Route
	without  []error       // why addresses or routes of IPv6 could not be added
	former   *os.File      // of a TUN device that somebody has deleted, or is not used any more, or nil
	askARPAt time.Duration // when the kernel is asked again whether an address on a TUN device is of any use

	device atomic.Pointer[holdDevice] // may be read while the kernel changes something
}

// holdDevice is where the addresses are, or will be.
type holdDevice struct {
	HoldState
	tun  *os.File // nil without TUN
	link int      // the index of the device
}

// NewFloatingIP prepares to hold the addresses: it opens what Acquire will need,
// so that a take-over costs one system call per address. It adds no address
// yet. The interface need not exist.
func NewFloatingIP(o FloatingOptions) (*FloatingIP, error) {
	o.device, o.lifetime = cmp.Or(o.device, devicePattern), cmp.Or(o.lifetime, DefaultLifetime)
	handle, err := openHandle()
	if err != nil {
		return nil, err
	}
	renewal, err := openRouteSocket(0)
	if err != nil {
		handle.Close()
		return nil, fmt.Errorf("netio: open a netlink socket: %w", err)
	}
	f := &FloatingIP{options: o, handle: handle, renewal: renewal}
	f.device.Store(&holdDevice{HoldState: HoldState{Device: o.Interface}}) // unless there is a TUN device
	if err := f.chooseMethod(); err != nil {
		handle.Close()
		renewal.Close()
		return nil, fmt.Errorf("netio: floating IP on %s: %w", o.Interface, err)
	}
	return f, nil
}

// chooseMethod decides how to hold the addresses, and opens the TUN device if that has one.
func (f *FloatingIP) chooseMethod() error {
	wanted := f.options.Method
	if wanted == HoldLifetime {
		f.holdByLifetime("as configured")
		return nil
	}
	problem := f.tryTUN()
	switch {
	case problem == nil && wanted == HoldAuto:
		f.setMethod(HoldTUN, "gone at once if the daemon is killed, and soon if it is frozen")
	case problem == nil:
		f.setMethod(wanted, "as configured")
	case wanted == HoldAuto:
		f.holdByLifetime(fmt.Sprintf("a TUN device cannot be used here: %v", problem))
	default:
		return fmt.Errorf("hold it by %s: %w", wanted, problem)
	}
	return nil
}

// holdByLifetime chooses the lifetime alone. The device is known from the start;
// Acquire finds one that is not there yet.
func (f *FloatingIP) holdByLifetime(reason string) {
	f.device.Store(&holdDevice{HoldState: HoldState{Method: HoldLifetime, Reason: reason, Device: f.options.Interface}})
	_ = f.findDevice()
}

func (f *FloatingIP) setMethod(m HoldMethod, reason string) {
	at := *f.device.Load()
	at.Method, at.Reason = m, reason
	f.device.Store(&at)
}

// tryTUN opens the TUN device, or says why an address on one would be of no use.
func (f *FloatingIP) tryTUN() error {
	if err := f.checkARP(); err != nil {
		return err
	}
	return f.openDevice()
}

// askARPEvery is how often the kernel is asked whether it answers ARP for an address on a TUN device. An administrator,
// or another program, may change that while the address is held; no event tells of it.
const askARPEvery = time.Second

// checkARP says why the kernel would not answer ARP for an address on a TUN device.
func (f *FloatingIP) checkARP() error {
	f.askARPAt = Now() + askARPEvery
	ignore, err := arpIgnore(f.options.Interface)
	if err != nil {
		return fmt.Errorf("cannot tell whether the kernel answers ARP for it: %w", err)
	}
	if ignore != 0 {
		f.askARPAt = 0 // the next time it is asked at once
		whatFor := "an address that is not on " + f.options.Interface + " itself"
		if ignore == arpIgnoresAll {
			whatFor = "any address"
		}
		return fmt.Errorf("net.ipv4.conf.{all,%s}.arp_ignore is %d, so the kernel would not answer ARP for %s", f.options.Interface, ignore, whatFor)
	}
	return nil
}

// leaveTUN moves the addresses to the interface itself if the kernel no longer answers ARP for an address on a TUN
// device. It reports whether it has moved them.
func (f *FloatingIP) leaveTUN() (left bool, err error) {
	if f.device.Load().Method != HoldTUN || Now() < f.askARPAt {
		return false, nil
	}
	problem := f.checkARP()
	switch {
	case problem == nil:
		return false, nil
	case f.options.Method == HoldTUN:
		return false, fmt.Errorf("hold it by %s: %w", HoldTUN, problem)
	}
	was := *f.device.Load()
	if err := f.remove(); err != nil {
		return false, err
	}
	if f.former != nil {
		f.former.Close()
	}
	f.former = was.tun
	f.holdByLifetime(fmt.Sprintf("a TUN device cannot be used here: %v", problem))
	return true, nil
}

// openDevice makes the TUN device, or another one if somebody has deleted the first. The file of the first
// stays open until the next call: another goroutine may be about to put it into an fd store, see session.keepTogether.
func (f *FloatingIP) openDevice() error {
	tun, name, err := openTUN(f.options.device)
	if err != nil {
		return err
	}
	link, err := raiseTUN(f.handle, name)
	if err != nil {
		tun.Close()
		return err
	}
	if f.former != nil {
		f.former.Close()
	}
	f.former = f.device.Load().tun
	f.move(tun, name, link)
	return nil
}

// State says how the addresses are held.
func (f *FloatingIP) State() HoldState { return f.device.Load().HoldState }

// Acquire adds the addresses. Those that are there already are kept and renewed.
// After an error some may be there: call Acquire again, or Release.
func (f *FloatingIP) Acquire() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ending.Store(false)
	f.held = true // from here on something may have to be released
	_, err := f.leaveTUN()
	if err == nil && f.device.Load().Method != HoldTUN {
		// The interface may have been made anew since the last time.
		err = f.findDevice()
	}
	if err == nil {
		_, err = f.ensureOnDevice()
	}
	if err == nil {
		err = f.findRoutes()
	}
	if err == nil {
		_, err = f.ensureRoutes()
	}
	f.tellProblem()
	if err != nil {
		return fmt.Errorf("netio: acquire the floating address: %w", err)
	}
	return nil
}

// Renew starts the lifetimes over, and puts back what somebody else deleted, in
// which case restored is true and the address should be announced again.
//
// It must only be called by a leader that has just made sure that it still
// leads: the kernel knows no "renew only", so renewing an address that is gone
// adds it. The worst case is a process that wakes up after the lifetime is over; it
// gets ErrExpired. After Release or Close, Renew only returns ErrNotHeld, even if
// they could not remove the addresses.
func (f *FloatingIP) Renew() (restored bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.held || f.ending.Load() {
		return false, fmt.Errorf("netio: renew: %w", ErrNotHeld)
	}
	if Now() >= f.expireAt {
		return false, fmt.Errorf("netio: renew: %w", ErrExpired)
	}
	moved, err := f.leaveTUN()
	if err == nil {
		restored, err = f.ensureOnDevice()
	}
	restoredRoutes, routeErr := f.ensureRoutes()
	f.tellProblem()
	if err := errors.Join(err, routeErr); err != nil {
		return restored, fmt.Errorf("netio: renew the floating address: %w", err)
	}
	return restored || restoredRoutes || moved, nil
}

// ensureOnDevice is ensure on a device that somebody may have deleted.
func (f *FloatingIP) ensureOnDevice() (added bool, err error) {
	added, err = f.ensure()
	if errors.Is(err, unix.ENODEV) {
		if err = f.findDevice(); err == nil {
			added, err = f.ensure()
		}
	}
	return added, err
}

// ensure gives every address a full lifetime, and reports whether one of them had to be added.
func (f *FloatingIP) ensure() (added bool, err error) {
	// The lifetime is counted from before the first system call, so that it can only end
	// too early here, never too late.
	end := Now() + f.options.lifetime
	var failed []error
	f.without = nil
	link := f.device.Load().link
	for _, p := range f.options.Addresses {
		// Adding fails if the address is there, which is how to find out; only
		// replacing sets a new lifetime. The two cost about 10 µs each.
		err := f.renewal.addAddress(p.Addr(), link, f.options.lifetime, unix.NLM_F_EXCL)
		// Without permission the address was not added. After any other error it may be there.
		f.present = f.present || !errors.Is(err, unix.EPERM)
		switch {
		case err == nil:
			added = true
		case errors.Is(err, unix.EEXIST):
			err = f.renewal.addAddress(p.Addr(), link, f.options.lifetime, unix.NLM_F_REPLACE)
		}
		switch {
		case err != nil && p.Addr().Is6() && !errors.Is(err, unix.ENODEV):
			f.without = append(f.without, f.explain("add", p, err))
		case err != nil:
			failed = append(failed, f.explain("add", p, err))
		}
	}
	if len(failed) > 0 {
		return added, errors.Join(failed...)
	}
	f.expireAt = end
	return added, nil
}

// tellProblem says why the addresses of IPv6 are not held, or of no use.
func (f *FloatingIP) tellProblem() {
	var six []netip.Addr
	for _, p := range f.options.Addresses {
		if p.Addr().Is6() {
			six = append(six, p.Addr())
		}
	}
	if len(six) == 0 {
		return
	}
	at := *f.device.Load()
	at.Problem = ""
	if err := errors.Join(f.without...); err != nil {
		at.Problem = err.Error()
	}
	if err := checkIPv6(f.options.Interface, at.Device); err != nil {
		at.Problem = fmt.Sprintf("nobody reaches %v: %v", six, err)
	}
	f.device.Store(&at)
}

// move sets where the addresses are from now on.
func (f *FloatingIP) move(tun *os.File, device string, link int) {
	at := *f.device.Load()
	at.tun, at.Device, at.link = tun, device, link
	f.device.Store(&at)
}

// Release removes the addresses. It is no error if they are not there.
func (f *FloatingIP) Release() error {
	f.ending.Store(true)
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.release()
}

func (f *FloatingIP) release() error {
	f.ending.Store(true) // set again, since an Acquire may have held the lock and cleared it
	if !f.held {
		return nil
	}
	if !f.present { // without permission, the kernel would not even say that the address is missing
		f.held = false
		return nil
	}
	if err := f.remove(); err != nil {
		return fmt.Errorf("netio: release the floating address: %w", err)
	}
	f.held, f.present = false, false
	return nil
}

// remove removes the addresses from where they are.
func (f *FloatingIP) remove() error {
	var failed []error
	link := f.device.Load().link
	for _, p := range f.options.Addresses {
		if err := removeAddress(f.handle, link, p.Addr()); err != nil && !isGone(err) {
			failed = append(failed, f.explain("remove", p, err))
		}
	}
	for _, route := range f.routes {
		// The kernel removes one of IPv4 together with its source address.
		if route.Src == nil {
			_ = f.handle.RouteDel(route) // it only says where those hosts are
		}
	}
	return errors.Join(failed...)
}

// Close releases the addresses and the device. The FloatingIP cannot be used afterwards.
func (f *FloatingIP) Close() error {
	f.ending.Store(true)
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.release()
	at := *f.device.Load()
	for _, file := range []*os.File{at.tun, f.former} {
		if file != nil {
			if failed := file.Close(); !errors.Is(failed, os.ErrClosed) { // it may be in a store
				err = errors.Join(err, failed)
			}
		}
	}
	f.former = nil
	f.move(nil, at.Device, at.link)
	f.handle.Close()
	_ = f.renewal.Close()
	return err
}

// findDevice finds the device for the addresses: the interface as it is now, or
// a fresh TUN device of our own.
func (f *FloatingIP) findDevice() (err error) {
	if f.device.Load().Method == HoldTUN {
		return f.openDevice()
	}
	index, err := f.interfaceIndex()
	if err == nil {
		f.move(nil, f.options.Interface, index)
	}
	return err
}

func (f *FloatingIP) interfaceIndex() (int, error) {
	link, err := f.handle.LinkByName(f.options.Interface)
	if err != nil {
		return 0, fmt.Errorf("%w (interface %s: %w)", ErrLinkDown, f.options.Interface, err)
	}
	return link.Attrs().Index, nil
}

func (f *FloatingIP) explain(verb string, p netip.Prefix, err error) error {
	advice := ""
	if errors.Is(err, unix.EPERM) {
		advice = " (needs CAP_NET_ADMIN)"
	}
	return fmt.Errorf("%s %s on %s: %w%s", verb, p.Addr(), f.device.Load().Device, err, advice)
}
