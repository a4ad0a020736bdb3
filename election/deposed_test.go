package election

import (
	"testing"
	"time"

	"topdog/election/lease"
	"topdog/internal/lab/assert"
	"topdog/wire"
)

// looks lets time pass, and returns when this board has told board 3 that it leads, and when it has looked for it
// among all, in the time since its heartbeat was due.
func (b *board) looks(due, d time.Duration) (told, among []time.Duration) {
	for end := b.clock + d; b.clock < end; {
		for _, e := range b.sleep(ms) {
			switch m := &e.Message; {
			case e.Kind != EffectSend || !m.Leading:
			case e.To == 3 && m.Type == wire.TypeHeartbeat:
				told = append(told, b.clock-due)
			case e.To == wire.Nobody && m.Type == wire.TypeRival && m.Rival.Rival == 3:
				if e.Broadcast && b.clock-b.leading.since > multicastMissed*b.cfg.Interval+ms {
					b.t.Fatal("it broadcasts")
				}
				among = append(among, b.clock-due)
			}
		}
	}
	return told, among
}

// TestLooksForTheDeposed: a new leader tells the board that it has replaced that it leads, a few
// times and ever more rarely, for an interval. Then it looks for it among all every 40 ms, until it hears that
// board or 10 s are over.
func TestLooksForTheDeposed(t *testing.T) {
	const seconds = 12
	replaced := func(t *testing.T, change ...func(*Config)) (b *board, due time.Duration) {
		b = newBoard(t, change...)
		b.hear(3, wire.TypeHeartbeat, leading, func(m *wire.Message) { m.Heartbeat.Interval = b.cfg.Interval })
		return b, b.clock + b.cfg.Interval
	}
	t.Run("dead", func(t *testing.T) {
		b, due := replaced(t)
		told, among := b.looks(due, seconds*time.Second)
		if len(told) < 4 || len(told) > 6 || told[0] > 20*ms || told[len(told)-1] > testInterval {
			t.Errorf("it tells the board %v after the heartbeat was due", told)
		}
		since := told[len(told)-1]
		for _, at := range among {
			if at-since > lookSpacing+ms {
				t.Errorf("it looks %v after the heartbeat was due, and then %v", since, at)
			}
			since = at
		}
		if since < lookFor-lookSpacing || since > lookFor+20*ms {
			t.Errorf("it looks for the last time %v after the heartbeat was due", since)
		}
	})
	for _, test := range []struct {
		name string
		says func(*wire.Message)
	}{
		{"found", func(*wire.Message) {}},
		{"found leading", leading},
	} {
		t.Run(test.name, func(t *testing.T) {
			b, due := replaced(t)
			b.looks(due, time.Second)
			b.hear(3, wire.TypeHello, test.says, func(m *wire.Message) { m.Term = 1 })
			if told, among := b.looks(due, testInterval); len(told)+len(among) > 0 {
				t.Errorf("it looks %v %v after the heartbeat was due", told, among)
			}
		})
	}
	t.Run("a long interval", func(t *testing.T) {
		b, due := replaced(t, func(c *Config) { c.Interval = time.Second })
		_, among := b.looks(due, seconds*time.Second)
		if n := len(among); n < 20 || n > 25 {
			t.Errorf("it looks %d times: %v after the heartbeat was due", n, among)
		}
	})
	t.Run("with votes", func(t *testing.T) {
		b := newBoard(t)
		b.hear(3, wire.TypeHeartbeat, leading)
		b.sleep(testInterval + 20*ms)
		b.votes.support = lease.NewSupport([]wire.ID{2, 3})
		if at := b.laterLook(); at != 0 {
			t.Errorf("it looks at %v", at)
		}
	})
	t.Run("its heartbeats come as often", func(t *testing.T) {
		b, due := replaced(t, func(c *Config) { c.Interval = lookSpacing })
		if _, among := b.looks(due, seconds*time.Second); b.role != Leader || len(among) > 0 {
			t.Errorf("it looks %v after the heartbeat was due", among)
		}
	})
}

// TestLookIsNoDuty: a leader that stood still counts from its heartbeat, for which others wait, and not from its next look. So
// it keeps the lead as one does that looks for nobody.
func TestLookIsNoDuty(t *testing.T) {
	const stall = 105 * ms
	lost := func(looks bool) (phases []time.Duration) {
		for phase := time.Duration(0); phase < testInterval; phase += ms {
			b := newBoard(t)
			b.hear(3, wire.TypeHeartbeat, leading)
			b.sleep(testInterval + 20*ms)
			b.hear(1, wire.TypeHello)
			if !looks {
				b.leading.deposed = deposed{}
			}
			b.sleep(2*time.Second + phase)
			if b.role != Leader || b.leading.deposed.look.Set != looks {
				t.Fatalf("it is a %v, and looks: %v", b.role, b.leading.deposed.look.Set)
			}
			b.clock += stall
			if b.Wake(b.clock); b.role != Leader {
				phases = append(phases, phase)
			}
		}
		return phases
	}
	with, without := lost(true), lost(false)
	if len(without) == 0 || len(without) == int(testInterval/ms) {
		t.Fatalf("it loses the lead in %d phases", len(without))
	}
	assert.Equal(t, without, with, "it loses the lead in other phases with a look")
}
