package netio

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

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
