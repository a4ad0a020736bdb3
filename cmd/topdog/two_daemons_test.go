package main

import (
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"topdog/gpio"
	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/internal/lab/assert"
	"topdog/internal/lab/judge"
)

// beside makes a second daemon on the board, with an address, a group and a UDP
// port of its own, as docs/config.md has it.
func (b *board) beside(address netip.Addr) *board {
	b.c.t.Helper()
	changes := b.Settings()
	delete(changes, "socket") // that of the first one
	maps.Copy(changes, settings{
		"name":      quote(b.String() + "-second"),
		"address":   quote(address.String()),
		"group":     quote("second"),
		"multicast": quote("224.0.0.254:9255"),
	})
	second := b.c.add(b.Number, changes)
	must(b.c.t, second.SetKey(config.NewKey()))
	return second
}

// holds waits until the daemon has its address by the best method there is.
func (b *board) holds() {
	b.c.t.Helper()
	b.untilStatusIs("it holds its address", func(s console.Status) bool {
		return s.Holding && strings.HasPrefix(s.HoldText, "tun+lifetime on topdog")
	})
}

// Two daemons with two groups run on one board, and whichever of them dies, what
// systemd runs after it leaves the other one alone.
func TestTwoDaemonsOnOneBoard(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 1, nil)
		first := c.board(1)
		second := first.beside(netip.MustParseAddr("10.77.0.101"))
		c.start(first, second)
		first.holds()
		second.holds()
		c.answeredBy(first)

		began := time.Now()
		kill := func(b *board) {
			t.Helper()
			holder := b.holder()
			b.signal(syscall.SIGKILL)
			b.gone()
			// systemd cleans up when all processes of the unit have ended.
			c.untilEnded("the dead man's switch of "+b.String(), holder)
			assert.Is(t, outcome{}, b.topdog("cleanup"), "%s was killed, so the kernel has tidied up, and cleanup", b)
		}
		kill(second)
		c.watchFor(5 * heartbeat)
		c.undisturbed(began, first)
		second.start()
		second.holds()

		kill(first)
		c.watchFor(5 * heartbeat)
		addresses, err := second.Addresses()
		must(t, err)
		if want := netip.MustParsePrefix("10.77.0.101/32"); !slices.Contains(addresses, want) {
			t.Errorf("the board has %v, want %v among them", addresses, want)
		}
		for _, b := range []*board{first, second} {
			if b.Log.Logged("something else deleted") {
				t.Errorf("%s lost its address", b)
			}
		}
	})
}

// The light of another daemon that keeps its notes in the same directory is not put
// out, and is no reason for a stop of the service to end as a failure.
func TestCleanupSparesTheLightOfAnotherDaemon(t *testing.T) {
	leds, notes := t.TempDir(), t.TempDir()
	for _, name := range []string{"ACT", "PWR"} {
		must(t, os.Mkdir(filepath.Join(leds, name), 0o755))
		must(t, os.WriteFile(filepath.Join(leds, name, "brightness"), []byte("0"), 0o644))
	}
	spec, err := gpio.ParseSpec("ACT")
	must(t, err)
	light, err := gpio.Open(spec, gpio.Options{LEDsIn: leds, NotesIn: notes, Report: func(err error) { t.Error(err) }})
	must(t, err)
	defer light.Close()
	must(t, light.Set(true))
	// The one that died had the other light, and left it on.
	must(t, os.WriteFile(filepath.Join(leds, "PWR", "brightness"), []byte("1"), 0o644))
	must(t, os.WriteFile(filepath.Join(notes, "led.led:PWR"), []byte("none\n"), 0o644))

	if err := gpio.DarkenLeftovers(gpio.Options{NotesIn: notes, LEDsIn: leds}); err != nil {
		t.Error(err)
	}
	got := map[string]string{}
	for _, name := range []string{"ACT", "PWR"} {
		brightness, err := os.ReadFile(filepath.Join(leds, name, "brightness"))
		must(t, err)
		got[name] = string(brightness)
	}
	assert.Equal(t, map[string]string{"ACT": "255", "PWR": "0"}, got, "the lights")
	left, err := gpio.Leftovers(notes)
	must(t, err)
	assert.Equal(t, []string{"led:ACT"}, texts(left), "the notes")
}

func texts[T fmt.Stringer](values []T) (all []string) {
	for _, v := range values {
		all = append(all, v.String())
	}
	return all
}
