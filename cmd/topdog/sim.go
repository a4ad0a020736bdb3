package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"topdog/election"
	"topdog/election/literature"
	"topdog/internal/lab/scenario"
	"topdog/internal/lab/sim"
)

func simCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "sim",
		Short: "Simulate elections in virtual time",
		Long: `Simulate elections on a simulated LAN, in virtual time, with the election code of
the daemon. The same seed gives the same run.`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(
		simRunCommand(),
		simTablesCommand(),
		simCompareCommand(),
	)
	return c
}

// usageArgs makes what a check of the arguments finds a mistake in the command line.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if err := check(c, args); err != nil {
			return usageError{fmt.Errorf("%w (see: %s --help)", err, c.CommandPath())}
		}
		return nil
	}
}

// simRun are the flags of `topdog sim run` that are not in a scenario as they are written.
type simRun struct {
	scenario                 scenario.Scenario
	algorithm, fanout        string
	detector, scoreFrom      string
	priorities               []string
	faults                   map[scenario.FaultKind]*[]string
	latency, drift           string
	loss, duplicate, reorder string
	traceFrom, trace, out    string
	all, members, asJSON     bool
}

func simRunCommand() *cobra.Command {
	r := &simRun{faults: make(map[scenario.FaultKind]*[]string)}
	c := &cobra.Command{
		Use:   "run",
		Short: "Simulate one election, and show the messages of the boards",
		Long: `Simulate some boards and some faults, and print a summary: the messages, the time
without a leader, and the time until there was a new one. With --trace, also show
what the boards send and do, as text or as a picture.

The boards have the ids 1 to --nodes. The id 0 means nobody, so a paper's process 0
is board 1 here. All boards are switched on at time 0, and elect their first leader.
Counting and the trace begin with the first fault, or with --trace-from.

A fault is written BOARDS@TIME, and each flag may be given several times. --pause has
the length of the pause behind a +. The messages of the steady state are counted. The
trace folds them away, unless --all is given.`,
		Example: `  topdog sim run --crash 5@2s --trace
  topdog sim run --algorithm bully --crash 5@2s --notice 2 --trace svg --out bully.svg
  topdog sim run --nodes 4 --partition 1,2/3,4@2s --heal 6s --trace mermaid
  topdog sim run --loss 20% --latency exp:2ms --pause 5@2s+500ms --seed 7 --for 60s --json`,
		Args: usageArgs(r.format),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := r.read(); err != nil {
				return usageError{fmt.Errorf("%w (see: %s --help)", err, c.CommandPath())}
			}
			return r.run(c.Context(), c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	r.flags(c)
	return c
}

func (r *simRun) flags(c *cobra.Command) {
	f, s := c.Flags(), &r.scenario
	f.SortFlags = false
	f.StringVar(&r.algorithm, "algorithm", literature.Algorithms()[0], strings.Join(literature.Algorithms(), ", "))
	f.IntVar(&s.Nodes, "nodes", 5, fmt.Sprintf("how many boards, 1 to %d", scenario.MaxNodes))
	f.StringArrayVar(&r.priorities, "priority", nil, "priorities other than 100: `3=200` or 1,2=0")
	f.BoolVar(&s.Board.Preempt, "preempt", false, "boards of higher rank ask for the lead")
	f.DurationVar(&s.Board.Interval, "heartbeat", election.DefaultInterval, "the time between two heartbeats of the leader")
	f.StringVar(&r.fanout, "fanout", election.Fanouts()[0], "how messages to several boards are sent: "+strings.Join(election.Fanouts(), " or "))
	f.StringVar(&r.detector, "detector", "", "the failure detector: "+strings.Join(election.Detectors(), ", ")+" (default: that of the algorithm)")
	f.StringVar(&r.scoreFrom, "score-from", election.ScoreSources()[0], "what the algorithm score compares: "+strings.Join(simScoreSources(), " or "))
	f.BoolVar(&r.members, "members", false, "all boards know each other from the start, as the literature assumes")
	for _, k := range scenario.Kinds() {
		r.faults[k] = new([]string)
		f.StringArrayVar(r.faults[k], k.String(), nil, fmt.Sprintf("`%s`: %s", k.Example(), k.Usage()))
	}
	f.StringVar(&r.loss, "loss", "0%", "how likely a board does not get a message, such as 5%")
	f.StringVar(&r.duplicate, "duplicate", "0%", "how likely a board gets a message twice")
	f.StringVar(&r.reorder, "reorder", "", "how likely a message is held back, and for how long, such as `10%:5ms`")
	f.StringVar(&r.latency, "latency", "200us", "how long messages take: "+sim.DelayForms)
	f.StringVar(&r.drift, "drift", "0ppm", "how fast clocks drift: 50ppm at most, drawn from the seed, or 3=+200ppm,5=-50ppm")
	f.Uint64Var(&s.Seed, "seed", 1, "the seed of all random numbers; the same seed gives the same run")
	f.DurationVar(&s.For, "for", 10*time.Second, "how long, in virtual time")
	f.StringVar(&r.trace, "trace", "", "show what the boards send and do, as `text|mermaid|svg`; --trace alone is text")
	f.Lookup("trace").NoOptDefVal = scenario.Formats()[0]
	f.StringVar(&r.traceFrom, "trace-from", "", "when counting and the trace begin, such as `0` (default: with the first fault)")
	f.BoolVar(&r.all, "all", false, "show the messages of the steady state too")
	f.StringVar(&r.out, "out", "", "write the trace to this `file`, and only the summary to the standard output")
	f.BoolVar(&r.asJSON, "json", false, "print the summary, and the trace, as JSON")
	for name, values := range map[string][]string{
		"algorithm": literature.Algorithms(), "fanout": election.Fanouts(), "detector": election.Detectors(),
		"score-from": simScoreSources(), "trace": scenario.Formats(),
	} {
		if err := c.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(slices.Clone(values), cobra.ShellCompDirectiveNoFileComp)); err != nil {
			panic(err) // the flag does not exist: a mistake in the lines above
		}
	}
}

// simScoreSources leaves out the one that a user's command finds out: there are no commands here.
func simScoreSources() []string {
	return slices.DeleteFunc(slices.Clone(election.ScoreSources()), func(s string) bool { return s == election.ScoreFromCommand.String() })
}

// format takes in the word behind `--trace`, which the flag cannot have for itself: it may stand alone.
func (r *simRun) format(_ *cobra.Command, args []string) error {
	switch {
	case len(args) == 1 && r.trace == scenario.Formats()[0]:
		r.trace = args[0] // read looks whether there is such a format
	case len(args) > 0:
		return fmt.Errorf("what is %q? There are only flags here", args[0])
	}
	return nil
}

// read makes a scenario of the flags. Its errors name the flag.
func (r *simRun) read() error {
	s := &r.scenario
	var err error
	if s.Board.Algorithm, err = choose("algorithm", r.algorithm, literature.Algorithms(), literature.AlgorithmNamed); err != nil {
		return err
	}
	if s.Board.Fanout, err = choose("fanout", r.fanout, election.Fanouts(), election.FanoutNamed); err != nil {
		return err
	}
	if s.Board.ScoreSource, err = choose("score-from", r.scoreFrom, simScoreSources(), election.ScoreSourceNamed); err != nil {
		return err
	}
	if r.detector != "" {
		if s.Board.Detector, err = choose("detector", r.detector, election.Detectors(), election.DetectorNamed); err != nil {
			return err
		}
	}
	if r.trace != "" && !slices.Contains(scenario.Formats(), r.trace) {
		return fmt.Errorf("--trace: there is no format %q; there are: %s", r.trace, strings.Join(scenario.Formats(), ", "))
	}
	if r.trace == "" && (r.out != "" || r.all) {
		return fmt.Errorf("--out and --all are about the trace: add --trace")
	}
	if err := r.readWire(); err != nil {
		return err
	}
	if err := r.readFaults(); err != nil {
		return err
	}
	return s.Check()
}

// choose looks a value up by its name.
func choose[T any](flag, name string, names []string, find func(string) (T, bool)) (T, error) {
	v, ok := find(name)
	if !ok || !slices.Contains(names, name) {
		return v, fmt.Errorf("--%s: there is no %q; there are: %s", flag, name, strings.Join(names, ", "))
	}
	return v, nil
}

func (r *simRun) readWire() (err error) {
	w := &r.scenario.Wire
	if w.Delay, err = sim.ParseDelay(r.latency); err != nil {
		return fmt.Errorf("--latency: %w", err)
	}
	if w.Loss, err = scenario.ParseChance(r.loss); err != nil {
		return fmt.Errorf("--loss: %w", err)
	}
	if w.Duplicate, err = scenario.ParseChance(r.duplicate); err != nil {
		return fmt.Errorf("--duplicate: %w", err)
	}
	if r.reorder != "" {
		if w.Reorder, w.HoldBack, err = scenario.ParseReorder(r.reorder); err != nil {
			return fmt.Errorf("--reorder: %w", err)
		}
	}
	if r.scenario.Drift, err = scenario.ParseDrift(r.drift); err != nil {
		return fmt.Errorf("--drift: %w", err)
	}
	return nil
}

func (r *simRun) readFaults() error {
	s := &r.scenario
	s.Members = r.members
	for _, text := range r.priorities {
		if err := s.SetPriority(text); err != nil {
			return fmt.Errorf("--priority: %w", err)
		}
	}
	for _, k := range scenario.Kinds() {
		for _, text := range *r.faults[k] {
			f, err := scenario.ParseFault(k, text)
			if err != nil {
				return fmt.Errorf("--%v: %w", k, err)
			}
			s.Faults = append(s.Faults, f)
		}
	}
	s.From = scenario.FromFirstFault
	if r.traceFrom != "" {
		d, err := time.ParseDuration(r.traceFrom)
		if err != nil || d < 0 {
			return fmt.Errorf("--trace-from: %q is no time, such as 0 or 1.5s", r.traceFrom)
		}
		s.From = d
	}
	return nil
}

// run plays the scenario, and prints what came of it. A picture has the standard
// output for itself, so that it can be redirected; then the summary goes elsewhere.
func (r *simRun) run(ctx context.Context, stdout, stderr io.Writer) error {
	play, err := r.scenario.Run(ctx, scenario.Options{Record: r.trace != "", All: r.all})
	if err != nil {
		return exitStatus(exitFailure) // whoever interrupted it knows why
	}
	report := play.Report()
	if r.out != "" {
		if err := r.write(play); err != nil {
			return err
		}
	}
	if r.asJSON {
		return r.printJSON(stdout, play, report)
	}
	summary := stdout
	if r.trace != "" && r.out == "" {
		if err := play.Draw(stdout, r.trace); err != nil {
			return err
		}
		if r.trace == scenario.Formats()[0] {
			fmt.Fprintln(stdout)
		} else {
			summary = stderr
		}
	}
	return report.Text(summary)
}

// write draws the trace into the file that was asked for.
func (r *simRun) write(play *scenario.Play) (err error) {
	f, err := os.Create(r.out)
	if err != nil {
		return fmt.Errorf("--out: write the trace: %w", err)
	}
	defer func() {
		if closed := f.Close(); err == nil {
			err = closed
		}
	}()
	return play.Draw(f, r.trace)
}

func (r *simRun) printJSON(w io.Writer, play *scenario.Play, report scenario.Report) error {
	if play.Recording != nil && r.out == "" {
		if r.trace == scenario.Formats()[0] {
			report.Trace = play.Recording.Events()
		} else {
			var picture strings.Builder
			if err := play.Draw(&picture, r.trace); err != nil {
				return err
			}
			report.Picture = picture.String()
		}
	}
	return printJSON(w, report)
}
