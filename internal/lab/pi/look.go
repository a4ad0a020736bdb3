package pi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"topdog/gpio"
	"topdog/internal/lab/observe"
)

const (
	// AskEvery is how often this machine asks who has the address, and AskTime for how long it does if the lights are not looked
	// at meanwhile. While they are, it asks for longer: a board that pauses or a frame that got lost must not count as an
	// address that nobody has.
	AskEvery = 100 * time.Millisecond
	AskTime  = 500 * time.Millisecond

	// offTime is how long a board may take to end that shuts down.
	offTime = 2 * time.Second
)

// View is what can be seen of the cluster from outside.
type View struct {
	Holders  []int         // boards that answer ARP requests for the address
	Emulated []int         // boards that have a light
	Lights   map[int]Watch // of those that are on and matter
}

func (v View) String() string {
	var parts []string
	for _, n := range v.Emulated {
		if w, ok := v.Lights[n]; ok {
			parts = append(parts, fmt.Sprintf("pi%d shows %s", n, w))
		} else {
			parts = append(parts, fmt.Sprintf("pi%d is off, or does not matter", n))
		}
	}
	return fmt.Sprintf("address on %v; %s", v.Holders, strings.Join(parts, "; "))
}

// Leads tells whether the view is that of a cluster led by board n: it alone has
// the address, it alone pulses, all others that run blink as followers. Those that are native show nothing.
func (v View) Leads(n int) bool {
	if _, on := v.Lights[n]; !on && slices.Contains(v.Emulated, n) || !slices.Equal(v.Holders, []int{n}) {
		return false
	}
	for board, w := range v.Lights {
		want := gpio.Follower
		if board == n {
			want = gpio.Leader
		}
		if w.Pattern() != want {
			return false
		}
	}
	return true
}

// Look watches all lights for as long as it takes to tell the patterns apart,
// and asks meanwhile who has the address. The lights of some boards may not matter.
func (l *Lab) Look(ctx context.Context, prober *observe.Prober, without ...int) (v View, err error) {
	v.Lights = make(map[int]Watch)
	var mu sync.Mutex
	var wg sync.WaitGroup
	var failed error
	for _, b := range l.Boards {
		v.Emulated = append(v.Emulated, b.N)
		if !b.On() || slices.Contains(without, b.N) {
			continue
		}
		wg.Go(func() {
			w, err := b.WatchLights(ctx, WatchTime, b.Light())
			if err != nil && b.AwaitOff(ctx, offTime) == nil {
				return // One that shuts down ends while somebody looks at it.
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed = err
				return
			}
			v.Lights[b.N] = w[0]
		})
	}
	v.Holders, err = Holders(ctx, prober, 3*AskTime)
	wg.Wait()
	return v, errors.Join(err, failed)
}

// AwaitOff waits until a board has switched itself off.
func (b *Board) AwaitOff(ctx context.Context, limit time.Duration) error {
	if err := poll(ctx, limit, func() (bool, error) { return !b.On(), nil }); err != nil {
		return fmt.Errorf("%s has not switched itself off: %w", b.Name(), err)
	}
	return nil
}
