package trial

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"topdog/gpio"
	"topdog/internal/lab/pi"
)

// view is what can be seen of the cluster from outside.
type view struct {
	holders []int            // boards that answer ARP requests for the address
	lights  map[int]pi.Watch // of the emulated boards that are on
	natives int              // the first boards, which have no light
}

// look watches all lights for as long as it takes to tell the patterns apart,
// and asks meanwhile who has the address. The lights of some boards may not matter.
func (t *trial) look(ctx context.Context, without ...int) (view, error) {
	v := view{lights: make(map[int]pi.Watch), natives: boards - t.Emulated}
	var mu sync.Mutex
	var wg sync.WaitGroup
	var failed error
	for _, b := range t.lab.Boards() {
		if !b.On() || slices.Contains(without, b.N) {
			continue
		}
		wg.Go(func() {
			w, err := b.WatchLights(ctx, pi.WatchTime, b.Light())
			if err != nil && switchesOff(ctx, b) {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed = err
				return
			}
			v.lights[b.N] = w[0]
		})
	}
	holders, err := t.lab.Holders(ctx, t.lab.Floating())
	wg.Wait()
	if err != nil {
		return v, err
	}
	v.holders = holders
	return v, failed
}

// switchesOff reports whether a board that cannot be watched any more is off in a moment: one that shuts
// down ends while somebody looks at it.
func switchesOff(ctx context.Context, b *pi.Board) bool {
	for range 20 {
		if !b.On() {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(100 * time.Millisecond):
		}
	}
	return false
}

func (v view) String() string {
	var parts []string
	for n := 1; n <= boards; n++ {
		if n <= v.natives {
			continue
		}
		if w, ok := v.lights[n]; ok {
			parts = append(parts, fmt.Sprintf("pi%d shows %s", n, w))
		} else {
			parts = append(parts, fmt.Sprintf("pi%d is off, or does not matter", n))
		}
	}
	return fmt.Sprintf("address on %v; %s", v.holders, strings.Join(parts, "; "))
}

// leads tells whether the view is that of a cluster led by board n: it alone has
// the address, it alone pulses, all others that run blink as followers. Those that are native show nothing.
func (v view) leads(n int, without ...int) bool {
	if !slices.Equal(v.holders, []int{n}) {
		return false
	}
	if _, on := v.lights[n]; !on && n > v.natives {
		return false
	}
	for board, w := range v.lights {
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

// await looks until cond is true of what is seen.
func (t *trial) await(ctx context.Context, what string, cond func(view) bool, without ...int) (view, error) {
	deadline := time.Now().Add(agreeTime)
	for {
		v, err := t.look(ctx, without...)
		if err != nil {
			return v, err
		}
		if cond(v) {
			return v, nil
		}
		if time.Now().After(deadline) {
			return v, fmt.Errorf("want %s; still after %s: %s", what, agreeTime, v)
		}
	}
}

// awaitLeader waits until board n leads in the eyes of everybody outside. The
// lights of some boards may not matter.
func (t *trial) awaitLeader(ctx context.Context, n int, without ...int) (string, error) {
	// Asking for the address once takes a ninth of the time of a look at the lights, which asks again.
	for end := time.Now().Add(agreeTime); time.Now().Before(end); {
		holders, err := t.lab.HoldersNow(ctx, t.lab.Floating())
		if err != nil {
			return "", err
		}
		if slices.Equal(holders, []int{n}) {
			break
		}
	}
	v, err := t.await(ctx, fmt.Sprintf("pi%d alone with the address and the leader's light", n), func(v view) bool { return v.leads(n, without...) }, without...)
	return v.String(), err
}

// lead has board n lead: it is the heir of each that may lead instead. A board that stands still has lost the lead
// before it could resign, and refuses.
func (t *trial) lead(ctx context.Context, n int) error {
	var refused error
	for end := time.Now().Add(agreeTime); time.Now().Before(end); {
		holders, err := t.lab.HoldersNow(ctx, t.lab.Floating())
		if err != nil {
			return err
		}
		switch {
		case slices.Equal(holders, []int{n}):
			return nil
		case len(holders) == 1:
			refused = t.member(holders[0]).Resign(ctx)
		}
	}
	return errors.Join(fmt.Errorf("have pi%d lead: it does not after %s", n, agreeTime), refused)
}

// outage is how long nobody answered at the address since a time, once it has
// been seen to be answered again.
func (t *trial) outage(since time.Time, limit time.Duration) (string, error) {
	report := t.asker.Report(since)
	longest := report.Longest.Duration()
	text := fmt.Sprintf("no answer to pings for %.2f s at most", longest.Seconds())
	switch {
	case report.First.Board == 0:
		return text, fmt.Errorf("nobody answered pings to %s for %s", t.lab.Floating(), longest)
	case limit > 0 && longest > limit:
		return text, fmt.Errorf("nobody answered pings to %s for %s, want at most %s", t.lab.Floating(), longest, limit)
	}
	return text, nil
}

// dark checks that a board shows no light on any of its lines, for a while and seen from outside, and says itself
// that it lacks the address. Whoever calls it has seen another board answer, and that one alone.
func (t *trial) dark(ctx context.Context, n int) error {
	b := t.board(n)
	watches, err := b.WatchLights(ctx, pi.WatchTime, pi.GPIO17, pi.ACT)
	if err != nil {
		return err
	}
	for i, w := range watches {
		if w.Pattern() != gpio.Off {
			return fmt.Errorf("%s of pi%d is not dark: %s", []pi.Pin{pi.GPIO17, pi.ACT}[i], n, w)
		}
	}
	out, err := b.Run(ctx, "ip -br addr; ip -br link")
	if err != nil {
		return err
	}
	if strings.Contains(out, t.lab.Floating().String()+"/") || strings.Contains(out, "topdog") {
		return fmt.Errorf("pi%d still has the address, or a device of topdog's:\n%s", n, out)
	}
	return nil
}
