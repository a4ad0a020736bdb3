package console

import (
	"context"
	_ "embed"
	"strings"
	"testing"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/golden"
)

//go:embed testdata/takeover.json
var takeoverJSON []byte

// takeover is what the heir has seen when its leader's cable was pulled, with a suspicion before it that came to nothing. It
// begins half a day after the machine did.
func takeover() Trace { return decoded[Trace](takeoverJSON) }

// What is shown of traces is in testdata/trace.txt. Where there are colours, ␛ stands for the escape.
func TestWriteTrace(t *testing.T) {
	narrow := Trace{Board: "1", NowNs: 1, Changes: []TracedChange{{
		LeaderChanged: true, Over: true, NewLeader: "1", Term: 1,
		Steps: []TraceStep{{Step: StepAcquireEnded}, {Step: StepProbe}, {Step: StepReleaseEnded, Failed: true}},
	}}}
	var text strings.Builder
	for _, test := range []struct {
		name    string
		trace   Trace
		options Options
	}{
		{"the newest", takeover().Newest(), Options{}},
		{"all", takeover(), Options{}},
		{"nothing", Trace{}, Options{}},
		{"narrow and coloured", narrow, Options{Width: 50, Color: true}},
	} {
		text.WriteString("=== " + test.name + "\n")
		assert.NoError(t, WriteTrace(&text, test.trace, test.options))
	}
	golden.Compare(t, "testdata/trace.txt", strings.ReplaceAll(text.String(), "\x1b", "␛"))
}

// A new kind of step has words. Its place in the manual is checked by cmd/topdog.
func TestEveryStepHasWords(t *testing.T) {
	for _, step := range []string{
		StepHeard, StepSent, StepHeartbeatDue, StepAddressMissed, StepTimer, StepLinkUp, StepLinkLost, StepAsked, StepRole, StepProbe,
		StepAcquireBegun, StepAcquireEnded, StepReleaseBegun, StepReleaseEnded, StepAnnounced,
	} {
		if text := (&Trace{}).stepText(&TraceStep{Step: step}); text == step || text == "" {
			t.Errorf("%q has no words", step)
		}
	}
}

func TestTraceOverTheSocket(t *testing.T) {
	s := serving(t, fake{})
	got, err := Dial(s.path).Trace(t.Context())
	assert.NoError(t, err)
	assert.Equal(t, takeover(), got, "the trace that was sent")

	// Lists are never null, and a backend that does not answer is told of.
	s = serving(t, fake{trace: func(context.Context) (Trace, error) { return Trace{Changes: make([]TracedChange, 1)}, nil }})
	got, err = Dial(s.path).Trace(t.Context())
	assert.NoError(t, err)
	assert.Equal(t, Trace{Changes: []TracedChange{{Steps: []TraceStep{}}}}, got, "a trace without lists")
	s = serving(t, fake{trace: func(context.Context) (Trace, error) { return Trace{}, context.DeadlineExceeded }})
	_, err = Dial(s.path).Trace(t.Context())
	refused(t, err, 504, "", "a daemon that is stuck")
}

func TestNewest(t *testing.T) {
	only := takeover()
	only.Changes = only.Changes[1:]
	assert.Equal(t, []TracedChange{}, only.Newest().Changes, "a suspicion, which is no change of leader")
	assert.Equal(t, takeover().Changes[:1], takeover().Newest().Changes, "the newest change")
}
