// Package steps says in which steps the effects of one call of a core are carried out, and in which order. The daemon, the
// simulator and the explorer take these steps and no others, so what the explorer finds out about their order holds
// for the daemon. The daemon and the simulator take them at once, one after the other; the explorer may do something else
// between any two.
//
// The order keeps the address from having two holders. A lease begins before the address is there, with the timer of the
// dead man's switch before the lease word. The address is released behind a fence that is closed, and before the RESIGN
// leaves. The lease is extended when the heartbeat has left. What is for people comes last, because the log, the
// light and systemd take longer than the takeover itself. Only then may the core be called again, since the effects are in
// memory of its own.
package steps

import (
	"topdog/election"
	"topdog/wire"
)

// Step is one thing that is done at once.
type Step struct {
	Kind Kind
	// Rest is how many steps behind this one depend on it: they are left out if its condition is not met.
	Rest uint8
	// Effect is what the step belongs to. It is nil behind the effects, and in what is done without any.
	Effect *election.Effect
}

// Kind is what is done in a step.
type Kind uint8

// The kinds of steps.
const (
	// Note writes down what is about to be done: in a trace, for a picture.
	Note Kind = iota + 1
	// Gate asks whether the effect may still be carried out, see [State.Withholds].
	Gate
	// BeginTimer sets the timer of the dead man's switch for a lease that begins, unless it has begun, and BeginWord sets the
	// lease word.
	BeginTimer
	BeginWord
	Add // the address, and announce it
	// Fenced asks whether the address must be removed because the lease is over: only where no fence closes then.
	Fenced
	Shut   // end the lease, which closes the fence
	Remove // the address
	Open   // the fence, if the address is gone for certain
	// Send sends the message, and tells the core which sequence it has got, if the core has to know.
	Send
	Probe
	AskLAN
	Finish
	// Lapse asks whether the lease was over when the heartbeat left. The core has to know before the lease is
	// extended: an heir may have claimed.
	Lapse
	// Extend asks whether the end of the lease has to be moved: if a heartbeat has left, or if the core says another end.
	Extend
	ExtendTimer
	ExtendWord
	Prepare // the RESIGN that the dead man's switch sends
	Tell    // people, of a change or a notice
	Told    // people were told of all effects
	// Named tells the core which successor the dead man's switch has named, if it came before a release.
	Named
	// Expired tells the core that its lease has run out, if the switch came before the release after Fenced.
	Expired
	Check // whether the dead man's switch has fired meanwhile
	// Kinds is the number of kinds, for who has more of its own.
	Kinds
)

// What is done without an effect too.
var (
	Acquire = []Kind{Gate, BeginTimer, BeginWord, Add}
	Release = []Kind{Shut, Remove, Open}
	Extends = []Kind{Extend, ExtendTimer, ExtendWord, Prepare}
)

// effects are the steps of each kind of effect, in its place among the others.
var effects = [...][]Kind{
	election.EffectSend:     {Gate, Send},
	election.EffectAcquire:  append([]Kind{Note}, Acquire...),
	election.EffectRelease:  append([]Kind{Note}, Release...),
	election.EffectFenced:   append([]Kind{Fenced}, Release...),
	election.EffectProbe:    {Note, Probe},
	election.EffectAskLAN:   {AskLAN},
	election.EffectChange:   {Note},
	election.EffectNotice:   {Note},
	election.EffectFinished: {Finish},
}

// What follows when all effects were carried out: first what others wait for, then people, then the core.
var (
	lease = append([]Kind{Lapse}, Extends...)
	after = []Kind{Told, Named, Expired, Check}
)

// Append appends the steps in which the effects of one call are carried out.
func Append(list []Step, call []election.Effect) []Step {
	for i := range call {
		list = sequence(list, effects[call[i].Kind], &call[i])
	}
	list = sequence(list, lease, nil)
	for i := range call {
		if e := &call[i]; e.Kind == election.EffectChange || e.Kind == election.EffectNotice {
			list = append(list, Step{Kind: Tell, Effect: e})
		}
	}
	return sequence(list, after, nil)
}

func sequence(list []Step, kinds []Kind, e *election.Effect) []Step {
	for i, k := range kinds {
		s := Step{Kind: k, Effect: e}
		switch k {
		case Gate, Fenced, Extend:
			s.Rest = uint8(len(kinds) - 1 - i)
		}
		list = append(list, s)
	}
	return list
}

// List takes steps, and uses its memory again. It may be used while it takes others.
type List struct{ steps []Step }

// CarryOut takes the steps of the effects of one call. take reports false if the condition of a step is not met.
func (l *List) CarryOut(call []election.Effect, take func(Step) bool) {
	first := len(l.steps)
	l.steps = Append(l.steps, call)
	l.take(first, take)
}

// Do takes one of the sequences above.
func (l *List) Do(kinds []Kind, take func(Step) bool) {
	first := len(l.steps)
	l.steps = sequence(l.steps, kinds, nil)
	l.take(first, take)
}

// take takes the last steps, and forgets them.
func (l *List) take(first int, take func(Step) bool) {
	end := len(l.steps)
	for i := first; i < end; i++ {
		if s := l.steps[i]; !take(s) {
			i += int(s.Rest)
		}
	}
	l.steps = l.steps[:first]
}

// State is what a board knows of itself that may keep it from carrying out an effect.
type State struct {
	Fired     bool    // its dead man's switch has ended the lease
	MayAnswer bool    // it may answer for an address that it could not release
	Named     wire.ID // the successor that the switch has named, because it came before the release
}

// Withholds reports whether an effect must not be carried out.
//
// Once the switch has fired, this board neither acquires the address nor says that it leads.
//
// No message may leave while this board may answer for an address that it could not release: upon any of them another
// board may acquire the address, or hold it for longer. A RESIGN makes another board claim, and with votes a promise
// helps one to. Even a request for votes does harm: every message of this board says that it leads no more, and a
// board without a leader does not ask whether the address still answers. A withheld message is as good as lost, so a
// board that needs it asks again.
//
// A RESIGN must not follow that of the switch: the two may name different boards, and both would claim. The core then repeats
// what the switch has said.
func (s State) Withholds(e *election.Effect) bool {
	sends := e.Kind == election.EffectSend
	claims := e.Kind == election.EffectAcquire || sends && e.Message.Leading
	resigns := sends && e.Message.Type == wire.TypeResign
	return claims && s.Fired || sends && s.MayAnswer || resigns && s.Named != wire.Nobody
}

// StartsInterval reports whether an effect is a message from which the others count the time until the next heartbeat.
func StartsInterval(e *election.Effect) bool {
	return e.Kind == election.EffectSend && e.To == wire.Nobody && !e.Floating &&
		(e.Message.Type == wire.TypeHeartbeat || e.Message.Type == wire.TypeCoordinator)
}
