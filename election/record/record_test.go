package record

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"topdog/election"
	"topdog/internal/lab/assert"
	"topdog/internal/lab/replay"
	"topdog/wire"
)

const interval = 100 * time.Millisecond

// follower is a board that is recorded, and follows board 3.
type follower struct {
	*Core
	r     *Recording
	clock time.Duration
	beat  *wire.Message
}

func newFollower(t testing.TB) *follower {
	cfg := election.Config{ID: 2, Incarnation: 22, Name: "pi 2 # \x22", Priority: 100, Interval: interval, Algorithm: wire.AlgorithmHeir}
	core, err := election.New(cfg, election.Heir, time.Second)
	assert.NoError(t, err)
	r := New()
	f := &follower{Core: r.Of(core), r: r, clock: time.Second}
	f.beat = &wire.Message{
		Header:    wire.Header{Type: wire.TypeHeartbeat, Algorithm: wire.AlgorithmHeir, Leading: true, Sender: 3, Priority: 100, Incarnation: 30, Term: 1},
		Heartbeat: wire.Heartbeat{Interval: interval},
	}
	f.Link(f.clock, true)
	f.hear(20)
	return f
}

// hear has the leader send so many heartbeats.
func (f *follower) hear(beats int) {
	for range beats {
		f.clock += interval
		for at, ok := f.Deadline(); ok && at <= f.clock; at, ok = f.Deadline() {
			f.Wake(at)
		}
		f.beat.Sequence++
		f.beat.Heartbeat.Number++
		f.Step(f.clock, f.beat)
	}
}

// elect has the leader fall silent, and then lead again.
func (f *follower) elect(t testing.TB) {
	for range 1000 {
		if f.Role() == election.Leader {
			break
		}
		f.clock, _ = f.Deadline()
		for _, e := range f.Wake(f.clock) {
			if e.Kind == election.EffectAskLAN {
				f.Evidence(f.clock)
			}
		}
	}
	assert.Is(t, election.Leader, f.Role(), "its role")
	f.beat.Term = 9
	f.hear(2)
	assert.Is(t, election.Follower, f.Role(), "its role afterwards")
}

func (f *follower) playAgain(t testing.TB) replay.Result {
	t.Helper()
	played, err := replay.Play(string(f.r.Text()))
	assert.NoError(t, err)
	if played.Different > 0 {
		t.Errorf("%d of %d steps differ, at first %s", played.Different, played.Steps, played.First)
	}
	return played
}

// A takeover is still there after hours of heartbeats, in memory that is bounded.
func TestTakeoverIsKept(t *testing.T) {
	f := newFollower(t)
	f.hear(2000)
	f.elect(t)
	f.hear(100_000)
	text := string(f.r.Text())
	for _, want := range []string{"candidate -> leader", "\ttake\n", "leader -> follower", ` name="pi\x202\x20\x23\x20\"" `} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not recorded", want)
		}
	}
	if len(text) > 400<<10 {
		t.Errorf("%d bytes", len(text))
	}
	f.playAgain(t)
}

// What any machine on the LAN can do as often as it likes is not recorded: see Wake.
func TestFloodIsNotRecorded(t *testing.T) {
	f := newFollower(t)
	before := len(f.r.Text())
	for i := range 100_000 {
		f.Wake(f.clock + time.Duration(i))
	}
	assert.Is(t, before, len(f.r.Text()), "bytes that are recorded")
	f.hear(3)
	f.playAgain(t)
}

// A board that gets another identity has another core. The recording goes on with that.
func TestAnotherCore(t *testing.T) {
	f := newFollower(t)
	g := newFollower(t)
	f.Core = f.r.Of(g.Core.Core)
	f.hear(3)
	f.elect(t)
	if n := strings.Count(string(f.r.Text()), "\n== "); n != 2 {
		t.Errorf("%d scenes", n)
	}
	f.playAgain(t)
}

// An edited scene is played, and says what comes out differently.
func TestEdited(t *testing.T) {
	f := newFollower(t)
	f.elect(t)
	text := string(f.r.Text())
	from := strings.Index(text, "at 1.1s: 3 HEARTBEAT")
	to := strings.Index(text, "at 1.2s: 3 HEARTBEAT")
	played, err := replay.Play(text[:from] + text[to:])
	assert.NoError(t, err)
	if played.Different == 0 || !strings.Contains(played.Text, "\t# recorded: ") {
		t.Errorf("%d steps differ:\n%s", played.Different, played.Text)
	}
	again, err := replay.Play(played.Text)
	assert.NoError(t, err)
	assert.Is(t, 0, again.Different, "steps that differ when what was played is played")
	for _, wrong := range []string{"", "== x\nboard", "== x\nrecorded id=1", strings.Replace(text, "at 1.2s: 3 HEARTBEAT", "at 1.2s: 3 NOISE", 1),
		strings.Replace(text, " sequence=2 ", " sequenze=2 ", 1), strings.Replace(text, "link up", "link", 1),
		strings.Replace(text, "link up", "link free", 1), strings.Replace(text, "link up", "direct", 1)} {
		if _, err := replay.Play(wrong); err == nil {
			t.Errorf("it plays %.200s", wrong)
		}
	}
}

// Everything that can change a core is recorded: what has a time, or no result.
func TestAllCallsAreRecorded(t *testing.T) {
	source, err := os.ReadFile("core.go")
	assert.NoError(t, err)
	queries := []string{"Suspect", "Status", "Successor", "Paused"} // no daemon calls Suspect
	core, calls := reflect.TypeFor[*election.Core](), 0
	for i := range core.NumMethod() {
		m := core.Method(i)
		takesTime := m.Type.NumIn() > 1 && m.Type.In(1) == reflect.TypeFor[time.Duration]()
		if slices.Contains(queries, m.Name) || !takesTime && m.Type.NumOut() > 0 {
			continue
		}
		if calls++; !strings.Contains(string(source), "func (c *Core) "+m.Name+"(") {
			t.Errorf("%s is not recorded", m.Name)
		}
	}
	if calls < 24 {
		t.Errorf("%d calls", calls)
	}
}

// Fields of a struct are told apart by their names in lower case, also those of the structs that it embeds.
func TestNamesAreUnique(t *testing.T) {
	f := newFollower(t)
	f.r.Text()
	for kind := range f.r.known {
		names := map[string]string{}
		for _, field := range reflect.VisibleFields(kind) {
			name := strings.ToLower(field.Name)
			if other, found := names[name]; found && !field.Anonymous {
				t.Errorf("%v has %s and %s", kind, other, field.Name)
			}
			names[name] = field.Name
		}
	}
}

// In the steady state recording costs no memory.
func TestRecordingIsCheap(t *testing.T) {
	f := newFollower(t)
	f.hear(5000) // all segments have their memory
	got := testing.AllocsPerRun(400, func() {
		f.hear(1)
		f.HeardMulticast(f.clock, 3)
	})
	assert.Is(t, 0, got, "allocations for each heartbeat")
}

func BenchmarkHeartbeat(b *testing.B) {
	f := newFollower(b)
	b.ReportAllocs()
	for b.Loop() {
		f.hear(1)
	}
}

func BenchmarkHeartbeatUnrecorded(b *testing.B) {
	f := newFollower(b)
	core := f.Core.Core
	b.ReportAllocs()
	for b.Loop() {
		f.clock += interval
		for at, ok := core.Deadline(); ok && at <= f.clock; at, ok = core.Deadline() {
			core.Wake(at)
		}
		f.beat.Sequence++
		f.beat.Heartbeat.Number++
		core.Step(f.clock, f.beat)
	}
}
