package check

import (
	"context"
	"errors"

	"topdog/netio"
)

// gatewayProber passes when the default gateway answers ARP. The holder asks it, since the checker has no rights.
type gatewayProber struct {
	polled
	asker  *netio.GatewayAsker
	failed error // why there is none
	iface  string
}

func (p *gatewayProber) probe(ctx context.Context) error {
	switch {
	case p.asker == nil:
		return p.failed
	case p.iface == "":
		return errors.New("the interface is not known yet")
	}
	return p.asker.Ask(ctx, p.iface)
}
