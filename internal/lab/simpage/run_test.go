package simpage

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/scenario"
)

// without are the runs that do not end with one leader whom all follow, by algorithm and failure, and why.
var without = map[string]string{
	"bully one_way":      "Boards 4 and 5 lead at the same time: one does not hear the other, and takes it for dead.",
	"score one_way":      "Boards 4 and 5 lead at the same time: one does not hear the other, and takes it for dead.",
	"modified one_way":   "Boards 4 and 5 lead at the same time: one does not hear the other, and takes it for dead.",
	"candidates one_way": "Boards 4 and 5 lead at the same time: one does not hear the other, and takes it for dead.",
	"minid one_way":      "Boards 1 and 2 lead at the same time: one does not hear the other, and takes it for dead.",
	"heir one_way":       "Board 5 alone leads. The board that does not hear it has not taken the lead, because others hear it.",
	"strict one_way":     "Board 5 alone leads. The board that does not hear it has not taken the lead, because others hear it.",
	"agents one_way":     "Board 5 alone leads. The board that does not hear it has not taken the lead, because others hear it.",
	"strict crash_half":  "Nobody leads: 2 of 5 voters are left, and a majority is 3. Without one, strict lets nobody lead.",
}

// TestEveryRun plays each failure with each algorithm. What loses packets, and so draws most, gives the same run again.
func TestEveryRun(t *testing.T) {
	for _, algorithm := range scenario.Algorithms() {
		for _, f := range failures {
			for _, c := range []choice{
				{Algorithm: algorithm, Boards: 5, Failure: f.Name, Seed: 1},
				{Algorithm: algorithm, Boards: 5, Failure: f.Name, Seed: 7, LossPercent: 10},
				{Algorithm: algorithm, Boards: 12, Failure: f.Name, Seed: 1},
			} {
				if testing.Short() && c.Boards > 5 {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/%d/%d", algorithm, f.Name, c.Boards, c.LossPercent), func(t *testing.T) {
					t.Parallel()
					r, err := show(t.Context(), c)
					assert.NoError(t, err)
					checkSteps(t, r)
					if c.Boards == 5 && c.LossPercent == 0 {
						checkEnd(t, r, without[algorithm+" "+f.Name])
					}
					if c.LossPercent == 0 && strings.Contains(r.End.Text, "messages were lost") {
						t.Errorf("no message was lost, and it says: %s", r.End.Text)
					}
					if c.LossPercent == 0 {
						return
					}
					if again, err := show(t.Context(), c); err != nil {
						t.Error(err)
					} else if diff := cmp.Diff(text(t, r), text(t, again)); diff != "" {
						t.Errorf("the same choice gives another run:\n%s", diff)
					}
				})
			}
		}
	}
}

func text(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	assert.NoError(t, err)
	return string(b)
}

// checkEnd holds that a run ends with one leader, or says why not.
func checkEnd(t *testing.T, r *run, whyNot string) {
	t.Helper()
	switch {
	case whyNot != "":
		if r.End.Agreed || r.End.Text != whyNot {
			t.Errorf("it ends with %+v, want %q", r.End, whyNot)
		}
	case !r.End.Agreed || len(r.End.Leaders) != 1 || r.End.AfterMs == nil:
		t.Errorf("it ends with %+v", r.End)
	}
	if r.Leader == "" {
		t.Error("nobody led before")
	}
}

// checkSteps holds that the steps are in order, and are those that were counted.
func checkSteps(t *testing.T, r *run) {
	t.Helper()
	packets, messages := map[string]int{}, map[string]int{}
	now := r.BeginNs
	for i, s := range r.Steps {
		if s.AtNs < now || s.AtNs > r.EndNs {
			t.Fatalf("step %d is at %v, between %v and %v", i, time.Duration(s.AtNs), time.Duration(now), time.Duration(r.EndNs))
		}
		now = s.AtNs
		if s.Text == "" || s.Kind == "" || (s.Board == "") != (s.State == nil) {
			t.Errorf("step %d lacks something: %+v", i, s)
		}
		for _, c := range s.Copies {
			if c.AtNs < s.AtNs || c.AtNs > r.EndNs || c.Fate == "" || len(c.To) == 0 {
				t.Errorf("step %d has the copies %+v", i, c)
			}
			for _, to := range c.To {
				if !slices.Contains(s.To, to) {
					t.Errorf("step %d is not for board %s, which gets a copy", i, to)
				}
			}
		}
		if s.Kind == kindMessage && s.AtNs >= r.FromNs {
			packets[s.Message]++
			messages[s.Message] += len(s.To)
		}
	}
	want, wantMessages := map[string]int{}, map[string]int{}
	for _, m := range r.Report.Messages {
		want[m.Kind], wantMessages[m.Kind] = m.Packets, m.Live+m.Dead
	}
	assert.Equal(t, wantMessages, messages, "messages by kind, as counted and as shown")
	assert.Equal(t, want, packets, "packets by kind, as counted and as shown")
}

// TestExamples plays the runs that a paper prints figures for. All must come out.
func TestExamples(t *testing.T) {
	all := examples()
	if len(all) < 20 {
		t.Errorf("there are only %d examples", len(all))
	}
	for _, e := range all {
		r, err := show(t.Context(), e.Choice)
		if err != nil {
			t.Errorf("%s: %v", e.Text, err)
			continue
		}
		if len(r.Figures) == 0 || r.NoFigureText != "" {
			t.Errorf("%s: there is no figure: %s", e.Text, r.NoFigureText)
		}
		for _, f := range r.Figures {
			if !f.Equal || f.SourceText == "" {
				t.Errorf("%s: %+v", e.Text, f)
			}
		}
	}
}

func TestNoFigure(t *testing.T) {
	for raw, want := range map[string]string{
		"algorithm=heir": "No paper that topdog has measured again prints figures for heir.",
		"algorithm=bully&failure=crash_leader&notice=1&boards=4&loss_percent=5": "No paper prints a figure for a network that loses messages.",
		"algorithm=candidates&failure=crash_leader&notice=2&boards=5":           "No paper prints a figure for this run. There are figures for candidates with 5, 10, 20 boards, for a certain board that notices.",
	} {
		c, err := readChoice(raw)
		assert.NoError(t, err)
		r, err := show(t.Context(), c)
		assert.NoError(t, err)
		if r.NoFigureText != want || len(r.Figures) > 0 {
			t.Errorf("%s: got %q and %d figures, want %q", raw, r.NoFigureText, len(r.Figures), want)
		}
	}
}

// TestEveryMessageIsExplained holds that no step leaves a pupil alone with the name of a message.
func TestEveryMessageIsExplained(t *testing.T) {
	for _, algorithm := range scenario.Algorithms() {
		if a := describe(algorithm); a.Idea == "" || a.Paper == "" || len(a.Steps) == 0 || a.Cost == "" || a.Weakness == "" || a.Leads == "" {
			t.Errorf("%s is not described: %+v", algorithm, a)
		}
		for _, f := range failures {
			r, err := show(t.Context(), choice{Algorithm: algorithm, Boards: 6, Failure: f.Name, Seed: 3, LossPercent: 20})
			if err != nil {
				t.Errorf("%s, %s: %v", algorithm, f.Name, err)
				continue
			}
			for _, s := range r.Steps {
				if s.WhyText == "" && (s.Kind == kindMessage || s.Kind == kindFault || s.Kind == kindAddress) {
					t.Errorf("%s: nothing explains %q", algorithm, s.Text)
				}
			}
		}
	}
}

// TestClaimAfterHandOver: where a leader has handed over, nobody claims for the reason that nobody has answered.
func TestClaimAfterHandOver(t *testing.T) {
	for _, c := range []choice{
		{Algorithm: "heir", Boards: 4, Failure: "resign_leader", Seed: 1},
		{Algorithm: "bully", Boards: 4, Failure: "restart_highest", Seed: 1},
		{Algorithm: "score", Boards: 4, Failure: "restart_highest", Seed: 1},
	} {
		r, err := show(t.Context(), c)
		assert.NoError(t, err)
		claims := 0
		for _, s := range r.Steps {
			if s.Message != "COORDINATOR" || s.AtNs < r.FailedNs {
				continue
			}
			claims++
			if !strings.Contains(s.WhyText, "or ") || !strings.Contains(s.WhyText, "handed over") {
				t.Errorf("%s, %s: a claim is said to mean %q", c.Algorithm, c.Failure, s.WhyText)
			}
		}
		if claims == 0 {
			t.Errorf("%s, %s: there is no claim", c.Algorithm, c.Failure)
		}
	}
}
