package trial

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"topdog/gpio"
	"topdog/internal/lab/pi"
)

// view is what can be seen of the cluster from outside.
type view struct {
	pi.View
	natives int // the first boards, which have no light
}

func (v view) String() string {
	var parts []string
	for n := v.natives + 1; n <= boards; n++ {
		if w, ok := v.Lights[n]; ok {
			parts = append(parts, fmt.Sprintf("pi%d shows %s", n, w))
		} else {
			parts = append(parts, fmt.Sprintf("pi%d is off, or does not matter", n))
		}
	}
	return fmt.Sprintf("address on %v; %s", v.Holders, strings.Join(parts, "; "))
}

// leads tells whether the view is that of a cluster led by board n: it alone has
// the address, it alone pulses, all others that run blink as followers. Those that are native show nothing.
func (v view) leads(n int, without ...int) bool {
	if _, on := v.Lights[n]; !on && n > v.natives || !slices.Equal(v.Holders, []int{n}) {
		return false
	}
	for board, w := range v.Lights {
		want := gpio.Follower
		switch {
		case board == n:
			want = gpio.Leader
		case slices.Contains(without, board):
			continue
		}
		if w.Pattern() != want {
			return false
		}
	}
	return true
}

// leads waits until a board leads in the eyes of everybody outside. The
// lights of some boards may not matter.
func (t *trial) leads(ctx context.Context, l line) (string, error) {
	n, end := l.boards[0], time.Now().Add(l.within)
	var without []int
	if len(l.words) == 2 { // without pi3
		without = numbers(l.words[1])
	}
	// Asking for the address takes a ninth of the time of a look at the lights, which asks again.
	for time.Now().Before(end) {
		holders, err := pi.Holders(ctx, t.prober, pi.AskTime)
		if err != nil {
			return "", err
		}
		if slices.Equal(holders, []int{n}) {
			break
		}
	}
	for {
		seen, err := t.lab.Look(ctx, t.prober, without...)
		v := view{seen, boards - t.Emulated}
		if err != nil || v.leads(n, without...) {
			return v.String(), err
		}
		if time.Now().After(end) {
			return "", fmt.Errorf("want pi%d alone with the address and the leader's light; still after %s: %s", n, l.within, v)
		}
	}
}

// give has a board lead: it is the heir of each that may lead instead. A board that stands still has lost the lead
// before it could resign, and refuses.
func (t *trial) give(ctx context.Context, l line) (string, error) {
	n := l.boards[0]
	var refused error
	for end := time.Now().Add(l.within); time.Now().Before(end); {
		holders, err := pi.Holders(ctx, t.prober, pi.AskTime)
		switch {
		case err != nil || slices.Equal(holders, []int{n}):
			return "", err
		case len(holders) == 1:
			_, refused = t.member(holders[0]).Topdog(ctx, "resign")
		}
	}
	return "", errors.Join(fmt.Errorf("it does not lead after %s", l.within), refused)
}

// is checks that a board is off or dark.
func (t *trial) is(ctx context.Context, l line) (string, error) {
	return "", t.each(l, func(b *pi.Board) error {
		if l.words[0] == "off" {
			return b.AwaitOff(ctx, l.within)
		}
		return isDark(ctx, b)
	})
}

// isDark checks that a board shows no light on any of its lines, for a while and seen from outside, and says itself
// that it lacks the address. Whoever calls it has seen another board answer, and that one alone.
func isDark(ctx context.Context, b *pi.Board) error {
	pins := []pi.Pin{pi.GPIO17, pi.ACT}
	watches, err := b.WatchLights(ctx, pi.WatchTime, pins...)
	if err != nil {
		return err
	}
	for i, w := range watches {
		if w.Pattern() != gpio.Off {
			return fmt.Errorf("%s of %s is not dark: %s", pins[i], b.Name(), w)
		}
	}
	out, err := b.Run(ctx, "ip -br addr; ip -br link")
	if err == nil && (strings.Contains(out, pi.Floating.String()+"/") || strings.Contains(out, "topdog")) {
		err = fmt.Errorf("%s still has the address, or a device of topdog's:\n%s", b.Name(), out)
	}
	return err
}

// killWhileLit kills the daemon while its light is on. The daemon is stopped
// first, so that the light does not change between the look and the kill.
func killWhileLit(ctx context.Context, b *pi.Board) error {
	for range 10 {
		if err := b.Signal(ctx, "STOP"); err != nil {
			return err
		}
		watches, err := b.WatchLights(ctx, 0, b.Light())
		if err != nil {
			return err
		}
		if watches[0].Now {
			return b.Signal(ctx, "KILL")
		}
		if err := b.Signal(ctx, "CONT"); err != nil {
			return err
		}
	}
	return errors.New("the leader's light was dark at ten looks: it is lit nine tenths of the time")
}
