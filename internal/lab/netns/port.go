package netns

import "github.com/vishvananda/netns"

// Port returns where the host's cable ends: the namespace of the switch, and the
// name of the interface there. The namespace belongs to the LAN: it must not be
// closed, and is invalid after LAN.Close.
func (h *Host) Port() (netns.NsHandle, string) { return h.lan.fabric.ns, h.portName() }

// AtPort runs fn as [Host.Do] does, but in the namespace of the switch, where the host's cable ends.
func (h *Host) AtPort(fn func() error) error { return h.lan.fabric.do(fn) }
