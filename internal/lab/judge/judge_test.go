package judge

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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

func (e *told) close() {}
func (e *told) busy(time.Time) float64 {
	if len(*e) > 0 && (*e)[0] == "busy" {
		return 1
	}
	return 0
}
func (e *told) since(time.Time) (text string) {
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
	for name, test := range map[string]struct {
		test     func(*T)
		evidence told
		want     string
	}{
		"passes":                           {func(*T) {}, told{"a processor was busy"}, ""},
		"fails on a quiet machine":         {fails, nil, "error: it is 7"},
		"fails, and alone passes":          {passesAlone, told{"late", ""}, "log: inconclusive: late. What failed:\ntoo late"},
		"fails also alone, on a quiet one": {fails, told{"late", ""}, "log: inconclusive: late. What failed:\nit is 7\nerror: it is 7"},
		"fails twice at one place":         {fails, told{"late", "late again"}, "log: inconclusive: late. What failed:\nit is 7\nerror: it is 7"},
		"is inconclusive also alone": {failsElsewhere, told{"late", "late again"}, "log: inconclusive: late. What failed:\ntoo late\n" +
			"skip: inconclusive also alone: late again. What failed:\nmuch too late"},
		"says why it cannot run": {func(t *T) { t.Skip("no root") }, told{"late"}, "skip: no root"},
	} {
		t.Run(name, func(t *testing.T) {
			o := &outer{TB: t}
			var reserved []bool
			try(o, test.test, &test.evidence, false, func(_ netns.Test, alone bool) { reserved = append(reserved, alone) })
			said := places.ReplaceAllString(strings.Join(o.said, "\n"), "")
			if diff := cmp.Diff(test.want, said); diff != "" {
				t.Errorf("it says (-want +got):\n%s", diff)
			}
			// The second attempt has the machine for itself.
			if want := []bool{false, true}[:1+strings.Count(test.want, "log: ")]; !slices.Equal(reserved, want) {
				t.Errorf("it has reserved the whole machine: %v, want %v", reserved, want)
			}
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
	if diff := cmp.Diff([]string{"last", "first"}, did); diff != "" {
		t.Errorf("it did (-want +got):\n%s", diff)
	}
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
		if tidied.Load() != 2 {
			t.Errorf("%d parts are tidied up", tidied.Load())
		}
	})
	var told []string
	for _, f := range a.failures {
		told = append(told, f.text)
	}
	slices.Sort(told)
	if diff := cmp.Diff([]string{"one: wrong", "other: and here: one"}, told); diff != "" {
		t.Errorf("it has failed (-want +got):\n%s", diff)
	}
}

func helper(t *T) { t.Fatalf("%s", "wrong") }

// What was late before a test began is no evidence, and of much the first few are told.
func TestSince(t *testing.T) {
	began := time.Now()
	m := &machine{late: []observation{{began.Add(-time.Second), "before"}}}
	if got := m.since(began); got != "" {
		t.Errorf("nothing was late, and it says %q", got)
	}
	for n := range 7 {
		m.late = append(m.late, observation{began.Add(time.Duration(n+1) * time.Second), fmt.Sprint(n)})
	}
	const want = "after 1.0 s 0; after 2.0 s 1; after 3.0 s 2; after 4.0 s 3; after 5.0 s 4; 2 more"
	if got := m.since(began); got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
	for range keep {
		m.note("again")
	}
	if len(m.late) > keep {
		t.Errorf("%d observations are kept", len(m.late))
	}
}

func TestBusy(t *testing.T) {
	began := time.Now()
	m := &machine{waited: []pressure{{began.Add(-time.Second), 0}, {began, time.Second}, {began.Add(time.Second), 1500 * time.Millisecond}, {began.Add(2 * time.Second), 1500 * time.Millisecond}}}
	for _, test := range []struct {
		since time.Time
		want  float64
	}{{began.Add(-time.Minute), 0.5}, {began, 0.25}, {began.Add(time.Second), 0}, {began.Add(2 * time.Second), 0}, {began.Add(time.Hour), 0}} {
		if got := m.busy(test.since); got != test.want {
			t.Errorf("since %v it was busy for %v of the time, want %v", test.since.Sub(began), got, test.want)
		}
	}
	m.press()
	if last := m.waited[len(m.waited)-1]; len(m.waited) == 5 && last.total <= 0 {
		t.Errorf("the kernel says that nobody has ever waited: %v", last.total)
	}
}

// TestFamily looks several times: who comes is found, and who goes is forgotten.
func TestFamily(t *testing.T) {
	parents := parents{}
	wantFamily := func(want ...int) {
		t.Helper()
		if diff := cmp.Diff(want, parents.family(os.Getpid())); diff != "" {
			t.Errorf("the family of this process (-want +got):\n%s", diff)
		}
	}
	wantFamily(os.Getpid())
	child := exec.Command("cat")
	end, err := child.StdinPipe()
	assert.NoError(t, err)
	assert.NoError(t, child.Start())
	for range 2 {
		wantFamily(os.Getpid(), child.Process.Pid)
	}
	end.Close()
	assert.NoError(t, child.Wait())
	if wantFamily(os.Getpid()); parents[child.Process.Pid] != 0 {
		t.Error("a process that has ended is remembered")
	}
}
