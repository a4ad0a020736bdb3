package check

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"topdog/internal/lab/assert"
)

// TestOnce: each check is run once, those for the leader too.
func TestOnce(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	assert.NoError(t, err)
	defer l.Close()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	assert.NoError(t, err)
	closed.Close()
	reasons, err := Once(t.Context(), openProcess(t), Order{Checks: []Check{
		quick(l.Addr().String(), Always), quick(closed.Addr().String(), Leading), quick(l.Addr().String(), Leading),
	}})
	assert.NoError(t, err)
	assert.Equal(t, []string{"", "connection refused", ""}, reasons, "the reasons")
}

// TestOnceIsOnce: a check whose interval is short is not run again while another one takes its time.
func TestOnceIsOnce(t *testing.T) {
	runs := filepath.Join(t.TempDir(), "runs")
	often := program("echo run >>" + runs)
	slow := program("sleep 0.5; exit 3")
	reasons, err := Once(t.Context(), openProcess(t), Order{Checks: []Check{often, slow}})
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
		reasons, err := Once(t.Context(), openProcess(t), Order{Checks: []Check{large}})
		assert.NoError(t, err)
		assert.Equal(t, []string{"failed (exit status 3)"}, reasons, "the reasons")
	}
}

// TestOnceAgain: one connection tries the checks of one file after the other, also when a checker was stopped meanwhile.
func TestOnceAgain(t *testing.T) {
	p := openProcess(t)
	slow := program("sleep 600")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		assert.Until(t, "the checker runs", func() bool { return p.pid() != 0 })
		cancel()
	}()
	_, err := Once(ctx, p, Order{Checks: []Check{slow}})
	assert.ErrorIs(t, err, context.Canceled, "whoever has asked is gone")
	p.Stop()
	for _, status := range []string{"3", "4"} {
		reasons, err := Once(t.Context(), p, Order{Checks: []Check{program("exit " + status)}})
		assert.NoError(t, err)
		assert.Equal(t, []string{"failed (exit status " + status + ")"}, reasons, "the reasons")
		p.Stop()
		assert.Is(t, 0, p.pid(), "the checker that was stopped")
	}
}

// TestOnceAfterKilled: that a checker had to be killed is nothing that the next trial is told.
func TestOnceAfterKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for a stuck checker, two seconds")
	}
	t.Parallel()
	p := startChecker(t)
	assert.NoError(t, syscall.Kill(p.pid(), syscall.SIGSTOP))
	p.Stop()
	reasons, err := Once(t.Context(), p, Order{Checks: []Check{program("exit 3")}})
	assert.NoError(t, err)
	assert.Equal(t, []string{"failed (exit status 3)"}, reasons, "the reasons")
}

// mute reports what it is told to.
type mute struct{ reports chan Report }

func (m mute) Send(Order) error       { return nil }
func (m mute) Reports() <-chan Report { return m.reports }

// TestOnceWithoutResult: a checker that ends, or that is stuck, has tried nothing, and nobody has to wait for it.
func TestOnceWithoutResult(t *testing.T) {
	order := Order{Checks: []Check{quick("127.0.0.1:1", Always)}}
	synctest.Test(t, func(t *testing.T) {
		reports := make(chan Report)
		go func() { // it runs, then it is stuck
			for range 20 {
				time.Sleep(aliveEvery)
				reports <- Report{}
			}
		}()
		began := time.Now()
		_, err := Once(t.Context(), mute{reports}, order)
		if took := time.Since(began); err == nil || took != 20*aliveEvery+silenceMax {
			t.Errorf("it is stuck: %v after %v", err, took)
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Once(ctx, mute{make(chan Report)}, order)
	assert.ErrorIs(t, err, context.Canceled, "whoever has asked is gone")
	ended := mute{make(chan Report)}
	close(ended.reports)
	if _, err := Once(t.Context(), ended, order); err == nil {
		t.Error("a checker that has ended has tried the checks")
	}
	for _, end := range []Report{{Ended: true}, {Ended: true, Text: "start the checker: no memory"}} {
		said := mute{make(chan Report, 2)}
		said.reports <- Report{}
		said.reports <- end
		if _, err := Once(t.Context(), said, order); err == nil {
			t.Errorf("a checker that has ended with %+v has tried the checks", end)
		}
	}
	if reasonOf(errors.New("")) == "" {
		t.Error("a check that fails without a reason passes")
	}
}
