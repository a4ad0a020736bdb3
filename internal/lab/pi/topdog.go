package pi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"time"

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

// CommandTime bounds a command. The slowest, dpkg, takes
// about 10 s with three boards at it on two processors.
const CommandTime = 2 * time.Minute

// Member is a board of the cluster, be it emulated or native.
type Member interface {
	Name() string
	Address() netip.Addr
	// Topdog gives topdog a command, and returns what it says. It is an *ExitError if it refuses.
	Topdog(ctx context.Context, args ...string) (said string, err error)
	// Log is what the daemon has logged since the board booted.
	Log(context.Context) (string, error)

	hardwareAddr() net.HardwareAddr
}

// Members are all boards, in the order of their numbers.
func (l *Lab) Members() (all []Member) {
	for _, n := range l.Natives {
		all = append(all, n)
	}
	for _, b := range l.Boards {
		all = append(all, b)
	}
	return all
}

// Topdog gives topdog a command.
func (b *Board) Topdog(ctx context.Context, args ...string) (string, error) {
	return b.Run(ctx, "topdog "+strings.Join(args, " "))
}

// Log is what the board's daemon has logged since the board booted.
func (b *Board) Log(ctx context.Context) (string, error) {
	return b.Run(ctx, "journalctl -b --no-pager -o cat -u topdog")
}

// Signal sends the processes of the unit a signal.
func (b *Board) Signal(ctx context.Context, name string) error {
	_, err := b.Run(ctx, "systemctl kill -s "+name+" topdog")
	return err
}

// Status asks a board's daemon for its view of the cluster.
func Status(ctx context.Context, m Member) (s console.Status, err error) {
	out, err := m.Topdog(ctx, "status", "--json")
	// Status 1 says that nobody holds the address, and 5 that no fit board could take over, which are answers too.
	var exit *ExitError
	if err != nil && (!errors.As(err, &exit) || exit.Status != 1 && exit.Status != 5) {
		return s, err
	}
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		return s, fmt.Errorf("%s: topdog status --json said %q: %w", m.Name(), out, err)
	}
	return s, nil
}

// InstallPackage installs a package that Boot has put on the card.
func (b *Board) InstallPackage(ctx context.Context, deb string) error {
	ctx, cancel := context.WithTimeout(ctx, CommandTime)
	defer cancel()
	_, err := b.Run(ctx, "dpkg --install /root/"+filepath.Base(deb))
	return err
}

// Configure sets the cluster up: `topdog init` on the first board, its two files
// to all others, and the unit enabled and started everywhere. The natives get its key
// and start when the boards have.
func (l *Lab) Configure(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, CommandTime)
	defer cancel()
	first := l.Boards[0]
	_, err := first.Run(ctx, "[ -e /etc/topdog/topdog.toml ] || topdog init --address "+Floating.String())
	if err != nil {
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
		for _, command := range []string{ // each of which fits into a line
			writes("/etc/topdog/topdog.toml", b.configuration(config), "0644", "root"),
			writes("/etc/topdog/key", key, "0600", "topdog"),
			writes("/etc/systemd/system/topdog.service.d/lab.conf", unitOverride, "0644", "root"),
			"systemctl daemon-reload && systemctl enable --now topdog 2>&1",
		} {
			if _, err := b.Run(ctx, command); err != nil {
				return err
			}
		}
		return nil
	})
	for _, n := range l.Natives {
		if err == nil {
			err = n.start(key)
		}
	}
	return err
}

// writes is a command that writes a short text file.
func writes(path, text, mode, owner string) string {
	return fmt.Sprintf("printf %%s %s | install -D -m %s -o %s -g %s /dev/stdin %s", quote(text), mode, owner, owner, path)
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
