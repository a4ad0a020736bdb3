package netns

import (
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink"

	"topdog/internal/lab/frame"
)

// SecondInterface is what a board's interface on its second path is called.
const SecondInterface = "wlan0"

// SecondSubnet is that of the second path, unless it is in one LAN with the first.
var SecondSubnet = netip.MustParsePrefix("10.78.0.0/24")

// secondNumber is what is added to a board's number for its address on the second path in one LAN with the first.
const secondNumber = 100

// secondBridge is the switch of the second path, unless it is in one LAN with the first.
const secondBridge = "br1"

// AddSecondPath gives every board a second interface: at a switch of its own, or at the same one.
func (l *LAN) AddSecondPath(inOneLAN bool) error {
	return l.inSwitch("add a second path to", func(f *fabric) error {
		bridge := f.bridge
		if !inOneLAN {
			var err error
			if bridge, err = f.createBridge(secondBridge); err != nil {
				return err
			}
			l.apart = true
		}
		for _, h := range l.boards {
			if err := h.addSecond(f, bridge, inOneLAN); err != nil {
				return fmt.Errorf("%s: %w", h.Name, err)
			}
		}
		deadline := time.Now().Add(linkUpTimeout)
		for _, h := range l.boards {
			if err := h.awaitUp(SecondInterface, h.SecondPort(), deadline); err != nil {
				return fmt.Errorf("%s: %w", h.Name, err)
			}
		}
		return nil
	})
}

// addSecond plugs the host into a bridge, with a second cable.
func (h *Host) addSecond(f *fabric, bridge netlink.Link, inOneLAN bool) error {
	address := nthAddress(SecondSubnet, h.number)
	if inOneLAN {
		address = nthAddress(Subnet, secondNumber+h.number)
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.Index, attrs.HardwareAddr = string(h.SecondPort()), 2*portIndexBase+h.number, readableMAC(0xfe, h.number)
	attrs.MasterIndex, attrs.Flags = bridge.Attrs().Index, net.FlagUp
	cable := netlink.NewVeth(attrs)
	cable.PeerName, cable.PeerHardwareAddr, cable.PeerNamespace = SecondInterface, readableMAC(0x02, h.number), netlink.NsFd(h.ns)
	if err := f.nl.LinkAdd(cable); err != nil {
		return err
	}
	own, err := h.nl.LinkByName(SecondInterface)
	if err != nil {
		return err
	}
	if err := h.nl.AddrAdd(own, kernelAddr(address)); err != nil {
		return err
	}
	return h.nl.LinkSetUp(own)
}

// SecondTap is Tap for the cable of machine n on the second path, whose LAN is one of its own.
func (s *Segment) SecondTap(n int) (name string, err error) {
	bridge, err := s.fabric.nl.LinkByName(secondBridge)
	if err != nil {
		return "", fmt.Errorf("netns: find the switch of the second path: %w", err)
	}
	name = fmt.Sprintf("secondtap%d", n)
	return name, s.tap(name, bridge)
}

// SecondPort is where the host's cable on the second path ends.
func (h *Host) SecondPort() Port { return Port(fmt.Sprintf("second%d", h.number)) }

// onFirstPath keeps filters off the second path, if that has a switch of its own. The kernel has one list of rules for both switches.
func (l *LAN) onFirstPath(filters []Filter) (kept []Filter) {
	for _, f := range filters {
		if l.apart && f.From == nil {
			f.From = Ports(l.hosts...)
		}
		kept = append(kept, f)
	}
	return kept
}

// CaptureSecond is Capture at the host's interface on the second path.
func (h *Host) CaptureSecond(etherType uint16) (*frame.Socket, error) {
	return Within(h, func() (*frame.Socket, error) { return frame.Open(SecondInterface, etherType) })
}

// PullSecond pulls the cable of the second path out at its switch, and PlugSecond puts it back.
func (h *Host) PullSecond() error { return h.setSecond("pull", h.lan.fabric.nl.LinkSetDown) }

// PlugSecond undoes PullSecond.
func (h *Host) PlugSecond() error { return h.setSecond("plug in", h.lan.fabric.nl.LinkSetUp) }

func (h *Host) setSecond(what string, set func(netlink.Link) error) error {
	return h.change(what+" the cable of the second path", func() error { return set(linkIndex(2*portIndexBase + h.number)) })
}
