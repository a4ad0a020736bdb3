package rekey

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sort"
	"strings"
	"time"
	"unicode/utf8"

	"topdog/election/roster"
	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/wire"
)

// Show prints the fingerprints of this board's keys, and what the others have told of theirs.
func (b Board) Show(ctx context.Context) error {
	file, err := config.LoadKeys(b.KeyFile)
	readable := err == nil
	if err != nil && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	seen, asked := b.Daemon.Keys(ctx)
	if !readable && asked != nil {
		return err
	}
	signs, accepted := texts(file)
	if !readable {
		signs, accepted = seen.SignsWith, seen.AlsoAccepts
	}
	fmt.Fprintf(b.Out, "%s signs\n", signs)
	if accepted != "" {
		fmt.Fprintf(b.Out, "%s accepted\n", accepted)
	}
	if readable && asked == nil && !same(&seen, file) {
		fmt.Fprintf(b.Out, "the daemon has others: it signs with %s%s; systemctl reload topdog has it read the file\n",
			seen.SignsWith, also(seen.AlsoAccepts))
	}
	if asked != nil {
		fmt.Fprintf(b.Out, "what the other boards have is not known: %v\n", asked)
		return nil
	}
	b.showBoards(&seen)
	return nil
}

// also says which second key a board accepts, if it accepts two.
func also(fingerprint string) string {
	if fingerprint == "" {
		return ""
	}
	return " and accepts " + fingerprint
}

// showBoards prints what the other boards have told, the one that was heard last first.
func (b Board) showBoards(k *console.Keys) {
	if len(k.Boards) == 0 {
		fmt.Fprintln(b.Out, "no other board was heard in the last day")
		return
	}
	const head = "BOARD"
	width := len(head)
	for i := range k.Boards {
		width = max(width, utf8.RuneCountInString(called(&k.Boards[i])))
	}
	row := func(board, signs, also, heard string) {
		fmt.Fprintf(b.Out, "%-*s  %-10s  %-11s  %s\n", width, board, signs, also, heard)
	}
	fmt.Fprintln(b.Out)
	row(head, "SIGNS WITH", "ACCEPTS TOO", "HEARD")
	for i := range k.Boards {
		o := &k.Boards[i]
		heard := "live"
		if !o.Live {
			heard = "off, last heard " + span(time.Duration(o.HeardNs)) + " ago"
		}
		row(called(o), cmp.Or(o.SignsWith, "unknown"), cmp.Or(o.AlsoAccepts, "-"), heard)
	}
}

const (
	// askEvery is how often the daemon is asked while a step waits. A board tells its keys about once a second.
	askEvery = 500 * time.Millisecond
	// remembered is how long a daemon remembers a board that is off.
	remembered = 24 * time.Hour
)

// acquainted is how long a daemon runs until it has heard all boards that live, given how many it has heard. In a small
// group each board says HELLO every second, and five are not lost in a row. In a large one the boards are heard one after
// the other, eight a second together. The result is twice the time that the boards heard so far take, so that it does not
// pass while new ones are heard, unless half of all HELLOs are lost. In the largest group it is 64 s.
func acquainted(heard int) time.Duration {
	return max(5*time.Second, 2*roster.HelloInterval(heard+1))
}

// lacks says what a board lacks for a step; "" for nothing.
type lacks func(*console.BoardKeys) string

// canChange finds the boards that do not tell their keys. They have an older program, and a board that accepts two keys
// would not hear them.
func canChange(b *console.BoardKeys) string {
	if b.SignsWith == "" {
		return "has not told which keys it accepts: upgrade topdog there"
	}
	return ""
}

// accepts finds the boards that do not accept the key.
func accepts(key wire.Fingerprint) lacks {
	return func(b *console.BoardKeys) string {
		if b.SignsWith == key.String() || b.AlsoAccepts == key.String() {
			return ""
		}
		return cmp.Or(canChange(b), "does not accept it. Give it from a board that has it: topdog key export | ssh "+cmp.Or(b.Address, "BOARD")+" sudo topdog key add --from -")
	}
}

// signsWith finds the boards that do not sign with the key.
func signsWith(key wire.Fingerprint) lacks {
	return func(b *console.BoardKeys) string {
		if b.SignsWith == key.String() {
			return ""
		}
		return cmp.Or(canChange(b), fmt.Sprintf("signs with %s: run topdog key first %v there", b.SignsWith, key))
	}
}

// await waits until all boards of the last day have what a step needs.
func (b Board) await(ctx context.Context, keys config.Keyring, lacks lacks) error {
	if b.Force {
		return nil
	}
	if _, err := b.Daemon.ReloadKeys(ctx); err != nil {
		if errors.Is(err, console.ErrNotRunning) {
			err = fmt.Errorf("%w, so nobody knows which keys the other boards accept: start it, or use --force", err)
		}
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, b.Wait)
	defer cancel()
	told := ""
	for {
		seen, err := b.Daemon.Keys(ctx)
		if err != nil && ctx.Err() == nil {
			return err
		}
		if err == nil {
			if !same(&seen, keys) {
				return fmt.Errorf("the daemon signs with %s%s, and %s has %s: look at its log",
					seen.SignsWith, also(seen.AlsoAccepts), b.KeyFile, listed(keys))
			}
			missing := missing(&seen, lacks)
			if len(missing) == 0 {
				b.sayHowLong(&seen)
				return nil
			}
			if text := strings.Join(missing, "\n"); text != told {
				fmt.Fprintf(b.Out, "waits for\n%s\n", text)
				told = text
			}
		}
		select {
		case <-ctx.Done():
			return b.notReady(told)
		case <-time.After(askEvery):
		}
	}
}

// notReady says which boards a step has waited for in vain.
func (b Board) notReady(missing string) error {
	if missing == "" {
		return errors.New("the daemon has not said in time which keys the other boards accept; nothing was changed")
	}
	return fmt.Errorf("nothing was changed, because of these boards:\n%s\nput that right and run this again; "+
		"--force goes on without them, and they are not heard any more as soon as the key that they sign with is dropped", missing)
}

// sayHowLong says of a daemon that was started within the last day that it may not know all boards.
func (b Board) sayHowLong(k *console.Keys) {
	if running := time.Duration(k.RunningNs); running < remembered {
		fmt.Fprintf(b.Out, "this daemon has run for %s only, and does not know boards that have been off for longer\n",
			span(running))
	}
}

// missing names the boards that lack something, those that live first. Before them it says if the daemon may not have
// heard all boards yet.
func missing(k *console.Keys, lacks lacks) (lines []string) {
	if time.Duration(k.RunningNs) < acquainted(len(k.Boards)) {
		lines = append(lines, "  this daemon has just started, and may not have heard all boards yet")
	}
	boards := slices.Clone(k.Boards)
	sort.SliceStable(boards, func(i, j int) bool { return boards[i].Live && !boards[j].Live })
	for i := range boards {
		b := &boards[i]
		what := lacks(b)
		if what == "" {
			continue
		}
		if !b.Live {
			what = fmt.Sprintf("is off, heard last %s ago; it %s", span(time.Duration(b.HeardNs)), what)
		}
		lines = append(lines, fmt.Sprintf("  %s %s", called(b), what))
	}
	return lines
}

// called is a board's name and its address: "pi4 (192.168.1.14)". Its id is added if that is another number.
func called(b *console.BoardKeys) string {
	at := cmp.Or(b.Address, "address unknown")
	if b.ID != b.Address {
		at = "id " + b.ID + ", " + at
	}
	if b.Name == "" {
		return "a board (" + at + ")"
	}
	return b.Name + " (" + at + ")"
}

// span writes a length of time for people.
func span(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	}
	return fmt.Sprintf("%d h", d/time.Hour)
}
