package simpage

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"topdog/internal/lab/scenario"
)

// run is all that the page shows of a run. Times are those of the simulation.
type run struct {
	Choice       choice          `json:"choice"`
	Command      string          `json:"command"`   // repeats it
	FromNs       int64           `json:"from_ns"`   // when counting begins
	FailedNs     int64           `json:"failed_ns"` // when something fails: with a board that notices, after a heartbeat
	BeginNs      int64           `json:"begin_ns"`
	EndNs        int64           `json:"end_ns"`
	Leader       string          `json:"leader"` // who led before, or ""
	Lanes        []lane          `json:"lanes"`  // the first in rank first
	Steps        []step          `json:"steps"`
	Missed       int             `json:"missed"` // steps beyond those
	End          end             `json:"end"`
	Figures      []figure        `json:"figures"`
	NoFigureText string          `json:"no_figure_text,omitempty"`
	Report       scenario.Report `json:"report"` // what the command prints with --json
}

// lane is one board.
type lane struct {
	Board string `json:"board"`
	State *state `json:"state"` // when the recording begins
}

// end is how a run ends.
type end struct {
	Agreed  bool     `json:"agreed"`  // all boards that are there follow one leader
	Leaders []string `json:"leaders"` // who has the address in the end
	Text    string   `json:"text"`    // what came of it, or why not
	// AfterMs is from the last thing that happened until all agreed for the first time; null if they do not.
	AfterMs *float64 `json:"after_ms"`
}

// maxSteps bounds what a browser has to draw. What comes then is counted.
const maxSteps = 5000

// show plays what was chosen.
func show(ctx context.Context, c choice) (*run, error) {
	play, g, l, err := c.play(ctx)
	if err != nil {
		return nil, err
	}
	report := play.Report()
	r := &run{
		Choice: c, Command: "topdog sim run " + string(l),
		FromNs: int64(play.From()), FailedNs: int64(play.Happened()[0]), EndNs: int64(play.LAN.Now()),
		BeginNs: int64(play.From() - before),
		Steps:   steps(play.Scenario.Board.Algorithm, c.Boards, play.Recording.Steps()),
		Missed:  play.Recording.Missed(),
		End:     ending(&c, play, &report), Figures: c.figures(g, &play.LAN.Counts), Report: report,
	}
	if len(r.Steps) > maxSteps {
		r.Missed += len(r.Steps) - maxSteps
		r.Steps = r.Steps[:maxSteps]
	}
	for _, id := range g.ranks() {
		b := play.LAN.Board(strconv.Itoa(id))
		r.Lanes = append(r.Lanes, lane{Board: b.Label, State: stateOf(play.Recording.Initial(b))})
		if r.Lanes[len(r.Lanes)-1].State.Holding {
			r.Leader = b.Label
		}
	}
	if len(r.Figures) == 0 {
		r.NoFigureText = c.noFigureText()
	}
	return r, nil
}

// ending says how a play ends.
func ending(c *choice, play *scenario.Play, report *scenario.Report) end {
	e := end{Leaders: []string{}}
	for _, b := range play.LAN.Boards() {
		if b.Running() && b.Plugged() && b.Holding() {
			e.Leaders = append(e.Leaders, b.Label)
		}
	}
	if _, agreed := play.Settled(); agreed && len(e.Leaders) == 1 {
		e.Agreed, e.AfterMs = true, report.Faults[len(report.Faults)-1].AgreedMs
	}
	e.Text = e.words(c, play, report)
	return e
}

// words says what came of it, or why not.
func (e *end) words(c *choice, play *scenario.Play, report *scenario.Report) string {
	passed := play.LAN.Now() - play.From()
	left, voters, majority := quorum(play)
	switch {
	case e.Agreed && c.Failure == "resign_leader" && report.Moves == 0:
		return fmt.Sprintf("Board %s goes on: with %s the first in rank always leads, so it cannot resign.", e.Leaders[0], c.Algorithm)
	case e.Agreed:
		text := fmt.Sprintf("Board %s leads, and all boards that are there follow it, %.1f ms after %s.", e.Leaders[0], *e.AfterMs,
			cmp.Or(failureNamed(c.Failure).since, "the failure"))
		switch at, _ := play.Settled(); {
		case at <= last(play.Happened())+agreed(*e.AfterMs):
		case c.LossPercent > 0:
			text += " Later some of them missed it, because messages were lost, and asked again."
		default:
			text += fmt.Sprintf(" Then the lead was contested once more, until %.1f ms.", float64(at-last(play.Happened()))/float64(time.Millisecond))
		}
		return text
	case len(e.Leaders) > 1:
		return fmt.Sprintf("Boards %s lead at the same time: one does not hear the other, and takes it for dead.", strings.Join(e.Leaders, " and "))
	case len(e.Leaders) == 1 && c.Failure == "one_way":
		return fmt.Sprintf("Board %s alone leads. The board that does not hear it has not taken the lead, because others hear it.", e.Leaders[0])
	case len(e.Leaders) == 1:
		return fmt.Sprintf("Board %s leads, but after %v not all boards follow it.", e.Leaders[0], passed)
	case left < majority:
		return fmt.Sprintf("Nobody leads: %d of %d voters are left, and a majority is %d. Without one, strict lets nobody lead.", left, voters, majority)
	default:
		return fmt.Sprintf("Nobody leads %v after the failure.", passed)
	}
}

// quorum counts the voters that are there, and all of them. Only the algorithm strict has any.
func quorum(play *scenario.Play) (left, voters, majority int) {
	boards := play.LAN.Boards()
	for _, id := range boards[0].Config.Voters {
		if b := play.LAN.Board(id.String()); b.Running() && b.Plugged() {
			left++
		}
	}
	voters = len(boards[0].Config.Voters)
	return left, voters, min(voters, voters/2+1)
}

// agreed is a length of time that a report has in milliseconds, rounded up.
func agreed(ms float64) time.Duration { return time.Duration((ms + 0.001) * float64(time.Millisecond)) }
