package pi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"

	"topdog/internal/lab/cluster"
)

// Native is a board of the cluster that is not emulated: topdog on this machine, in a network namespace on the
// boards' LAN. It has no light, and costs next to nothing. Its number is lower than those of the boards, and so is its
// rank.
type Native struct{ topdog *cluster.Topdog }

// buildNatives makes the LAN of the natives. They run when Configure has given them the boards' key.
func (l *Lab) buildNatives(count int, topdog string) (err error) {
	if l.cluster, err = cluster.New(count); err != nil {
		return err
	}
	for n := 1; n <= count; n++ {
		t, err := l.cluster.NewTopdog(cluster.Program{Path: topdog}, n, cluster.Settings{
			"address":   cluster.Quote(Floating.String()),
			"heartbeat": cluster.Quote(heartbeat.String()),
		})
		if err == nil {
			err = t.SetAddress(address(n))
		}
		if err != nil {
			return fmt.Errorf("make pi%d: %w", n, err)
		}
		l.Natives = append(l.Natives, &Native{t})
	}
	return nil
}

// start starts the daemon with a key, as `topdog init` has written it.
func (n *Native) start(key string) error {
	err := os.WriteFile(n.topdog.KeyFile(), []byte(key), 0o600)
	if err == nil {
		err = n.topdog.Run()
	}
	if err != nil {
		return fmt.Errorf("start %s: %w", n.Name(), err)
	}
	return nil
}

// Name is what the board is called.
func (n *Native) Name() string { return n.topdog.String() }

// Address is the board's own address.
func (n *Native) Address() netip.Addr { return n.topdog.Addr.Addr() }

func (n *Native) hardwareAddr() net.HardwareAddr { return n.topdog.HardwareAddr }

// Topdog gives topdog a command, and returns what it says.
func (n *Native) Topdog(ctx context.Context, args ...string) (string, error) {
	c := exec.CommandContext(ctx, n.topdog.Program.Path, append(args, "--config", n.topdog.ConfigFile())...)
	out, err := c.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = &ExitError{n.Name(), c.String(), exit.ExitCode(), string(append(out, exit.Stderr...))}
	}
	return string(out), err
}

// Log is what the daemon has logged.
func (n *Native) Log(context.Context) (string, error) { return n.topdog.Log.String(), nil }
