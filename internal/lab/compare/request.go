package compare

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"topdog/election"
	"topdog/election/literature"
	"topdog/election/silence"
	"topdog/internal/lab/sim"
	"topdog/wire"
)

// Request is a comparison as it stands on a command line, and how it shall be shown. Its
// errors call things what the flags of `topdog sim compare` call them.
type Request struct {
	Algorithms       []string
	Boards           []int
	Failures         int
	Seed             uint64
	Interval         time.Duration
	Latency          string
	Detector, Fanout string
	SVG              string // a file to draw the figures into; "" for none
	JSON, CSV        bool   // print them so, and not as text

	Others   []Contestant // besides the algorithms
	Progress func(Row)    // if set, is told of each row as it is measured

	contestants []Contestant // what Check has read
	conditions  Conditions
}

// NewRequest is a comparison of which nothing was said, on a wired LAN of small boards.
func NewRequest() *Request {
	return &Request{
		Algorithms: literature.Algorithms(), Boards: DefaultBoards, Failures: 20, Seed: 1,
		Interval: election.DefaultInterval, Latency: "uniform:100us-300us", Fanout: election.Fanouts()[0],
	}
}

// Check reads the texts. Its errors name the flag.
func (r *Request) Check() error {
	r.contestants, r.conditions = nil, Conditions{Interval: r.Interval}
	for _, name := range r.Algorithms {
		a, _ := literature.AlgorithmNamed(name)
		if !slices.Contains(literature.Algorithms(), name) { // strict needs a list of voters
			return fmt.Errorf("--algorithms: there is no %q; there are: %s", name, strings.Join(literature.Algorithms(), ", "))
		}
		r.contestants = append(r.contestants, Contestant{name, core(a).fail})
	}
	for _, n := range r.Boards {
		if n < 2 || n > wire.MaxBoards {
			return fmt.Errorf("--boards: a group has 2 to %d boards, not %d", wire.MaxBoards, n)
		}
	}
	if r.Failures < 1 {
		return fmt.Errorf("--failures: at least one is needed, not %d", r.Failures)
	}
	if err := election.CheckInterval(r.Interval); err != nil {
		return fmt.Errorf("--interval: %v %w", r.Interval, err)
	}
	delay, err := sim.ParseDelay(r.Latency)
	if err != nil {
		return fmt.Errorf("--latency: %w", err)
	}
	r.conditions.Wire = sim.Wire{Delay: delay}
	var ok bool
	if r.conditions.Fanout, ok = election.FanoutNamed(r.Fanout); !ok {
		return fmt.Errorf("--fanout: %s, not %q", strings.Join(election.Fanouts(), " or "), r.Fanout)
	}
	if r.Detector != "" {
		if r.conditions.Detector, ok = silence.DetectorNamed(r.Detector); !ok {
			return fmt.Errorf("--detector: there is no %q; there are: %s", r.Detector, strings.Join(silence.Detectors(), ", "))
		}
	}
	return nil
}

// Print draws the rows into the file that was asked for, and prints them.
func (r *Request) Print(out io.Writer, rows []Row) error {
	if r.SVG != "" {
		file, err := os.Create(r.SVG)
		if err == nil {
			err = errors.Join(Plot(file, rows), file.Close())
		}
		if err != nil {
			return fmt.Errorf("--svg: %w", err)
		}
	}
	switch {
	case r.JSON:
		e := json.NewEncoder(out) // times in nanoseconds
		e.SetIndent("", "  ")
		return e.Encode(rows)
	case r.CSV:
		return csv.NewWriter(out).WriteAll(records(rows))
	}
	_, err := io.WriteString(out, text(rows)+r.judgement(rows))
	return err
}

// text is for people: for each number of boards, who took what.
func text(rows []Row) string {
	var b strings.Builder
	b.WriteString("boards  algorithm     messages   packets       time    longest     agreed\n")
	sorted := slices.Clone(rows)
	slices.SortStableFunc(sorted, func(a, b Row) int { return a.Boards - b.Boards })
	for i, r := range sorted {
		if i > 0 && r.Boards != sorted[i-1].Boards {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%6d  %-12s %9d %9d", r.Boards, r.Name, r.Messages, r.Packets)
		for _, d := range []time.Duration{r.Time, r.Longest, r.Agreed} {
			fmt.Fprintf(&b, " %10s", fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond)))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// judgement says where topdog's own algorithm is not the best, if it is among the rows.
func (r *Request) judgement(rows []Row) string {
	name := wire.AlgorithmHeir.String()
	beaten := Beaten(rows, name)
	switch {
	case !slices.Contains(r.Algorithms, name):
		return ""
	case len(beaten) == 0:
		return fmt.Sprintf("\n%s is best or equal in packets and in time everywhere.\n", name)
	default:
		return fmt.Sprintf("\n%s is not the best here:\n  %s\n", name, strings.Join(beaten, "\n  "))
	}
}

// records are the lines of CSV. Times are in milliseconds.
func records(rows []Row) [][]string {
	lines := [][]string{{"algorithm", "boards", "failures", "messages", "packets", "time_ms", "longest_ms", "agreed_ms"}}
	for _, r := range rows {
		line := []string{r.Name}
		for _, n := range []int{r.Boards, r.Failures, r.Messages, r.Packets} {
			line = append(line, strconv.Itoa(n))
		}
		for _, d := range []time.Duration{r.Time, r.Longest, r.Agreed} {
			line = append(line, strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', 3, 64))
		}
		lines = append(lines, line)
	}
	return lines
}
