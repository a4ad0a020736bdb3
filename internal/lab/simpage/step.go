package simpage

import (
	"slices"

	"topdog/internal/lab/draw"
	"topdog/internal/lab/sim"
	"topdog/wire"
)

// The kinds of steps.
const (
	kindMessage = "message" // a board sends one
	kindFault   = "fault"   // something happens to a board, or to the LAN
	kindAddress = "address" // a board acquires, releases or announces the address
	kindLook    = "look"    // a board looks who else has it, and whether its own port works
	kindRole    = "role"    // its role or its leader changes
	kindNotice  = "notice"  // it tells people something
)

var stepKinds = map[sim.EventKind]string{
	sim.EventMessage: kindMessage, sim.EventFault: kindFault, sim.EventAddress: kindAddress,
	sim.EventChange: kindRole, sim.EventNotice: kindNotice,
}

// The fates of copies of a message. Of one that the board had already nothing is said.
var fates = map[sim.Fate]string{
	sim.FateArrived: "arrived",
	sim.FateWaits:   "waits",
	sim.FateLost:    "lost",
	sim.FateCut:     "cut_off",
	sim.FateDead:    "nobody_there",
}

// step is one thing that happened. Times are those of the simulation.
type step struct {
	AtNs    int64  `json:"at_ns"`
	Kind    string `json:"kind"`
	Board   string `json:"board"` // "" if it is about the LAN
	Text    string `json:"text"`
	WhyText string `json:"why_text,omitempty"`
	State   *state `json:"state"` // of the board afterwards; null if it is about the LAN

	Message string   `json:"message,omitempty"` // what it counts as, such as HEARTBEAT_REPLY
	To      []string `json:"to,omitempty"`      // whom it concerns
	Routine bool     `json:"routine"`           // boards send it while nothing happens
	Copies  []copies `json:"copies,omitempty"`
}

// copies are those of a message that had the same fate at the same time.
type copies struct {
	AtNs int64    `json:"at_ns"` // when they arrived, or were lost
	Fate string   `json:"fate"`
	To   []string `json:"to"`
}

// state is what a lane shows of a board.
type state struct {
	Running bool   `json:"running"`
	Plugged bool   `json:"plugged"`
	Frozen  bool   `json:"frozen"`
	Holding bool   `json:"holding"` // the address
	Role    string `json:"role"`    // "" if it does not run
	Leader  string `json:"leader"`  // whom it follows, or ""
}

func stateOf(s sim.State) *state {
	t := &state{Running: s.Running, Plugged: s.Plugged, Frozen: s.Frozen, Holding: s.Holding}
	if s.Running {
		t.Role = s.Role.String()
	}
	if s.Leader != wire.Nobody {
		t.Leader = s.Leader.String()
	}
	return t
}

// steps makes a step of each event. Most of a run are heartbeats and the like.
func steps(algorithm wire.Algorithm, boards int, events []*draw.Step) []step {
	all := make([]step, 0, len(events))
	for _, e := range events {
		// A dead board's address is gone, which goes without saying.
		if e.Kind == sim.EventAddress && !e.State.Running {
			continue
		}
		s := step{AtNs: int64(e.At), Kind: stepKinds[e.Kind], Routine: e.Routine}
		if e.Kind == sim.EventAddress && looks(e.What) {
			s.Kind = kindLook
		}
		if e.Board != nil {
			s.Board, s.State = e.Board.Label, stateOf(e.State)
		}
		if e.Message != nil {
			s.Message, s.Copies = e.Counted.Identifier(), gather(e)
			for _, b := range e.Concerned {
				s.To = append(s.To, b.Label)
			}
		}
		s.Text, s.WhyText = sentence(algorithm, boards, e)
		all = append(all, s)
	}
	return all
}

// gather puts the copies together that had the same fate at the same time, of boards that the message is for.
func gather(e *draw.Step) (all []copies) {
	for _, a := range e.Copies {
		at, fate := int64(a.At), fates[a.Fate]
		if fate == "" || !slices.Contains(e.Concerned, a.To) {
			continue
		}
		i := slices.IndexFunc(all, func(c copies) bool { return c.AtNs == at && c.Fate == fate })
		if i < 0 {
			i = len(all)
			all = append(all, copies{AtNs: at, Fate: fate})
		}
		if !slices.Contains(all[i].To, a.To.Label) {
			all[i].To = append(all[i].To, a.To.Label)
		}
	}
	return all
}
