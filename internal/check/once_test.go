package check

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
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
	reasons, err := Once(t.Context(), startChecker(t), Order{Checks: []Check{
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
	reasons, err := Once(t.Context(), startChecker(t), Order{Checks: []Check{often, slow}})
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

// TestLargeOrder: a checker that is just starting is given more than a pipe takes by default.
func TestLargeOrder(t *testing.T) {
	large := program("exit 3 # " + strings.Repeat("<", 60<<10))
	reasons, err := Once(t.Context(), startChecker(t), Order{Checks: []Check{large}})
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
	said := mute{make(chan Report, 1)}
	said.reports <- Report{ID: order.Checks[0].ID()}
	if reasons, err := Once(t.Context(), said, order); err != nil || reasons[0] == "" {
		t.Errorf("it fails without a reason: %q, %v", reasons, err)
	}
}
