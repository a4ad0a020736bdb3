package pi

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"strconv"

	"topdog/internal/console"
	"topdog/internal/lab/cluster"
)

// Native is a board of the cluster that is not emulated: topdog on this machine, in a network namespace on the
// boards' LAN. It has no light, and costs next to nothing. Its number is lower than those of the boards, and so is its
// rank.
type Native struct {
	N int

	topdog *cluster.Topdog
}

// buildNatives makes the LAN of the natives. They run when Configure has given them the boards' key.
func (l *Lab) buildNatives(count int, topdog string) (err error) {
	if l.cluster, err = cluster.New(count); err != nil {
		return err
	}
	for n := 1; n <= count; n++ {
		t, err := l.cluster.NewTopdog(cluster.Program{Path: topdog}, n, cluster.Settings{
			"address":   cluster.Quote(l.Floating().String()),
			"heartbeat": cluster.Quote(heartbeat.String()),
		})
		if err == nil {
			err = t.SetAddress(l.address(n))
		}
		if err != nil {
			return fmt.Errorf("make pi%d: %w", n, err)
		}
		l.natives = append(l.natives, &Native{n, t})
	}
	return nil
}

// Natives returns those boards of the cluster that are not emulated.
func (l *Lab) Natives() []*Native { return l.natives }

// start starts the daemon with a key, as `topdog init` has written it.
func (n *Native) start(key string) error {
	if err := os.WriteFile(n.topdog.KeyFile(), []byte(key), 0o600); err != nil {
		return err
	}
	if err := n.topdog.Run(); err != nil {
		return fmt.Errorf("start %s: %w", n.Name(), err)
	}
	return nil
}

// Name is what the board is called.
func (n *Native) Name() string { return "pi" + strconv.Itoa(n.N) }

// Address is the board's own address.
func (n *Native) Address() netip.Prefix { return n.topdog.Addr }

// Status asks the daemon for its view of the cluster.
func (n *Native) Status(ctx context.Context) (console.Status, error) {
	return n.topdog.Client().Status(ctx)
}

// Resign has the daemon hand over.
func (n *Native) Resign(ctx context.Context) error {
	_, err := n.topdog.Client().Resign(ctx)
	return err
}

// Log is what the daemon has logged.
func (n *Native) Log(context.Context) (string, error) { return n.topdog.Log.String(), nil }
