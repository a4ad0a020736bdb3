package daemon

import (
	"fmt"
	"io/fs"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"topdog/gpio"
	"topdog/internal/config"
	"topdog/internal/lab/assert"
	"topdog/internal/lab/lamp"
)

// Whatever is wrong with the light, the board is elected, takes over from a dead
// one, and says once what is wrong; and a light that works again shows the role.
func TestLightFailsAndElectionGoesOn(t *testing.T) {
	for _, cause := range []error{gpio.ErrNoGPIO, gpio.ErrNotFound, gpio.ErrBusy, fs.ErrPermission} {
		t.Run(cause.Error(), func(t *testing.T) {
			inBubble(t, func(t *testing.T, l *fakeLAN) {
				var works atomic.Bool
				lamp := lamp.NewRecorder("lamp", 1000)
				broken := func(_ *config.Config, b *fakeBoard) {
					b.openLED = func() (gpio.LED, error) {
						if works.Load() && b.number == 1 {
							return lamp, nil
						}
						return nil, fmt.Errorf("open the LED \"GPIO17\": %w", cause)
					}
				}
				one, two := l.board(1, broken), l.board(2, broken)
				pass(time.Minute)
				if got := fmt.Sprint(l.holders()); got != "[2]" {
					t.Fatalf("%s hold the address, want board 2", got)
				}
				two.Kill()
				pass(time.Second)
				s, err := one.Status(t.Context())
				if err != nil || !s.Holding {
					t.Errorf("board 1 did not take over: %+v, %v", s, err)
				}
				if want := `open the LED "GPIO17": ` + cause.Error(); s.LEDText != want || s.LEDPattern != "" || !strings.Contains(strings.Join(texts(s.Problems), "\n"), want) {
					t.Errorf("status: LED %q, problems %q", s.LEDText, s.Problems)
				}
				warned := 0
				one.get(func() {
					for _, line := range one.logged {
						if strings.Contains(line, "GPIO17") {
							warned++
						}
					}
				})
				assert.Is(t, 1, warned, "how often it is logged")

				works.Store(true)
				pass(time.Minute)
				if s, err := one.Status(t.Context()); err != nil || !strings.HasPrefix(s.LEDText, "lamp, lit") || s.LEDPattern != "leader" || strings.Contains(strings.Join(texts(s.Problems), "\n"), "LED") {
					t.Errorf("once it works: LED %q, problems %q, %v", s.LEDText, s.Problems, err)
				}
				if len(lamp.Edges()) < 10 {
					t.Errorf("the light does not pulse: %v", lamp.Edges())
				}
			})
		})
	}
}

// TestMissesNoLight: a board that does not have the usual light works without, and says nothing of it. One that is busy, or asked for, is a problem.
func TestMissesNoLight(t *testing.T) {
	asked, err := gpio.ParseSpec("GPIO17")
	assert.NoError(t, err)
	for _, tc := range []struct {
		name    string
		light   gpio.Spec
		cause   error
		problem bool
	}{
		{"no such light", gpio.Default, gpio.ErrNotFound, false},
		{"no GPIO", gpio.Default, gpio.ErrNoGPIO, false},
		{"busy", gpio.Default, gpio.ErrBusy, true},
		{"no permission", gpio.Default, fs.ErrPermission, true},
		{"one that was asked for", asked, gpio.ErrNotFound, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, l *fakeLAN) {
				one := l.board(1, func(c *config.Config, b *fakeBoard) {
					c.LED = tc.light
					b.openLED = func() (gpio.LED, error) { return nil, fmt.Errorf("open the LED: %w", tc.cause) }
				})
				pass(time.Minute)
				s := one.mustStatus(t)
				if has := len(besidesSpares(s)) > 0; has != tc.problem || s.LEDText != "open the LED: "+tc.cause.Error() {
					t.Errorf("problems %q, LED %q", s.Problems, s.LEDText)
				}
			})
		})
	}
}
