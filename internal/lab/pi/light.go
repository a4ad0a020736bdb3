package pi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"topdog/gpio"
)

// monitorTimeout bounds one exchange with QEMU's monitor. It takes less than a
// millisecond on an idle machine; the bound is for one that is overloaded.
const monitorTimeout = 20 * time.Second

// monitor speaks to QEMU by its protocol QMP. It is the view from outside: the emulated board has no part in an answer. QEMU
// serves one client at a time.
type monitor struct {
	conn net.Conn
	in   *json.Decoder
}

// dialMonitor connects to QEMU's monitor for this board.
func (b *Board) dialMonitor(ctx context.Context) (*monitor, error) {
	if !b.On() {
		return nil, fmt.Errorf("%s: %w", b.Name(), errOff)
	}
	conn, err := b.dial(ctx, "monitor")
	if err != nil {
		return nil, fmt.Errorf("%s: connect to QEMU's monitor: %w", b.Name(), err)
	}
	m := &monitor{conn, json.NewDecoder(conn)}
	if _, err := m.execute("qmp_capabilities", map[string]string{}); err != nil {
		conn.Close()
		return nil, fmt.Errorf("%s: wait for QEMU's monitor (is another pilab command using it?): %w", b.Name(), err)
	}
	return m, nil
}

// execute has QEMU execute a command, and returns what that says, if it is a text.
func (m *monitor) execute(command string, arguments map[string]string) (text string, err error) {
	err = m.conn.SetDeadline(time.Now().Add(monitorTimeout))
	if err == nil {
		err = json.NewEncoder(m.conn).Encode(map[string]any{"execute": command, "arguments": arguments})
	}
	for err == nil {
		var said struct { // or it is the greeting, or an event
			Return any
			Error  *struct{ Desc string }
		}
		err = m.in.Decode(&said)
		if said.Error != nil {
			return "", errors.New(said.Error.Desc)
		}
		if said.Return != nil {
			text, _ = said.Return.(string)
			return text, nil
		}
	}
	return "", err
}

// words reads n 32-bit words of physical memory, of which the registers of the
// emulated chips are a part. QMP has no command for that, but one for those that people type.
func (m *monitor) words(address uint64, n int) (words []uint32, err error) {
	command := fmt.Sprintf("xp /%dwx %#x", n, address)
	text, err := m.execute("human-monitor-command", map[string]string{"command-line": command})
	for _, field := range strings.Fields(text) {
		if w, err := strconv.ParseUint(field, 0, 32); err == nil { // and not the address at the beginning of a line
			words = append(words, uint32(w))
		}
	}
	if err == nil && len(words) != n {
		err = fmt.Errorf("%d words, want %d, in %q", len(words), n, text)
	}
	if err != nil {
		return nil, fmt.Errorf("QEMU's monitor: %s: %w", command, err)
	}
	return words, nil
}

// Pin is a GPIO line of the emulated chip.
type Pin int

// The lines that lights are on.
const (
	GPIO17 Pin = 17 // where docs/hardware.md wires one
	ACT    Pin = 47 // the board's own
)

func (p Pin) String() string {
	if p == ACT {
		return "ACT"
	}
	return fmt.Sprintf("GPIO%d", int(p))
}

// registers are the first 15 words of the GPIO block (BCM2835 ARM Peripherals,
// section 6.1): GPFSEL0-5, a reserved one, GPSET0-1, a reserved one, GPCLR0-1, a
// reserved one, GPLEV0-1.
type registers []uint32

const (
	registerCount = 15
	gplev0        = 13
	fselOutput    = 1 // of the three bits per line in GPFSEL
)

// lit tells whether an LED between this line and ground shines. Only a line that
// is driven counts: one that was released floats, although the level register of
// QEMU's chip keeps the last value.
func (r registers) lit(p Pin) bool {
	function := r[p/10] >> (3 * (p % 10)) & 7
	level := r[gplev0+p/32] >> (p % 32) & 1
	return function == fselOutput && level == 1
}

// Watch is what was seen of a light: for how long it was lit and dark in turn,
// the first and the last phase cut off by the beginning and the end.
type Watch struct {
	Lit, Dark time.Duration
	Pulses    int  // how often it went from dark to lit
	Now       bool // it was lit at the end
}

// add counts one sample for the time since the one before.
func (w *Watch) add(now bool, since time.Duration) {
	if w.Now {
		w.Lit += since
	} else {
		w.Dark += since
	}
	if now && !w.Now {
		w.Pulses++
	}
	w.Now = now
}

// duty is the part of the time that the light was lit, from 0 to 1.
func (w Watch) duty() float64 {
	total := w.Lit + w.Dark
	if total == 0 {
		return 0
	}
	return float64(w.Lit) / float64(total)
}

// WatchTime is how long to look at a light to tell the patterns apart: two
// periods of the slowest, and some more for a board that has just stood still.
const WatchTime = 4500 * time.Millisecond

// samplePeriod is a fraction of the shortest flash, which is 50 ms.
const samplePeriod = 10 * time.Millisecond

// Steady is what no pattern of topdog looks like: lit all the time, as by a
// daemon that died or stands still.
const Steady gpio.Pattern = 0xff

// Pattern tells which of topdog's patterns was seen. They differ in the part of
// the time that they are lit: not at all, 1/40 (follower), 3/10 (fault), 1/2
// (election) and 9/10 (leader). The limits lie between, nearer to the lower one
// because an emulated board that pauses makes a long phase longer, and most
// phases are dark. A leader is told from a steady light by its pulses.
func (w Watch) Pattern() gpio.Pattern {
	switch duty := w.duty(); {
	case w.Lit == 0:
		return gpio.Off
	case duty < 0.15:
		return gpio.Follower
	case duty < 0.45:
		return gpio.Fault
	case duty < 0.65:
		return gpio.Election
	case w.Pulses >= 2:
		return gpio.Leader
	default:
		return Steady
	}
}

func (w Watch) String() string {
	name := "steady"
	if p := w.Pattern(); p != Steady {
		name = p.String()
	}
	return fmt.Sprintf("%s (lit %.0f %%, %d pulses)", name, 100*w.duty(), w.Pulses)
}

// WatchLights looks at pins of the board for a while, in the registers; once if d is 0.
func (b *Board) WatchLights(ctx context.Context, d time.Duration, pins ...Pin) ([]Watch, error) {
	m, err := b.dialMonitor(ctx)
	if err != nil {
		return nil, err
	}
	defer m.conn.Close()
	tick := time.NewTicker(samplePeriod)
	defer tick.Stop()
	watches := make([]Watch, len(pins))
	start := time.Now()
	var last time.Time
	for last.IsZero() || last.Sub(start) < d {
		words, err := m.words(b.lab.Machine.gpioBase, registerCount)
		if err != nil {
			return nil, err
		}
		at := time.Now()
		for i, p := range pins {
			if lit := registers(words).lit(p); last.IsZero() {
				watches[i].Now = lit
			} else {
				watches[i].add(lit, at.Sub(last))
			}
		}
		last = at
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return watches, nil
}
