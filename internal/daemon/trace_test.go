package daemon

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"topdog/election"
	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/internal/lab/assert"
	"topdog/netio"
	"topdog/wire"
)

// testTrace returns a trace that knows the name of every board.
func testTrace(now func() time.Duration) *trace {
	return newTrace(now, func(id wire.ID) (string, string) {
		if id == wire.Nobody {
			return "", ""
		}
		return id.String(), "pi" + id.String()
	})
}

func (b *fakeBoard) mustTrace(t *testing.T) console.Trace {
	t.Helper()
	trace, err := b.Trace(t.Context())
	assert.NoError(t, err)
	return trace
}

// newestTrace returns the newest change of leader.
func (b *fakeBoard) newestTrace(t *testing.T) console.TracedChange {
	t.Helper()
	newest := b.mustTrace(t).Newest().Changes
	if len(newest) == 0 {
		t.Fatalf("board %d has seen no change of leader", b.number)
	}
	return newest[0]
}

// story is what a change consists of, one line a step, without the times. How
// often a question is put is up to the election, so it is told once.
func story(c console.TracedChange) (lines []string) {
	for _, s := range c.Steps {
		words := []string{s.Step, s.Message, s.BoardName, s.Role, s.Reason}
		if s.Failed {
			words = append(words, "failed")
		}
		line := strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " ")
		again := len(lines) > 0 && strings.Contains(lines[len(lines)-1], "ELECTION")
		if again && (s.Step == console.StepTimer || line == lines[len(lines)-1]) {
			continue
		}
		lines = append(lines, line)
	}
	return lines
}

func (b *fakeBoard) wantStory(t *testing.T, want ...string) {
	t.Helper()
	c := b.newestTrace(t)
	assert.Equal(t, want, story(c), "board %d", b.number)
	for i, s := range c.Steps {
		if i > 0 && s.AtNs < c.Steps[i-1].AtNs {
			t.Errorf("board %d: step %d comes before the one before it", b.number, i)
		}
	}
}

// at returns when a step happened, counted from the first one.
func at(t *testing.T, c console.TracedChange, is func(console.TraceStep) bool) time.Duration {
	t.Helper()
	i := slices.IndexFunc(c.Steps, is)
	if i < 0 {
		t.Fatalf("no such step in %q", story(c))
	}
	return time.Duration(c.Steps[i].AtNs - c.ZeroNs)
}

func TestTraceOfATakeover(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one, two, three := l.three()
		three.change(func(s *netio.Snapshot) { s.Link.Up = false })
		pass(300 * time.Millisecond)
		two.wantStory(t,
			"heard HEARTBEAT pi3",
			"address_missed pi3",
			"role pi3 candidate address_silent",
			"sent ELECTION",
			"sent ELECTION pi3",
			"role pi2 leader nobody_answered",
			"acquire_begun",
			"acquire_ended",
			"announced",
			"sent COORDINATOR",
			"timer", "sent HEARTBEAT pi3", // is it alive? ever more rarely until the next one to all
			"timer", "sent HEARTBEAT pi3",
			"timer", "sent HEARTBEAT pi3",
			"timer", "sent HEARTBEAT pi3",
			"timer", "sent HEARTBEAT pi3",
			"timer",
			"sent HEARTBEAT",
		)
		c := two.newestTrace(t)
		due := at(t, c, func(s console.TraceStep) bool { return s.Step == console.StepAddressMissed })
		suspected := at(t, c, func(s console.TraceStep) bool { return s.Role == console.RoleCandidate })
		if late := suspected - due; late <= 0 || late > 5*time.Millisecond {
			t.Errorf("suspected %v after the address was missed", late)
		}
		want := console.TracedChange{
			ZeroNs: c.ZeroNs, LeaderChanged: true, Over: true, From: console.RoleFollower, To: console.RoleLeader,
			OldLeader: "10.0.0.3", OldLeaderName: "pi3", NewLeader: "10.0.0.2", NewLeaderName: "pi2",
			Term: 2, Reason: "nobody_answered", ReasonText: "nobody answered for the leader", Steps: c.Steps,
		}
		assert.Equal(t, want, c, "")

		one.wantStory(t,
			"heard HEARTBEAT pi3",
			"heard ELECTION pi2",
			"heard COORDINATOR pi2",
			"role pi2 follower leader_proclaimed",
			"heard HEARTBEAT pi2",
		)
		// What both have seen fits together by the clock that they share.
		claimed := c.ZeroNs + int64(at(t, c, func(s console.TraceStep) bool { return s.Message == "COORDINATOR" }))
		c = one.newestTrace(t)
		heard := c.ZeroNs + int64(at(t, c, func(s console.TraceStep) bool { return s.Message == "COORDINATOR" }))
		if heard-claimed != int64(fakeLatency) {
			t.Errorf("the COORDINATOR was heard %v after it was sent, want %v", time.Duration(heard-claimed), fakeLatency)
		}

		three.wantStory(t,
			"sent HEARTBEAT",
			"link_lost",
			"release_begun",
			"release_ended",
			"role isolated link_lost",
		)
		if c := three.newestTrace(t); !c.Over {
			t.Error("a board that is cut off waits for more steps")
		}
		three.change(func(s *netio.Snapshot) { s.Link.Up = true })
		pass(time.Second)
		told := story(three.newestTrace(t))
		returned := []string{"link_up", "role listener link_up"}
		if diff := cmp.Diff(returned, told[:2]); diff != "" || !slices.Contains(told, "role pi2 follower heard_leader") {
			t.Errorf("when it comes back it has seen %q", told)
		}
	})
}

func TestTraceOfAHandover(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one, two, three := l.three()
		_, err := three.Resign(t.Context())
		assert.NoError(t, err)
		if c := three.newestTrace(t); c.Over {
			t.Error("it is over as soon as the successor was heard")
		}
		pass(150 * time.Millisecond)
		if c := three.newestTrace(t); !c.Over {
			t.Error("it is not over when the successor sends heartbeats")
		}
		three.wantStory(t,
			"sent HEARTBEAT",
			"asked",
			"release_begun",
			"release_ended",
			"role follower leader_resigned",
			"sent RESIGN",
			"heard COORDINATOR pi2",
			"role pi2 follower leader_proclaimed",
			"heard HEARTBEAT pi2",
		)
		two.wantStory(t,
			"heard HEARTBEAT pi3",
			"heard RESIGN pi3",
			"timer",
			"role pi2 leader handed_over",
			"acquire_begun",
			"acquire_ended",
			"announced",
			"sent COORDINATOR",
			"timer",
			"sent HEARTBEAT",
		)
		if c := one.newestTrace(t); c.Reason != "leader_resigned" || c.NewLeader != "10.0.0.2" {
			t.Errorf("the third board says: %+v", c)
		}
	})
}

func TestTraceOfAFailedTake(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one := l.board(1, func(_ *config.Config, b *fakeBoard) { b.acquireFails = errNoPermission })
		pass(2 * time.Second)
		if told := story(one.newestTrace(t)); !slices.Contains(told, "acquire_ended failed") || slices.Contains(told, "announced") {
			t.Errorf("got %q", told)
		}
	})
}

// A suspicion that comes to nothing is kept beside the changes, and nothing at all
// by a board that has only heard of it.
func TestTraceOfASuspicion(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one, two, three := l.three()
		before, last := one.mustTrace(t), two.newestTrace(t)
		three.get(func() { three.mute = true })
		for {
			pass(100 * time.Microsecond)
			if two.mustStatus(t).Role == console.RoleCandidate {
				break
			}
		}
		if c := two.mustTrace(t).Changes[0]; c.Over || c.LeaderChanged {
			t.Errorf("while it asks: %+v", c)
		}
		three.get(func() { three.mute = false })
		pass(time.Second)
		l.wantHolders(3)
		c := two.mustTrace(t).Changes[0]
		want := []string{
			"heard HEARTBEAT pi3",
			"address_missed pi3",
			"role pi3 candidate address_silent",
			"sent ELECTION",
			"heard HEARTBEAT pi3",
			"role pi3 follower leader_answered",
			"heard HEARTBEAT pi3",
		}
		if diff := cmp.Diff(want, story(c)); diff != "" || c.LeaderChanged || !c.Over {
			t.Errorf("(-want +got):\n%s\n%+v", diff, c)
		}
		if c.OldLeader != "10.0.0.3" || c.NewLeader != "10.0.0.3" || c.Reason != "address_silent" {
			t.Errorf("%+v", c)
		}
		assert.Equal(t, last, two.newestTrace(t), "the newest change of leader")
		assert.Equal(t, before.Changes, one.mustTrace(t).Changes, "a board that only heard of it")
	})
}

// A cable with a bad contact must not fill the memory, nor push a takeover out
// by suspicions.
func TestTraceIsBounded(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one := l.board(1, nil)
		pass(time.Second)
		for range 3 * keptTimelines {
			one.change(func(s *netio.Snapshot) { s.Link.Up = false })
			pass(50 * time.Millisecond)
			one.change(func(s *netio.Snapshot) { s.Link.Up = true })
			pass(time.Second)
		}
		assert.Is(t, keptTimelines, len(one.mustTrace(t).Changes), "changes that are kept")
	})

	now := time.Duration(0)
	tr := testTrace(func() time.Duration { now += time.Millisecond; return now })
	tr.change(election.Change{From: election.Isolated, To: election.Listener})
	const more = 1000
	for range more {
		tr.messageSent(wire.Nobody, &wire.Message{Header: wire.Header{Type: wire.TypeElection}})
	}
	found := tr.changes()
	if len(found) != 1 {
		t.Fatalf("%d changes, want 1", len(found))
	}
	c := found[0]
	if kept := headSteps + tailSteps; len(c.Steps) != kept || c.Omitted != more+1-kept {
		t.Errorf("%d steps are kept and %d omitted", len(c.Steps), c.Omitted)
	}
	if first, last := c.Steps[0], c.Steps[len(c.Steps)-1]; first.Step != console.StepRole || last.AtNs != int64(now) {
		t.Errorf("it begins with %+v and ends with %+v", first, last)
	}
	if gap := c.Steps[headSteps].AtNs - c.Steps[headSteps-1].AtNs; gap != int64(time.Duration(c.Omitted+1)*time.Millisecond) {
		t.Errorf("the gap is %v long", time.Duration(gap))
	}
}

// What a change was about is told also if the steps that show it were left out, and
// however long it takes, the memory is that of the start.
func TestTraceOfALongChange(t *testing.T) {
	now := time.Duration(0)
	tr := testTrace(func() time.Duration { now += time.Millisecond; return now })
	memory := cap(tr.present.steps)
	tr.change(election.Change{From: election.Isolated, To: election.Listener})
	tr.change(election.Change{From: election.Listener, To: election.Candidate})
	chat := func() {
		for range 10 * stepsMax {
			tr.messageSent(wire.Nobody, &wire.Message{Header: wire.Header{Type: wire.TypeElection}})
		}
	}
	chat()
	tr.change(election.Change{From: election.Candidate, To: election.Follower, NewLeader: 7, Term: 3, Reason: election.ReasonHeardLeader})
	tr.change(election.Change{From: election.Follower, To: election.Follower, OldLeader: 7, Term: 3, Reason: election.ReasonStopping})
	chat()
	for range 2 * keptTimelines { // suspicions come and go meanwhile, and after it
		tr.end()
		tr.begin()
		tr.mark(console.StepAcquireBegun, false)
		chat()
	}
	assert.Is(t, memory, cap(tr.present.steps), "the memory of what is going on, in steps")
	found := tr.changes()
	assert.Is(t, 1+keptTimelines, len(found), "changes that are kept")
	long := found[len(found)-1]
	want := console.TracedChange{
		ZeroNs: long.ZeroNs, Omitted: 4 + 2*10*stepsMax - headSteps - tailSteps, From: console.RoleIsolated, To: console.RoleFollower, Term: 3,
		Reason: "heard_leader", ReasonText: election.ReasonHeardLeader.String(), LeaderChanged: true, Over: true,
	}
	assert.Is(t, headSteps+tailSteps, len(long.Steps), "steps that are kept")
	long.Steps = nil
	assert.Equal(t, want, long, "the change")
}

// What happens often must not push out what happens rarely.
func TestTraceKeepsTakeovers(t *testing.T) {
	now := time.Duration(0)
	tr := testTrace(func() time.Duration { now += time.Second; return now })
	message := func(kind wire.Type, from wire.ID) {
		tr.idle()
		tr.messageReceived(0, time.Second, &wire.Message{Header: wire.Header{Type: kind, Sender: from}}, false)
	}
	beat := func() { message(wire.TypeHeartbeat, 7); tr.messageHandled() }
	tr.change(election.Change{From: election.Isolated, To: election.Listener})
	tr.change(election.Change{From: election.Listener, To: election.Follower, NewLeader: 7})
	beat()
	suspicions := 0
	for range 3 * keptTimelines {
		suspicions++
		tr.change(election.Change{From: election.Follower, To: election.Candidate, OldLeader: 7, NewLeader: 7})
		tr.change(election.Change{From: election.Candidate, To: election.Follower, OldLeader: 7, NewLeader: 7})
		beat()
	}
	for range 3 * keptTimelines { // another board is suspicious
		message(wire.TypeElection, 8)
		tr.messageHandled()
		beat()
	}
	found := tr.changes()
	assert.Is(t, keptTimelines+1, len(found), "changes: the last suspicions and one change of leader")
	for i, c := range found {
		// Each suspicion has two changes, and two are before the first one.
		first := slices.IndexFunc(c.Steps, func(s console.TraceStep) bool { return s.Step == console.StepRole })
		began, want := time.Duration(c.Steps[first].AtNs), time.Duration(2+2*(suspicions-i)-1)*time.Second
		if i < keptTimelines && (c.LeaderChanged || began != want) || i == keptTimelines && !c.LeaderChanged {
			t.Errorf("change %d begins at %v, want %v; another board leads: %v", i, began, want, c.LeaderChanged)
		}
	}
}

// A step is told together with what caused it, and with nothing that was before.
func TestTraceOfCauses(t *testing.T) {
	now := time.Second
	tr := testTrace(func() time.Duration { return now })
	tr.change(election.Change{From: election.Isolated, To: election.Listener})
	tr.timerFired(700*time.Millisecond, 800*time.Millisecond) // nothing comes of it
	tr.idle()
	tr.mark(console.StepProbe, false)
	tr.messageReceived(850*time.Millisecond, 900*time.Millisecond, &wire.Message{Header: wire.Header{Type: wire.TypeHello, Sender: 7}}, false)
	tr.change(election.Change{From: election.Listener, To: election.Follower, NewLeader: 7})
	tr.messageHandled()
	tr.idle()
	tr.timerFired(1100*time.Millisecond, 1200*time.Millisecond)
	now = 1300 * time.Millisecond
	tr.change(election.Change{From: election.Follower, To: election.Leader, OldLeader: 7, NewLeader: 9, Term: 2})
	tr.messageSent(wire.Nobody, &wire.Message{Header: wire.Header{Type: wire.TypeCoordinator, Term: 2}})
	reply := &wire.Message{Header: wire.Header{Type: wire.TypeHeartbeat, Term: 2, Reply: true}}
	tr.messageSent(wire.Nobody, reply)
	c := tr.changes()[0]
	if c.Over {
		t.Error("an answer to a question ends the takeover")
	}
	reply.Reply = false
	tr.messageSent(wire.Nobody, reply)
	if c := tr.changes()[0]; !c.Over || len(c.Steps) != 9 {
		t.Errorf("after a regular heartbeat: %+v", c)
	}
	at := func(ms int) int64 { return int64(time.Duration(ms) * time.Millisecond) }
	moment := func(ms int) *int64 { ns := at(ms); return &ns }
	want := []console.TraceStep{
		{AtNs: at(850), Step: "heard", Message: "HELLO", Board: "7", BoardName: "pi7", HandledNs: moment(900)},
		{AtNs: at(1000), Step: "role", Role: "listener", Reason: "none", ReasonText: "no reason"},
		{AtNs: at(1000), Step: "probe"},
		{AtNs: at(1000), Step: "role", Role: "follower", Board: "7", BoardName: "pi7", Reason: "none", ReasonText: "no reason"},
		{AtNs: at(1200), Step: "timer", DueNs: moment(1100)},
		{AtNs: at(1300), Step: "role", Role: "leader", Board: "9", BoardName: "pi9", Term: 2, Reason: "none", ReasonText: "no reason"},
		{AtNs: at(1300), Step: "sent", Message: "COORDINATOR", Term: 2},
		{AtNs: at(1300), Step: "sent", Message: "HEARTBEAT", Term: 2},
	}
	assert.Equal(t, want, c.Steps, "")
}

// A message counts from when it was read, and waits with that for the loop.
func TestTraceOfAWaitingMessage(t *testing.T) {
	i := newInbox(1, testCodec(t))
	i.deliver(netio.Datagram{Data: []byte{1}, At: 42 * time.Second}) // the first junk is let through
	assert.Is(t, 42*time.Second, (<-i.messages).at, "when it was read, as the loop is told")
}

// In the steady state the trace costs a few stores, and no memory.
func TestTraceIsCheap(t *testing.T) {
	reads := 0
	tr := testTrace(func() time.Duration { reads++; return time.Second })
	tr.change(election.Change{From: election.Isolated, To: election.Listener})
	tr.change(election.Change{From: election.Listener, To: election.Follower, NewLeader: 7})
	beat := &wire.Message{Header: wire.Header{Type: wire.TypeHeartbeat, Sender: 7}}
	hello := &wire.Message{Header: wire.Header{Type: wire.TypeHello, Sender: 8}}
	send := &election.Effect{Kind: election.EffectSend, Message: *hello}
	steady := func() {
		for _, m := range []*wire.Message{beat, hello} {
			tr.idle()
			tr.messageReceived(time.Second, time.Second, m, false)
			tr.messageHandled()
		}
		tr.idle()
		tr.timerFired(time.Second, time.Second)
		tr.effectBegun(send)
		tr.messageSent(wire.Nobody, hello)
	}
	steady()
	reads = 0
	assert.Is(t, 0, testing.AllocsPerRun(100, steady), "allocations for each heartbeat")
	assert.Is(t, 0, reads, "how often a follower reads the clock for its trace")
	assert.Is(t, 1, len(tr.changes()), "changes")
}

func BenchmarkTraceOfAHeartbeat(b *testing.B) {
	tr := testTrace(netio.Now)
	tr.change(election.Change{From: election.Isolated, To: election.Listener})
	tr.change(election.Change{From: election.Listener, To: election.Follower, NewLeader: 7})
	beat := &wire.Message{Header: wire.Header{Type: wire.TypeHeartbeat, Sender: 7}}
	b.ReportAllocs()
	for b.Loop() {
		tr.idle()
		tr.messageReceived(time.Second, time.Second, beat, false)
		tr.messageHandled()
	}
}
