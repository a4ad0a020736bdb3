// Package testreport reads the output of `go test -json`. It shows the output of
// every test that failed or was skipped, and fails if there was one. Where
// everything that the tests need is installed, a skipped test is a missing check.
package testreport

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// event is what the test runner prints (go doc test2json).
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
	Elapsed float64 // in seconds
}

// name is how people call a test, or a whole package.
func (e event) name() string {
	if e.Test == "" {
		return e.Package
	}
	return e.Package + " " + e.Test
}

// Main is the command scripts/testreport. It ends the process if a test did not pass.
func Main() {
	report, err := read(os.Stdin, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(2)
	}
	fmt.Printf("%d passed, %d failed, %d skipped\n", report.passed, report.failed, report.skipped)
	if report.failed > 0 || report.skipped > 0 || report.passed == 0 {
		os.Exit(1)
	}
}

type counts struct{ passed, failed, skipped int }

// read counts the tests and shows what there is to look at.
func read(from io.Reader, to io.Writer) (c counts, err error) {
	output := make(map[string][]string)
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			fmt.Fprintln(to, lines.Text()) // of the compiler, before any test
			continue
		}
		switch e.Action {
		case "output", "build-output":
			output[e.name()] = append(output[e.name()], e.Output)
			if e.Action == "build-output" {
				fmt.Fprint(to, e.Output)
			}
		case "pass":
			if e.Test != "" {
				c.passed++
			} else {
				fmt.Fprintf(to, "ok    %7.1f s  %s\n", e.Elapsed, e.Package)
			}
			delete(output, e.name())
		case "fail", "skip":
			if e.Action == "skip" && e.Test == "" {
				continue // a package without tests
			}
			fmt.Fprintf(to, "%s  %7.1f s  %s\n", e.Action, e.Elapsed, e.name())
			for _, o := range output[e.name()] {
				fmt.Fprint(to, "    ", o)
			}
			switch {
			case e.Action == "skip":
				c.skipped++
			default:
				c.failed++
			}
		}
	}
	return c, lines.Err()
}
