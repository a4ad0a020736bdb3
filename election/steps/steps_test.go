package steps

import (
	"fmt"
	"strings"
	"testing"

	"topdog/election"
	"topdog/internal/lab/assert"
	"topdog/wire"
)

func send(t wire.Type, leading bool) election.Effect {
	return election.Effect{Kind: election.EffectSend, Message: wire.Message{Header: wire.Header{Type: t, Leading: leading}}}
}

// names are what the tests below call the steps.
var names = [Kinds]string{
	Note: "note", Gate: "gate", BeginTimer: "begin timer", BeginWord: "begin word", Add: "add", Fenced: "fenced", Shut: "shut",
	Remove: "remove", Open: "open", Send: "send", Probe: "probe", AskLAN: "ask", Finish: "finish", Lapse: "lapse",
	Extend: "extend", ExtendTimer: "extend timer", ExtendWord: "extend word", Prepare: "prepare", Tell: "tell", Told: "told",
	Named: "named", Expired: "expired", Check: "check",
}

// what follows all effects, without what people are told.
const (
	leaseEnds = "lapse, extend, extend timer, extend word, prepare"
	end       = "told, named, expired, check"
)

// TestOrder: what is done to a claim and to a handover.
func TestOrder(t *testing.T) {
	change := election.Effect{Kind: election.EffectChange}
	notice := election.Effect{Kind: election.EffectNotice}
	for name, test := range map[string]struct {
		effects []election.Effect
		refused Kind // 0 for none
		want    string
	}{
		"nothing": {nil, 0, leaseEnds + ", " + end},
		"claim": {
			[]election.Effect{change, {Kind: election.EffectAcquire}, send(wire.TypeCoordinator, true)}, 0,
			"note, note, gate, begin timer, begin word, add, gate, send, " + leaseEnds + ", tell, " + end,
		},
		"claim withheld": {
			[]election.Effect{change, {Kind: election.EffectAcquire}, send(wire.TypeCoordinator, true)}, Gate,
			"note, note, gate, gate, " + leaseEnds + ", tell, " + end,
		},
		"handover": {
			[]election.Effect{notice, {Kind: election.EffectRelease}, send(wire.TypeResign, false), change}, 0,
			"note, note, shut, remove, open, gate, send, note, " + leaseEnds + ", tell, tell, " + end,
		},
		"majority unheard": {
			[]election.Effect{{Kind: election.EffectFenced}}, 0,
			"fenced, shut, remove, open, " + leaseEnds + ", " + end,
		},
		"majority unheard, with a fence": {[]election.Effect{{Kind: election.EffectFenced}}, Fenced, "fenced, " + leaseEnds + ", " + end},
		"lease as it was":                {[]election.Effect{{Kind: election.EffectAskLAN}}, Extend, "ask, lapse, extend, " + end},
	} {
		t.Run(name, func(t *testing.T) {
			var list List
			var taken []string
			list.CarryOut(test.effects, func(s Step) bool {
				taken = append(taken, names[s.Kind])
				return s.Kind != test.refused
			})
			assert.Is(t, test.want, strings.Join(taken, ", "), "the steps")
		})
	}
}

// TestNested: a step may have other effects carried out, as the last ones of a daemon do.
func TestNested(t *testing.T) {
	var list List
	var taken []string
	var take func(Step) bool
	depth := 0
	take = func(s Step) bool {
		taken = append(taken, fmt.Sprint(names[s.Kind], depth))
		if s.Kind == Expired && depth == 0 {
			depth++
			list.CarryOut([]election.Effect{{Kind: election.EffectRelease}}, take)
			depth--
		}
		return s.Kind != Extend
	}
	list.CarryOut([]election.Effect{send(wire.TypeHeartbeat, true)}, take)
	assert.Is(t, "gate0 send0 lapse0 extend0 told0 named0 expired0 note1 shut1 remove1 open1 lapse1 extend1 told1 named1 expired1 check1 check0",
		strings.Join(taken, " "), "the steps")
}

// TestAllEffects: every kind of effect has steps, of which each is done in one place.
func TestAllEffects(t *testing.T) {
	assert.Is(t, int(election.EffectFinished)+1, len(effects), "the kinds of effects")
	for kind := election.EffectSend; kind <= election.EffectFinished; kind++ {
		if len(effects[kind]) == 0 {
			t.Errorf("effect %d has no steps", kind)
		}
	}
}

// TestWithheld is the table of what may not be carried out.
func TestWithheld(t *testing.T) {
	acquire, release := election.Effect{Kind: election.EffectAcquire}, election.Effect{Kind: election.EffectRelease}
	beat, query, resign := send(wire.TypeHeartbeat, true), send(wire.TypeQuery, false), send(wire.TypeResign, false)
	for name, test := range map[string]struct {
		state    State
		withheld []*election.Effect
	}{
		"nothing":    {State{}, nil},
		"fired":      {State{Fired: true}, []*election.Effect{&acquire, &beat}},
		"may answer": {State{MayAnswer: true}, []*election.Effect{&beat, &query, &resign}},
		"named":      {State{Named: 2}, []*election.Effect{&resign}},
	} {
		for i, e := range []*election.Effect{&acquire, &release, &beat, &query, &resign} {
			want := false
			for _, w := range test.withheld {
				want = want || w == e
			}
			assert.Is(t, want, test.state.Withholds(e), "%s: effect %d", name, i)
		}
	}
}

// TestCheap: a heartbeat costs no memory.
func TestCheap(t *testing.T) {
	var list List
	beat := []election.Effect{send(wire.TypeHeartbeat, true)}
	sent := 0
	carryOut := func() {
		list.CarryOut(beat, func(s Step) bool {
			if s.Kind == Send {
				sent++
			}
			return true
		})
	}
	carryOut()
	assert.Is(t, 0, testing.AllocsPerRun(100, carryOut), "allocations for each heartbeat")
	assert.Is(t, 102, sent, "heartbeats")
}
