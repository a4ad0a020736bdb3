package check

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"syscall"
)

// misaimedError says that a check is aimed at a floating address although it is judged on all
// boards: it would ask the leader from everywhere.
type misaimedError struct {
	host string
	addr netip.Addr
}

func (e *misaimedError) Error() string {
	return fmt.Sprintf(`%s is the floating address %v, so this check asks the leader from all boards: aim it at 127.0.0.1, or add when = "leading"`,
		e.host, e.addr)
}

// dialer connects to what a check is aimed at.
type dialer struct {
	floating []netip.Addr // that it must not reach
}

// newDialer returns the dialer of a check.
func newDialer(c *Check, floating []netip.Addr) dialer {
	if c.When == Leading {
		return dialer{}
	}
	return dialer{floating}
}

// dial connects to an address, or to those of a name, one after the other.
func (d dialer) dial(ctx context.Context, network, hostPort string) (conn net.Conn, err error) {
	err = d.each(ctx, hostPort, func(addrPort string) error {
		var n net.Dialer
		made, err := n.DialContext(ctx, network, addrPort)
		if err != nil {
			return plainError(err)
		}
		conn = made
		return nil
	})
	return conn, err
}

// each tries an address, or those of a name, one after the other until one is right.
func (d dialer) each(ctx context.Context, hostPort string, try func(addrPort string) error) error {
	host, port, err := net.SplitHostPort(hostPort)
	if err != nil {
		return err
	}
	addrs, err := d.resolve(ctx, host)
	if err != nil {
		return err
	}
	var failed error
	for _, addr := range addrs {
		if failed = try(net.JoinHostPort(addr.String(), port)); failed == nil {
			return nil
		}
	}
	return failed
}

// resolve returns the addresses of a host. None of them may be a floating one.
func (d dialer) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{addr}, nil // the configuration has looked at it
	}
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, fmt.Errorf("the name %s has no address: %w", host, plainError(err))
	}
	for i := range addrs {
		addrs[i] = addrs[i].Unmap()
		if slices.Contains(d.floating, addrs[i]) {
			return nil, &misaimedError{host, addrs[i]}
		}
	}
	return addrs, nil
}

// plainError leaves out what whoever reads the message knows: the operation and the addresses.
func plainError(err error) error {
	var dns *net.DNSError
	var call *os.SyscallError
	var number syscall.Errno
	switch {
	case errors.As(err, &dns):
		return errors.New(dns.Err)
	case errors.As(err, &call):
		return call.Err
	case errors.As(err, &number):
		return number
	}
	return err
}
