package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"topdog/election"
	"topdog/election/literature"
	"topdog/internal/lab/compare"
	"topdog/internal/lab/sim"
	"topdog/wire"
)

// simCompare are the flags of `topdog sim compare` as they are written.
type simCompare struct {
	algorithms       []string
	boards           []int
	failures         int
	seed             uint64
	interval         time.Duration
	latency          string
	detector, fanout string
	svg              string
	asJSON, asCSV    bool
}

// simLatency is that of a wired LAN of small boards.
const simLatency = "uniform:100us-300us"

func simCompareCommand() *cobra.Command {
	var s simCompare
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
			options, err := s.options()
			if err != nil {
				return usageError{fmt.Errorf("%w (see: topdog sim compare --help)", err)}
			}
			errOut := c.ErrOrStderr()
			options.Progress = func(r compare.Row) { fmt.Fprintf(errOut, "%s, %d boards\n", r.Name, r.Boards) }
			rows, err := compare.Run(options)
			if err != nil {
				return err
			}
			return s.print(c.OutOrStdout(), rows)
		},
	}
	f := c.Flags()
	f.StringSliceVar(&s.algorithms, "algorithms", literature.Algorithms(), "the `names` of the algorithms")
	f.IntSliceVar(&s.boards, "boards", compare.DefaultBoards, "the numbers of boards, `n,n…`, from 2 to 255")
	f.IntVar(&s.failures, "failures", 20, "at most `n` failures for each number of boards; fewer for many boards")
	f.Uint64Var(&s.seed, "seed", 1, "the seed of all random numbers; the same `n` gives the same figures")
	f.DurationVar(&s.interval, "interval", election.DefaultInterval, "the time between two heartbeats, H")
	f.StringVar(&s.latency, "latency", simLatency, "the delay of a datagram: 200us, uniform:100us-3ms, exp:200us, …")
	f.StringVar(&s.detector, "detector", "", "the same failure detector for all: "+strings.Join(election.Detectors(), ", ")+" (default: that of each algorithm)")
	f.StringVar(&s.fanout, "fanout", election.Fanouts()[0], strings.Join(election.Fanouts(), " or "))
	f.StringVar(&s.svg, "svg", "", "draw the figures into a `file` as well")
	f.BoolVar(&s.asJSON, "json", false, "print JSON; times in ns")
	f.BoolVar(&s.asCSV, "csv", false, "print CSV")
	c.MarkFlagsMutuallyExclusive("json", "csv")
	return c
}

// options checks the flags.
func (s *simCompare) options() (compare.Options, error) {
	o := compare.Options{
		Boards: s.boards, Failures: s.failures, Seed: s.seed,
		Conditions: compare.Conditions{Interval: s.interval},
	}
	for _, name := range s.algorithms {
		i := slices.IndexFunc(compare.Cores(), func(c compare.Contestant) bool { return c.Name() == name })
		if i < 0 {
			return o, fmt.Errorf("--algorithms: there is no %q; there are: %s", name, strings.Join(literature.Algorithms(), ", "))
		}
		o.Contestants = append(o.Contestants, compare.Cores()[i])
	}
	for _, n := range s.boards {
		if n < 2 || n > wire.MaxBoards {
			return o, fmt.Errorf("--boards: a group has 2 to %d boards, not %d", wire.MaxBoards, n)
		}
	}
	if s.failures < 1 {
		return o, fmt.Errorf("--failures: at least one is needed, not %d", s.failures)
	}
	if err := election.CheckInterval(s.interval); err != nil {
		return o, fmt.Errorf("--interval: %v %w", s.interval, err)
	}
	delay, err := sim.ParseDelay(s.latency)
	if err != nil {
		return o, fmt.Errorf("--latency: %w", err)
	}
	o.Wire = sim.Wire{Delay: delay}
	var ok bool
	if o.Fanout, ok = election.FanoutNamed(s.fanout); !ok {
		return o, fmt.Errorf("--fanout: %s, not %q", strings.Join(election.Fanouts(), " or "), s.fanout)
	}
	if s.detector != "" {
		if o.Detector, ok = election.DetectorNamed(s.detector); !ok {
			return o, fmt.Errorf("--detector: there is no %q; there are: %s", s.detector, strings.Join(election.Detectors(), ", "))
		}
	}
	return o, nil
}

func (s *simCompare) print(out io.Writer, rows []compare.Row) error {
	if s.svg != "" {
		file, err := os.Create(s.svg)
		if err != nil {
			return fmt.Errorf("--svg: %w", err)
		}
		if err := compare.Plot(file, rows); err != nil {
			return err
		}
		if err := file.Close(); err != nil {
			return fmt.Errorf("--svg: %w", err)
		}
	}
	switch {
	case s.asJSON:
		return compare.JSON(out, rows)
	case s.asCSV:
		return compare.CSV(out, rows)
	}
	if err := compare.Text(out, rows); err != nil {
		return err
	}
	heir := wire.AlgorithmHeir.String()
	if !slices.Contains(s.algorithms, heir) {
		return nil
	}
	beaten := compare.Beaten(rows, heir)
	if len(beaten) == 0 {
		_, err := fmt.Fprintf(out, "\n%s is best or equal in packets and in time everywhere.\n", heir)
		return err
	}
	_, err := fmt.Fprintf(out, "\n%s is not the best here:\n  %s\n", heir, strings.Join(beaten, "\n  "))
	return err
}
