package netio

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// FloatingOptions say which addresses are held, and how.
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

func (o *FloatingOptions) validate() error {
	if o.device == "" {
		o.device = devicePattern
	}
	if o.lifetime == 0 {
		o.lifetime = DefaultLifetime
	}
	switch {
	case o.Interface == "":
		return errors.New("no interface was given")
	case len(o.Addresses) == 0:
		return errors.New("no address was given")
	case o.lifetime < time.Second || o.lifetime%time.Second != 0:
		return fmt.Errorf("the lifetime must be whole seconds and at least 1s, is %s: the kernel counts in seconds", o.lifetime)
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

const (
	// DefaultDevice is the name of the TUN device. That of a second daemon on the
	// same board is topdog1, and so on: the first that is free.
	DefaultDevice = "topdog0"
	devicePrefix  = "topdog"
	devicePattern = devicePrefix + "%d"
	// DefaultLifetime is the shortest that the kernel can count. It removes an
	// address up to 1.25 s after its lifetime ended (measured, docs/address.md),
	// so this is what a frozen board costs: 1 to 2.25 s with two holders. Renew about
	// four times as often.
	DefaultLifetime = time.Second
	// GoneAfter is how long after it was renewed last an address of that lifetime is gone for certain:
	// 2.25 s, and some more for a kernel that is busy.
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
