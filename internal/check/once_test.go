package check

import (
	"context"
	"errors"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/netns"
)

// TestTry: each check is run once, those for the leader too.
func TestTry(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	assert.NoError(t, err)
	defer l.Close()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	assert.NoError(t, err)
	closed.Close()
	reasons, err := openTrying(t).Try(t.Context(), Order{Checks: []Check{
		quick(l.Addr().String(), Always), quick(closed.Addr().String(), Leading), quick(l.Addr().String(), Leading),
	}})
	assert.NoError(t, err)
	assert.Equal(t, []string{"", "connection refused", ""}, reasons, "the reasons")
}

// TestTryRunsOnce: a check whose interval is short is not run again while another one takes its time.
func TestTryRunsOnce(t *testing.T) {
	t.Parallel()
	runs := filepath.Join(t.TempDir(), "runs")
	often := program("echo run >>" + runs)
	slow := program("sleep 0.5; exit 3")
	reasons, err := openTrying(t).Try(t.Context(), Order{Checks: []Check{often, slow}})
	assert.NoError(t, err)
	assert.Equal(t, []string{"", "failed (exit status 3)"}, reasons, "the reasons")
	text, err := os.ReadFile(runs)
	assert.NoError(t, err)
	assert.Is(t, "run\n", string(text), "its runs")
}

// program is a check that runs a line for a shell, and may be run again very soon.
func program(line string) Check {
	return Check{Kind: Command, Target: "/bin/sh", Arguments: []string{"-c", line}, Every: MinEvery, Timeout: 10 * time.Second, Rise: 1, Fall: 1}
}

// TestLargeOrder: whatever a file of 64 KiB says fits into an order, and into the first one of a checker.
func TestLargeOrder(t *testing.T) {
	for _, text := range []string{strings.Repeat("<", 60<<10), strings.Repeat("\x1b", 30<<10)} { // "\e" in the file
		large := program("exit 3 # " + text)
		reasons, err := openTrying(t).Try(t.Context(), Order{Checks: []Check{large}})
		assert.NoError(t, err)
		assert.Equal(t, []string{"failed (exit status 3)"}, reasons, "the reasons")
	}
}

// TestTryAgain: the checks of one file after the other are tried, also when whoever has asked is gone, or when the checker
// had to be killed. Nothing goes on, and a checker with nothing else to run ends.
func TestTryAgain(t *testing.T) {
	t.Parallel()
	p := openTrying(t)
	for _, stuck := range []bool{false, true} {
		if stuck && testing.Short() {
			t.Skip("waits for a stuck checker, two seconds")
		}
		pids := filepath.Join(t.TempDir(), "pids")
		slow := program("echo $$ >" + pids + "; exec sleep 600")
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			started(t, pids)
			if stuck {
				assert.NoError(t, netns.Freeze(p.pid()))
			}
			cancel()
		}()
		_, err := p.Try(ctx, Order{Checks: []Check{slow}})
		assert.ErrorIs(t, err, context.Canceled, "whoever has asked is gone")
		gone(t, started(t, pids)[0])
		for _, status := range []string{"3", "4"} {
			reasons, err := p.Try(t.Context(), Order{Checks: []Check{program("exit " + status)}})
			assert.NoError(t, err)
			assert.Equal(t, []string{"failed (exit status " + status + ")"}, reasons, "the reasons")
			assert.Until(t, "the checker has ended", func() bool { return p.pid() == 0 })
		}
	}
}

// TestTryAwaitsTheEnd: a stuck checker that answers when it is being killed is waited for all the same, until the starter has
// told of its end: only then the next request is not dropped.
func TestTryAwaitsTheEnd(t *testing.T) {
	signal.Ignore(killSignal) // this process stands in for the starter
	synctest.Test(t, func(t *testing.T) {
		ours, theirs, err := socketPair()
		assert.NoError(t, err)
		defer ours.Close()
		defer theirs.Close()
		starter, err := os.FindProcess(os.Getpid())
		assert.NoError(t, err)
		p := &Process{conn: ours, starter: starter, tried: make(chan message, 8)}
		began := time.Now()
		go func() {
			time.Sleep(time.Millisecond)
			p.tried <- message{Tried: &tried{Number: 1, Reasons: []string{"it fails"}}}
			time.Sleep(2*endWithin + time.Millisecond)
			p.tried <- message{Tried: &tried{Number: 2}}
			time.Sleep(time.Millisecond)
			p.tried <- message{Report: Report{Ended: true}}
		}()
		_, err = p.Try(t.Context(), Order{Checks: []Check{program("exit 3")}})
		assert.NoError(t, err)
		assert.Is(t, 2*endWithin+3*time.Millisecond, time.Since(began), "when it returns")
	})
}

// TestTryBeside: a trial changes nothing of the checks that run.
func TestTryBeside(t *testing.T) {
	t.Parallel()
	p := startChecker(t)
	checker := p.pid()
	go func() {
		for range p.Reports() {
		}
	}()
	reasons, err := p.Try(t.Context(), Order{Checks: []Check{program("exit 3")}})
	assert.NoError(t, err)
	assert.Equal(t, []string{"failed (exit status 3)"}, reasons, "the reasons")
	_, err = p.Try(t.Context(), Order{Checks: []Check{program("exit 0")}}) // by then a checker that had ended would have been replaced
	assert.NoError(t, err)
	assert.Is(t, checker, p.pid(), "the checker")
}

// TestTryWithoutResult: a checker that ends has tried nothing, and nobody has to wait for it.
func TestTryWithoutResult(t *testing.T) {
	order := Order{Checks: []Check{quick("127.0.0.1:1", Always)}}
	for said, want := range map[string]string{
		`{"ended": true}`: "has ended: see journalctl -u topdog",
		`{"ended": true, "text": "start the checker: no memory"}`: "no memory",
		`{"tried": {"number": 1, "reasons": ["", ""]}}`:           "has tried other ones",
		"": "systemctl restart topdog",
	} {
		ours, theirs, err := socketPair()
		assert.NoError(t, err)
		p := &Process{conn: ours, reports: make(chan Report, 1), tried: make(chan message, 8)}
		go p.read()
		go func() {
			_, _ = theirs.Read(make([]byte, requestMax)) // until it is asked
			_, _ = theirs.WriteString(`{"tried": {"number": 7, "reasons": [""]}}`)
			if said != "" {
				_, _ = theirs.WriteString(said)
				_, _ = theirs.Read(make([]byte, requestMax)) // that the trial is over
			}
			theirs.Close()
		}()
		_, err = p.Try(t.Context(), order)
		assert.ErrorContains(t, err, want, "%s", said)
	}
	if reasonOf(errors.New("")) == "" {
		t.Error("a check that fails without a reason passes")
	}
}
