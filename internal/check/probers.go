package check

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"topdog/netio"
)

// tools are what the probers of one process share.
type tools struct {
	floating []netip.Addr
	iface    string
	asker    *netio.GatewayAsker
	noAsker  error // why there is no asker
}

func (t *tools) close() {
	if t.asker != nil {
		t.asker.Close()
	}
}

// prober returns the prober of a check.
func (t *tools) prober(c *Check) (prober, error) {
	d := dialer{floating: t.floating}
	if c.When == Leading {
		d.floating = nil
	}
	switch c.Kind {
	case Unit:
		return newUnitProber(c), nil
	case Exec:
		return newExecProber(c), nil
	case TCP:
		return &tcpProber{dialer: d, target: c.Target}, nil
	case HTTP:
		return newHTTPProber(c, d), nil
	case DNS:
		return newDNSProber(c, d)
	case Command:
		return &commandProber{words: c.words()}, nil
	case Gateway:
		return &gatewayProber{asker: t.asker, failed: t.noAsker, iface: t.iface}, nil
	}
	return nil, fmt.Errorf("checks of the kind %v are not known", c.Kind)
}

// gatewayProber passes when the default gateway answers ARP. This process has no right to ask, so the holder does.
type gatewayProber struct {
	polled
	asker  *netio.GatewayAsker
	failed error // why there is no asker
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
