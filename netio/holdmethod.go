package netio

import (
	"fmt"
	"slices"
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
