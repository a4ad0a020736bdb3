package scenario

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"topdog/election"
	"topdog/election/literature"
	"topdog/election/silence"
	"topdog/internal/lab/scene"
	"topdog/internal/lab/sim"
	"topdog/wire"
)

// Request is a scenario as it stands on a command line, and what shall be shown of it.
// Its errors call things what the flags of `topdog sim run` call them.
type Request struct {
	Scenario Scenario // what is no text; Read fills in the rest

	Algorithm, Fanout, Detector, ScoreFrom string
	Priorities                             []string             // such as 3=200
	Faults                                 map[string]*[]string // such as 5@2s, by the name of the flag
	SceneFile                              string               // of which the faults are, instead
	Latency, Drift                         string
	Loss, Duplicate, Reorder               string
	TraceFrom                              string // when counting and the trace begin; "" with the first fault

	Trace string // one of Formats, or "" for no trace
	Out   string // the file that the trace is written into; "" for the standard output
	All   bool   // the trace also has the messages of the steady state
	JSON  bool   // print the report, and the trace, as JSON
}

// NewRequest is a scenario of which nothing was said. It has no faults.
func NewRequest() *Request {
	r := &Request{
		Scenario:  Scenario{Nodes: 5, Board: election.Config{Interval: election.DefaultInterval}, Seed: 1, For: 10 * time.Second},
		Algorithm: literature.Algorithms()[0], Fanout: election.Fanouts()[0], ScoreFrom: election.ScoreSources()[0],
		Faults:  make(map[string]*[]string),
		Latency: "200us", Drift: "0ppm",
		Loss: "0%", Duplicate: "0%",
	}
	for _, f := range FaultFlags() {
		r.Faults[f.Name] = new([]string)
	}
	return r
}

// ScoreSources are the names of what boards can compare here, where no command can find
// out a score.
func ScoreSources() []string {
	return slices.DeleteFunc(slices.Clone(election.ScoreSources()), func(s string) bool { return s == election.ScoreFromCommand.String() })
}

// Algorithms are the names of those that can be played: all that need nothing but boards, and
// strict, with all boards as its voters.
func Algorithms() []string { return append(literature.Algorithms(), wire.AlgorithmStrict.String()) }

// Read makes the scenario of the texts. Its errors name the flag.
func (r *Request) Read() error {
	s, w := &r.Scenario, &r.Scenario.Wire
	s.Priorities = make(map[wire.ID]uint8)
	var err, wrong error // wrong is the first error
	of := func(flag string) {
		if err != nil && wrong == nil {
			wrong = fmt.Errorf("--%s: %w", flag, err)
		}
	}
	s.Board.Algorithm, err = choose(r.Algorithm, Algorithms(), literature.AlgorithmNamed)
	of("algorithm")
	s.Board.Fanout, err = choose(r.Fanout, election.Fanouts(), election.FanoutNamed)
	of("fanout")
	s.Board.ScoreSource, err = choose(r.ScoreFrom, ScoreSources(), election.ScoreSourceNamed)
	of("score-from")
	if r.Detector != "" {
		s.Board.Detector, err = choose(r.Detector, silence.Detectors(), silence.DetectorNamed)
		of("detector")
	}
	switch {
	case r.Trace != "" && !slices.Contains(Formats(), r.Trace):
		err = fmt.Errorf("there is no format %q; there are: %s", r.Trace, strings.Join(Formats(), ", "))
		of("trace")
	case r.Trace == "" && (r.Out != "" || r.All):
		wrong = cmp.Or(wrong, errors.New("--out and --all are about the trace: add --trace"))
	}
	w.Delay, err = sim.ParseDelay(r.Latency)
	of("latency")
	w.Loss, err = scene.ReadShare(r.Loss)
	of("loss")
	w.Duplicate, err = scene.ReadShare(r.Duplicate)
	of("duplicate")
	if r.Reorder != "" {
		w.Reorder, w.HoldBack, err = parseReorder(r.Reorder)
		of("reorder")
	}
	s.Drift, err = parseDrift(r.Drift)
	of("drift")
	for _, text := range r.Priorities {
		err = s.setPriority(text)
		of("priority")
	}
	if wrong == nil {
		wrong = r.readScene()
	}
	if r.TraceFrom != "" {
		if s.From, err = time.ParseDuration(r.TraceFrom); err != nil || s.From < 0 {
			err = fmt.Errorf("%q is no time, such as 0 or 1.5s", r.TraceFrom)
		}
		of("trace-from")
	}
	if wrong != nil {
		return wrong
	}
	return s.Check()
}

// choose looks a value up by its name.
func choose[T any](name string, names []string, find func(string) (T, bool)) (T, error) {
	v, ok := find(name)
	if !ok || !slices.Contains(names, name) {
		return v, fmt.Errorf("there is no %q; there are: %s", name, strings.Join(names, ", "))
	}
	return v, nil
}

// readScene makes the scene of the faults, or reads it from its file.
func (r *Request) readScene() (err error) {
	s := &r.Scenario
	if r.SceneFile == "" {
		if err := s.checkNodes(); err != nil {
			return err
		}
		var text string
		if text, s.From, err = r.sceneOfFaults(); err == nil {
			s.Scene, err = scene.Parse("the faults", text)
		}
		return err
	}
	text, err := os.ReadFile(r.SceneFile)
	if err != nil {
		return fmt.Errorf("--scene: %w", err)
	}
	if s.Scene, err = scene.Parse(r.SceneFile, string(text)); err != nil {
		return fmt.Errorf("--scene: %w", err)
	}
	for name, texts := range r.Faults {
		if len(*texts) > 0 {
			return fmt.Errorf("--scene: the faults are in the scene, so --%s has no place", name)
		}
	}
	s.Nodes, s.Judged = max(1, s.Scene.Boards()), true
	return nil
}

// Run plays the scenario, and prints what came of it. A picture has the standard
// output for itself, so that it can be redirected; then the summary goes elsewhere.
func (r *Request) Run(ctx context.Context, stdout, stderr io.Writer) error {
	play, err := r.Scenario.Run(ctx, Options{Record: r.Trace != "", All: r.All})
	if err != nil {
		return err
	}
	report, summary := play.Report(), stdout
	switch {
	case r.Out != "":
		err = r.write(play)
	case r.Trace == "":
	case r.JSON && r.Trace == Formats()[0]:
		report.Trace = play.Recording.Events()
	case r.JSON:
		var picture strings.Builder
		err = play.Draw(&picture, r.Trace)
		report.Picture = picture.String()
	case r.Trace == Formats()[0]:
		err = play.Draw(stdout, r.Trace)
		fmt.Fprintln(stdout)
	default:
		err, summary = play.Draw(stdout, r.Trace), stderr
	}
	switch {
	case err != nil:
		return err
	case r.JSON:
		e := json.NewEncoder(stdout)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false) // no page shows this
		return e.Encode(report)
	}
	return report.Text(summary)
}

// write draws the trace into the file that was asked for.
func (r *Request) write(play *Play) error {
	f, err := os.Create(r.Out)
	if err != nil {
		return fmt.Errorf("--out: write the trace: %w", err)
	}
	return errors.Join(play.Draw(f, r.Trace), f.Close())
}
