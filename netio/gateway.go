package netio

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// GatewayAsker asks the default gateway of an interface by ARP whether it is there: by a packet socket, which needs
// CAP_NET_RAW, or by a connection to a holder, which has it. Such a connection may be inherited.
type GatewayAsker struct {
	connection *connection // nil for a socket
}

// OpenGatewayAsker is for a process that may open packet sockets.
func OpenGatewayAsker() (*GatewayAsker, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("netio: open a packet socket, to ask the gateway by ARP (needs CAP_NET_RAW): %w", err)
	}
	return &GatewayAsker{}, unix.Close(fd)
}

// InheritGatewayAsker takes over the connection that another process has opened, see Holder.OpenGatewaySocket.
func InheritGatewayAsker(fd int) (*GatewayAsker, error) {
	family, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil || family != unix.AF_UNIX {
		return nil, errors.New("there is no holder that asks the gateway by ARP")
	}
	unix.CloseOnExec(fd)
	return &GatewayAsker{&connection{fd: fd}}, nil
}

// Ask asks the default gateway of an interface, and returns when it has answered, or when ctx ends.
func (a *GatewayAsker) Ask(ctx context.Context, iface string) error {
	if a.connection == nil {
		return reachGateway(ctx, iface, nil)
	}
	within := maxGatewayWait
	if deadline, bounded := ctx.Deadline(); bounded {
		within = min(within, time.Until(deadline))
	}
	body, err := encode(gatewayRequest{iface, max(within, 0)})
	if err != nil {
		return err
	}
	_, received, err := a.connection.call(askGateway, body, nil, within+answerWithin, nil)
	closeAll(received)
	return err
}

// Close closes the connection.
func (a *GatewayAsker) Close() error {
	if a.connection != nil {
		a.connection.close()
	}
	return nil
}

// reachGateway asks by an Announcer of the interface, or by one of its own if that is nil or of another one.
func reachGateway(ctx context.Context, iface string, announcer *Announcer) error {
	link, err := net.InterfaceByName(iface)
	if err != nil {
		return fmt.Errorf("there is no interface %s", iface)
	}
	own, err := prefixesOf(link)
	if err == nil && len(own) == 0 {
		err = fmt.Errorf("%s has no IPv4 address", iface)
	}
	if err != nil {
		return err
	}
	gateway, err := gatewayOn(link.Index)
	if err != nil {
		return err
	}
	if announcer == nil || announcer.index != link.Index {
		if announcer, err = OpenAnnouncer(link.Index, own[0].Addr(), gateway); err != nil {
			return err
		}
		defer announcer.Close()
	}
	if !announcer.reach(ctx, gateway) {
		return fmt.Errorf("the gateway %s does not answer", gateway)
	}
	return nil
}

// prefixesOf returns the IPv4 addresses of this host on a link, each with its subnet.
func prefixesOf(link *net.Interface) (own []netip.Prefix, err error) {
	addrs, err := link.Addrs()
	if err != nil {
		return nil, fmt.Errorf("list the addresses of %s: %w", link.Name, err)
	}
	for _, a := range addrs {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil && prefix.Addr().Is4() {
			own = append(own, prefix)
		}
	}
	return own, nil
}

// gatewayOn returns the default gateway on a link.
func gatewayOn(index int) (netip.Addr, error) {
	table, err := OpenNeighbours(index)
	if err != nil {
		return netip.Addr{}, err
	}
	defer table.Close()
	gateway, found, err := table.Gateway()
	if err == nil && !found {
		err = errors.New("there is no default gateway on this interface")
	}
	return gateway, err
}
