package trial

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"topdog/internal/lab/pi"
)

// second is the board that takes over from the last one.
const second = last - 1

// other is the board that leads, where it can be another one than the last, in steps that both could go through. heir
// takes over from it.
func (t *trial) other() (board, heir int) {
	if t.Emulated < several {
		return last, second
	}
	return second, last
}

// stayDown keeps systemd from starting the daemon again for the time of a test.
const stayDown = "/run/systemd/system/topdog.service.d/test.conf"

// crash kills the leader's daemon. The light is the board's own LED, which Linux
// leaves lit: only the unit's `topdog cleanup` can have put it out.
func (t *trial) crash(ctx context.Context) (string, error) {
	if err := t.lead(ctx, last); err != nil {
		return "", err
	}
	b := t.board(last)
	if err := b.WriteFile(ctx, stayDown, "[Service]\nRestartSec=10min\n", "0644", "root:root"); err != nil {
		return "", err
	}
	if _, err := b.Run(ctx, "systemctl daemon-reload"); err != nil {
		return "", err
	}
	begin := time.Now()
	if err := t.killWhileLit(ctx, b); err != nil {
		return "", err
	}
	if _, err := t.awaitLeader(ctx, second, last); err != nil {
		return "", err
	}
	if err := t.dark(ctx, last); err != nil {
		return "", err
	}
	out, err := b.Run(ctx, "systemctl show topdog -p SubState -p ExecMainStatus -p ExecStopPost")
	if err != nil {
		return "", err
	}
	// ExecMainStatus is the signal that the daemon died of. The status at the end
	// of ExecStopPost is that of the command: 0.
	for _, want := range []string{"SubState=auto-restart", "ExecMainStatus=9", "topdog cleanup", "status=0 }"} {
		if !strings.Contains(out, want) {
			return "", fmt.Errorf("systemctl show says, without %q:\n%s", want, out)
		}
	}
	gap, err := t.outage(begin, 0)
	if err != nil {
		return "", err
	}
	// And back to normal: it joins, and the new leader stays.
	if _, err := b.Run(ctx, "rm "+stayDown+" && systemctl daemon-reload && systemctl restart topdog"); err != nil {
		return "", err
	}
	if _, err := t.awaitLeader(ctx, second); err != nil {
		return "", err
	}
	return gap + "; cleanup has run; back as a follower", nil
}

// killWhileLit kills the daemon while its light is on. The daemon is stopped
// first, so that the light does not change between the look and the kill.
func (t *trial) killWhileLit(ctx context.Context, b *pi.Board) error {
	m, err := b.Monitor(ctx)
	if err != nil {
		return err
	}
	defer m.Close()
	for range 10 {
		if _, err := b.Run(ctx, "systemctl kill -s STOP topdog"); err != nil {
			return err
		}
		lit, err := m.Lit(b.Machine, b.Light())
		if err != nil {
			return err
		}
		if lit[0] {
			_, err := b.Run(ctx, "systemctl kill -s KILL topdog")
			return err
		}
		if _, err := b.Run(ctx, "systemctl kill -s CONT topdog"); err != nil {
			return err
		}
	}
	return errors.New("the leader's light was dark at ten looks: it is lit nine tenths of the time")
}

// pull pulls the leader's cable out at the network adapter.
func (t *trial) pull(ctx context.Context) (string, error) {
	board, heir := t.other()
	begin := time.Now()
	if err := t.board(board).SetCable(ctx, false); err != nil {
		return "", err
	}
	// The pulled board cannot know, for QEMU's adapter keeps its carrier: its
	// light may go on. On a board with a network socket it would not.
	detail, err := t.awaitLeader(ctx, heir, board)
	if err != nil {
		return "", err
	}
	gap, err := t.outage(begin, 0)
	return gap + "; " + detail, err
}

// plug puts it back: of two leaders, that of the lower rank lets go.
func (t *trial) plug(ctx context.Context) (string, error) {
	board, _ := t.other()
	begin := time.Now()
	if err := t.board(board).SetCable(ctx, true); err != nil {
		return "", err
	}
	detail, err := t.awaitLeader(ctx, last)
	if err != nil {
		return "", err
	}
	gap, err := t.outage(begin, handoverTime)
	return gap + "; " + detail, err
}

// powerCut pulls the leader's power plug.
func (t *trial) powerCut(ctx context.Context) (string, error) {
	if err := t.lead(ctx, last); err != nil {
		return "", err
	}
	begin := time.Now()
	if err := t.board(last).PowerOff(); err != nil {
		return "", err
	}
	detail, err := t.awaitLeader(ctx, second)
	if err != nil {
		return "", err
	}
	gap, err := t.outage(begin, 0)
	return gap + "; " + detail, err
}

// powerBack puts it back. What was installed and enabled is on the card.
func (t *trial) powerBack(ctx context.Context) (string, error) {
	begin := time.Now()
	b := t.board(last)
	if err := b.PowerOn(); err != nil {
		return "", err
	}
	if err := b.WaitReady(ctx, bootTime); err != nil {
		return "", err
	}
	detail, err := t.awaitLeader(ctx, second)
	if err != nil {
		return "", err
	}
	if err := t.unitRuns(ctx, b); err != nil {
		return "", err
	}
	gap, err := t.outage(begin, handoverTime)
	return gap + "; " + detail, err
}
