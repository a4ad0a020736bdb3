package trial

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"topdog/internal/console"
	"topdog/internal/lab/pi"
)

// The board whose package is removed in the end. It has the highest rank, and its
// light is the board's own: a kernel LED, which stays as it is when its process dies.
const last = boards

// listFiles lists all files but those that live and die with a boot, what dpkg
// knows and logs, and the user database: as Debian's packages do, topdog leaves its user. Most files of a board are
// Debian's libraries, which a static program has no part of.
const listFiles = `find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /run -o -path /tmp -o -path /var/tmp ` +
	`-o -path /var/lib/dpkg -o -path /var/log/dpkg.log -o -path /root -o -path /usr/lib/aarch64-linux-gnu -o -path /usr/share/perl \) -prune -o -print | ` +
	`grep -vE '^/etc/(passwd|group|shadow|gshadow)-?$|^/etc/\.pwd\.lock$' | LC_ALL=C sort`

// pristine is where the last board keeps the list of its files before the installation.
const pristine = "/root/pristine"

// install installs the package on all boards as a user would who has it there.
func (t *trial) install(ctx context.Context) (string, error) {
	err := t.lab.Each(func(b *pi.Board) (err error) {
		if b.N == last {
			// It stays on the board: a serial port takes seconds for thousands of names.
			if _, err = b.Run(ctx, listFiles+" >"+pristine+" && sync "+pristine); err != nil {
				return err
			}
		}
		if err := b.InstallPackage(ctx, t.old); err != nil {
			return err
		}
		out, err := b.Run(ctx, "systemctl is-enabled topdog; systemctl is-active topdog; true")
		if err == nil && out != "disabled\ninactive\n" {
			err = fmt.Errorf("%s: installed without a configuration, topdog is %q, want disabled and inactive", b.Name(), out)
		}
		return err
	})
	return filepath.Base(t.old), err
}

// configure sets the boards up and checks what systemd says of the unit.
func (t *trial) configure(ctx context.Context) (string, error) {
	if err := t.lab.Configure(ctx); err != nil {
		return "", err
	}
	err := t.lab.Each(func(b *pi.Board) error {
		return t.unitRuns(ctx, b)
	})
	return "Type=notify, active (running), as the user topdog, no restart", err
}

// unitRuns checks that systemd takes the unit for started, that the daemon is no
// root, and that it has not ended since the board booted.
func (t *trial) unitRuns(ctx context.Context, b *pi.Board) error {
	const want = "Type=notify\nNRestarts=0\nActiveState=active\nSubState=running\ntopdog\n"
	out, err := b.Run(ctx, "systemctl show topdog -p Type -p NRestarts -p ActiveState -p SubState; stat -c %U /proc/$(systemctl show topdog -p MainPID --value)")
	if err == nil && out != want {
		err = fmt.Errorf("%s: systemctl show topdog says %q, want %q", b.Name(), out, want)
	}
	return err
}

// oneLeader checks that all agree on a leader, from outside and by their own words.
func (t *trial) oneLeader(ctx context.Context) (string, error) {
	var err error
	if t.asker, err = t.lab.Ping(t.lab.Floating()); err != nil {
		return "", err
	}
	if len(t.lab.Natives()) > 0 {
		// The leader has to be one whose light can be seen.
		if err := t.lead(ctx, last); err != nil {
			return "", err
		}
	}
	begin := time.Now()
	v, err := t.await(ctx, "one board with the address and the leader's light", func(v view) bool {
		return len(v.holders) == 1 && v.leads(v.holders[0])
	})
	if err != nil {
		return "", err
	}
	leader := t.member(v.holders[0])
	for _, b := range t.members() {
		s, err := b.Status(ctx)
		if err == nil {
			err = checkStatus(s, leader)
		}
		if err != nil {
			return "", fmt.Errorf("%s: %w", b.Name(), err)
		}
	}
	if _, err := t.outage(begin, 0); err != nil {
		return "", err
	}
	return v.String(), nil
}

// checkStatus compares what a daemon says with what was seen.
func checkStatus(s console.Status, leader member) error {
	if s.Leader != leader.Address().Addr().String() {
		return fmt.Errorf("topdog status names the leader %q, want %s", s.Leader, leader.Name())
	}
	if leads := s.Role == console.RoleLeader; leads != (s.Board.ID == s.Leader) || leads != s.Holding {
		return fmt.Errorf("topdog status: role %s, holding %t, leader %s", s.Role, s.Holding, s.LeaderName)
	}
	if len(s.Boards) != boards || len(s.Problems) > 0 {
		return fmt.Errorf("topdog status knows %d boards, want %d; problems: %q", len(s.Boards), boards, s.Problems)
	}
	return nil
}

// resign has the leader hand over until the last board leads: the heir is the
// one with the highest rank, and the others hand over to it.
func (t *trial) resign(ctx context.Context) (string, error) {
	v, err := t.look(ctx)
	if err != nil {
		return "", err
	}
	if len(v.holders) != 1 {
		return "", fmt.Errorf("want one board with the address: %s", v)
	}
	if v.holders[0] == last {
		// Away and back: the second one hands over to it again.
		if _, err := t.handOver(ctx, last, second); err != nil {
			return "", err
		}
		return t.handOver(ctx, second, last)
	}
	return t.handOver(ctx, v.holders[0], last)
}

func (t *trial) handOver(ctx context.Context, from, to int) (string, error) {
	begin := time.Now()
	if err := t.member(from).Resign(ctx); err != nil {
		return "", err
	}
	seen, err := t.awaitLeader(ctx, to)
	if err != nil {
		return "", err
	}
	gap, err := t.outage(begin, handoverTime)
	return seen + "; " + gap, err
}

// clocks sets the clocks of the leader and of an emulated follower a year ahead, two years
// back and right again. Each stays for longer than a heartbeat, a hello and a
// suspicion take.
func (t *trial) clocks(ctx context.Context) (string, error) {
	leader, follower := t.board(last), t.lab.Boards()[0]
	before, err := t.story(ctx)
	if err != nil {
		return "", err
	}
	begin := time.Now()
	for _, by := range []string{"+1 year", "-2 years", "+1 year"} {
		for _, b := range []*pi.Board{leader, follower} {
			if _, err := b.Run(ctx, "date -s \"$(date '+%F %T') "+by+"\""); err != nil {
				return "", err
			}
		}
		v, err := t.look(ctx)
		if err != nil {
			return "", err
		}
		if !v.leads(last) {
			return "", fmt.Errorf("after the clocks of %s and %s were set by %s: %s", leader.Name(), follower.Name(), by, v)
		}
	}
	after, err := t.story(ctx)
	if err != nil {
		return "", err
	}
	if before != after {
		return "", fmt.Errorf("something happened while clocks jumped (-before +after):\n%s", cmp.Diff(before, after))
	}
	return t.outage(begin, handoverTime)
}

// story is what the daemons say has happened so far: it grows when anything does.
func (t *trial) story(ctx context.Context) (string, error) {
	var text strings.Builder
	// One after the other: three busy boards at once would pause for too long.
	for _, b := range t.lab.Boards() {
		s, err := b.Status(ctx)
		if err != nil {
			return "", err
		}
		out, err := b.Run(ctx, "systemctl show topdog -p NRestarts -p MainPID; journalctl --no-pager -o cat -u topdog")
		if err != nil {
			return "", err
		}
		// Its role is left out: that a heartbeat comes late from a board that
		// pauses, and that the leader is asked, is not of interest here.
		fmt.Fprintf(&text, "%s: %s leads in term %d; changes of leader:", b.Name(), s.LeaderName, s.Term)
		for _, c := range s.Changes {
			fmt.Fprintf(&text, " %s in term %d (%s)", c.LeaderName, c.Term, c.ReasonText)
		}
		fmt.Fprintf(&text, "\n%s", out)
	}
	return text.String(), nil
}
