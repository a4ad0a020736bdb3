package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"topdog/election"
	"topdog/election/silence"
	"topdog/internal/lab/scenario"
	"topdog/internal/lab/sim"
	"topdog/internal/lab/simpage"
)

func simCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "sim",
		Short: "Simulate elections in virtual time",
		Long: `Simulate elections on a simulated LAN, in virtual time, with the election code of
the daemon. The same seed gives the same run.

With --page, it serves a page for a browser: choose an algorithm and what fails, watch the
messages step by step, and count them against the figures of the papers. Everybody who
reaches the port may look and let it compute; there is nothing to change.`,
		Example: "  topdog sim --page\n  topdog sim --page :8080\n  topdog sim run --crash 5@2s --trace",
	}
	page := addPageFlag(c, "show the algorithms as a page")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if !page.given() {
			return c.Help()
		}
		return simpage.Run(c.Context(), page.listen, c.OutOrStdout())
	}
	c.AddCommand(
		simRunCommand(),
		simTablesCommand(),
		simCompareCommand(),
	)
	return c
}

func simRunCommand() *cobra.Command {
	r := scenario.NewRequest()
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
		Args: usageArgs(func(_ *cobra.Command, args []string) error { return traceFormat(r, args) }),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := r.Read(); err != nil {
				return usageError{fmt.Errorf("%w (see: %s --help)", err, c.CommandPath())}
			}
			err := r.Run(c.Context(), c.OutOrStdout(), c.ErrOrStderr())
			if err != nil && c.Context().Err() != nil {
				return exitStatus(exitFailure) // whoever interrupted it knows why
			}
			return err
		},
	}
	simRunFlags(c, r)
	return c
}

func simRunFlags(c *cobra.Command, r *scenario.Request) {
	f, s := c.Flags(), &r.Scenario
	f.SortFlags = false
	f.StringVar(&r.Algorithm, "algorithm", r.Algorithm, strings.Join(scenario.Algorithms(), ", "))
	f.IntVar(&s.Nodes, "nodes", s.Nodes, fmt.Sprintf("how many boards, 1 to %d", scenario.MaxNodes))
	f.StringArrayVar(&r.Priorities, "priority", nil, "priorities other than 100: `3=200` or 1,2=0")
	f.BoolVar(&s.Board.Preempt, "preempt", false, "boards of higher rank ask for the lead")
	f.DurationVar(&s.Board.Interval, "heartbeat", s.Board.Interval, "the time between two heartbeats of the leader")
	f.StringVar(&r.Fanout, "fanout", r.Fanout, "how messages to several boards are sent: "+strings.Join(election.Fanouts(), " or "))
	f.StringVar(&r.Detector, "detector", "", "the failure detector: "+strings.Join(silence.Detectors(), ", ")+" (default: that of the algorithm)")
	f.StringVar(&r.ScoreFrom, "score-from", r.ScoreFrom, "what the algorithm score compares: "+strings.Join(scenario.ScoreSources(), " or "))
	f.BoolVar(&s.Members, "members", false, "all boards know each other from the start, as the literature assumes")
	for _, k := range scenario.Kinds() {
		f.StringArrayVar(r.Faults[k], k.String(), nil, fmt.Sprintf("`%s`: %s", k.Example(), k.Usage()))
	}
	f.StringVar(&r.Loss, "loss", r.Loss, "how likely a board does not get a message, such as 5%")
	f.StringVar(&r.Duplicate, "duplicate", r.Duplicate, "how likely a board gets a message twice")
	f.StringVar(&r.Reorder, "reorder", "", "how likely a message is held back, and for how long, such as `10%:5ms`")
	f.StringVar(&r.Latency, "latency", r.Latency, "how long messages take: "+sim.DelayForms)
	f.StringVar(&r.Drift, "drift", r.Drift, "how fast clocks drift: 50ppm at most, drawn from the seed, or 3=+200ppm,5=-50ppm")
	f.Uint64Var(&s.Seed, "seed", s.Seed, "the seed of all random numbers; the same seed gives the same run")
	f.DurationVar(&s.For, "for", s.For, "how long, in virtual time")
	f.StringVar(&r.Trace, "trace", "", "show what the boards send and do, as `text|mermaid|svg`; --trace alone is text")
	f.Lookup("trace").NoOptDefVal = scenario.Formats()[0]
	f.StringVar(&r.TraceFrom, "trace-from", "", "when counting and the trace begin, such as `0` (default: with the first fault)")
	f.BoolVar(&r.All, "all", false, "show the messages of the steady state too")
	f.StringVar(&r.Out, "out", "", "write the trace to this `file`, and only the summary to the standard output")
	f.BoolVar(&r.JSON, "json", false, "print the summary, and the trace, as JSON")
	for name, values := range map[string]func() []string{
		"algorithm": scenario.Algorithms, "fanout": election.Fanouts, "detector": silence.Detectors,
		"score-from": scenario.ScoreSources, "trace": scenario.Formats,
	} {
		completeFlag(c, name, values)
	}
}

// traceFormat takes in the word behind `--trace`, which the flag cannot have for itself: it may stand alone.
func traceFormat(r *scenario.Request, args []string) error {
	switch {
	case len(args) == 1 && r.Trace == scenario.Formats()[0]:
		r.Trace = args[0] // Read looks whether there is such a format
	case len(args) > 0:
		return fmt.Errorf("what is %q? There are only flags here", args[0])
	}
	return nil
}
