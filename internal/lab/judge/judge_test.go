package judge

import (
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/netns"
)

// outer stands for the testing.T of a test that is judged.
type outer struct {
	testing.TB
	said []string
}

func (o *outer) Helper()                         {}
func (o *outer) Error(args ...any)               { o.said = append(o.said, "error: "+fmt.Sprint(args...)) }
func (o *outer) Skip(args ...any)                { o.said = append(o.said, "skip: "+fmt.Sprint(args...)) }
func (o *outer) Log(args ...any)                 { o.said = append(o.said, "log: "+fmt.Sprint(args...)) }
func (o *outer) Logf(format string, args ...any) { o.Log(fmt.Sprintf(format, args...)) }

// told is evidence that the test has.
type told []string

func (e *told) Close()     {}
func (e *told) AwaitIdle() { waits++ }

var waits int // how often a test has waited for an idle machine

// Busy is all the time if that is the last evidence.
func (e *told) Busy(time.Time) float64 {
	if len(*e) > 0 && (*e)[len(*e)-1] == "busy" {
		return 1
	}
	return 0
}
func (e *told) Late(time.Time) (text string) {
	if len(*e) > 0 {
		text, *e = (*e)[0], (*e)[1:]
	}
	return text
}

func TestTry(t *testing.T) {
	fails := func(t *T) { t.Fatalf("it is %d", 7) }
	passesAlone := func(t *T) {
		if !t.alone {
			t.Error("too late")
		}
	}
	failsElsewhere := func(t *T) {
		if passesAlone(t); t.alone {
			t.Error("much too late")
		}
	}
	const twice = "log: inconclusive: late. What failed:\nit is 7\nerror: it is 7"
	for name, test := range map[string]struct {
		test     func(*T)
		evidence told
		want     string
		loads    bool // the machine
	}{
		"passes":                           {test: func(*T) {}, evidence: told{"a processor was busy"}},
		"fails on a quiet machine":         {test: fails, want: "error: it is 7"},
		"fails, and alone passes":          {test: passesAlone, evidence: told{"late", ""}, want: "log: inconclusive: late. What failed:\ntoo late"},
		"fails also alone, on a quiet one": {test: fails, evidence: told{"late", ""}, want: twice},
		"fails twice at one place":         {test: fails, evidence: told{"late", "late again"}, want: twice},
		"fails twice on a busy machine": {test: fails, evidence: told{"late", "late again", "busy"}, want: "log: inconclusive: late. What failed:\nit is 7\n" +
			"skip: inconclusive also alone: late again. What failed:\nit is 7"},
		"fails twice on one that it loads": {test: fails, evidence: told{"late", "late again", "busy"}, want: twice, loads: true},
		"is inconclusive also alone": {test: failsElsewhere, evidence: told{"late", "late again"}, want: "log: inconclusive: late. What failed:\ntoo late\n" +
			"skip: inconclusive also alone: late again. What failed:\nmuch too late"},
		"says why it cannot run": {test: func(t *T) { t.Skip("no root") }, evidence: told{"late"}, want: "skip: no root"},
	} {
		t.Run(name, func(t *testing.T) {
			o := &outer{TB: t}
			var reserved []bool
			waits = 0
			try(o, test.test, &test.evidence, test.loads, func(_ netns.Test, alone bool) { reserved = append(reserved, alone) })
			said := places.ReplaceAllString(strings.Join(o.said, "\n"), "")
			assert.Equal(t, test.want, said, "it says")
			// The second attempt has the machine for itself.
			if want := []bool{test.loads, true}[:1+strings.Count(test.want, "log: ")]; !slices.Equal(reserved, want) {
				t.Errorf("it has reserved the whole machine: %v, want %v", reserved, want)
			}
			assert.Is(t, len(reserved)-1, waits, "it has waited for an idle machine, times")
		})
	}
}

// places are those of a failure.
var places = regexp.MustCompile(`\S+\.go:\d+( < \S+\.go:\d+)*: `)

// A failure has its place, what comes after it does not happen, and all is tidied up, the last first.
func TestAttempt(t *testing.T) {
	a := &T{TB: t, reserve: func(netns.Test, bool) {}}
	var did []string
	a.run(func(a *T) {
		a.Cleanup(func() { did = append(did, "first") })
		a.Cleanup(func() { a.Fatal("while tidying up") })
		a.Cleanup(func() { did = append(did, "last") })
		helper(a)
		did = append(did, "went on")
	})
	assert.Equal(t, []string{"last", "first"}, did, "it did")
	if len(a.failures) != 2 || a.failures[0].text != "wrong" || strings.Count(a.failures[0].place, "judge_test.go:") != 2 {
		t.Errorf("it has failed with %q", a.failures)
	}
}

// Parts run side by side: each fails, ends and tidies up by itself, and the test has their failures.
func TestTogether(t *testing.T) {
	a := &T{TB: t, reserve: func(netns.Test, bool) {}}
	met := make(chan string)
	var tidied atomic.Int32
	a.run(func(a *T) {
		a.Together(map[string]func(*T){
			"one":   func(a *T) { a.Cleanup(func() { tidied.Add(1) }); met <- "one"; a.Fatal("wrong") },
			"other": func(a *T) { a.Cleanup(func() { tidied.Add(1) }); a.Error("and here: " + <-met) },
		})
		assert.Is(t, 2, tidied.Load(), "parts that are tidied up")
	})
	var told []string
	for _, f := range a.failures {
		_, part, _ := strings.Cut(f.place, " < ")
		told = append(told, part+": "+f.text)
	}
	slices.Sort(told)
	assert.Equal(t, []string{"one: wrong", "other: and here: one"}, told, "it has failed")
}

func helper(t *T) { t.Fatalf("%s", "wrong") }

// scripts/testreport counts the attempts that were inconclusive, and says which tests have to run again. A test that was
// skipped for another reason is a failure there.
func TestReport(t *testing.T) {
	if _, err := exec.LookPath("jq"); err != nil {
		t.Skip(err)
	}
	const pass = `{"Action":"pass","Package":"topdog/netio","Test":"TestA","Elapsed":3}
{"Action":"output","Package":"topdog/netio","Test":"TestA","Output":"    judge.go:78: ` + inconclusive + `: late\n"}
{"Action":"output","Package":"topdog/netio","Test":"TestA","Output":"it says inconclusive: no\n"}
{"Action":"pass","Package":"topdog/netio","Elapsed":3}
`
	const late = `{"Action":"output","Package":"topdog/netio","Test":"TestC/a+b","Output":"    judge.go:82: ` + inconclusive + ` also alone: late\n"}
{"Action":"skip","Package":"topdog/netio","Test":"TestC/a+b","Elapsed":9}
`
	const skip = `{"Action":"skip","Package":"topdog/netio","Test":"TestD","Elapsed":0}
`
	const fail = `{"Action":"fail","Package":"topdog/netio","Test":"TestE","Elapsed":0}
`
	for _, tt := range []struct {
		events, again, want string
		status              int
	}{
		{pass, "yes", "1 passed, 0 failed, 0 skipped; 1 attempts inconclusive, 0 of them also alone\n", 0},
		{pass + late, "yes", "again: topdog/netio -run ^TestC$/^a\\+b$\n" +
			"1 passed, 0 failed, 1 skipped; 2 attempts inconclusive, 1 of them also alone\n", 0},
		{pass + late, "", "1 passed, 0 failed, 1 skipped; 2 attempts inconclusive, 1 of them also alone\n", 1},
		{pass + skip, "yes", "1 passed, 0 failed, 1 skipped; 1 attempts inconclusive, 0 of them also alone\n", 1},
		{pass + fail, "yes", "1 passed, 1 failed, 0 skipped; 1 attempts inconclusive, 0 of them also alone\n", 1},
		{"", "yes", "0 passed, 0 failed, 0 skipped; 0 attempts inconclusive, 0 of them also alone\n", 1},
	} {
		c := exec.Command("jq", "-rn", "--arg", "again", tt.again, "-f", "../../../scripts/testreport.jq")
		c.Stdin = strings.NewReader(tt.events)
		out, err := c.Output()
		if c.ProcessState == nil {
			t.Fatal(err)
		}
		assert.Equal(t, tt.want, string(out), "%s", tt.events)
		assert.Is(t, tt.status, c.ProcessState.ExitCode(), "exit status for %s", tt.events)
	}
}
