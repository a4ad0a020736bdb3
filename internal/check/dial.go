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
func (d dialer) dial(ctx context.Context, network, hostPort string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(hostPort)
	if err != nil {
		return nil, err
	}
	addrs, err := d.resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	var failed error
	for _, addr := range addrs {
		var n net.Dialer
		conn, err := n.DialContext(ctx, network, net.JoinHostPort(addr.String(), port))
		if err == nil {
			return conn, nil
		}
		failed = plainError(err)
	}
	return nil, failed
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
