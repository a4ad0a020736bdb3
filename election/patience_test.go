package election

import (
	"testing"
	"time"

	"topdog/election/silence"
	"topdog/internal/lab/assert"
	"topdog/wire"
)

// announces returns the grace of the last message to all from which others count.
func announces(t *testing.T, effects []Effect) (grace time.Duration) {
	t.Helper()
	for i := len(effects) - 1; i >= 0; i-- {
		switch m := &effects[i].Message; {
		case effects[i].Kind != EffectSend || effects[i].To != wire.Nobody:
		case m.Type == wire.TypeHeartbeat:
			return m.Heartbeat.Grace
		case m.Type == wire.TypeCoordinator:
			return m.Coordinator.Grace
		}
	}
	t.Fatalf("no heartbeat among %v", described(effects))
	return 0
}

// leads returns a board that leads a group of three.
func leads(t *testing.T, change ...func(*Config)) *board {
	t.Helper()
	b := newBoard(t, change...)
	b.takeLead()
	for _, id := range []wire.ID{1, 3} {
		b.hear(id, wire.TypeHello, func(m *wire.Message) { m.Hello.Following = 2 })
	}
	b.beats()
	return b
}

// wakesLate has the leader stand still until its heartbeat is so late.
func (b *board) wakesLate(late time.Duration) []Effect {
	b.clock = b.leading.heartbeat.At + late
	return b.Wake(b.clock)
}

// beats lets the leader send its next heartbeat.
func (b *board) beats() []Effect { return b.wakesLate(0) }

// TestLateByHalves: the nearer a leader comes to its end, by one call after the other, the more
// it learns; but people are told once.
func TestLateByHalves(t *testing.T) {
	b := leads(t)
	notices := 0
	for late := ms; late <= 40*ms; late += ms {
		b.clock = b.leading.heartbeat.At
		if late > 0 {
			b.clock += late
		}
		for _, e := range b.hear(1, wire.TypeHello, func(m *wire.Message) { m.Hello.Following = 2 }) {
			if e.Kind == EffectNotice {
				notices++
			}
		}
	}
	if notices == 0 || notices > 3 {
		t.Errorf("%d notices", notices)
	}
}

// TestOrderOfRaising: a longer grace is announced before the lease has it, and a shorter one
// is that of the lease before it is announced. At no time is a lease that still runs longer
// than the grace that was announced with the heartbeats before it allows.
func TestOrderOfRaising(t *testing.T) {
	for _, interval := range []time.Duration{10 * ms, 100 * ms} {
		b := leads(t, func(c *Config) { c.Interval = interval })
		least := silence.DefaultGrace(interval)
		var ends, claims Instant // of the longest lease, and the earliest claim, by what was sent until now
		check := func(effects []Effect) {
			t.Helper()
			announced := max(announces(t, effects), least)
			claims = b.clock + interval + announced
			end, _ := b.LeaseEnd()
			ends = max(ends, end) // a lease that was longer may not have been shortened in time
			if ends >= claims {
				t.Fatalf("H=%v: at %v a lease ends at %v, and a board that heard %v announced may claim at %v", interval, b.clock, ends, announced, claims)
			}
		}
		grants := func(want time.Duration) {
			b.hear(1, wire.TypeHello, func(m *wire.Message) { m.Hello.Following, m.Hello.Grace = 2, want })
		}
		check(b.beats())
		grants(200 * ms)
		first := b.beats()
		check(first)
		if got := announces(t, first); got != 200*ms || b.grace.Lease != least {
			t.Errorf("H=%v: the first heartbeat announces %v, and the lease has %v", interval, got, b.grace.Lease)
		}
		check(b.beats())
		if b.grace.Lease != 200*ms {
			t.Errorf("H=%v: an interval later the lease has %v", interval, b.grace.Lease)
		}
		b.grace.HalveAt = b.clock // an hour has passed
		lowered := b.clock + interval
		check(b.beats())
		if b.grace.Lease != 100*ms || b.grace.Announced != 200*ms {
			t.Errorf("H=%v: then it announces %v and the lease has %v", interval, b.grace.Announced, b.grace.Lease)
		}
		for b.grace.Announced == 200*ms && b.clock < lowered+time.Second {
			check(b.beats())
		}
		if b.grace.Announced != 100*ms || b.clock < lowered+interval+200*ms {
			t.Errorf("H=%v: it announces %v, %v after the lease has it", interval, b.grace.Announced, b.clock-lowered)
		}
	}
}

// TestFollowerWaitsAsAnnounced: nobody takes over before the grace is over that the leader has
// announced.
func TestFollowerWaitsAsAnnounced(t *testing.T) {
	for _, detector := range []silence.DetectorKind{silence.DetectorAsk, silence.DetectorFixed, silence.DetectorNFDE} {
		for _, interval := range []time.Duration{10 * ms, 100 * ms} {
			for _, grace := range []time.Duration{0, 80 * ms, 144 * ms, 240 * ms} {
				b := newBoard(t, func(c *Config) { c.Interval, c.Detector = interval, detector })
				var last Instant
				for beat := range uint8(100) {
					b.sleep(interval)
					b.hear(3, wire.TypeHeartbeat, leading, func(m *wire.Message) {
						m.Heartbeat = wire.Heartbeat{Interval: interval, Grace: grace, Number: beat}
					})
					last = b.clock
				}
				for b.role != Leader && b.clock < last+3*time.Second {
					b.sleep(ms / 10)
				}
				least := max(grace, silence.DefaultGrace(interval))
				if late := b.clock - last - interval; b.role != Leader || late < least {
					t.Errorf("%v, H=%v, G=%v: it is a %v, %v after the heartbeat was due", detector, interval, least, b.role, late)
				} else if detector == silence.DetectorAsk && late > least+interval {
					t.Errorf("H=%v, G=%v: it claims only %v after the heartbeat was due", interval, least, late)
				}
			}
		}
	}
}

// TestHalves: what was learned is halved every hour, and kept as long as half of it would not
// be enough.
func TestHalves(t *testing.T) {
	if testing.Short() {
		t.Skip("hours of heartbeats take a second")
	}
	b := leads(t)
	b.wakesLate(30 * ms)
	for _, want := range []time.Duration{40 * ms, 20 * ms, 0} {
		start := b.clock
		for b.clock < start+time.Hour+time.Second {
			b.sleep(time.Second)
			b.hear(1, wire.TypeHello, func(m *wire.Message) { m.Hello.Following = 2 })
			if b.clock < start+59*time.Minute && b.grace.Learned <= want {
				t.Fatalf("after %v it is %v already", b.clock-start, b.grace.Learned)
			}
		}
		assert.Is(t, want, announces(t, b.beats()), "an hour later it announces")
	}

	b = leads(t)
	b.wakesLate(30 * ms)
	b.sleep(30 * time.Minute)
	b.hear(1, wire.TypeHello, func(m *wire.Message) { m.Hello.Following = 2 })
	for range 3 {
		b.beats()
	}
	b.wakesLate(31 * ms) // three quarters of 40 ms would have been too little for that
	b.sleep(59 * time.Minute)
	if got := announces(t, b.beats()); got != 80*ms {
		t.Errorf("89 minutes after the first and 59 after the second time it announces %v", got)
	}
}

// TestFollowerLeavesHalvingToTheLeader, which alone knows whether the grace is still needed. The next
// leader begins its hour anew.
func TestFollowerLeavesHalvingToTheLeader(t *testing.T) {
	b := newBoard(t)
	for beat := range uint8(3) {
		b.sleep(testInterval)
		b.hear(3, wire.TypeHeartbeat, leading, func(m *wire.Message) { m.Heartbeat.Number, m.Heartbeat.Grace = beat, 80*ms })
	}
	b.grace.HalveAt = b.clock
	b.sleep(testInterval)
	b.hear(3, wire.TypeHeartbeat, leading, func(m *wire.Message) { m.Heartbeat.Number, m.Heartbeat.Grace = 3, 80*ms })
	b.hear(3, wire.TypeResign, func(m *wire.Message) { m.Resign.Successor = 2 })
	if got := announces(t, b.Wake(b.clock)); got != 80*ms || b.grace.HalveAt != b.clock+time.Hour {
		t.Errorf("the next leader announces %v, and halves it in %v", got, b.grace.HalveAt-b.clock)
	}
}
