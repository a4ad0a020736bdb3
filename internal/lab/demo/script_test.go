package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"topdog/election"
	"topdog/election/literature"
	"topdog/internal/lab/assert"
	judged "topdog/internal/lab/judge"
	"topdog/internal/lab/observe"
	"topdog/wire"
)

func TestMain(m *testing.M) { judged.Main(m) }

// attempts is how often a show may be one in which a leader overslept.
const attempts = 3

// playHeartbeat is slow enough for the race detector on a busy machine: detectors
// that ask nobody take three of them for the leader's death.
const playHeartbeat = 60 * time.Millisecond

// playJSON plays a show and returns its report.
func playJSON(t testing.TB, o Options) report {
	t.Helper()
	for range attempts {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		var out bytes.Buffer
		err := Play(ctx, o, &out, true)
		cancel()
		var r report
		decoder := json.NewDecoder(&out)
		decoder.DisallowUnknownFields()
		if decodeErr := decoder.Decode(&r); decodeErr != nil {
			t.Fatalf("the JSON of the show: %v (the show: %v)", decodeErr, err)
		}
		if r.OK != (err == nil) || err != nil && r.Error == "" {
			t.Fatalf("ok is %v and error %q, and the show ended with %v", r.OK, r.Error, err)
		}
		assert.NoError(t, err)
		if !slices.ContainsFunc(r.Acts, overslept) {
			return r
		}
		t.Log("a new leader says that it had not been running for a while: once more")
	}
	t.Fatalf("a new leader overslept in each of %d shows", attempts)
	return report{}
}

// overslept reports whether the machine stood still for a leader in an act.
func overslept(r result) bool { return r.Reason == election.ReasonSuspended.Identifier() }

// bullies says with which algorithms a board that comes before the leader takes
// the lead when it comes. It is the papers' word, not the code's.
var bullies = map[string]bool{"bully": true, "score": true, "modified": true, "candidates": true, "minid": true}

// check holds a show against what has to come of it.
func check(t testing.TB, r report, boards int) {
	t.Helper()
	incumbent := !bullies[r.Algorithm]
	var acts []string
	for _, a := range r.Acts {
		acts = append(acts, a.Act)
		gone := a.takeover() || a.handover()
		comeback := a.Act == actOn || a.Act == actPlug
		switch {
		case a.After == "":
			t.Errorf("%s: nobody answers afterwards", a.Text)
		case gone && (!a.Moved || a.After == a.Before || a.Board != a.Before):
			t.Errorf("%s: %s answered before, %s does after", a.Text, a.Before, a.After)
		case a.Moved && (a.OutageMs <= 0 || a.Reason == ""):
			t.Errorf("%s: the outage was %v ms, the reason is %q", a.Text, a.OutageMs, a.Reason)
		case r.Algorithm == "heir" && a.takeover() && a.Reason != election.ReasonUnanswered.Identifier(),
			r.Algorithm == "heir" && a.handover() && a.Reason != election.ReasonHandover.Identifier() && a.Reason != election.ReasonResigned.Identifier():
			t.Errorf("%s: the new leader's reason is %q", a.Text, a.Reason)
		case comeback && a.Moved != (a.After == a.Board):
			t.Errorf("%s: %s answers, and moved is %v", a.Text, a.After, a.Moved)
		case comeback && a.Moved && incumbent:
			t.Errorf("%s: the address moved from %s to %s", a.Text, a.Before, a.After)
		case comeback && !a.Moved && a.After != a.Before:
			t.Errorf("%s: the address moved from %s to %s", a.Text, a.Before, a.After)
		}
	}
	want := []string{actStart, actCut, actCut, actOn, actResign, actPull, actPlug, actOn, actStop}
	if boards == 2 {
		want = []string{actStart, actCut, actOn, actResign, actPull, actPlug, actStop}
	}
	if !incumbent { // the leader would come back at once
		want = slices.DeleteFunc(want, func(act string) bool { return act == actResign })
	}
	assert.Equal(t, want, acts, "the acts")
	if !incumbent {
		checkBullies(t, r, boards)
	}
	if r.Summary.TakeoverMedianMs <= 0 || r.Summary.HandoverMedianMs <= 0 {
		t.Errorf("the summary is %+v", r.Summary)
	}
}

// checkBullies checks that whoever came first in the algorithm's order of the
// boards that were there has led after each act.
func checkBullies(t testing.TB, r report, boards int) {
	t.Helper()
	there := map[string]bool{}
	for n := 1; n <= boards; n++ {
		there[fmt.Sprint("pi", n)] = true
	}
	for _, a := range r.Acts {
		switch a.Act {
		case actCut, actPull, actStop:
			there[a.Board] = false
		case actOn, actPlug:
			there[a.Board] = true
		}
		var names []string
		for name := range there {
			if there[name] {
				names = append(names, name)
			}
		}
		first := slices.Max(names)
		if r.Algorithm == "minid" {
			first = slices.Min(names)
		}
		assert.Is(t, first, a.After, "%s: who leads of %q", a.Text, names)
	}
}

// TestPlay plays the show with every algorithm, and with as few boards as possible.
func TestPlay(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: a show takes seconds")
	}
	parts := map[string]func(*judged.T){}
	play := func(name string, boards int) {
		parts[fmt.Sprint(name, " of ", boards)] = func(t *judged.T) {
			algorithm, _ := literature.AlgorithmNamed(name)
			r := playJSON(t, Options{Boards: boards, Heartbeat: playHeartbeat, Algorithm: algorithm})
			assert.Is(t, name, r.Algorithm, "the algorithm of the report")
			check(t, r, boards)
		}
	}
	play("score", 2) // two boards have fewer acts, and each of its elections takes two seconds
	for _, name := range literature.Algorithms() {
		if name != "score" {
			play(name, 4)
		}
	}
	play("heir", 2)
	judged.RunOnLoopback(t, func(t *judged.T) { t.Together(parts) })
}

// TestManners: how long to wait follows from the algorithm.
func TestManners(t *testing.T) {
	electionTime := func(name string, heartbeat time.Duration) time.Duration {
		algorithm, ok := literature.AlgorithmNamed(name)
		if !ok {
			t.Skipf("there is no algorithm %s", name)
		}
		m, err := expect(Options{Heartbeat: heartbeat, Algorithm: algorithm})
		assert.NoError(t, err)
		assert.Is(t, bullies[name], m.bullies, "%s: bullies", name)
		small, great := election.Rank{Priority: priority, ID: 1, Score: priority}, election.Rank{Priority: priority, ID: 2, Score: priority}
		assert.Is(t, name == "minid", m.above(small, great), "%s: the smaller id comes first", name)
		return m.electionTime
	}
	for _, name := range literature.Algorithms() {
		fast, slow := electionTime(name, 20*time.Millisecond), electionTime(name, time.Second)
		if fast < 50*time.Millisecond || fast > 6*time.Second || slow <= fast || slow >= maxElectionTime {
			t.Errorf("%s: elects within %v at a heartbeat of 20 ms, %v at 1 s", name, fast, slow)
		}
	}
	if heir, score := electionTime("heir", 100*time.Millisecond), electionTime("score", 100*time.Millisecond); heir > time.Second || score < 2*time.Second {
		t.Errorf("heir elects within %v, and score, which has a deadline of 2 s, within %v", heir, score)
	}
}

func TestPlayNamespaces(t *testing.T) {
	t.Parallel()
	// One that keeps the incumbent, and one that does not, with another order.
	// TestPlay plays all of them, and the namespace tests of the daemon do.
	for _, name := range []string{"heir", "minid"} {
		t.Run(name, func(t *testing.T) {
			judged.Run(t, func(t *judged.T) {
				algorithm, _ := literature.AlgorithmNamed(name)
				r := playJSON(t, Options{Boards: 3, Heartbeat: playHeartbeat, Algorithm: algorithm, Namespaces: true})
				check(t, r, 3)
			})
		})
	}
}

// TestPlayText: the text has a line for each act and says how it ended.
func TestPlayText(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: a show takes seconds")
	}
	judged.RunOnLoopback(t, func(t *judged.T) {
		var out bytes.Buffer
		assert.ErrorIs(t, Play(t.Context(), heirs(3), &out, false), nil, "")
		text := out.String()
		// Which board leads first depends on which was scheduled first.
		for _, want := range []string{"WHAT IS DONE", "cut the power of pi[123], the leader", "pi[123] takes over", "leads on", "Two boards held the address for"} {
			if !regexp.MustCompile(want).MatchString(text) {
				t.Errorf("there is no %q in:\n%s", want, text)
			}
		}
		for line := range strings.Lines(text) {
			if n := characters(line); n > 80 {
				t.Errorf("%d characters: %s", n, line)
			}
		}
	})
}

func characters(line string) int { return row{{strings.TrimRight(line, "\n"), plain}}.width() }

// TestInterrupted: a show that is interrupted ends soon, with the reason.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	out := &trigger{at: "switch on", do: cancel}
	err := Play(ctx, Options{Boards: 2, Heartbeat: 20 * time.Millisecond, Algorithm: wire.AlgorithmHeir}, out, false)
	assert.ErrorIs(t, err, context.Canceled, "")
}

// trigger does something when a text is written.
type trigger struct {
	at string
	do func()
}

func (w *trigger) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte(w.at)) {
		w.do()
	}
	return len(b), nil
}

// TestMovedWithoutCause: the show notices a lead that moves when none should.
func TestMovedWithoutCause(t *testing.T) {
	judged.RunOnLoopback(t, func(t *judged.T) {
		c := offGroup(t, heirs(2))
		s := newShow(c, io.Discard)
		err := s.perform(`
			measure start "switch on all"
			boards 2 run
			agreed anew
			measure switch-on "do nothing"
			leader restart
			leader leads`)
		assert.ErrorContains(t, err, "do nothing", "the leader's daemon was stopped during an act in which nothing should move")
		if r := s.report.Acts[len(s.report.Acts)-1]; r.Error == "" {
			t.Errorf("the report has no error: %+v", r)
		}
	})
}

// TestFailedAct: an act that fails is told, with its reason, in both forms.
func TestFailedAct(t *testing.T) {
	var out bytes.Buffer
	p := programme{out: &out, heartbeat: 100}
	r := result{AtMs: 1500, Text: "cut the power of pi5", Error: "the boards do not agree on a leader: pi1 is a candidate"}
	p.act(r)
	p.result(r)
	want := "  1.5 s   cut the power of pi5                FAILED\n" +
		"          the boards do not agree on a leader: pi1 is a candidate\n"
	assert.Equal(t, want, out.String(), "")
}

// TestTwoHoldersFail: two boards that hold the address for too long make an act fail.
func TestTwoHoldersFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		record := observe.NewHolders()
		g := &group{lan: holdersLAN{record: record}}
		for overlap, want := range map[time.Duration]bool{maxTwoHolders - time.Millisecond: false, maxTwoHolders + time.Millisecond: true} {
			g.Mark()
			for n := 1; n <= 2; n++ {
				record.Set(time.Now(), n, true)
			}
			time.Sleep(overlap)
			record.Set(time.Now(), 1, false)
			_, two := g.Seen()
			assert.Is(t, want, two, "two boards hold the address for %v", overlap)
			time.Sleep(time.Second)
			record.Set(time.Now(), 2, false)
		}
	})
}

func TestOptions(t *testing.T) {
	for _, test := range []struct {
		boards    int
		heartbeat time.Duration
		want      string
	}{
		{5, 100 * time.Millisecond, "<nil>"},
		{1, 100 * time.Millisecond, "1 boards: must be 2 to 20"},
		{21, 100 * time.Millisecond, "21 boards: must be 2 to 20"},
		{5, time.Millisecond, "a heartbeat every 1ms: must be 10ms to 2s, in whole milliseconds"},
		{5, 10500 * time.Microsecond, "a heartbeat every 10.5ms: must be 10ms to 2s, in whole milliseconds"},
	} {
		o := Options{Boards: test.boards, Heartbeat: test.heartbeat}
		assert.Is(t, test.want, fmt.Sprint(o.Validate()), "%+v", o)
		if test.want != "<nil>" {
			assert.ErrorContains(t, Play(t.Context(), o, io.Discard, false), test.want, "playing %+v", o)
		}
	}
}

func TestMedian(t *testing.T) {
	for _, test := range []struct {
		values []float64
		want   float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{9, 1, 2}, 2}, {[]float64{4, 1, 2, 9}, 3}} {
		assert.Is(t, test.want, median(test.values), "of %v", test.values)
	}
}
