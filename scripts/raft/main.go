// Command raft compares topdog's algorithms with the election of etcd's raft on the
// same simulated LAN. Its rows are those of `topdog sim compare`, and two more.
//
//	go run -C scripts/raft . [-svg FILE] [-csv] [-boards 3,10] [-failures 20]
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"

	"topdog/internal/lab/compare"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "raft:", err)
		os.Exit(1)
	}
}

func run() error {
	r := compare.NewRequest()
	flag.StringVar(&r.SVG, "svg", "", "draw the figures into this `file` as well")
	flag.BoolVar(&r.CSV, "csv", false, "print CSV")
	flag.IntVar(&r.Failures, "failures", r.Failures, "at most `n` failures for each number of boards")
	flag.Func("boards", "how many, `n,n…` (default 3 to 250)", func(list string) error {
		r.Boards = nil
		for text := range strings.SplitSeq(list, ",") {
			n, err := strconv.Atoi(text)
			if err != nil {
				return fmt.Errorf("%q is no number of boards", text)
			}
			r.Boards = append(r.Boards, n)
		}
		return nil
	})
	flag.Parse()
	r.Others = []compare.Contestant{contestant("raft", 10), contestant("raft, 3 ticks", 3)}
	r.Progress = func(r compare.Row) { fmt.Fprintf(os.Stderr, "%s, %d boards\n", r.Name, r.Boards) }
	rows, err := r.Run(context.Background())
	if err != nil {
		return err
	}
	return r.Print(os.Stdout, rows)
}
