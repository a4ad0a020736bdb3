package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"topdog/election"
	"topdog/election/silence"
	"topdog/internal/lab/compare"
)

func simCompareCommand() *cobra.Command {
	r := compare.NewRequest()
	c := &cobra.Command{
		Use:   "compare",
		Short: "Measure how each algorithm replaces a failed leader",
		Long: `Make the leader of 3 to 250 boards fail, with each algorithm, at random moments. Print
medians of the takeover: messages from process to process, packets on a network with
multicast, the time to the first claim of the next leader, and the time until all
boards followed it. Each board notices when its failure detector does.

The row of etcd's raft comes from a Go module of its own, because it would make the
daemon larger otherwise:  go run -C scripts/raft .`,
		Example: "  topdog sim compare --svg compare.svg\n  topdog sim compare --algorithms heir,minid --boards 3,10 --detector ask",
		Args:    usageArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			options, err := r.Read()
			if err != nil {
				return usageError{fmt.Errorf("%w (see: topdog sim compare --help)", err)}
			}
			errOut := c.ErrOrStderr()
			options.Progress = func(row compare.Row) { fmt.Fprintf(errOut, "%s, %d boards\n", row.Name, row.Boards) }
			rows, err := compare.Run(c.Context(), options)
			if err != nil {
				return err
			}
			return r.Print(c.OutOrStdout(), rows)
		},
	}
	f := c.Flags()
	f.StringSliceVar(&r.Algorithms, "algorithms", r.Algorithms, "the `names` of the algorithms")
	f.IntSliceVar(&r.Boards, "boards", r.Boards, "the numbers of boards, `n,n…`, from 2 to 255")
	f.IntVar(&r.Failures, "failures", r.Failures, "at most `n` failures for each number of boards; fewer for many boards")
	f.Uint64Var(&r.Seed, "seed", r.Seed, "the seed of all random numbers; the same `n` gives the same figures")
	f.DurationVar(&r.Interval, "interval", r.Interval, "the time between two heartbeats, H")
	f.StringVar(&r.Latency, "latency", r.Latency, "the delay of a datagram: 200us, uniform:100us-3ms, exp:200us, …")
	f.StringVar(&r.Detector, "detector", "", "the same failure detector for all: "+strings.Join(silence.Detectors(), ", ")+" (default: that of each algorithm)")
	f.StringVar(&r.Fanout, "fanout", r.Fanout, strings.Join(election.Fanouts(), " or "))
	f.StringVar(&r.SVG, "svg", "", "draw the figures into a `file` as well")
	f.BoolVar(&r.JSON, "json", false, "print JSON; times in ns")
	f.BoolVar(&r.CSV, "csv", false, "print CSV")
	c.MarkFlagsMutuallyExclusive("json", "csv")
	completeFlag(c, "detector", silence.Detectors)
	completeFlag(c, "fanout", election.Fanouts)
	return c
}
