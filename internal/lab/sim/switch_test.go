package sim_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"topdog/internal/lab/scene"
	"topdog/internal/lab/sim"
	"topdog/wire"
)

// This file has what the scripts and the schedules do to the switch: filters that come and go. A trace says whom each befalls.

// port changes the filters of a board.
func port(lan *sim.Sim, b *sim.Board, what string, add bool, filters ...scene.Filter) {
	all := without(lan.Filters(), filters)
	if add {
		all = append(all, filters...)
	}
	lan.Filter(all, "")
	if lan.Trace != nil {
		lan.Trace(sim.Event{At: lan.Now(), Kind: sim.EventFault, Board: b, State: b.State(), What: what})
	}
}

// machine is the number of a board in filters, and machines those of some ids.
func machine(lan *sim.Sim, b *sim.Board) []int { return []int{slices.Index(lan.Boards(), b) + 1} }

func machines(lan *sim.Sim, ids ...wire.ID) (all []int) {
	for i, b := range lan.Boards() {
		if slices.Contains(ids, b.Config.ID) {
			all = append(all, i+1)
		}
	}
	return all
}

// mute makes the switch drop the board's frames, both ways; deaf and unheard one way. unmute ends them.
func mute(lan *sim.Sim, b *sim.Board) { port(lan, b, "muted", true, portOf(lan, b)...) }

func unmute(lan *sim.Sim, b *sim.Board) { port(lan, b, "unmuted", false, portOf(lan, b)...) }

func deaf(lan *sim.Sim, b *sim.Board) {
	port(lan, b, "hears nothing any more", true, portOf(lan, b)[0])
}

func unheard(lan *sim.Sim, b *sim.Board) {
	port(lan, b, "is not heard any more", true, portOf(lan, b)[1])
}

func portOf(lan *sim.Sim, b *sim.Board) []scene.Filter {
	return []scene.Filter{{To: machine(lan, b)}, {From: machine(lan, b)}}
}

// noMulticast makes the switch pass no multicast to the board, as one that snoops IGMP and has forgotten the board's membership.
func noMulticast(lan *sim.Sim, b *sim.Board) { multicastOf(lan, b, false) }

func multicast(lan *sim.Sim, b *sim.Board) { multicastOf(lan, b, true) }

func multicastOf(lan *sim.Sim, b *sim.Board, gets bool) {
	f := scene.Filter{To: machine(lan, b), Multicast: true}
	if all := lan.Filters(); len(without(all, []scene.Filter{f})) < len(all) == gets {
		port(lan, b, map[bool]string{true: "gets multicast again", false: "gets no multicast any more"}[gets], !gets, f)
	}
}

// deafen makes the board not hear another one, which is one way only.
func deafen(lan *sim.Sim, b *sim.Board, to wire.ID) {
	port(lan, b, fmt.Sprintf("deaf to %v", to), true, scene.Filter{From: machines(lan, to), To: machine(lan, b)})
}

func undeafen(lan *sim.Sim, b *sim.Board, to wire.ID) {
	port(lan, b, fmt.Sprintf("hears %v again", to), false, scene.Filter{From: machines(lan, to), To: machine(lan, b)})
}

// parts are the filters between groups, which do not hear each other.
type parts []scene.Filter

// partsOf are those of a LAN on which no single board is deaf to another.
func partsOf(lan *sim.Sim) parts {
	return slices.DeleteFunc(lan.Filters(), func(f scene.Filter) bool { return f.From == nil || f.To == nil })
}

// split cuts the LAN into groups; the boards that are in none of them are one more. It takes the place of an earlier one.
func (p *parts) split(lan *sim.Sim, groups ...[]wire.ID) {
	var words []string
	before := *p
	*p = nil
	for _, ids := range groups {
		group := machines(lan, ids...)
		*p = append(*p, scene.Filter{From: group, To: others(lan, group)}, scene.Filter{From: others(lan, group), To: group})
		var names []string
		for _, id := range ids {
			names = append(names, id.String())
		}
		words = append(words, strings.Join(names, ", "))
	}
	lan.Filter(append(without(lan.Filters(), before), *p...), "partition "+strings.Join(words, " / "))
}

func others(lan *sim.Sim, group []int) (all []int) {
	for i := range lan.Boards() {
		if !slices.Contains(group, i+1) {
			all = append(all, i+1)
		}
	}
	return all
}

// join ends that.
func (p *parts) join(lan *sim.Sim) {
	if *p != nil {
		lan.Filter(without(lan.Filters(), *p), "partition healed")
		*p = nil
	}
}

func without(all, some []scene.Filter) []scene.Filter {
	return slices.DeleteFunc(all, func(f scene.Filter) bool {
		return slices.ContainsFunc(some, func(other scene.Filter) bool { return reflect.DeepEqual(f, other) })
	})
}

// lose loses the next n messages of that type which the board sends: for all receivers, or for one of them if to is not nil.
func lose(lan *sim.Sim, from *sim.Board, kind wire.Type, n int, to *sim.Board) {
	lost, before := make(map[wire.Sequence]bool), lan.Loses
	lan.Loses = func(sender, receiver *sim.Board, m *wire.Message) bool {
		switch {
		case sender != from: // what others send may be lost as well
			return before != nil && before(sender, receiver, m)
		case m.Type != kind:
			return false
		}
		if len(lost) < n {
			lost[m.Sequence] = true
		}
		return lost[m.Sequence] && (to == nil || to == receiver)
	}
}

// silentWitness is what keeps the answers of the router from the boards, and hasWitness reports whether they come.
var silentWitness = []scene.Filter{{From: []int{scene.Client}}}

func hasWitness(lan *sim.Sim) bool {
	return len(without(lan.Filters(), silentWitness)) == len(lan.Filters())
}

// witness has the router answer, or nobody but the boards.
func witness(lan *sim.Sim, answers bool) {
	all := without(lan.Filters(), silentWitness)
	if !answers {
		all = append(all, silentWitness...)
	}
	lan.Filter(all, "")
}
