package trial

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"topdog/internal/console"
	"topdog/internal/lab/pi"
)

//go:embed trial.scene
var scene string

// files lists all files but those that live and die with a boot, what dpkg
// knows and logs, and the user database: as Debian's packages do, topdog leaves its user. Most files of a board are
// Debian's libraries, which a static program has no part of.
const files = `find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /run -o -path /tmp -o -path /var/tmp ` +
	`-o -path /var/lib/dpkg -o -path /var/log/dpkg.log -o -path /root -o -path /usr/lib/aarch64-linux-gnu ` +
	`-o -path /usr/share/perl \) -prune -o -print | ` +
	`grep -vE '^/etc/(passwd|group|shadow|gshadow)-?$|^/etc/\.pwd\.lock$' | LC_ALL=C sort`

// unit shows what systemd says of topdog's unit, and started is what it must be: systemd takes it for started, the daemon is
// no root, and it has not ended since the board booted.
const (
	unit = `systemctl show topdog -p Type -p NRestarts -p ActiveState -p SubState; ` +
		`stat -c %U /proc/$(systemctl show topdog -p MainPID --value)`
	started = `Type=notify\nNRestarts=0\nActiveState=active\nSubState=running\ntopdog\n`
)

// stoodStill is what is logged when a leader is replaced because its emulated processor paused. If the dead man's switch of
// the leader ran, that board resigned for it. Otherwise its successor found out. A daemon whose holder stood still ends,
// which hands over as well.
const stoodStill = `this daemon did not run when its next heartbeat was due|` +
	`the holder does not answer any more \(not within|was replaced although it was alive`

// lines are the lines of the scene for so many emulated boards, with what stands in for the names in braces.
func lines(emulated int) ([]line, error) {
	leader, heir := "pi2", "pi3"
	if emulated < several {
		leader, heir = heir, leader
	}
	const members = "pi1,pi2,pi3"
	all := strings.Split(members, ",")[boards-emulated:]
	names := strings.NewReplacer("{files}", files, "{unit}", unit, "{started}", started, "{stood-still}", stoodStill,
		"{old}", packageName(oldVersion), "{new}", packageName(newVersion), "{new-version}", newVersion,
		"{leader}", leader, "{heir}", heir, "{members}", members, "{all}", strings.Join(all, ","), "{first}", all[0],
		"{address}", pi.Floating.String()+"/",
		"{override}", "/run/systemd/system/topdog.service.d/test.conf", "{answers}", "/etc/systemd/system/answers.service")
	var lines []line
	for text := range strings.Lines(scene) {
		text = strings.TrimSpace(text)
		if text == "" || text[0] == '#' {
			continue
		}
		l, err := parse(names.Replace(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", text, err)
		}
		lines = append(lines, l)
	}
	return lines, nil
}

// line is a line of the scene.
type line struct {
	text   string
	within time.Duration // 0: it must hold at once
	verb   string
	boards []int    // whom it is about; nil for none
	words  []string // those after the verb
	quoted []string // the texts in quotes, which come last
}

func parse(text string) (l line, err error) {
	l.text = text
	for rest := text; rest != ""; rest = strings.TrimSpace(rest) {
		if rest[0] == '"' || rest[0] == '`' {
			quoted, err := strconv.QuotedPrefix(rest)
			if err != nil {
				return l, err
			}
			rest = rest[len(quoted):]
			if quoted, err = strconv.Unquote(quoted); err != nil {
				return l, err
			}
			l.quoted = append(l.quoted, quoted)
			continue
		}
		var word string
		word, rest, _ = strings.Cut(rest, " ")
		l.words = append(l.words, word)
	}
	if l.words[0] == "within" {
		if l.within, err = time.ParseDuration(strings.TrimSuffix(l.words[1], ":")); err != nil {
			return l, err
		}
		l.words = l.words[2:]
	}
	// The boards come before the verb, or after it if it is the first word.
	place := 0
	if verbs[l.words[0]] != nil {
		place = 1
	}
	if len(l.words) > place {
		l.boards = numbers(l.words[place])
	}
	if l.boards != nil {
		l.words = slices.Delete(l.words, place, place+1)
	}
	l.verb, l.words = l.words[0], l.words[1:]
	if verbs[l.verb] == nil {
		return l, fmt.Errorf("a scene has no %q", l.verb)
	}
	return l, nil
}

// numbers are those of the boards that a word names: pi1,pi2. It is nil if it names none.
func numbers(word string) (all []int) {
	for one := range strings.SplitSeq(word, ",") {
		var n int
		if _, err := fmt.Sscanf(one, "pi%d", &n); err == nil {
			all = append(all, n)
		}
	}
	return all
}

// verbs are what the lines of the scene do. What they return is worth knowing for a reader of the output.
var verbs = map[string]func(*trial, context.Context, line) (detail string, err error){
	"step":           nothing,
	"configure":      func(t *trial, ctx context.Context, _ line) (string, error) { return "", t.configure(ctx) },
	"mark":           mark,
	"outage":         outage,
	"answered":       outage,
	"give":           (*trial).give,
	"leads":          (*trial).leads,
	"follow":         (*trial).follow,
	"because":        (*trial).because,
	"is":             (*trial).is,
	"topdog":         topdog,
	"sh":             sh,
	"remember":       remember,
	"unchanged":      unchanged,
	"kill-while-lit": onBoard(killWhileLit),
	"pull":           onBoard(func(_ context.Context, b *pi.Board) error { return b.Cable(false) }),
	"plug":           onBoard(func(_ context.Context, b *pi.Board) error { return b.Cable(true) }),
	"power-off":      onBoard(func(_ context.Context, b *pi.Board) error { return b.PowerOff() }),
	"power-on":       onBoard(func(ctx context.Context, b *pi.Board) error { return b.PowerOn(ctx) }),
}

func nothing(*trial, context.Context, line) (string, error) { return "", nil }

func onBoard(do func(context.Context, *pi.Board) error) func(*trial, context.Context, line) (string, error) {
	return func(t *trial, ctx context.Context, l line) (string, error) {
		return "", t.each(l, func(b *pi.Board) error { return do(ctx, b) })
	}
}

// each does something with all boards of a line at the same time.
func (t *trial) each(l line, do func(*pi.Board) error) error {
	var g errgroup.Group
	for _, n := range l.boards {
		g.Go(func() error {
			b, err := t.lab.Board(n)
			if err == nil {
				err = do(b)
			}
			return err
		})
	}
	return g.Wait()
}

// mark forgets what has happened to the address.
func mark(t *trial, _ context.Context, _ line) (string, error) {
	t.began = time.Now()
	return "", nil
}

// outage is how long nobody answered at the address since the line mark, once it has
// been seen to be answered again.
func outage(t *trial, _ context.Context, l line) (string, error) {
	report := t.asker.Report(t.began)
	longest := report.Longest.Duration()
	if report.First.Board == 0 {
		return "", fmt.Errorf("nobody answered pings to %s for %s", pi.Floating, longest)
	}
	if len(l.words) > 0 {
		limit, err := time.ParseDuration(l.words[0])
		if err != nil || longest > limit {
			return "", errors.Join(err, fmt.Errorf("nobody answered pings to %s for %s, want at most %s", pi.Floating, longest, limit))
		}
	}
	return fmt.Sprintf("no answer to pings for %.2f s at most", longest.Seconds()), nil
}

func topdog(t *trial, ctx context.Context, l line) (string, error) {
	_, err := t.member(l.boards[0]).Topdog(ctx, l.words...)
	return "", err
}

// sh runs a command on boards, which must succeed, and say what comes after it.
func sh(t *trial, ctx context.Context, l line) (string, error) {
	return "", t.each(l, func(b *pi.Board) error {
		out, err := b.Run(ctx, l.quoted[0])
		for _, want := range l.quoted[1:] {
			if err == nil && !strings.Contains(out, want) {
				err = fmt.Errorf("%s: %s says %q, want %q", b.Name(), l.quoted[0], out, want)
			}
		}
		return err
	})
}

// remember keeps what a command says on boards. One after the other: three busy boards at once would pause for too long.
func remember(t *trial, ctx context.Context, l line) (_ string, err error) {
	t.remembered = l
	t.said, err = t.say(ctx)
	return "", err
}

func (t *trial) say(ctx context.Context) (string, error) {
	var text strings.Builder
	for _, n := range t.remembered.boards {
		b, err := t.lab.Board(n)
		if err != nil {
			return "", err
		}
		out, err := b.Run(ctx, t.remembered.quoted[0])
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&text, "%s:\n%s", b.Name(), out)
	}
	return text.String(), nil
}

// errAgain says that what the step has seen proves nothing.
var errAgain = errors.New("a board stood still")

func unchanged(t *trial, ctx context.Context, l line) (string, error) {
	said, err := t.say(ctx)
	if err != nil || said == t.said {
		return "", err
	}
	err = fmt.Errorf("something happened (-before +after):\n%s", cmp.Diff(t.said, said))
	if len(l.words) > 0 {
		err = fmt.Errorf("%w: %w", errAgain, err)
	}
	return "", err
}

// because checks the reason of the last change of leader, as a board says.
func (t *trial) because(ctx context.Context, l line) (string, error) {
	m := t.member(l.boards[0])
	s, err := pi.Status(ctx, m)
	if err == nil && (len(s.Changes) == 0 || s.Changes[0].Reason != l.words[0]) {
		err = fmt.Errorf("%s leads because of %+v, want %s", m.Name(), s.Changes, l.words[0])
	}
	return "", err
}

// follow checks that boards agree, by their own words, on the leader that was seen.
func (t *trial) follow(ctx context.Context, l line) (string, error) {
	leader := t.member(numbers(l.words[0])[0])
	for _, n := range l.boards {
		s, err := pi.Status(ctx, t.member(n))
		if err == nil {
			err = checkStatus(s, leader)
		}
		if err != nil {
			return "", fmt.Errorf("pi%d: %w", n, err)
		}
	}
	return "", nil
}

// checkStatus compares what a daemon says with what was seen.
func checkStatus(s console.Status, leader pi.Member) error {
	if s.Leader != leader.Address().String() {
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
