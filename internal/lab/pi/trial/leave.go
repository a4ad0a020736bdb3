package trial

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"topdog/election"
)

// errStoodStill says that a leader was replaced because its emulated processor paused for longer than a
// leader may be late, and so rightly.
var errStoodStill = errors.New("it stood still while it was upgraded, and was replaced")

// What is logged then. If the dead man's switch of the leader ran, that board resigned for it. Otherwise its successor
// found out. A daemon whose holder stood still ends, which hands over as well.
const (
	leaderStoodStill = "this daemon did not run when its next heartbeat was due"
	holderStoodStill = "the holder does not answer any more (not within"
	leaderWasAlive   = "was replaced although it was alive"
)

// upgrades is how often the leader is upgraded at most. On a machine with much else to do, an emulated board has stood
// still twice.
const upgrades = 5

// upgrade installs the newer package on the leader. If that stands still meanwhile, it is upgraded once more.
func (t *trial) upgrade(ctx context.Context) (detail string, err error) {
	board, _ := t.other()
	for range upgrades {
		// To unpack it is so much work for an emulated board that the leader may stand still and be replaced.
		if err := t.board(board).UnpackPackage(ctx, t.new); err != nil {
			return "", err
		}
		if err := t.lead(ctx, board); err != nil {
			return "", err
		}
		if detail, err = t.upgradeLeader(ctx); !errors.Is(err, errStoodStill) {
			return detail, err
		}
		fmt.Fprintf(t.Out, "(%v) ", err)
	}
	return "", fmt.Errorf("%w, in all %d upgrades", err, upgrades)
}

func (t *trial) upgradeLeader(ctx context.Context) (string, error) {
	board, heir := t.other()
	b := t.board(board)
	before, err := t.stoodStill(ctx, board, heir)
	if err != nil {
		return "", err
	}
	begin := time.Now()
	if _, err := b.Run(ctx, "dpkg --configure topdog"); err != nil {
		return "", err
	}
	if _, err := t.awaitLeader(ctx, heir); err != nil {
		return "", err
	}
	// The dead man's switch of a daemon that stands still hands over as well, which proves nothing here.
	switch now, err := t.stoodStill(ctx, board, heir); {
	case err != nil:
		return "", err
	case now != before:
		return "", errStoodStill
	}
	s, err := t.member(heir).Status(ctx)
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
	own, err := t.member(leader).Log(ctx)
	if err != nil {
		return 0, err
	}
	found, err := t.member(successor).Log(ctx)
	return strings.Count(own, leaderStoodStill) + strings.Count(own, holderStoodStill) + strings.Count(found, leaderWasAlive), err
}

// remove removes the package from the leader.
func (t *trial) remove(ctx context.Context) (string, error) {
	if err := t.lead(ctx, last); err != nil {
		return "", err
	}
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
	changed, err := b.Run(ctx, listFiles+" | LC_ALL=C comm -3 "+pristine+" -")
	if err != nil {
		return "", err
	}
	if changed != "" {
		return "", fmt.Errorf("files that the package has taken away, and in the second column those that it has left:\n%s", changed)
	}
	count, err := b.Run(ctx, "wc -l <"+pristine)
	return fmt.Sprintf("the %s files of before the installation", strings.TrimSpace(count)), err
}
