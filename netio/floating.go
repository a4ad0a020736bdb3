package netio

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// HoldMethod is how the floating addresses are kept from outliving the daemon.
type HoldMethod int

const (
	// HoldAuto uses HoldTUN if it works on this host, and HoldLifetime otherwise.
	HoldAuto HoldMethod = iota
	// HoldTUN puts the addresses on a TUN device that goes away with the process,
	// which covers a killed daemon, and gives them a lifetime as well, which covers a
	// frozen one: each in the shortest time.
	HoldTUN
	// HoldLifetime puts them on the interface itself with a lifetime that must be
	// renewed. They outlive a killed process by up to the lifetime and a bit.
	HoldLifetime
)

// holdMethods are the names of the methods, as the configuration writes them.
var holdMethods = [...]string{HoldAuto: "auto", HoldTUN: "tun+lifetime", HoldLifetime: "lifetime"}

func (m HoldMethod) String() string {
	if m < 0 || int(m) >= len(holdMethods) {
		return fmt.Sprintf("hold method %d", int(m))
	}
	return holdMethods[m]
}

// HoldMethodNamed returns the method with the name.
func HoldMethodNamed(name string) (m HoldMethod, ok bool) {
	i := slices.Index(holdMethods[:], name)
	return HoldMethod(max(i, 0)), i >= 0
}

// HoldMethodNames lists the names of all methods.
func HoldMethodNames() []string { return holdMethods[:] }

const (
	// DefaultDevice is the name of the TUN device. That of a second daemon on the
	// same board is topdog1, and so on: the first that is free.
	DefaultDevice = "topdog0"
	devicePrefix  = "topdog"
	devicePattern = devicePrefix + "%d"
	// DefaultLifetime is the shortest that the kernel can count. It removes an
	// address up to 1.25 s after its lifetime ended (measured, docs/address.md),
	// so this is what a frozen board costs: 1 to 2.25 s with two holders.
	DefaultLifetime = time.Second
)

// FloatingOptions say which addresses are held, and how.
type FloatingOptions struct {
	// Interface is the group's interface, on whose link the addresses are used.
	Interface string
	// Addresses are the floating IPs, each with the prefix length of its subnet.
	Addresses []netip.Prefix
	// Method is how to hold them; the zero value chooses.
	Method HoldMethod
	// Device names the TUN device; if empty, the first of topdog0, topdog1 … that is free.
	Device string
	// Lifetime is in whole seconds, at least one; DefaultLifetime if zero.
	// Renew about four times as often.
	Lifetime time.Duration
}

func (o *FloatingOptions) validate() error {
	if o.Device == "" {
		o.Device = devicePattern
	}
	if o.Lifetime == 0 {
		o.Lifetime = DefaultLifetime
	}
	switch {
	case o.Interface == "":
		return errors.New("no interface was given")
	case len(o.Addresses) == 0:
		return errors.New("no address was given")
	case o.Lifetime < time.Second || o.Lifetime%time.Second != 0:
		return fmt.Errorf("the lifetime must be whole seconds and at least 1s, is %s: the kernel counts in seconds", o.Lifetime)
	case o.Method < HoldAuto || o.Method > HoldLifetime:
		return fmt.Errorf("there is no %s", o.Method)
	}
	o.Addresses = slices.Clone(o.Addresses)
	for _, p := range o.Addresses {
		if !p.IsValid() {
			return fmt.Errorf("%s cannot be a floating IP: it must be an IPv4 unicast address with a prefix length, such as 192.168.1.100/24", p)
		}
		if err := CheckFloating(p.Addr()); err != nil {
			return fmt.Errorf("the floating IP: %w", err)
		}
	}
	return nil
}

// CheckFloating says why an address cannot be a floating IP.
func CheckFloating(ip netip.Addr) error {
	switch {
	case !ip.Is4():
		return fmt.Errorf("%s is not an IPv4 address", ip)
	case ip.IsLoopback():
		return fmt.Errorf("%s is a loopback address, which no other board can reach", ip)
	case ip.IsLinkLocalUnicast():
		return fmt.Errorf("%s is a link-local address, which machines choose for themselves (RFC 3927)", ip)
	case !ip.IsGlobalUnicast():
		return fmt.Errorf("%s is not a unicast address", ip)
	}
	return nil
}

var (
	// ErrNotHeld is what Renew says when the addresses are not held.
	ErrNotHeld = errors.New("the floating address is not held")
	// ErrExpired is what Renew says when it comes later than the lifetime: the
	// process was frozen or starved. The kernel has removed the addresses, or is
	// about to, and another board may hold them by now. Make sure of being
	// the leader still, and then Acquire them again.
	ErrExpired = errors.New("the lifetime of the floating address is over: it was not renewed in time")
)

// FloatingIP holds the floating addresses while this board leads.
//
// Each address is added as a /32, which creates no route to a subnet, never
// becomes the board's main address, and is not deleted together with another one.
//
// All methods may be called from any goroutine.
type FloatingIP struct {
	options FloatingOptions
	method  HoldMethod
	reason  string
	handle  *netlink.Handle
	tun     *os.File // nil without TUN

	mu       sync.Mutex
	taken    bool
	leaseEnd time.Duration // on the clock of Now; with lifetimes only
	device   string        // name of the TUN device, if there is one
	link     int           // index of the device that has the addresses
	routes   []*netlink.Route
}

// NewFloatingIP prepares to hold the addresses: it opens what Acquire will need,
// so that a take-over costs one system call per address. It adds no address
// yet. The interface need not exist.
func NewFloatingIP(o FloatingOptions) (*FloatingIP, error) {
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("netio: floating IP: %w", err)
	}
	handle, err := openHandle()
	if err != nil {
		return nil, err
	}
	f := &FloatingIP{options: o, handle: handle}
	if err := f.choose(); err != nil {
		handle.Close()
		return nil, fmt.Errorf("netio: floating IP on %s: %w", o.Interface, err)
	}
	return f, nil
}

// choose settles the way, and opens the TUN device if the way has one.
func (f *FloatingIP) choose() error {
	wanted := f.options.Method
	if wanted == HoldLifetime {
		f.method, f.reason = HoldLifetime, "as configured"
		return nil
	}
	problem := f.tryTUN()
	switch {
	case problem == nil && wanted == HoldAuto:
		f.method, f.reason = HoldTUN, "gone at once if the daemon is killed, and soon if it is frozen"
	case problem == nil:
		f.method, f.reason = wanted, "as configured"
	case wanted == HoldAuto:
		f.method, f.reason = HoldLifetime, fmt.Sprintf("a TUN device cannot be used here: %v", problem)
	default:
		return fmt.Errorf("hold it by %s: %w", wanted, problem)
	}
	return nil
}

// tryTUN opens the TUN device, or says why an address on one would be of no use.
func (f *FloatingIP) tryTUN() error {
	ignore, err := arpIgnore(f.options.Interface)
	if err != nil {
		return fmt.Errorf("cannot tell whether the kernel answers ARP for it: %w", err)
	}
	if ignore != 0 {
		return fmt.Errorf("net.ipv4.conf.{all,%s}.arp_ignore is %d, so the kernel would not answer ARP for an address that is not on %[1]s itself",
			f.options.Interface, ignore)
	}
	return f.openDevice()
}

// openDevice makes the TUN device, anew if somebody has deleted the one we had.
func (f *FloatingIP) openDevice() error {
	if f.tun != nil {
		f.tun.Close()
		f.tun = nil
	}
	tun, name, err := openTUN(f.options.Device)
	if err != nil {
		return err
	}
	if f.link, err = raiseTUN(f.handle, name); err != nil {
		tun.Close()
		return err
	}
	f.tun, f.device = tun, name
	return nil
}

// Method returns the method that is in use, never HoldAuto, and why, in words for a status display.
func (f *FloatingIP) Method() (method HoldMethod, reason string) { return f.method, f.reason }

// Device returns the name of the device that has the addresses while they are taken.
func (f *FloatingIP) Device() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.deviceName()
}

// ReleasePlan says what the companion must release while the addresses are held.
func (f *FloatingIP) ReleasePlan() ReleasePlan {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := ReleasePlan{Link: f.link, device: f.tun}
	for _, p := range f.options.Addresses {
		e.Addresses = append(e.Addresses, p.Addr())
	}
	return e
}

func (f *FloatingIP) deviceName() string {
	if f.method == HoldTUN {
		return f.device
	}
	return f.options.Interface
}

// Acquire adds the addresses. Those that are there already are kept and renewed.
// After an error some may be there: call Acquire again, or Release.
func (f *FloatingIP) Acquire() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.taken = true // from here on something may have to be released
	var err error
	if f.method != HoldTUN {
		// The interface may have been made anew since the last time.
		err = f.findDevice()
	}
	if err == nil {
		_, err = f.assertOnDevice()
	}
	if err == nil {
		err = f.findRoutes()
	}
	if err == nil {
		_, err = f.assertRoutes()
	}
	if err != nil {
		return fmt.Errorf("netio: take the floating address: %w", err)
	}
	return nil
}

// Renew starts the lifetimes over, and puts back what somebody else deleted, in
// which case restored is true and the address should be announced again.
//
// It must only be called by a leader that has just made sure that it still
// leads: the kernel knows no "renew only", so renewing an address that is gone
// adds it. The worst case, a process that wakes up after its addresses lapsed,
// is refused here with ErrExpired. Without a lifetime nothing can lapse.
func (f *FloatingIP) Renew() (restored bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.taken {
		return false, fmt.Errorf("netio: renew: %w", ErrNotHeld)
	}
	if Now() >= f.leaseEnd {
		return false, fmt.Errorf("netio: renew: %w", ErrExpired)
	}
	restored, err = f.assertOnDevice()
	restoredRoutes, routeErr := f.assertRoutes()
	if err := errors.Join(err, routeErr); err != nil {
		return restored, fmt.Errorf("netio: renew the floating address: %w", err)
	}
	return restored || restoredRoutes, nil
}

// assertOnDevice is assert on a device that may have been deleted under us.
func (f *FloatingIP) assertOnDevice() (added bool, err error) {
	added, err = f.assert()
	if errors.Is(err, unix.ENODEV) {
		if err = f.findDevice(); err == nil {
			added, err = f.assert()
		}
	}
	return added, err
}

// assert makes every address present with a full lifetime, and tells whether
// one of them had to be added.
func (f *FloatingIP) assert() (added bool, err error) {
	// The lease is counted from before the first system call, so that it can
	// only end too early, never too late.
	end := Now() + f.options.Lifetime
	var failed []error
	for _, p := range f.options.Addresses {
		addr := f.address(p)
		// Adding fails if the address is there, which is how to find out; only
		// replacing sets a new lifetime. The two cost about 10 µs each.
		err := f.handle.AddrAdd(nil, addr)
		switch {
		case err == nil:
			added = true
		case errors.Is(err, unix.EEXIST):
			err = f.handle.AddrReplace(nil, addr)
		}
		if err != nil {
			failed = append(failed, f.explain("add", p, err))
		}
	}
	if len(failed) > 0 {
		return added, errors.Join(failed...)
	}
	f.leaseEnd = end
	return added, nil
}

// address is the only place where a netlink.Addr is made: one that is added
// without lifetimes becomes permanent, also if it had a lifetime before.
func (f *FloatingIP) address(p netip.Prefix) *netlink.Addr {
	seconds := int(f.options.Lifetime / time.Second)
	return &netlink.Addr{LinkIndex: f.link, IPNet: hostNet(p.Addr()), ValidLft: seconds, PreferedLft: seconds}
}

// Release removes the addresses. It is no error if they are not there.
func (f *FloatingIP) Release() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.release()
}

func (f *FloatingIP) release() error {
	if !f.taken {
		return nil
	}
	var failed []error
	for _, p := range f.options.Addresses {
		// The kernel removes a route whose source address goes away, so the
		// routes need no attention.
		err := f.handle.AddrDel(nil, f.address(p))
		if err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) && !errors.Is(err, unix.ENODEV) {
			failed = append(failed, f.explain("remove", p, err))
		}
	}
	if len(failed) > 0 {
		return fmt.Errorf("netio: release the floating address: %w", errors.Join(failed...))
	}
	f.taken = false
	return nil
}

// Close releases the addresses and the device. The FloatingIP cannot be used afterwards.
func (f *FloatingIP) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.release()
	if f.tun != nil {
		err = errors.Join(err, f.tun.Close())
		f.tun = nil
	}
	f.handle.Close()
	return err
}

// findDevice finds the device for the addresses: the interface as it is now, or
// a fresh TUN device of our own.
func (f *FloatingIP) findDevice() (err error) {
	if f.method == HoldTUN {
		return f.openDevice()
	}
	index, err := f.interfaceIndex()
	if err == nil {
		f.link = index
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
	return fmt.Errorf("%s %s on %s: %w%s", verb, p.Addr(), f.deviceName(), err, advice)
}

// hostNet is the /32 of addr.
func hostNet(addr netip.Addr) *net.IPNet {
	return &net.IPNet{IP: addr.AsSlice(), Mask: net.CIDRMask(32, 32)}
}
