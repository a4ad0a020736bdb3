package check

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"topdog/netio"
)

// tools are what the probers of one process share. A prober keeps those that it was made with.
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
		return polled(func(ctx context.Context) error { return d.tryTCP(ctx, c.Target) }), nil
	case HTTP:
		return polled(newHTTPProber(c, d).probe), nil
	case DNS:
		p, err := newDNSProber(c, d)
		return polled(p.probe), err
	case Command:
		return polled(func(ctx context.Context) error {
			_, err := runProgram(ctx, c.words(), commandOutputMax)
			return err
		}), nil
	case Gateway:
		return polled(t.askGateway), nil
	}
	return nil, fmt.Errorf("checks of the kind %v are not known", c.Kind)
}

// askGateway asks the default gateway by ARP. This process has no right to ask, so the holder does.
func (t *tools) askGateway(ctx context.Context) error {
	switch {
	case t.asker == nil:
		return t.noAsker
	case t.iface == "":
		return errors.New("the interface is not known yet")
	}
	return t.asker.Ask(ctx, t.iface)
}
