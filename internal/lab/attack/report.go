package attack

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"topdog/internal/lab/observe"
)

// report is all that was measured.
type report struct {
	Processors int      `json:"processors"`
	Systems    []system `json:"systems"`
	Places     []place  `json:"places"`
	Attacks    []attack `json:"attacks"`
	Results    []Result `json:"results"`
}

// add puts another report to this one. What both have is of the later one.
func (r *report) add(o *report) {
	r.Processors = o.Processors
	r.Systems = merge(r.Systems, o.Systems, func(s system) string { return s.Name })
	r.Places = merge(r.Places, o.Places, func(p place) string { return p.Key })
	r.Attacks = merge(r.Attacks, o.Attacks, attack.String)
	r.Results = merge(r.Results, o.Results, func(x Result) string { return x.System + " " + x.Place + " " + x.Attack })
}

func merge[T any](old, fresh []T, key func(T) string) []T {
	for _, one := range fresh {
		i := slices.IndexFunc(old, func(o T) bool { return key(o) == key(one) })
		if i < 0 {
			old = append(old, one)
		} else {
			old[i] = one
		}
	}
	return old
}

// publish writes the figures in every form that was asked for.
func (r *report) publish(o options, out io.Writer) error {
	err := r.write(out)
	if o.json != "" {
		err = errors.Join(err, r.save(o.json))
	}
	if o.page != "" {
		err = errors.Join(err, r.insert(o.page))
	}
	return err
}

func (r *report) save(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// write writes a table for each place.
func (r *report) write(out io.Writer) error {
	for _, p := range r.Places {
		fmt.Fprintf(out, "\n%s (%d processors)\n\n", p.Title, r.Processors)
		tw := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(tw, "attack\tsystem\ta second\tmoves\ttwo holders\toutage\tin all\tleader\tfollower\tsends\tstatus\tmost\tlate\ttook\t")
		for _, a := range r.Attacks {
			for _, one := range r.Results {
				if one.Attack == a.Key && one.Place == p.Key {
					fmt.Fprintf(tw, "%s\t%s\t%s\t\n", a.Title, one.System, strings.Join(one.cells(), "\t"))
				}
			}
		}
		if err := tw.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// cells are those of a row.
func (x Result) cells() []string {
	if x.Note != "" {
		return []string{firstLine(x.Note)}
	}
	cells := []string{
		fmt.Sprintf("%.0f", x.Rate), fmt.Sprint(x.Moves), millis(x.Two), millis(x.Longest), millis(x.Outage),
		percent(x.Leader), percent(x.Follower), fmt.Sprintf("%.0f", x.Sends), millis(x.Status), x.statusMost(), millis(x.Late), x.took(),
	}
	if x.Rate < 10 {
		cells[0] = fmt.Sprintf("%.1f", x.Rate)
	}
	if len(x.Took) > 0 { // what takes time is no matter of outages
		for i := 3; i < 11; i++ {
			cells[i] = "-"
		}
	}
	return cells
}

// statusMost is the longest that root waited for the status, and how often for nothing.
func (x Result) statusMost() string {
	switch {
	case x.StatusFailed > 0 && x.StatusMost == 0:
		return fmt.Sprintf("none, %d failed", x.StatusFailed)
	case x.StatusFailed > 0:
		return fmt.Sprintf("%s, %d failed", millis(x.StatusMost), x.StatusFailed)
	}
	return millis(x.StatusMost)
}

// took is the median of what an attack is about, and of several also the 95th percentile and the most.
func (x Result) took() string {
	switch n := len(x.Took); {
	case n == 0:
		return "-"
	case x.Never:
		return "not within " + millis(x.Took[0])
	case n == 1:
		return millis(x.Took[0])
	}
	return fmt.Sprintf("%s, p95 %s, most %s", millis(observe.Percentile(x.Took, 50)), millis(observe.Percentile(x.Took, 95)), millis(observe.Percentile(x.Took, 100)))
}

// text is the row as a line of its own.
func (x Result) text() string {
	if x.Note != "" {
		return firstLine(x.Note)
	}
	text := fmt.Sprintf("%.0f/s, moves %d, two holders %s, longest outage %s, in all %s, leader %s, follower %s, sends %.0f/s, status %s, late %s",
		x.Rate, x.Moves, millis(x.Two), millis(x.Longest), millis(x.Outage), percent(x.Leader), percent(x.Follower), x.Sends, x.statusMost(), millis(x.Late))
	if len(x.Took) > 0 {
		text += ", took " + x.took()
	}
	return text
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// millis writes a time in milliseconds.
func millis(d time.Duration) string {
	if ms := float64(d) / float64(time.Millisecond); ms < 9.95 && d != 0 {
		return fmt.Sprintf("%.1f ms", ms)
	}
	return fmt.Sprintf("%d ms", d.Round(time.Millisecond).Milliseconds())
}

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }
