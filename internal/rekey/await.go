package rekey

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"topdog/election/roster"
	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/wire"
)

const (
	// askEvery is how often the daemon is asked while a step waits. A board tells its keys every second or so.
	askEvery = 500 * time.Millisecond
	// remembered is for how long a daemon knows of a board that is off.
	remembered = 24 * time.Hour
)

// acquainted is how old a daemon is that has heard all boards that live, if it has heard so many. In a small group each of
// them says HELLO every second, and five are not lost in a row. In a large one they are heard one after the other, all
// together eight a second. The wait is twice as long as those take that were heard, so it does not end while new ones are
// heard, unless half of all HELLOs are lost. In the largest group it is 64 s.
func acquainted(heard int) time.Duration {
	return max(5*time.Second, 2*roster.HelloInterval(heard+1))
}

// lacks says what a board lacks for a step; "" if nothing.
type lacks func(*console.BoardKeys) string

// canChange holds of a board that tells its keys. One with an older program would not be heard by a board
// that accepts two.
func canChange(b *console.BoardKeys) string {
	if b.SignsWith == "" {
		return "has not told which keys it accepts: upgrade topdog there"
	}
	return ""
}

// accepts holds of a board that accepts the key.
func accepts(key wire.Fingerprint) lacks {
	return func(b *console.BoardKeys) string {
		if b.SignsWith == key.String() || b.AlsoAccepts == key.String() {
			return ""
		}
		return cmp.Or(canChange(b), "does not accept it. Give it from a board that has it: topdog key export | ssh "+cmp.Or(b.Address, "BOARD")+" sudo topdog key add --from -")
	}
}

// signsWith holds of a board that signs with the key.
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
				return fmt.Errorf("the daemon signs with %s%s, and %s has %s: look at its log", seen.SignsWith, also(seen.AlsoAccepts), b.KeyFile, listed(keys.Fingerprints()))
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

// notReady says whom a step has waited for in vain.
func (b Board) notReady(missing string) error {
	if missing == "" {
		return errors.New("the daemon has not said in time which keys the other boards accept; nothing was changed")
	}
	return fmt.Errorf("nothing was changed, because of these boards:\n%s\nput that right and run this again; --force goes on without them, and they are not heard any more as soon as the key that they sign with is dropped", missing)
}

// sayHowLong says of a daemon that has just been started that it knows little.
func (b Board) sayHowLong(k *console.Keys) {
	if running := time.Duration(k.RunningNs); running < remembered {
		fmt.Fprintf(b.Out, "this daemon has run for %s only: of boards that were off for longer it does not know\n", span(running))
	}
}

// missing names the boards that lack something, those that live first. Before them it says that the daemon may not have heard all.
func missing(k *console.Keys, lacks lacks) (lines []string) {
	if time.Duration(k.RunningNs) < acquainted(len(k.Boards)) {
		lines = append(lines, "  this daemon has just started, and may not have heard all boards yet")
	}
	boards := slices.Clone(k.Boards)
	sort.SliceStable(boards, func(i, j int) bool { return order(boards[i]) < order(boards[j]) })
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

func order(b console.BoardKeys) int {
	if b.Live {
		return 0
	}
	return 1
}

// called is a board's name, and where it is: "pi4 (192.168.1.14)", or with its id if that is another one.
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

// span is a length of time for people.
func span(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	}
	return fmt.Sprintf("%d h", d/time.Hour)
}
