package judge

import (
	"fmt"
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
