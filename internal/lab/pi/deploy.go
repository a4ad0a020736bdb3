package pi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"topdog/internal/console"
)

// heartbeat is what the boards are configured with. Emulated processors pause for
// up to 0.6 s, and for longer if the machine has something else to do; a leader
// that paused is no dead one.
const heartbeat = 2 * time.Second

// unitOverride is added to topdog's unit, as `systemctl edit` would. A board that is
// emulated by a busy machine may stand still for longer than a real one ever does.
const unitOverride = `[Service]
TimeoutStartSec=2min
TimeoutStopSec=1min
WatchdogSec=1min
`

// deployTime bounds each command of an installation. The slowest, dpkg, takes
// about 10 s with three boards at it on two processors.
const deployTime = 2 * time.Minute

// InstallPackage installs a package that Flash has put on the card.
func (b *Board) InstallPackage(ctx context.Context, deb string) error {
	return b.dpkg(ctx, "--install", deb)
}

// UnpackPackage does the first half of that: what runs goes on until `dpkg --configure` restarts it.
func (b *Board) UnpackPackage(ctx context.Context, deb string) error {
	return b.dpkg(ctx, "--unpack", deb)
}

func (b *Board) dpkg(ctx context.Context, action, deb string) error {
	return b.run(ctx, "dpkg "+action+" "+quote("/root/"+filepath.Base(deb)))
}

// run runs a command of which only the success counts.
func (b *Board) run(ctx context.Context, command string) error {
	ctx, cancel := context.WithTimeout(ctx, deployTime)
	defer cancel()
	_, err := b.Run(ctx, command)
	return err
}

// Configure sets the cluster up: `topdog init` on the first board, its two files
// to all others, and the unit enabled and started everywhere. The natives get its key
// and start when the boards have.
func (l *Lab) Configure(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, deployTime)
	defer cancel()
	boards := l.Boards()
	first := boards[0]
	if _, err := first.Run(ctx, "[ -e /etc/topdog/topdog.toml ] || topdog init --address "+l.Floating().String()); err != nil {
		return err
	}
	config, err := first.Run(ctx, "cat /etc/topdog/topdog.toml")
	if err != nil {
		return err
	}
	key, err := first.Run(ctx, "cat /etc/topdog/key")
	if err != nil {
		return err
	}
	err = l.Each(func(b *Board) error {
		if err := b.WriteFile(ctx, "/etc/topdog/topdog.toml", b.configuration(config), "0644", "root:root"); err != nil {
			return err
		}
		if b.N != first.N {
			if err := b.WriteFile(ctx, "/etc/topdog/key", key, "0600", "topdog:topdog"); err != nil {
				return err
			}
		}
		if err := b.WriteFile(ctx, "/etc/systemd/system/topdog.service.d/lab.conf", unitOverride, "0644", "root:root"); err != nil {
			return err
		}
		_, err := b.Run(ctx, "systemctl daemon-reload && systemctl enable --now topdog 2>&1")
		return err
	})
	if err != nil {
		return err
	}
	for _, n := range l.natives {
		if err := n.start(key); err != nil {
			return err
		}
	}
	return nil
}

// configuration is what `topdog init` wrote, with what is special about the lab.
func (b *Board) configuration(common string) string {
	const mark = "# The lab of emulated boards.\n"
	common, _, _ = strings.Cut(common, mark)
	text := common + mark + fmt.Sprintf("heartbeat = %q\n", heartbeat)
	if b.Light() == GPIO17 {
		text += "led = \"GPIO17\"\n"
	}
	return text
}

// Each does something with all boards at the same time.
func (l *Lab) Each(do func(*Board) error) error {
	var g errgroup.Group
	for _, b := range l.Boards() {
		g.Go(func() error { return do(b) })
	}
	return g.Wait()
}

// Resign has the board's daemon hand over.
func (b *Board) Resign(ctx context.Context) error { return b.run(ctx, "topdog resign") }

// Log is what the board's daemon has logged since the board booted.
func (b *Board) Log(ctx context.Context) (string, error) {
	return b.Run(ctx, "journalctl -b --no-pager -o cat -u topdog")
}

// Status asks the board's daemon for its view of the cluster.
func (b *Board) Status(ctx context.Context) (s console.Status, err error) {
	ctx, cancel := context.WithTimeout(ctx, deployTime)
	defer cancel()
	out, err := b.Run(ctx, "topdog status --json")
	// Status 1 says that nobody holds the address, and 5 that no fit board could take over, which are answers too.
	var exit *ExitError
	if err != nil && (!errors.As(err, &exit) || exit.Status != 1 && exit.Status != 5) {
		return s, err
	}
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		return s, fmt.Errorf("%s: topdog status --json said %q: %w", b.Name(), out, err)
	}
	return s, nil
}
