package daemon

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"time"

	"topdog/gpio"
	"topdog/internal/config"
	"topdog/netio"
)

// Witness is the machine of a witness: a voter that never leads. It has no address to hold, no
// light and no holder, and speaks no ARP, so it needs no privilege. What it has are the
// sockets of the group and the watch over the interface.
func Witness(cfg *config.Config) Platform {
	p := Real(witnessed(cfg), RealOptions{})
	p.OpenFence, p.OpenAddresses, p.OpenNeighbours = nil, nil, nil
	p.OpenAnnouncer = func(int, netip.Addr) (Announcer, error) { return noARP{}, nil }
	return p
}

// witnessed is the configuration of a board as a witness uses it: it may be the same file.
func witnessed(cfg *config.Config) *config.Config {
	c := *cfg
	c.Priority, c.Preempt, c.LED = 0, false, gpio.Spec{}
	c.Witness = config.Witness{} // it never claims, so it need not know whether its port receives
	c.Checks = nil               // likewise
	return &c
}

// noARP is an Announcer that announces nothing, asks nobody and hears nothing.
type noARP struct{}

func (noARP) Announce(netip.Addr) error                               { return nil }
func (noARP) Rivals([]netip.Addr, func(netip.Addr, net.HardwareAddr)) {}
func (noARP) Answers(func(netio.ARPAnswer))                           {}
func (noARP) Ask([]netio.ARPQuestion) error                           { return nil }
func (noARP) Resolve(netip.Addr) error                                { return nil }
func (noARP) Doubt(netio.Doubt) error                                 { return nil }
func (noARP) Heard() (uint64, []netio.Neighbour, error)               { return 0, nil, nil }
func (noARP) Calm() error                                             { return nil }
func (noARP) Close() error                                            { return nil }

// Probe is never called: only who may lead looks whether the address is free.
func (noARP) Probe(context.Context, netip.Addr, int, time.Duration) (net.HardwareAddr, bool, error) {
	return nil, false, errors.New("a witness holds no address")
}
