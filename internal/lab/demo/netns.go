package demo

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"topdog/internal/config"
	"topdog/internal/daemon"
	"topdog/internal/lab/netns"
	"topdog/internal/lab/observe"
)

// namespacesFloating is the address in the LAN's default subnet that the boards hold.
var namespacesFloating = netip.MustParseAddr("10.77.0.100")

// namespaces is a LAN of network namespaces with a cable each.
type namespaces struct {
	lan     *netns.LAN
	watch   *observe.Holders
	plugged []bool
	powered []bool
}

func newNamespaces(boards int) (*namespaces, error) {
	if err := netns.Available(); err != nil {
		return nil, fmt.Errorf("--netns: %w (topdog demo without --netns needs no root)", err)
	}
	lan, err := netns.New(netns.Options{Boards: boards})
	if err != nil {
		return nil, err
	}
	s := &namespaces{lan: lan, plugged: make([]bool, boards), powered: make([]bool, boards)}
	if err := s.open(); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// open starts what watches, and pulls all cables, since no board has power yet.
func (s *namespaces) open() (err error) {
	if s.watch, err = s.lan.WatchHolders(namespacesFloating); err != nil {
		return err
	}
	for n := 1; n <= s.lan.Boards(); n++ {
		s.plugged[n-1] = true
		if err := s.apply(n); err != nil {
			return err
		}
	}
	return nil
}

func (s *namespaces) about() string        { return "real veth cables" }
func (s *namespaces) floating() netip.Addr { return namespacesFloating }
func (s *namespaces) close() error         { return s.lan.Close() }

// board names topdog's default group: the LAN is this demo's alone, so no other demo can be on it.
func (s *namespaces) board(n int) (netip.Addr, string, netip.AddrPort) {
	b := s.lan.Board(n)
	return b.Addr.Addr(), b.Interface, config.DefaultMulticast
}

func (s *namespaces) platform(n int, cfg *config.Config) daemon.Platform {
	return within(s.lan.Board(n), daemon.Real(cfg, daemon.RealOptions{}))
}

// power switches the link of the board on and off with it: a board without
// power has no carrier either.
func (s *namespaces) power(n int, on bool) error {
	s.powered[n-1] = on
	return s.apply(n)
}

func (s *namespaces) cable(n int, in bool) error {
	s.plugged[n-1] = in
	return s.apply(n)
}

func (s *namespaces) apply(n int) error {
	if s.powered[n-1] && s.plugged[n-1] {
		return s.lan.Board(n).Plug()
	}
	return s.lan.Board(n).Pull()
}

func (s *namespaces) ask(interval time.Duration) (*observe.Asker, error) {
	return s.lan.Ask(namespacesFloating, interval)
}

func (s *namespaces) holders() *observe.Holders { return s.watch }
