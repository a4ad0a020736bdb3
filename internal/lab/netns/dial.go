package netns

import (
	"context"
	"net"
)

// Dial connects from this host to an address, a number, as net.Dialer.DialContext does. The
// connection stays in the host's network.
func (h *Host) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return Within(h, func() (net.Conn, error) { return new(net.Dialer).DialContext(ctx, network, address) })
}
