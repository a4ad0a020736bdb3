package literature

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"topdog/election"
	"topdog/internal/lab/assert"
	"topdog/wire"
)

// FuzzStep plays what the bytes say on one core: messages of any type with any
// fields, links that come and go, late wakes, people. Nothing may make it panic,
// or break one of the invariants of walk.check.
func FuzzStep(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(randomBytes(seed, 400))
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		w := newWalk(t, script)
		for w.next() {
		}
	})
}

func randomBytes(seed uint64, n int) []byte {
	rng := rand.New(rand.NewPCG(seed, 3))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// TestWalk plays random scripts in the ordinary test run; .ci/run has the fuzzer play 20,000. Together they go
// through every change of role that election.Role.CanBecome allows, so none is there in vain.
func TestWalk(t *testing.T) {
	if testing.Short() {
		t.Skip("thousands of random scripts take seconds")
	}
	var seen roleChanges
	for seed := range uint64(5000) {
		w := newWalk(t, randomBytes(seed, 4000))
		w.seen = &seen
		for w.next() {
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	for from := range seen {
		for to := range seen {
			if from, to := election.Role(from), election.Role(to); from.CanBecome(to) && !seen[from][to] {
				t.Errorf("nothing leads from %v to %v", from, to)
			}
		}
	}
}

// roleChanges are changes of role, from one and to another.
type roleChanges [election.Barred + 1][election.Barred + 1]bool

// walk plays a script on a core and checks it after every step.
type walk struct {
	t       *testing.T
	core    *board
	script  []byte
	codec   *wire.Codec
	now     election.Instant
	holding bool
	stopped bool // told to stop
	done    bool // finished

	sequence wire.Sequence // of what was sent last
	request  uint32        // the number of the last request for votes
	awake    int           // Wakes in a row that were followed by another deadline at the same time
	last     string
	seen     *roleChanges
}

func newWalk(t *testing.T, script []byte) *walk {
	w := &walk{t: t, script: script}
	b := w.byte()
	cfg := election.Config{
		ID: 3, Incarnation: 30, Name: "pi3", Interval: testInterval,
		Priority: w.priority() % 255, Preempt: b&1 != 0, Algorithm: w.algorithm(),
		Fanout: election.Fanout(b / 2 % 2), ScoreSource: election.ScoreSource(b / 4 % (uint8(election.ScoreFromCommand) + 1)),
	}
	if cfg.Algorithm == wire.AlgorithmStrict {
		cfg.Voters = [][]wire.ID{{1, 2, 3}, {3}, {1, 2}, {1, 2, 3, 4, 5}}[b/16%4]
	}
	var err error
	w.core = newBoardWithoutLink(t, cfg)
	w.codec, err = wire.NewCodec("walk", nil)
	assert.NoError(t, err)
	return w
}

// byte takes the next byte of the script; behind its end there are zeros.
func (w *walk) byte() byte {
	if len(w.script) == 0 {
		return 0
	}
	b := w.script[0]
	w.script = w.script[1:]
	return b
}

func (w *walk) priority() uint8 { return [...]uint8{100, 100, 100, 50, 200, 0, 1, 255}[w.byte()%8] }

func (w *walk) algorithm() wire.Algorithm {
	names := append(Algorithms(), wire.AlgorithmStrict.String())
	a, _ := AlgorithmNamed(names[int(w.byte())%len(names)])
	return a
}

// id draws one of few boards, this one (3) and nobody among them.
func (w *walk) id() wire.ID { return wire.ID(w.byte() % 7) }

// duration draws from nothing to minutes, most often something like an interval.
func (w *walk) duration() time.Duration {
	b := w.byte()
	return time.Duration(b%16) * [...]time.Duration{
		0, 100 * time.Microsecond, time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond,
		20 * time.Millisecond, 300 * time.Millisecond, time.Minute,
	}[b/16%8]
}

func (w *walk) term() wire.Term {
	b := w.byte()
	switch {
	case b < 128:
		return w.core.Signature().Term
	case b < 250:
		return min(w.core.Signature().Term+wire.Term(b%4)-min(1, w.core.Signature().Term), wire.MaxTerm)
	default:
		return wire.MaxTerm - wire.Term(b%2)
	}
}

// message draws a message whose fields are hostile or plain wrong quite often.
func (w *walk) message() *wire.Message {
	kind, flags := w.byte(), w.byte()
	m := &wire.Message{Header: wire.Header{
		Type: wire.Type(kind % 22), Algorithm: w.core.cfg.Algorithm,
		Leading: flags&1 != 0, Reply: flags&2 != 0,
		Sender: w.id(), Term: w.term(), Priority: w.priority(),
		Incarnation: wire.Incarnation(30 + flags>>2%2), Sequence: wire.Sequence(w.byte()),
	}}
	if kind < 128 { // most often what algorithms understand
		m.Type = 1 + m.Type%wire.TypeGrant
	}
	if flags > 240 {
		m.Algorithm = wire.Algorithm(w.byte() % 16)
	}
	switch m.Type {
	case wire.TypeHeartbeat:
		m.Heartbeat = wire.Heartbeat{Interval: max(w.duration(), time.Millisecond), Number: w.byte()}
	case wire.TypeHello:
		m.Hello = wire.Hello{Following: w.id(), Age: w.duration(), Interval: w.duration(), Name: "pi", Score: uint32(flags % 4)}
	case wire.TypeElection:
		m.Election = wire.Election{
			Suspect: w.id(), Incarnation: wire.Incarnation(30 + w.byte()%2),
			LastHeard: wire.Sequence(w.byte()), Round: w.byte(), Score: uint32(flags % 4),
		}
	case wire.TypeAnswer:
		m.Answer = wire.Answer{
			Leader: w.id(), Incarnation: wire.Incarnation(30 + w.byte()%2),
			LastHeard: wire.Sequence(w.byte()), Age: w.duration(), Round: w.byte(),
		}
	case wire.TypeCoordinator:
		m.Coordinator = wire.Coordinator{Coordinator: w.id(), Interval: max(w.duration(), time.Millisecond), Number: w.byte(), Score: uint32(flags % 4)}
	case wire.TypeResign:
		m.Resign = wire.Resign{Successor: w.id()}
	case wire.TypeQuery:
		m.Query = wire.Query{Purpose: wire.Purpose(w.byte() % 3), Round: w.byte()}
	case wire.TypeStart, wire.TypeAck, wire.TypeCollect:
		m.Round.Number = w.round()
	case wire.TypeOK:
		m.OK = wire.OK{Round: w.round(), Trust: w.board()}
	case wire.TypeReport:
		m.Report = wire.Report{Round: w.round(), Timestamp: uint32(w.byte())}
		for _, id := range w.board() {
			m.Report.Standings = append(m.Report.Standings, wire.Standing{ID: id, Priority: w.priority()})
		}
	case wire.TypeLeader:
		m.Leader = wire.Leader{Leader: w.id()}
	case wire.TypeSupport:
		m.Support = wire.Support{
			Leader: 3, Incarnation: 30, Term: m.Term, Heartbeat: w.sequence - wire.Sequence(w.byte()%4), Voters: w.voters(flags),
		}
	case wire.TypeVote:
		m.Vote = wire.Vote{
			Ballot: wire.Ballot(w.byte() % 4), Number: uint32(w.byte()),
			Interval: max(w.duration(), time.Millisecond), Grace: w.duration(), Voters: w.voters(flags),
		}
	case wire.TypeGrant:
		m.Grant = wire.Grant{Candidate: 3, Incarnation: 30, Number: w.request - uint32(w.byte()%4), Voters: w.voters(flags)}
	}
	return m
}

// voters is the hash of the list of voters that this board has, most often.
func (w *walk) voters(flags byte) uint32 {
	return wire.VotersHash(w.core.cfg.Voters) + uint32(flags/248)
}

// round draws a round of agents: the present one, most often, or one near it, or
// one that is far away.
func (w *walk) round() uint32 {
	var now uint32
	if a, ok := w.core.algorithm.(*agents); ok {
		now = a.current
	}
	switch b := w.byte(); {
	case b < 160:
		return now
	case b < 240:
		return now + uint32(b%4) - 1
	default:
		return now + uint32(b)<<24
	}
}

// board draws a list of boards.
func (w *walk) board() (ids []wire.ID) {
	b := w.byte()
	for id := range wire.ID(6) {
		if b>>id&1 != 0 {
			ids = append(ids, id+1)
		}
	}
	return ids
}

// next plays one step. It returns false at the end.
func (w *walk) next() bool {
	if len(w.script) == 0 || w.done || w.t.Failed() {
		return false
	}
	what := w.byte()
	if what%2 == 0 {
		w.now += w.duration()
	}
	var effects []election.Effect
	switch {
	case what < 90:
		m := w.message()
		w.last = fmt.Sprintf("Step %v from %v", m.Type, m.Sender)
		effects = w.core.Step(w.now, m)
	case what < 180:
		// On time, most often.
		if at, ok := w.core.Deadline(); ok && what < 170 {
			w.now = max(w.now, at)
		}
		w.last = "Wake"
		effects = w.core.Wake(w.now)
	case what < 200:
		w.last = "Probed"
		effects = w.core.Probed(w.now, what%8 == 0)
	case what < 204:
		w.last = "SetScore"
		effects = w.core.SetScore(w.now, uint32(w.byte()%4))
	case what < 220:
		up := what%8 != 0
		w.last = fmt.Sprintf("Link %v", up)
		effects = w.core.Link(w.now, up)
	case what < 230:
		w.last = "Reprioritise"
		effects = w.core.Reprioritise(w.now, w.priority(), what%4 == 0)
	case what < 240:
		w.last = "DuplicateID"
		m := w.message()
		m.Sender = w.core.cfg.ID
		effects = w.core.DuplicateID(w.now, m)
	case what < 252:
		w.last = "Resign"
		role := w.core.Role()
		var err error
		effects, err = w.core.Resign(w.now)
		if err == nil && role != election.Leader {
			w.t.Errorf("a %v resigned", role)
		}
		if err != nil && strings.Contains(err.Error(), "nobody to hand over to") && role != election.Leader {
			w.t.Errorf("a %v has no successor", role)
		}
	case what < 253:
		w.last = "Status"
		w.core.Status(w.now)
	case what < 254:
		w.last = "ClockTrusted"
		effects = w.core.ClockTrusted(w.now, w.byte()%4 != 0)
	default:
		w.last, w.stopped = "Stop", true
		effects = w.core.Stop(w.now)
	}
	w.check(effects)
	return true
}

// check holds what must be true after every call.
func (w *walk) check(effects []election.Effect) {
	c := w.core
	sends := 0
	for i := range effects {
		e := &effects[i]
		switch e.Kind {
		case election.EffectAcquire:
			w.holding = true
		case election.EffectRelease:
			if !w.holding {
				w.errorf("releases an address that it does not hold")
			}
			w.holding = false
		case election.EffectSend:
			sends++
			w.sent(e)
			w.sequence++
			c.Sent(e.Beat, w.sequence)
			if e.Message.Type == wire.TypeVote && e.Message.Vote.Ballot == wire.BallotRequest {
				w.request = e.Message.Vote.Number
			}
		case election.EffectChange:
			if w.seen != nil {
				w.seen[e.Change.From][e.Change.To] = true
			}
			if e.Change.Reason == election.ReasonNone || e.Change.Reason.String() == election.Reason(255).String() {
				w.errorf("a change without a reason: %v", e.Change)
			}
		case election.EffectFinished:
			w.done = true
			if !w.stopped {
				w.errorf("finished without being told to stop")
			}
		}
	}
	// The most is a bully that answers, hears of a higher term, and proclaims itself.
	most := 6
	if c.cfg.Fanout == election.FanoutUnicast {
		most *= 6 // boards besides this one
	}
	if sends > most {
		w.errorf("%d messages in one call: %v", sends, described(effects))
	}
	if w.holding != (c.Role() == election.Leader) {
		w.errorf("a %v; that it holds the address is %v: %v", c.Role(), w.holding, described(effects))
	}
	if (c.Leader() == c.cfg.ID) != (c.Role() == election.Leader) {
		w.errorf("a %v whose leader is %v", c.Role(), c.Leader())
	}
	if c.Role() == election.Leader && !c.seen.Rank().Eligible() {
		w.errorf("a board that must not lead leads")
	}
	at, ok := c.Deadline()
	switch {
	case w.done:
	case c.Role() == election.Isolated:
		if ok {
			w.errorf("an isolated board waits for %v", at)
		}
	case !ok:
		w.errorf("a %v that waits for nothing", c.Role())
	case w.last == "Wake" && at <= w.now:
		// What rang may have something done at once, but not for ever.
		if w.awake++; w.awake > 2 {
			w.errorf("a %v wants to be woken again and again", c.Role())
		}
	default:
		w.awake = 0
	}
}

// sent holds that a message fits the wire, and says who it comes from.
func (w *walk) sent(e *election.Effect) {
	c, m := w.core, e.Message
	if m.Sender != c.cfg.ID || m.Algorithm != c.cfg.Algorithm {
		w.errorf("sends in the name of %v, algorithm %v", m.Sender, m.Algorithm)
	}
	if e.To == c.cfg.ID {
		w.errorf("sends a %v to itself", m.Type)
	}
	if m.Leading != w.holding {
		w.errorf("sends a %v, leading: %v, while it holds the address: %v", m.Type, m.Leading, w.holding)
	}
	m.Incarnation, m.Sequence = c.cfg.Incarnation, 1
	if _, err := w.codec.Append(nil, &m); err != nil {
		w.errorf("sends what nobody can: %v", err)
	}
}

func (w *walk) errorf(format string, args ...any) {
	w.t.Helper()
	w.t.Errorf("at %v after %s: %s", w.now, w.last, fmt.Sprintf(format, args...))
}
