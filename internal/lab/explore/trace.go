package explore

import (
	"fmt"
	"time"

	"topdog/election"
	"topdog/election/steps"
)

// tracer writes down what happens, for people: not every step, but all that others notice,
// and what a board does at a step before which it stands still.
type tracer struct {
	lines []string
	// received is what a board receives, of which nothing is said unless it changes its role.
	received string
}

func (w *world) tracef(format string, args ...any) {
	if w.tracer == nil {
		return
	}
	at := float64(w.now-w.from) / float64(time.Millisecond)
	w.tracer.lines = append(w.tracer.lines, fmt.Sprintf("%+11.3f ms  ", at)+fmt.Sprintf(format, args...))
}

func (w *world) traceStep(b *board, s *step) {
	if w.tracer == nil {
		return
	}
	w.tracer.received = ""
	switch s.Kind {
	case stepReceive:
		w.tracer.received = fmt.Sprintf(" (%v of board %v)", s.message.Type, s.message.Sender)
	case steps.Send:
		w.tracef("board %d sends %s, term %d", b.id, s.Effect.Append(nil), s.message.Term)
	case steps.AskLAN, stepAnswered, steps.Add, steps.Remove, steps.BeginWord, steps.ExtendWord, steps.Shut, steps.Open, stepStop, stepResign:
		w.tracef("board %d %s", b.id, stepNames[s.Kind])
	}
}

func (w *world) traceChange(b *board, c election.Change) {
	if w.tracer != nil {
		w.tracef("board %d: %v%s", b.id, c, w.tracer.received)
	}
}

// doing says before which step something stands still.
func (w *world) doing(h happening) string {
	b := &w.boards[h.board]
	switch {
	case w.tracer == nil:
		return ""
	case h.kind == happensSwitch:
		return ", before its switch " + deadmanNames[b.toggle.next()]
	case len(b.daemon.steps) > 0:
		return ", before its daemon " + stepNames[b.daemon.steps[0].Kind]
	default:
		return ", before its daemon handles anything else"
	}
}
