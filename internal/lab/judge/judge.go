// Package judge runs tests on the real kernel, whose clock the tests do not own.
//
// Boards that share a machine with a compiler may be late, and then their group is right to do what a
// test does not expect. So a test that fails is asked for evidence: [Run] has measured all the time how
// long its processes had to wait for a processor, and how long the kernel took for a change
// of an address. If nothing was late, the test has failed. Otherwise the attempt is inconclusive: it is
// counted, and the test runs once more, alone on the machine, when that has little else to do. If it fails
// at the same place again, it has failed: a machine that is late now and then disturbs now this and now that. At another place,
// or on a machine whose processors are busy nearly all the time, the second attempt is inconclusive as well, and the test is
// skipped, with the evidence. There is no other repetition, but that .ci/run has a test that was skipped so pass at its end, when
// nothing else runs.
package judge

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"topdog/internal/lab/netns"
)

// T is the testing.T of one attempt. What fails is kept until there is a verdict on it.
type T struct {
	testing.TB
	alone   bool
	reserve reserve

	mu       sync.Mutex
	failures []failure
	skipped  string
	cleanups []func()
}

// reserve waits for a share of the machine, or for all of it.
type reserve func(t netns.Test, alone bool)

// failure is what failed, and where: the line of the function that found it, that of the test, and its part.
type failure struct{ place, text string }

func (f failure) String() string { return f.place + ": " + f.text }

// Run runs a test that uses network namespaces, in parallel with others.
func Run(t *testing.T, test func(t *T)) {
	t.Helper()
	t.Parallel()
	try(t, test, watch(), false, netns.ReserveSlots)
}

// RunOnLoopback runs a test whose boards are in this process, which needs no root, in parallel with others.
func RunOnLoopback(t *testing.T, test func(t *T)) {
	t.Helper()
	t.Parallel()
	try(t, test, watch(), false, netns.Share)
}

// RunTogether runs a test that uses network namespaces in the slot that all tests of this process share, see
// netns.ReserveTogether. So its second attempt is not alone. It is not parallel with others unless the test says so.
func RunTogether(t *testing.T, test func(t *T)) {
	t.Helper()
	try(t, test, watch(), false, func(t netns.Test, _ bool) {
		t.Helper()
		netns.ReserveTogether(t)
	})
}

// RunAlone runs a test that loads the machine, while no other uses network namespaces.
func RunAlone(t *testing.T, test func(t *T)) {
	t.Helper()
	t.Parallel()
	try(t, test, watch(), true, netns.ReserveSlots)
}

// Of makes a test for testing.T.Run, which is run by Run.
func Of(test func(t *T)) func(*testing.T) {
	return func(t *testing.T) {
		t.Helper()
		Run(t, test)
	}
}

var (
	watching sync.Mutex
	watchers int // tests that are being judged
	machine  *netns.Machine
)

// shared is the one watch of the machine that all tests of this process share.
type shared struct{ *netns.Machine }

// watch watches the machine until Close.
func watch() evidence {
	watching.Lock()
	defer watching.Unlock()
	if watchers++; watchers == 1 {
		machine = netns.WatchMachine()
	}
	return shared{machine}
}

func (shared) Close() {
	watching.Lock()
	defer watching.Unlock()
	if watchers--; watchers == 0 {
		machine.Close()
	}
}

var (
	idling sync.Mutex
	waited time.Duration // for how long tests of this process have waited for an idle machine
)

// AwaitIdle waits until the machine has little to do, but not for long in one process: on a machine that is always busy no test
// waits for ever.
func (s shared) AwaitIdle() {
	const most, look, little = 30 * time.Second, time.Second, 0.5
	idling.Lock()
	defer idling.Unlock()
	for {
		began := time.Now()
		time.Sleep(look)
		if s.Busy(began) < little {
			return
		}
		if waited += look; waited >= most {
			return
		}
	}
}

// evidence is what says whether the machine has disturbed a test.
type evidence interface {
	// Late says what was late since a moment, or "".
	Late(since time.Time) string
	// Busy is the share of the time since a moment in which a processor had something to do.
	Busy(since time.Time) float64
	// AwaitIdle waits until the machine has little to do, or has been busy for long.
	AwaitIdle()
	Close()
}

func try(t testing.TB, test func(t *T), e evidence, alone bool, r reserve) {
	t.Helper()
	defer e.Close()
	first := &T{TB: t, alone: alone, reserve: r}
	began := first.run(test)
	if len(first.failures) == 0 {
		first.report()
		return
	}
	late := e.Late(began)
	if late == "" {
		first.report()
		return
	}
	t.Logf("%s: %s. What failed:\n%s", inconclusive, late, first.told())
	second := &T{TB: t, alone: true, reserve: func(t netns.Test, alone bool) {
		r(t, alone)
		e.AwaitIdle() // a compiler that makes the tests of the next packages reserves nothing
	}}
	began = second.run(test)
	if len(second.failures) > 0 {
		again := second.failures[0].place == first.failures[0].place
		busy := !alone && e.Busy(began) > busyMost // a test that loads the machine keeps it busy itself
		if late = e.Late(began); late != "" && (!again || busy) {
			second.skipped = fmt.Sprintf("%s also alone: %s. What failed:\n%s", inconclusive, late, second.told())
			second.failures = nil
		}
	}
	second.report()
}

// busyMost is how busy a machine may be on which a test that fails twice at the same place has failed. One with a busy
// process on each processor is busy all the time.
const busyMost = 0.75

// inconclusive is how a line about an inconclusive attempt begins. scripts/testreport.jq counts those lines.
const inconclusive = "inconclusive"

// run runs the test once, and returns when it began to use the machine.
func (t *T) run(test func(*T)) (began time.Time) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer t.cleanUp()
		t.reserve(t, t.alone)
		began = time.Now()
		test(t)
	}()
	<-done
	return began
}

// cleanUp does what the test has asked for, the last first, also if one of them ends the goroutine.
func (t *T) cleanUp() {
	t.mu.Lock()
	last := len(t.cleanups) - 1
	if last < 0 {
		t.mu.Unlock()
		return
	}
	do := t.cleanups[last]
	t.cleanups = t.cleanups[:last]
	t.mu.Unlock()
	defer t.cleanUp()
	do()
}

// report has the testing.T say how it was.
func (t *T) report() {
	t.TB.Helper()
	for _, f := range t.failures {
		t.TB.Error(f)
	}
	if len(t.failures) == 0 && t.skipped != "" {
		t.TB.Skip(t.skipped)
	}
}

// told is everything that failed.
func (t *T) told() string {
	var lines []string
	for _, f := range t.failures {
		lines = append(lines, f.String())
	}
	return strings.Join(lines, "\n")
}

// Error keeps a failure with its place.
func (t *T) Error(args ...any) {
	var places []string
	callers := make([]uintptr, 32)
	frames := runtime.CallersFrames(callers[:runtime.Callers(1, callers)])
	for frame, more := frames.Next(); more; frame, more = frames.Next() {
		if here := strings.HasSuffix(frame.File, "judge/judge.go"); here && places != nil {
			break // the test began here
		} else if !here {
			places = append(places, fmt.Sprintf("%s:%d", filepath.Base(frame.File), frame.Line))
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failures = append(t.failures, failure{strings.Join(places, " < "), fmt.Sprint(args...)})
}

func (t *T) Errorf(format string, args ...any) { t.Error(fmt.Sprintf(format, args...)) }
func (t *T) Fail()                             { t.Error("failed") }
func (t *T) Fatalf(format string, args ...any) { t.Fatal(fmt.Sprintf(format, args...)) }
func (t *T) FailNow()                          { t.Fatal("failed") }

func (t *T) Fatal(args ...any) {
	t.Error(args...)
	runtime.Goexit()
}

func (t *T) Failed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.failures) > 0
}

func (t *T) Skipf(format string, args ...any) { t.Skip(fmt.Sprintf(format, args...)) }
func (t *T) SkipNow()                         { t.Skip("skipped") }

func (t *T) Skip(args ...any) {
	t.mu.Lock()
	t.skipped = fmt.Sprint(args...)
	t.mu.Unlock()
	runtime.Goexit()
}

func (t *T) Skipped() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.skipped != ""
}

func (t *T) Cleanup(do func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cleanups = append(t.cleanups, do)
}

// Run runs a part of the test on what the test has built.
func (t *T) Run(name string, part func(t *T)) {
	t.Logf("=== %s", name)
	part(t)
}

// Together runs parts of the test side by side in the share of the machine that the test has: those that mostly wait.
func (t *T) Together(parts map[string]func(t *T)) {
	var running sync.WaitGroup
	for name, part := range parts {
		running.Go(func() {
			of := &T{TB: t.TB, alone: t.alone}
			defer t.adopt(name, of)
			defer of.cleanUp()
			part(of)
		})
	}
	running.Wait()
}

// adopt makes what a part has to say the test's own.
func (t *T) adopt(name string, part *T) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, f := range part.failures {
		t.failures = append(t.failures, failure{f.place + " < " + name, f.text})
	}
	if part.skipped != "" {
		t.skipped = name + ": " + part.skipped
	}
}

// Main runs the tests of a package, see Setup.
func Main(m *testing.M) {
	Setup()
	os.Exit(m.Run())
}

// Setup has as many tests of a package run at a time as the machine has slots for, unless its flags say otherwise. Boards wait for
// each other most of the time, so there may be more of them than processors.
func Setup() { _ = flag.Set("test.parallel", strconv.Itoa(netns.Slots())) }
