package trial

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"topdog/election"
)

// errStoodStill says that a leader was replaced because its emulated processor paused for longer than a
// leader may be late, and so rightly.
var errStoodStill = errors.New("it stood still while it was upgraded, and was replaced")

// What is logged then. If the dead man's switch of the leader ran, that board resigned for it. Otherwise its successor
// found out.
const (
	leaderStoodStill = "this daemon did not run when its next heartbeat was due"
	leaderWasAlive   = "was replaced although it was alive"
)

// upgrades is how often the leader is upgraded at most. On a machine with much else to do, an emulated board has stood
// still twice.
const upgrades = 5

// upgrade installs the newer package on the leader, which is the second board. To unpack it is much work for an
// emulated board, which may stand still meanwhile. Then it gets the lead back, and is upgraded once more.
func (t *trial) upgrade(ctx context.Context) (detail string, err error) {
	for range upgrades {
		if detail, err = t.upgradeLeader(ctx); !errors.Is(err, errStoodStill) {
			return detail, err
		}
		fmt.Fprintf(t.Out, "(%v) ", err)
		stood, err := t.stoodStill(ctx, last, second)
		if err != nil {
			return "", err
		}
		if err := t.giveBack(ctx, stood); err != nil {
			return "", err
		}
	}
	return "", fmt.Errorf("%w, in all %d upgrades", err, upgrades)
}

func (t *trial) upgradeLeader(ctx context.Context) (string, error) {
	b := t.board(second)
	before, err := t.stoodStill(ctx, second, last)
	if err != nil {
		return "", err
	}
	begin := time.Now()
	if err := b.InstallPackage(ctx, t.new); err != nil {
		return "", err
	}
	if _, err := t.awaitLeader(ctx, last); err != nil {
		return "", err
	}
	// The dead man's switch of a daemon that stands still hands over as well, which proves nothing here.
	switch now, err := t.stoodStill(ctx, second, last); {
	case err != nil:
		return "", err
	case now != before:
		return "", errStoodStill
	}
	s, err := t.board(last).Status(ctx)
	if err != nil {
		return "", err
	}
	// The board that took over had not to find out: it was told.
	if len(s.Changes) == 0 || s.Changes[0].Reason != election.ReasonHandover.Identifier() {
		return "", fmt.Errorf("%s leads because of %+v, want a hand-over", s.Board.Name, s.Changes)
	}
	gap, err := t.outage(begin, handoverTime)
	if err != nil {
		return "", err
	}
	after, err := b.Status(ctx)
	if err != nil {
		return "", err
	}
	if !strings.Contains(t.new, "_"+after.Version+"_") {
		return "", fmt.Errorf("%s runs %s after the upgrade to %s", b.Name(), after.Version, t.new)
	}
	return gap + "; " + after.Version + " runs", t.unitRuns(ctx, b)
}

// stoodStill is how often a leader has been replaced because it stood still, by what it and its successor have logged
// since they booted.
func (t *trial) stoodStill(ctx context.Context, leader, successor int) (int, error) {
	alone, err := t.logged(ctx, leader, leaderStoodStill)
	if err != nil {
		return 0, err
	}
	found, err := t.logged(ctx, successor, leaderWasAlive)
	return alone + found, err
}

// logged is how many lines with that text the daemon of a board has logged since it booted.
func (t *trial) logged(ctx context.Context, board int, text string) (int, error) {
	// With none, grep ends with status 1.
	out, err := t.board(board).Run(ctx, fmt.Sprintf("journalctl -b --no-pager -o cat -u topdog | grep -c '%s' || true", text))
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(strings.TrimSpace(out))
	if err != nil {
		return 0, fmt.Errorf("count lines of the log of pi%d: %w", board, err)
	}
	return n, nil
}

// giveBack has the last board resign, and the second one lead. A board that stands still is replaced without being
// asked, and has nothing to resign from then. stood is how often that had happened when the last board was known to lead.
func (t *trial) giveBack(ctx context.Context, stood int) error {
	if _, refused := t.board(last).Run(ctx, "topdog resign"); refused != nil {
		now, err := t.stoodStill(ctx, last, second)
		if err != nil || now == stood {
			return errors.Join(refused, err)
		}
		fmt.Fprintf(t.Out, "(pi%d stood still before it could resign, and was replaced) ", last)
	}
	_, err := t.awaitLeader(ctx, second)
	return err
}

// remove removes the package from the leader.
func (t *trial) remove(ctx context.Context) (string, error) {
	begin := time.Now()
	if _, err := t.board(last).Run(ctx, "dpkg -r topdog"); err != nil {
		return "", err
	}
	gap, err := t.outage(begin, handoverTime)
	if err != nil {
		return "", err
	}
	if _, err := t.awaitLeader(ctx, second, last); err != nil {
		return "", err
	}
	if err := t.dark(ctx, last); err != nil {
		return "", err
	}
	if out, err := t.board(last).Run(ctx, "! pidof topdog"); err != nil {
		return "", fmt.Errorf("a daemon still runs: %s", out)
	}
	return gap, nil
}

// purge compares the files with those before the installation.
func (t *trial) purge(ctx context.Context) (string, error) {
	b := t.board(last)
	if _, err := b.Run(ctx, "dpkg -P topdog"); err != nil {
		return "", err
	}
	out, err := b.Run(ctx, listFiles)
	if err != nil {
		return "", err
	}
	before, after := strings.Fields(t.pristine), strings.Fields(out)
	var changed []string
	for _, f := range after {
		if _, was := slices.BinarySearch(before, f); !was {
			changed = append(changed, "+"+f)
		}
	}
	for _, f := range before {
		if _, is := slices.BinarySearch(after, f); !is {
			changed = append(changed, "-"+f)
		}
	}
	if len(changed) > 0 {
		return "", fmt.Errorf("files that the package has left (+) or taken away (-): %s", strings.Join(changed, " "))
	}
	return fmt.Sprintf("the %d files of before the installation", len(before)), nil
}
