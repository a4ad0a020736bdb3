package compare

import (
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
}

// NewRequest is a comparison of which nothing was said, on a wired LAN of small boards.
func NewRequest() *Request {
	return &Request{
		Algorithms: literature.Algorithms(), Boards: DefaultBoards, Failures: 20, Seed: 1,
		Interval: election.DefaultInterval, Latency: "uniform:100us-300us", Fanout: election.Fanouts()[0],
	}
}

// Read makes the options of the texts. Its errors name the flag.
func (r *Request) Read() (Options, error) {
	o := Options{
		Boards: r.Boards, Failures: r.Failures, Seed: r.Seed,
		Conditions: Conditions{Interval: r.Interval},
	}
	for _, name := range r.Algorithms {
		i := slices.IndexFunc(Cores(), func(c Contestant) bool { return c.Name() == name })
		if i < 0 {
			return o, fmt.Errorf("--algorithms: there is no %q; there are: %s", name, strings.Join(literature.Algorithms(), ", "))
		}
		o.Contestants = append(o.Contestants, Cores()[i])
	}
	for _, n := range r.Boards {
		if n < 2 || n > wire.MaxBoards {
			return o, fmt.Errorf("--boards: a group has 2 to %d boards, not %d", wire.MaxBoards, n)
		}
	}
	if r.Failures < 1 {
		return o, fmt.Errorf("--failures: at least one is needed, not %d", r.Failures)
	}
	if err := election.CheckInterval(r.Interval); err != nil {
		return o, fmt.Errorf("--interval: %v %w", r.Interval, err)
	}
	delay, err := sim.ParseDelay(r.Latency)
	if err != nil {
		return o, fmt.Errorf("--latency: %w", err)
	}
	o.Wire = sim.Wire{Delay: delay}
	var ok bool
	if o.Fanout, ok = election.FanoutNamed(r.Fanout); !ok {
		return o, fmt.Errorf("--fanout: %s, not %q", strings.Join(election.Fanouts(), " or "), r.Fanout)
	}
	if r.Detector != "" {
		if o.Detector, ok = silence.DetectorNamed(r.Detector); !ok {
			return o, fmt.Errorf("--detector: there is no %q; there are: %s", r.Detector, strings.Join(silence.Detectors(), ", "))
		}
	}
	return o, nil
}

// Print draws the rows into the file that was asked for, and prints them.
func (r *Request) Print(out io.Writer, rows []Row) error {
	if r.SVG != "" {
		if err := r.draw(rows); err != nil {
			return fmt.Errorf("--svg: %w", err)
		}
	}
	switch {
	case r.JSON:
		return JSON(out, rows)
	case r.CSV:
		return CSV(out, rows)
	}
	if err := Text(out, rows); err != nil {
		return err
	}
	if heir := wire.AlgorithmHeir.String(); slices.Contains(r.Algorithms, heir) {
		return printBeaten(out, rows, heir)
	}
	return nil
}

func (r *Request) draw(rows []Row) error {
	file, err := os.Create(r.SVG)
	if err != nil {
		return err
	}
	return errors.Join(Plot(file, rows), file.Close())
}

// printBeaten says where an algorithm is not the best.
func printBeaten(out io.Writer, rows []Row, name string) error {
	beaten := Beaten(rows, name)
	if len(beaten) == 0 {
		_, err := fmt.Fprintf(out, "\n%s is best or equal in packets and in time everywhere.\n", name)
		return err
	}
	_, err := fmt.Fprintf(out, "\n%s is not the best here:\n  %s\n", name, strings.Join(beaten, "\n  "))
	return err
}
