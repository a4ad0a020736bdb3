package election

import (
	"testing"
	"time"

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
	b.clock = b.leading.heartbeat.at + late
	return b.Wake(b.clock)
}

// beats lets the leader send its next heartbeat.
func (b *board) beats() []Effect { return b.wakesLate(0) }

// TestOversleptLeaderAsksForMore: what its lease has not survived, twice, but four default graces at
// least, and only within its patience. It has three quarters of the grace.
func TestOversleptLeaderAsksForMore(t *testing.T) {
	for _, test := range []struct {
		name        string
		late        time.Duration
		change      func(*Config)
		want        time.Duration
		announcesIt bool // at once, since it still leads
	}{
		{"on time", 0, nil, 0, true},
		{"within the lease", 7500 * time.Microsecond, nil, 0, true},
		{"within the grace", 9 * ms, nil, 40 * ms, true},
		{"the least is beyond the patience", 9 * ms, func(c *Config) { c.Patience = 39 * ms }, 24 * ms, true},
		{"beyond the grace", 30 * ms, nil, 80 * ms, true},
		{"beyond the interval", 120 * ms, nil, 320 * ms, false},
		{"half of the patience", 186 * ms, nil, 496 * ms, false},
		{"beyond the patience", 187 * ms, nil, 0, false}, // 498.7 ms is 512 ms on the wire
		{"patience configured", 30 * ms, func(c *Config) { c.Patience = 80 * ms }, 80 * ms, true},
		{"patience too short", 30 * ms, func(c *Config) { c.Patience = 79 * ms }, 0, true},
		{"no patience", 9 * ms, func(c *Config) { c.Patience = 10 * ms }, 0, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			var changes []func(*Config)
			if test.change != nil {
				changes = append(changes, test.change)
			}
			b := leads(t, changes...)
			effects := b.wakesLate(test.late)
			if got := b.patience.learned; got != test.want {
				t.Errorf("it has learned %v, want %v", got, test.want)
			}
			if (b.role == Leader) != test.announcesIt {
				t.Fatalf("it is a %v", b.role)
			}
			if b.role == Leader {
				if got := announces(t, effects); got != test.want {
					t.Errorf("it announces %v, want %v", got, test.want)
				}
			}
		})
	}
}

// TestLateByHalves: the nearer a leader comes to its end, by one call after the other, the more
// it learns; but people are told once.
func TestLateByHalves(t *testing.T) {
	b := leads(t)
	notices := 0
	for late := ms; late <= 40*ms; late += ms {
		b.clock = b.leading.heartbeat.at
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
		least := DefaultGrace(interval)
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
		if got := announces(t, first); got != 200*ms || b.grace.lease != least {
			t.Errorf("H=%v: the first heartbeat announces %v, and the lease has %v", interval, got, b.grace.lease)
		}
		check(b.beats())
		if b.grace.lease != 200*ms {
			t.Errorf("H=%v: an interval later the lease has %v", interval, b.grace.lease)
		}
		b.patience.halveAt = b.clock // an hour has passed
		lowered := b.clock + interval
		check(b.beats())
		if b.grace.lease != 100*ms || b.grace.announced != 200*ms {
			t.Errorf("H=%v: then it announces %v and the lease has %v", interval, b.grace.announced, b.grace.lease)
		}
		for b.grace.announced == 200*ms && b.clock < lowered+time.Second {
			check(b.beats())
		}
		if b.grace.announced != 100*ms || b.clock < lowered+interval+200*ms {
			t.Errorf("H=%v: it announces %v, %v after the lease has it", interval, b.grace.announced, b.clock-lowered)
		}
	}
}

// TestFollowerWaitsAsAnnounced: nobody takes over before the grace is over that the leader has
// announced, and one who has not heard that waits as long as it would grant itself.
func TestFollowerWaitsAsAnnounced(t *testing.T) {
	for _, detector := range []DetectorKind{DetectorAsk, DetectorFixed, DetectorNFDE} {
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
				least := max(grace, DefaultGrace(interval))
				if late := b.clock - last - interval; b.role != Leader || late < least {
					t.Errorf("%v, H=%v, G=%v: it is a %v, %v after the heartbeat was due", detector, interval, least, b.role, late)
				} else if detector == DetectorAsk && late > least+interval {
					t.Errorf("H=%v, G=%v: it claims only %v after the heartbeat was due", interval, least, late)
				}
			}
		}
	}
	b := newBoard(t)
	b.hear(3, wire.TypeHello, leading)
	if got := b.detector.Grace(); b.role != Follower || got != DefaultPatience(testInterval) {
		t.Errorf("a %v that has heard nothing of the grace waits for %v", b.role, got)
	}
	b.hear(3, wire.TypeHeartbeat, leading)
	if got := b.detector.Grace(); got != DefaultGrace(testInterval) {
		t.Errorf("then it waits for %v", got)
	}
}

// TestWishes: a follower wishes for what it has learned until its leader has announced it, and
// goes on with it when it leads.
func TestWishes(t *testing.T) {
	b := leads(t)
	b.wakesLate(120 * ms)
	if b.role == Leader {
		t.Fatal("it still leads")
	}
	beat := func(grace time.Duration) []Effect {
		return b.hear(3, wire.TypeHeartbeat, leading, func(m *wire.Message) { m.Term, m.Heartbeat.Grace = b.term+1, grace })
	}
	beat(0)
	if got := b.wishedGrace(); got != 320*ms {
		t.Errorf("it wishes for %v", got)
	}
	told := false
	for _, e := range b.sleep(50 * ms) {
		told = told || e.Kind == EffectSend && e.Message.Type == wire.TypeHello && e.Message.Hello.Grace == 320*ms
	}
	if !told {
		t.Error("its leader was not told soon")
	}
	beat(320 * ms)
	if got := b.wishedGrace(); got != 0 {
		t.Errorf("it was granted, and it wishes for %v", got)
	}
	beat(160 * ms) // the leader has halved it
	if got := b.wishedGrace(); got != 0 || b.patience.learned != 160*ms {
		t.Errorf("it was halved, and it wishes for %v", got)
	}
	effects := b.hear(3, wire.TypeResign, func(m *wire.Message) { m.Resign.Successor = 2 })
	if got := announces(t, effects); got != 160*ms {
		t.Errorf("as the next leader it announces %v", got)
	}
}

// TestGrants: a leader grants the longest wish that its patience allows.
func TestGrants(t *testing.T) {
	b := leads(t, func(c *Config) { c.Patience = 200 * ms })
	wishes := func(id wire.ID, grace time.Duration) {
		b.hear(id, wire.TypeHello, func(m *wire.Message) { m.Hello.Following, m.Hello.Grace = 2, grace })
	}
	wishes(1, 80*ms)
	wishes(3, 60*ms)
	wishes(1, 208*ms)
	if got := announces(t, b.beats()); got != 80*ms {
		t.Errorf("it announces %v", got)
	}
	if s := b.Status(b.clock).Patience; s.Grace != 80*ms || s.Lesson.Kind != LessonWished || s.Lesson.Board != 1 {
		t.Errorf("its status says %+v", s)
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
			if b.clock < start+59*time.Minute && b.patience.learned <= want {
				t.Fatalf("after %v it is %v already", b.clock-start, b.patience.learned)
			}
		}
		if got := announces(t, b.beats()); got != want {
			t.Errorf("an hour later it announces %v, want %v", got, want)
		}
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
	b.patience.halveAt = b.clock
	b.sleep(testInterval)
	b.hear(3, wire.TypeHeartbeat, leading, func(m *wire.Message) { m.Heartbeat.Number, m.Heartbeat.Grace = 3, 80*ms })
	effects := b.hear(3, wire.TypeResign, func(m *wire.Message) { m.Resign.Successor = 2 })
	if got := announces(t, effects); got != 80*ms || b.patience.halveAt != b.clock+time.Hour {
		t.Errorf("the next leader announces %v, and halves it in %v", got, b.patience.halveAt-b.clock)
	}
}

// TestFirstHeartbeatTeachesNothing: the leader was busy with the address until then.
func TestFirstHeartbeatTeachesNothing(t *testing.T) {
	b := newBoard(t)
	b.takeLead()
	b.hear(1, wire.TypeHello, func(m *wire.Message) { m.Hello.Following = 2 })
	if b.wakesLate(9 * ms); b.patience.learned != 0 {
		t.Errorf("late for the first heartbeat, it has learned %v", b.patience.learned)
	}
	if b.wakesLate(9 * ms); b.patience.learned == 0 {
		t.Error("late for the second one, it has learned nothing")
	}
}

// TestLoneLeaderLearnsNothing: nobody could replace it, however long it stands still.
func TestLoneLeaderLearnsNothing(t *testing.T) {
	b := newBoard(t)
	b.lead()
	if effects := b.wakesLate(30 * ms); announces(t, effects) != 0 || b.patience.learned != 0 {
		t.Errorf("it has learned %v", b.patience.learned)
	}
}

// TestReplacedAlive: a leader that has replaced another one measures how long that one was not
// heard, if it leads on.
func TestReplacedAlive(t *testing.T) {
	for _, test := range []struct {
		name  string
		after time.Duration // its heartbeat was due
		says  func(*wire.Message)
		want  time.Duration
	}{
		{"leads on", 36 * ms, leading, 72 * ms},
		{"too long", 260 * ms, leading, 0},
		{"has let go", 36 * ms, func(*wire.Message) {}, 0},
		{"restarted", 36 * ms, func(m *wire.Message) { m.Leading, m.Incarnation = true, 31 }, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBoard(t)
			for beat := range uint8(20) {
				b.hear(3, wire.TypeHeartbeat, leading, func(m *wire.Message) { m.Heartbeat.Number = beat })
				b.sleep(testInterval)
			}
			missed := b.clock
			b.sleep(20 * ms)
			if b.role != Leader {
				t.Fatalf("it is a %v", b.role)
			}
			b.sleep(missed + test.after - b.clock)
			b.hear(3, wire.TypeHello, test.says, func(m *wire.Message) { m.Term = 1 })
			if got := b.patience.learned; got != test.want {
				t.Errorf("it has learned %v, want %v", got, test.want)
			}
		})
	}
}
