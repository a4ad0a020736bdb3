package console

import (
	"context"
	_ "embed"
	"strings"
	"testing"

	"topdog/internal/lab/assert"
)

//go:embed testdata/takeover.json
var takeoverJSON []byte

// takeover is what the heir has seen when its leader's cable was pulled, with a suspicion before it that came to nothing. It
// begins half a day after the machine did.
func takeover() Trace { return decoded[Trace](takeoverJSON) }

func TestWriteTrace(t *testing.T) {
	const newest = `38 s ago, the lead went from pi3 (192.168.1.13) to pi2 (192.168.1.12), term 8: nobody answered for the leader
          ms         +ms  on pi2
       0.000              heard HEARTBEAT of pi3, and handled it 0.141 ms later
     100.000    +100.000  the next heartbeat is due
     102.574      +2.574  the timer fires, 0.074 ms late
     102.580      +0.006  becomes candidate: the leader fell silent
     102.630      +0.050  sent ELECTION to all
     107.701      +5.071  becomes leader in term 8: nobody answered for the leader
     107.702      +0.001  begins to acquire the address
     107.790      +0.088  has the address
     107.830      +0.040  could not announce the address (ARP)
     107.900      +0.070  sent COORDINATOR to all
     108.100      +0.200  heard ANSWER of 192.168.1.11
     207.900     +99.800  sent HEARTBEAT to all
`
	for _, test := range []struct {
		name    string
		trace   Trace
		options Options
		want    string
	}{
		{"the newest", takeover().Newest(), Options{}, newest},
		{"all", takeover(), Options{}, newest + `
43 s ago, the lead stayed with pi3 (192.168.1.13), term 7: the leader fell silent (not over yet)
          ms         +ms  on pi2
       0.000              becomes follower of pi3?[2J: the leader answered
       0.001      +0.001  danced
3 steps in the middle were too many to be kept.
`},
		{"nothing", Trace{}, Options{}, "No change of leader yet, as far as this board knows: it keeps them only until its daemon ends.\n"},
		{"narrow and coloured", Trace{Board: "1", NowNs: 1, Changes: []TracedChange{{
			LeaderChanged: true, Over: true, NewLeader: "1", Term: 1,
			Steps: []TraceStep{
				{Step: StepAcquireEnded},
				{Step: StepProbe},
				{Step: StepReleaseEnded, Failed: true},
			},
		}}}, Options{Width: 50, Color: true}, "" +
			"\x1b[1m0 ms ago, the lead went from nobody to 1, term 1:\x1b[0m\n" +
			"\x1b[1mit claimed the address again\x1b[0m\n" +
			"\x1b[2m          ms         +ms  on 1\x1b[0m\n" +
			"\x1b[1;32m       0.000              has the address\x1b[0m\n" +
			"       0.000      +0.000  begins to ask whether a\n" +
			"                          foreign machine has the\n" +
			"                          address\n" +
			"\x1b[1;31m       0.000      +0.000  could not release the\x1b[0m\n" +
			"\x1b[1;31m                          address\x1b[0m\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var text strings.Builder
			assert.NoError(t, WriteTrace(&text, test.trace, test.options))
			assert.Equal(t, test.want, text.String(), "")
		})
	}
}

// A new kind of step has words. Its place in the manual is checked by cmd/topdog.
func TestEveryStepHasWords(t *testing.T) {
	for _, step := range []string{
		StepHeard, StepSent, StepHeartbeatDue, StepTimer, StepLinkUp, StepLinkLost, StepAsked, StepRole, StepProbe,
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
