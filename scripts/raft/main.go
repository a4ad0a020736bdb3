// Command raft compares topdog's algorithms with the election of etcd's raft on the
// same simulated LAN. Its rows are those of `topdog sim compare`, and two more.
//
//	go run -C scripts/raft . [-svg FILE] [-csv] [-boards 3,10]
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"topdog/internal/lab/compare"
	"topdog/internal/lab/sim"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "raft:", err)
		os.Exit(1)
	}
}

func run() error {
	svg := flag.String("svg", "", "draw the figures into this `file` as well")
	asCSV := flag.Bool("csv", false, "print CSV")
	boards := flag.String("boards", "", "how many, `n,n…` (default 3 to 250)")
	failures := flag.Int("failures", 20, "at most `n` failures for each number of boards")
	flag.Parse()

	o := compare.Options{
		Contestants: append(compare.Cores(),
			contestant{name: "raft", electionTicks: 10},
			contestant{name: "raft, 3 ticks", electionTicks: 3}),
		Boards: compare.DefaultBoards, Failures: *failures, Seed: 1,
		Conditions: compare.Conditions{
			Interval: 100 * time.Millisecond,
			Wire:     sim.Wire{Delay: sim.Uniform(100*time.Microsecond, 300*time.Microsecond)},
		},
		Progress: func(r compare.Row) { fmt.Fprintf(os.Stderr, "%s, %d boards\n", r.Name, r.Boards) },
	}
	if *boards != "" {
		o.Boards = nil
		for _, text := range strings.Split(*boards, ",") {
			n, err := strconv.Atoi(text)
			if err != nil || n < 2 {
				return fmt.Errorf("-boards: %q is no number of boards", text)
			}
			o.Boards = append(o.Boards, n)
		}
	}
	rows, err := compare.Run(context.Background(), o)
	if err != nil {
		return err
	}
	if *svg != "" {
		file, err := os.Create(*svg)
		if err != nil {
			return err
		}
		if err := compare.Plot(file, rows); err != nil {
			return err
		}
		if err := file.Close(); err != nil {
			return err
		}
	}
	if *asCSV {
		return compare.CSV(os.Stdout, rows)
	}
	return compare.Text(os.Stdout, rows)
}
