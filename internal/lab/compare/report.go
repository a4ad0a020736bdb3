package compare

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"topdog/internal/lab/papers"
)

// Text writes rows for people: for each number of boards, who took what.
func Text(w io.Writer, rows []Row) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%6s  %-12s %9s %9s %10s %10s %10s\n", "boards", "algorithm", "messages", "packets", "time", "longest", "agreed")
	for i, n := range boards(rows) {
		if i > 0 {
			b.WriteByte('\n')
		}
		for _, r := range rows {
			if r.Boards == n {
				fmt.Fprintf(&b, "%6d  %-12s %9d %9d %10s %10s %10s\n",
					n, r.Name, r.Messages, r.Packets, ms(r.Time), ms(r.Longest), ms(r.Agreed))
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func ms(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
}

// boards returns the numbers of boards in their order.
func boards(rows []Row) []int {
	var all []int
	for _, r := range rows {
		if !slices.Contains(all, r.Boards) {
			all = append(all, r.Boards)
		}
	}
	slices.Sort(all)
	return all
}

// JSON writes rows for programs. Times are in nanoseconds.
func JSON(w io.Writer, rows []Row) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(rows)
}

// CSV writes rows for programs. Times are in milliseconds.
func CSV(w io.Writer, rows []Row) error {
	out := csv.NewWriter(w)
	if err := out.Write([]string{"algorithm", "boards", "failures", "messages", "packets", "time_ms", "longest_ms", "agreed_ms"}); err != nil {
		return err
	}
	number := func(d time.Duration) string {
		return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', 3, 64)
	}
	for _, r := range rows {
		line := []string{
			r.Name, strconv.Itoa(r.Boards), strconv.Itoa(r.Failures), strconv.Itoa(r.Messages),
			strconv.Itoa(r.Packets), number(r.Time), number(r.Longest), number(r.Agreed),
		}
		if err := out.Write(line); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// Plot draws the report's figure 11, measured anew, and the rows beside it.
func Plot(w io.Writer, rows []Row) error {
	processes, regular, modified, err := papers.Figure11()
	if err != nil {
		return err
	}
	figure := panel{Title: "The report's figure 11: worst case, one notices", XAxis: "processes", YAxis: "messages"}
	for i, n := range processes {
		figure.add("bully", point{float64(n), float64(regular[i])})
		figure.add("modified", point{float64(n), float64(modified[i])})
	}
	return drawPanels(w, "What it costs to replace a failed leader", append([]panel{figure}, panels(rows)...))
}
