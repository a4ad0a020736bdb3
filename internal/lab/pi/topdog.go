package pi

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"
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

// Configure sets the cluster up: `topdog init` on the first board, its two files
// to all others, and the unit enabled and started everywhere. The natives get its key
// and start when the boards have.
func (l *Lab) Configure(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, CommandTime)
	defer cancel()
	first := l.Boards[0]
	config, err := first.Run(ctx, "{ [ -e /etc/topdog/topdog.toml ] || topdog init --address "+Floating.String()+" >/dev/null; } && cat /etc/topdog/topdog.toml")
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
	for n := 1; n <= l.Natives() && err == nil; n++ {
		if err = os.WriteFile(l.Native(n).KeyFile(), []byte(key), 0o600); err == nil {
			err = l.natives.Start(n, nil)
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
