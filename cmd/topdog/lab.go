//go:build !board

package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"topdog/election"
	"topdog/election/literature"
	"topdog/election/silence"
	"topdog/internal/lab/compare"
	"topdog/internal/lab/demo"
	"topdog/internal/lab/demopage"
	"topdog/internal/lab/papers"
	"topdog/internal/lab/replay"
	"topdog/internal/lab/scenario"
	"topdog/internal/lab/sim"
	"topdog/internal/lab/simpage"
	"topdog/internal/lab/webpage"
)

// This file has the verbs that show elections without a group: the demonstration and the simulator. No other verb has
// anything of internal/lab.

// demoPageWord makes the program the process that serves the page of a demonstration that needs root (internal/lab/demopage).
const demoPageWord = "demo-page"

func init() { lives[demoPageWord] = demopage.AttendChild }

func labCommands() []*cobra.Command { return []*cobra.Command{demoCommand(), simCommand()} }

func demoCommand() *cobra.Command {
	options := demo.Options{Boards: demo.DefaultBoards, Heartbeat: demo.DefaultHeartbeat}
	algorithm := literature.Algorithms()[0]
	var script, asJSON bool
	var page *string
	c := &cobra.Command{
		Use:   "demo",
		Short: "Watch a few boards elect a leader, without any hardware",
		Long: `Run a few boards in this process, with the real election over real UDP on
loopback, and a client that asks every millisecond who answers at the floating
address. It needs no root and no hardware, and changes nothing on this machine.

On a terminal it draws the boards. You pull their cables or cut their power, and
see for how long the client gets no answer. Without a terminal, or with --script,
it plays a show of about eight seconds, and its exit status is 1 if something went
wrong. The show is longer with an algorithm that elects slowly.

With --page it prints the URL of a page, and serves that page until it is ended. There you
can do to the boards whatever may happen to them, and see what follows.`,
		Example: `  topdog demo
  topdog demo --page
  topdog demo --page :8080
  topdog demo --script
  topdog demo --algorithm minid
  sudo topdog demo --netns`,
		RunE: func(c *cobra.Command, _ []string) error {
			var ok bool
			if options.Algorithm, ok = literature.AlgorithmNamed(algorithm); !ok {
				return misuse("--algorithm: there is no algorithm %q; there are: %s",
					algorithm, strings.Join(literature.Algorithms(), ", "))
			}
			if err := options.Validate(); err != nil {
				return usageError{err}
			}
			show := script || asJSON
			if *page != "" {
				if show {
					return misuse("--page is a page, and --script and --json are a show: choose one")
				}
				return demo.Page(c.Context(), options, *page, []string{"/proc/self/exe", demoPageWord}, c.OutOrStdout())
			}
			out := c.OutOrStdout()
			if screen, ok := out.(*os.File); ok && !show && canDraw(os.Stdin, screen) {
				return demo.Live(c.Context(), options, os.Stdin, screen)
			}
			return interruptedSilently(c, demo.Play(c.Context(), options, out, asJSON))
		},
	}
	f := c.Flags()
	f.IntVar(&options.Boards, "boards", options.Boards, fmt.Sprintf("how many boards, %d to %d", demo.MinBoards, demo.MaxBoards))
	f.DurationVar(&options.Heartbeat, "heartbeat", options.Heartbeat, "the time between two heartbeats of the leader")
	f.StringVar(&algorithm, "algorithm", algorithm, "how the leader is elected: "+strings.Join(literature.Algorithms(), ", "))
	f.BoolVar(&options.Namespaces, "netns", false, "real cables between network namespaces and a real address; needs root")
	f.BoolVar(&script, "script", false, "play the show, also on a terminal")
	page = addPageFlag(c, "serve the demonstration as a page")
	f.BoolVar(&asJSON, "json", false, "play the show, and print what happened as JSON")
	completeFlag(c, "algorithm", literature.Algorithms)
	return c
}

// canDraw reports whether there is somebody to look at a picture and to press keys.
func canDraw(in, out *os.File) bool {
	return isTerminal(in) && isTerminal(out) && os.Getenv("TERM") != "dumb"
}

// interruptedSilently returns the error of a command. If somebody has interrupted the command, the error has no text, and
// only the exit status tells.
func interruptedSilently(c *cobra.Command, err error) error {
	if err != nil && c.Context().Err() != nil {
		return exitStatus(exitFailure)
	}
	return err
}

// addPageFlag gives the flag --page to a command that can show what it does in a browser. The flag may stand alone,
// and it takes its address as --page=:8080 or as --page :8080. The value is "" if nobody wants the page.
func addPageFlag(c *cobra.Command, usage string) (listen *string) {
	listen = c.Flags().String("page", "", usage+", at `HOST:PORT`, such as :8080 for a projector; --page alone is this machine only, at a free port")
	c.Flags().Lookup("page").NoOptDefVal = webpage.DefaultListen
	c.Args = func(_ *cobra.Command, args []string) error {
		if err := optionalValue(listen, webpage.DefaultListen, args); err != nil || *listen == "" {
			return err
		}
		if err := webpage.CheckListen(*listen); err != nil {
			return fmt.Errorf("--page: %w", err)
		}
		return nil
	}
	return listen
}

// optionalValue makes the word behind a flag the value of the flag. It is for flags that may stand alone: pflag takes
// such a word for an argument of the command. alone is the value of the flag without a word.
func optionalValue(value *string, alone string, args []string) error {
	switch {
	case len(args) == 1 && *value == alone:
		*value = args[0]
	case len(args) > 0:
		return fmt.Errorf("what is %q? It is neither a command nor the value of a flag", args[0])
	}
	return nil
}

func simCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "sim",
		Short: "Simulate elections in virtual time",
		Long: `Simulate elections on a simulated LAN, in virtual time, with the election code of
the daemon. The same seed gives the same run.

With --page, it serves a page for a browser: choose an algorithm and what fails, watch the
messages step by step, and count them against the figures of the papers. Everybody who
reaches the port may look and let it compute; there is nothing to change.`,
		Example: "  topdog sim --page\n  topdog sim --page :8080\n  topdog sim run --kill 5@2s --trace",
	}
	page := addPageFlag(c, "show the algorithms as a page")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if *page == "" {
			return c.Help()
		}
		return simpage.Run(c.Context(), *page, c.OutOrStdout())
	}
	c.AddCommand(
		simRunCommand(),
		simTablesCommand(),
		simCompareCommand(),
		simPlayCommand(),
	)
	return c
}

func simPlayCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "play FILE",
		Short: "Play again what a board has recorded",
		Long: `Play again what a board has recorded (topdog trace --scene): give the election of this program
the state that the board had, tell it what the board was told, and print what it does. What the
board has done instead stands below, behind "# recorded:". The file may be changed before, such as
to see what would have happened without a message.

The exit status is 1 if something differs.`,
		Example: "  sudo topdog trace --scene > report.txt\n  topdog sim play report.txt",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, files []string) error {
			text, err := os.ReadFile(files[0])
			if err != nil {
				return err
			}
			r, err := replay.Play(string(text))
			if err != nil {
				return fmt.Errorf("%s: %w", files[0], err)
			}
			if _, err := fmt.Fprint(c.OutOrStdout(), r.Text); err != nil {
				return err
			}
			if r.Different > 0 {
				return fmt.Errorf("%d of %d steps differ from what was recorded, at first: %s", r.Different, r.Steps, r.First)
			}
			return nil
		},
	}
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

A fault is written BOARDS@TIME, and each flag may be given several times. One that has an
end may have its length behind a +. The messages of the steady state are counted. The
trace folds them away, unless --all is given.`,
		Example: `  topdog sim run --kill 5@2s --trace
  topdog sim run --algorithm bully --kill 5@2s --notice 2 --trace svg --out bully.svg
  topdog sim run --nodes 4 --split 1,2/3,4@2s --join 6s --trace mermaid
  topdog sim run --loss 20% --latency exp:2ms --freeze 5@2s+500ms --seed 7 --for 60s --json`,
		// The word behind --trace is its value. Read checks whether there is such a format.
		Args: func(_ *cobra.Command, args []string) error {
			return optionalValue(&r.Trace, scenario.Formats()[0], args)
		},
		RunE: func(c *cobra.Command, _ []string) error {
			if err := r.Read(); err != nil {
				return seeHelp(c, err)
			}
			return interruptedSilently(c, r.Run(c.Context(), c.OutOrStdout(), c.ErrOrStderr()))
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
	for _, fault := range scenario.FaultFlags() {
		f.StringArrayVar(r.Faults[fault.Name], fault.Name, nil, fmt.Sprintf("`%s`: %s", fault.Example, fault.Usage))
	}
	f.StringVar(&r.SceneFile, "scene", "", "play the scene in this `file`, and fail if it says what is not so (docs/lab.md)")
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

func simTablesCommand() *cobra.Command {
	var asJSON, asCSV bool
	c := &cobra.Command{
		Use:   "tables",
		Short: "Measure the tables of the literature again",
		Long: `Run the algorithms of the papers in the simulator, and print every table and example
of the papers as measured. "=" means that the paper prints the same figure, "≠" that
it prints another one. Columns without either are not in the paper.

The exit status is 1 if a figure differs.`,
		RunE: func(c *cobra.Command, _ []string) error {
			tables, err := papers.All()
			if err != nil {
				return fmt.Errorf("cannot measure: %w", err)
			}
			switch out := c.OutOrStdout(); {
			case asJSON:
				err = writeJSON(out, tables, "  ")
			case asCSV:
				err = papers.CSV(out, tables)
			default:
				err = papers.Text(out, tables)
			}
			if err != nil {
				return err
			}
			if compared, different := papers.Tally(tables); different > 0 {
				return fmt.Errorf("%d of %d published figures came out differently", different, compared)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&asCSV, "csv", false, "print CSV, a line for each figure")
	c.MarkFlagsMutuallyExclusive("json", "csv")
	return c
}

func simCompareCommand() *cobra.Command {
	r := compare.NewRequest()
	c := &cobra.Command{
		Use:   "compare",
		Short: "Measure how each algorithm replaces a failed leader",
		Long: `Make the leader of 3 to 250 boards fail, with each algorithm, at random moments. Print
medians of the takeover: messages from process to process, packets on a network with
multicast, the time to the first claim of the next leader, and the time until all
boards followed it. Each board notices the failure when its failure detector does.

The row of etcd's raft comes from a Go module of its own, because it would make the
daemon larger otherwise:  go run -C scripts/raft .`,
		Example: "  topdog sim compare --svg compare.svg\n  topdog sim compare --algorithms heir,minid --boards 3,10 --detector ask",
		RunE: func(c *cobra.Command, _ []string) error {
			if err := r.Check(); err != nil {
				return seeHelp(c, err)
			}
			r.Progress = func(row compare.Row) { fmt.Fprintf(c.ErrOrStderr(), "%s, %d boards\n", row.Name, row.Boards) }
			rows, err := r.Run(c.Context())
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
