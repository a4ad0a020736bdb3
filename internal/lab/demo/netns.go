package demo

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"topdog/internal/daemon"
	"topdog/internal/lab/netns"
	"topdog/netio"
)

var (
	// namespacesFloating is the address in lab's default subnet that the boards hold.
	namespacesFloating = netip.MustParseAddrPort("10.77.0.100:7777")
	// namespacesGroup is topdog's default (package wire); the LAN is this demo's
	// alone, so no other demo can be on it.
	namespacesGroup = netip.MustParseAddrPort("224.0.0.254:9254")
)

const (
	// clientBuffer is the send buffer of the client in bytes. While the address has no
	// owner the kernel keeps up to 208 KiB of questions until ARP is resolved; with a
	// smaller buffer than that the client would stand still instead of asking on.
	clientBuffer = 1 << 20
	// soSndbufForce is SO_SNDBUFFORCE: what root may have beyond net.core.wmem_max.
	soSndbufForce = 0x20
	// ipFreebind is IP_FREEBIND: bind to an address that the board does not have yet.
	ipFreebind = 0xf
)

// namespaces is a LAN of network namespaces with a cable each.
type namespaces struct {
	lan        *netns.LAN
	watch      *netns.Holders
	responders []*responder
	plugged    []bool
	powered    []bool
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

// open starts what watches and what answers, and pulls all cables, since no
// board has power yet.
func (s *namespaces) open() (err error) {
	if s.watch, err = s.lan.WatchHolders(namespacesFloating.Addr()); err != nil {
		return err
	}
	for n := 1; n <= s.lan.Boards(); n++ {
		s.plugged[n-1] = true
		if err := s.lan.Board(n).Pull(); err != nil {
			return err
		}
		err := s.lan.Board(n).Do(func() error {
			r, err := respond(namespacesFloating, syscall.IPPROTO_IP, ipFreebind, n, func() bool { return true })
			if err == nil {
				s.responders = append(s.responders, r)
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("%s: %w", s.lan.Board(n).Name, err)
		}
	}
	return nil
}

func (s *namespaces) close() error {
	var errs []error
	for _, r := range s.responders {
		errs = append(errs, r.close())
	}
	return errors.Join(append(errs, s.lan.Close())...)
}

func (s *namespaces) about() string            { return "real veth cables" }
func (s *namespaces) floating() netip.AddrPort { return namespacesFloating }

func (s *namespaces) board(n int) (netip.Addr, string, uint16) {
	b := s.lan.Board(n)
	return b.Addr.Addr(), b.Interface, namespacesGroup.Port()
}

func (s *namespaces) platform(n int) daemon.Platform {
	return daemon.Real(daemon.RealOptions{
		Group: namespacesGroup, HoldMethod: netio.HoldAuto, Namespace: s.lan.Board(n).Namespace(),
	})
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

func (s *namespaces) dial() (socket, error) {
	var conn *net.UDPConn
	err := s.lan.Client().Do(func() (err error) {
		if conn, err = net.ListenUDP("udp4", nil); err != nil {
			return err
		}
		raw, err := conn.SyscallConn()
		if err != nil {
			return err
		}
		var optionErr error
		err = raw.Control(func(fd uintptr) {
			optionErr = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, soSndbufForce, clientBuffer)
		})
		return errors.Join(err, optionErr)
	})
	return conn, err
}

func (s *namespaces) holders() []int                          { return s.watch.Current() }
func (s *namespaces) timeline(since time.Time) netns.Timeline { return s.watch.Since(since) }
