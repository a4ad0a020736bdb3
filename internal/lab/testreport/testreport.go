// Package testreport reads the output of `go test -json`. It shows the output of
// every test that failed or was skipped, and fails if there was one. Where
// everything that the tests need is installed, a skipped test is a missing check.
// Then it shows which tests were slowest, and counts the attempts that were inconclusive (package judge).
// With -again it does not fail because of a test that was skipped since both attempts were inconclusive: it writes that test to a file, as
// arguments of go test, for a run when the machine has nothing else to do.
package testreport

import (
	"bufio"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
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

// Main is the command scripts/testreport. It reads the files that are named, or its input, and ends the process if a
// test did not pass.
func Main() {
	again := flag.String("again", "", "append to this `file` the tests that are to run again, a line of arguments of go test for each")
	flag.Parse()
	r := &report{to: os.Stdout}
	if err := r.readAll(flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(2)
	}
	r.summary()
	unchecked := r.skipped
	if *again != "" {
		if err := r.writeAgain(*again); err != nil {
			fmt.Fprintln(os.Stderr, "testreport:", err)
			os.Exit(2)
		}
		unchecked -= len(r.again)
	}
	if r.failed > 0 || unchecked > 0 || r.passed == 0 {
		os.Exit(1)
	}
}

// report is what was read, of one run of the tests or of several.
type report struct {
	to                      io.Writer
	passed, failed, skipped int
	// inconclusive attempts were followed by one alone on the machine; of these, alone were inconclusive too.
	inconclusive, alone int
	tests               []event // that have ended
	again               []event // skipped, since they were inconclusive also alone
}

// writeAgain appends the tests that are to run again to a file.
func (r *report) writeAgain(name string) error {
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	for _, e := range r.again {
		parts := strings.Split(e.Test, "/")
		for i, p := range parts {
			parts[i] = "^" + regexp.QuoteMeta(p) + "$"
		}
		fmt.Fprintf(f, "%s -run %s\n", e.Package, strings.Join(parts, "/"))
	}
	return f.Close()
}

// slowest is how many tests the summary names.
const slowest = 20

func (r *report) readAll(files []string) error {
	if len(files) == 0 {
		return r.read(os.Stdin)
	}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		err = r.read(f)
		_ = f.Close()
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
	}
	return nil
}

// summary shows the slowest tests, and the counts.
func (r *report) summary() {
	slices.SortStableFunc(r.tests, func(a, b event) int { return cmp.Compare(b.Elapsed, a.Elapsed) })
	for _, e := range r.tests[:min(slowest, len(r.tests))] {
		fmt.Fprintf(r.to, "slow  %7.1f s  %s\n", e.Elapsed, e.name())
	}
	fmt.Fprintf(r.to, "%d passed, %d failed, %d skipped; %d attempts inconclusive, %d of them also alone\n",
		r.passed, r.failed, r.skipped, r.inconclusive, r.alone)
}

// attempt is a line of package judge, with its place: an attempt says nothing, since the machine was late.
var attempt = regexp.MustCompile(`^ +\S+\.go:\d+: inconclusive( also alone)?: `)

func inconclusiveAlone(line string) bool {
	found := attempt.FindStringSubmatch(line)
	return found != nil && found[1] != ""
}

// read counts the tests of one run, and shows what there is to look at.
func (r *report) read(from io.Reader) error {
	output := make(map[string][]string)
	parents := make(map[string]bool) // tests that have others below them
	began := len(r.tests)
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			fmt.Fprintln(r.to, lines.Text()) // of the compiler, before any test
			continue
		}
		if e.Test != "" && (e.Action == "pass" || e.Action == "fail") {
			r.tests = append(r.tests, e)
			if i := strings.LastIndex(e.Test, "/"); i >= 0 {
				parents[e.Package+" "+e.Test[:i]] = true
			}
		}
		switch e.Action {
		case "output", "build-output":
			output[e.name()] = append(output[e.name()], e.Output)
			if found := attempt.FindStringSubmatch(e.Output); found != nil {
				r.inconclusive++
				if found[1] != "" {
					r.alone++
				}
			}
			if e.Action == "build-output" {
				fmt.Fprint(r.to, e.Output)
			}
		case "pass":
			if e.Test != "" {
				r.passed++
			} else {
				fmt.Fprintf(r.to, "ok    %7.1f s  %s\n", e.Elapsed, e.Package)
			}
			delete(output, e.name())
		case "fail", "skip":
			if e.Action == "skip" && e.Test == "" {
				continue // a package without tests
			}
			fmt.Fprintf(r.to, "%s  %7.1f s  %s\n", e.Action, e.Elapsed, e.name())
			for _, o := range output[e.name()] {
				fmt.Fprint(r.to, "    ", o)
			}
			switch {
			case e.Action == "skip":
				r.skipped++
				if slices.ContainsFunc(output[e.name()], inconclusiveAlone) {
					r.again = append(r.again, e)
				}
			default:
				r.failed++
			}
		}
	}
	mine := slices.DeleteFunc(r.tests[began:], func(e event) bool { return parents[e.name()] })
	r.tests = r.tests[:began+len(mine)]
	return lines.Err()
}
