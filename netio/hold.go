package netio

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// FloatingOptions say which addresses are held, and how. They are those of a configuration that was checked.
type FloatingOptions struct {
	// Interface is the group's interface, on whose link the addresses are used.
	Interface string
	// Addresses are the floating IPs, each with the prefix length of its subnet.
	Addresses []netip.Prefix
	// Method is how to hold them; the zero value chooses.
	Method HoldMethod

	// device names the TUN device; if empty, the first of topdog0, topdog1 … that is free.
	device string
	// lifetime is in whole seconds, at least one; DefaultLifetime if zero.
	lifetime time.Duration
}

// CheckFloating says why an address cannot be a floating IP.
func CheckFloating(ip netip.Addr) error {
	switch {
	case ip.Is4In6():
		return fmt.Errorf("%s is an IPv4 address in the form of an IPv6 address (RFC 4291, section 2.5.5.2)", ip)
	case ip.IsLoopback():
		return fmt.Errorf("%s is a loopback address, which no other board can reach", ip)
	case ip.Is4() && ip.IsLinkLocalUnicast():
		return fmt.Errorf("%s is a link-local address, which machines choose for themselves (RFC 3927)", ip)
	case ip.IsLinkLocalUnicast():
		return fmt.Errorf("%s is a link-local address, which every machine makes for itself and which means another host on each link (RFC 4291, section 2.5.6)", ip)
	case ip.Zone() != "":
		return fmt.Errorf("%s names the interface %s, and a floating address is the same on all boards", ip, ip.Zone())
	case !ip.IsGlobalUnicast():
		return fmt.Errorf("%s is not a unicast address", ip)
	case siteLocal.Contains(ip):
		return fmt.Errorf("%s is a site-local address, and these are deprecated (RFC 3879)", ip)
	case ip.Is6() && !globalUnicast.Contains(ip) && !ip.IsPrivate():
		return fmt.Errorf("%s is neither a global (2000::/3) nor a unique local address (fc00::/7)", ip)
	}
	return nil
}

var (
	siteLocal     = netip.MustParsePrefix("fec0::/10")
	globalUnicast = netip.MustParsePrefix("2000::/3") // all that is assigned (RFC 4291, section 2.4)
)

const (
	// DefaultDevice is the name of the TUN device. That of a second daemon on the
	// same board is topdog1, and so on: the first that is free.
	DefaultDevice = "topdog0"
	devicePrefix  = "topdog"
	devicePattern = devicePrefix + "%d"
	// DefaultLifetime is the shortest that the kernel can count. The kernel removes an
	// address up to 1.25 s after the end of its lifetime (measured, docs/address.md). So after a board has frozen,
	// two boards may have the address for 1 to 2.25 s. Renew it about four times as often.
	DefaultLifetime = time.Second
	// GoneAfter is how long after its last renewal an address with that lifetime is certainly gone:
	// 2.25 s, and some more in case the kernel is busy.
	GoneAfter = 3 * time.Second
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

// HoldState is how the floating addresses are held on this host, or would be.
type HoldState struct {
	Method HoldMethod `json:"method"` // never HoldAuto
	Reason string     `json:"reason"` // why that one, in words for a status display
	Device string     `json:"device"` // has the addresses while they are held
	// Problem says why some of the addresses are not held, or of no use, and what to do; "" if all are well.
	Problem string `json:"problem,omitempty"`
}

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

// openTUN makes a TUN device that lives exactly as long as the returned file:
// when the process ends, however it ends, the kernel closes the file and
// removes the device with all its addresses. No packet is ever routed to the
// device; it is only a hook to hang addresses on.
//
// In a name with "%d" the kernel puts the first number that is free. It returns
// the device's name.
func openTUN(pattern string) (file *os.File, name string, err error) {
	const path = "/dev/net/tun"
	// Not os.OpenFile: that would register the file with the runtime's poller,
	// and nobody is ever going to read it.
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENODEV):
		return nil, "", fmt.Errorf("open %s: %w; is the module tun loaded? (modprobe tun)", path, err)
	case errors.Is(err, fs.ErrPermission):
		return nil, "", fmt.Errorf("open %s: %w; the service must be allowed to use it (DeviceAllow=%[1]s rw)", path, err)
	case err != nil:
		return nil, "", fmt.Errorf("open %s: %w", path, err)
	}
	if name, err = attachTUN(fd, pattern); err != nil {
		unix.Close(fd)
		return nil, "", err
	}
	return os.NewFile(uintptr(fd), path), name, nil
}

func attachTUN(fd int, pattern string) (name string, err error) {
	request, err := unix.NewIfreq(pattern)
	if err != nil {
		return "", fmt.Errorf("a TUN device cannot be called %q: use 1 to 15 characters", pattern)
	}
	request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	switch {
	case errors.Is(err, unix.EBUSY):
		return "", fmt.Errorf("the TUN device %s belongs to another process (%w): is another topdog running?", pattern, err)
	case errors.Is(err, unix.EPERM):
		return "", fmt.Errorf("make the TUN device %s: %w (needs CAP_NET_ADMIN)", pattern, err)
	case err != nil:
		return "", fmt.Errorf("make the TUN device %s: %w", pattern, err)
	}
	name = request.Name()
	// If somebody had made a persistent device of this name, we now have that
	// one, and it would outlive us. Make it as mortal as a fresh one.
	if err := unix.IoctlSetInt(fd, unix.TUNSETPERSIST, 0); err != nil {
		return "", fmt.Errorf("make the TUN device %s go away with this process: %w", name, err)
	}
	return name, nil
}

// raiseTUN switches the device on and returns its index.
func raiseTUN(handle *netlink.Handle, name string) (index int, err error) {
	link, err := handle.LinkByName(name)
	if err != nil {
		return 0, fmt.Errorf("find the TUN device %s: %w", name, err)
	}
	// No IPv6 link-local address: it would only send router solicitations that
	// nobody reads. On a kernel without IPv6 this fails and is not needed.
	const addrGenModeNone = 1 // IN6_ADDR_GEN_MODE_NONE
	_ = handle.LinkSetIP6AddrGenMode(link, addrGenModeNone)
	if err := handle.LinkSetUp(link); err != nil {
		return 0, fmt.Errorf("switch the TUN device %s on: %w", name, err)
	}
	return link.Attrs().Index, nil
}

// arpIgnoresAll is the value of arp_ignore by which the kernel answers ARP for no address at all.
const arpIgnoresAll = 8

// arpIgnore reads the setting that decides whether the kernel answers ARP on
// the interface for an address that is on another device, such as ours. It
// does with 0, the default. The greater of the interface's value and that of "all"
// counts (Documentation/networking/ip-sysctl.rst).
func arpIgnore(iface string) (value int, err error) {
	const conf = "/proc/sys/net/ipv4/conf"
	for _, name := range []string{"all", iface} {
		b, err := os.ReadFile(filepath.Join(conf, name, "arp_ignore"))
		if errors.Is(err, fs.ErrNotExist) && name == iface {
			// The interface is not there yet; it will start with the defaults.
			b, err = os.ReadFile(filepath.Join(conf, "default", "arp_ignore"))
		}
		if err != nil {
			return 0, err
		}
		n, err := strconv.Atoi(strings.TrimSpace(string(b)))
		if err != nil {
			return 0, fmt.Errorf("%s/%s/arp_ignore: %w", conf, name, err)
		}
		value = max(value, n)
	}
	return value, nil
}

// A floating IP usually lies in the subnet of the interface, and the board
// reaches its neighbours through its own address there. If it lies in another
// subnet, the address alone would leave the board without a way to answer. Then a
// route to that subnet is added with the floating IP as its source. The kernel
// removes such a route of IPv4 together with the address, so it cannot be left over. One of IPv6, which has no source, is
// removed with the address by us. If it is left over, it only says what is true: that those hosts are on this link.

// findRoutes works out which routes the addresses need on the interface as it is now.
func (f *FloatingIP) findRoutes() error {
	f.routes = nil
	if !slices.ContainsFunc(f.options.Addresses, func(p netip.Prefix) bool { return !p.IsSingleIP() }) {
		return nil
	}
	index, err := f.interfaceIndex()
	if err != nil {
		return err
	}
	addrs, err := listAddrs(f.handle)
	if err != nil {
		return err
	}
	var own []netip.Prefix
	for _, a := range addrs {
		if p, ok := prefixOf(a.IPNet); ok && a.LinkIndex == index {
			own = append(own, p)
		}
	}
	for _, p := range missingSubnets(f.options.Addresses, own) {
		route := &netlink.Route{
			LinkIndex: index,
			Protocol:  unix.RTPROT_STATIC,
			Dst:       &net.IPNet{IP: p.Masked().Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())},
		}
		if p.Addr().Is4() {
			route.Scope, route.Src = netlink.SCOPE_LINK, p.Addr().AsSlice()
		}
		f.routes = append(f.routes, route)
	}
	return nil
}

// missingSubnets returns those of the floating addresses, one for each subnet,
// whose subnet none of the interface's own addresses covers. The floating
// addresses themselves do not count as own: they are alone (/32 or /128).
func missingSubnets(floating, own []netip.Prefix) []netip.Prefix {
	var missing []netip.Prefix
	for _, p := range floating {
		covers := func(q netip.Prefix) bool { return q.Bits() <= p.Bits() && q.Contains(p.Addr()) }
		if !p.IsSingleIP() && !slices.ContainsFunc(own, covers) && !slices.ContainsFunc(missing, covers) {
			missing = append(missing, p)
		}
	}
	return missing
}

// ensureRoutes makes every route present and tells whether one had to be
// added: the kernel drops routes when the interface is switched off.
func (f *FloatingIP) ensureRoutes() (added bool, err error) {
	var failed []error
	for _, route := range f.routes {
		switch err := f.handle.RouteAdd(route); {
		case err == nil:
			added = true
		case errors.Is(err, unix.EEXIST):
		case route.Src == nil: // of IPv6
			f.without = append(f.without, fmt.Errorf("add route %s on %s: %w", route.Dst, f.options.Interface, err))
		default:
			failed = append(failed, fmt.Errorf("add route %s on %s: %w", route.Dst, f.options.Interface, withLinkDown(err)))
		}
	}
	return added, errors.Join(failed...)
}

// RemoveLeftovers removes the floating addresses that a daemon which is no longer there may have left, on whatever
// device they are. It runs after the daemon has ended (ExecStopPost=topdog cleanup), and normally finds nothing. It
// returns what it removed, in words. The kernel removes a TUN device with the process that made it, so none is left.
//
// Only what topdog itself can have made is touched: an address must be one of addresses and alone (/32 or /128), so that an address
// that a person has given to the board stays.
func RemoveLeftovers(addresses []netip.Prefix) (removed []string, err error) {
	handle, err := openHandle()
	if err != nil {
		return nil, err
	}
	defer handle.Close()
	present, err := listAddrs(handle)
	if err != nil {
		return nil, fmt.Errorf("netio: remove left-overs: %w", err)
	}
	var failed []error
	for _, a := range present {
		p, ok := prefixOf(a.IPNet)
		if !ok || !p.IsSingleIP() || !slices.ContainsFunc(addresses, func(q netip.Prefix) bool { return q.Addr() == p.Addr() }) {
			continue
		}
		link, err := handle.LinkByIndex(a.LinkIndex)
		if err == nil {
			err = removeAddress(handle, a.LinkIndex, p.Addr())
		}
		_, missing := errors.AsType[netlink.LinkNotFoundError](err)
		switch {
		case missing, isGone(err): // its lifetime ended just now, or its device went
		case err != nil:
			failed = append(failed, fmt.Errorf("address %s: %w", p.Addr(), err))
		default:
			removed = append(removed, fmt.Sprintf("address %s on %s", p.Addr(), link.Attrs().Name))
		}
	}
	if len(failed) > 0 {
		return removed, fmt.Errorf("netio: remove left-overs: %w", errors.Join(failed...))
	}
	return removed, nil
}

// isDeviceName tells whether the kernel may have made the name from devicePattern.
func isDeviceName(name string) bool {
	number, ok := strings.CutPrefix(name, devicePrefix)
	n, err := strconv.Atoi(number)
	return ok && err == nil && strconv.Itoa(n) == number && n >= 0
}
