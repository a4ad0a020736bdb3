package check

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"topdog/internal/lab/assert"
)

// TestUnsureIsNoFact: what a check of an event could not find out is counted, like the failures of one that asks.
func TestUnsureIsNoFact(t *testing.T) {
	unsure := &unsureError{errors.New("systemd does not answer")}
	for _, test := range []struct {
		name   string
		failed error
		times  int // in a row
		want   int // reports, the first one included
	}{
		{"systemd says that it is dead", errors.New("it is inactive"), 1, 3}, // and passes again
		{"one question in vain", unsure, 1, 1},
		{"two questions in vain", unsure, 2, 1},
		{"three questions in vain", unsure, 3, 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := second
				c.Kind = Unit
				p := &fakeProber{fails: func(n int) error {
					if n > 3 && n <= 3+test.times {
						return test.failed
					}
					return nil
				}}
				assert.Is(t, test.want, len(runWorker(t, c, p, time.Minute, nil)), "reports")
			})
		})
	}
}

// TestNothingIsKnownWithoutABus: neither a bus nor a systemd that is started anew says anything of the unit.
func TestNothingIsKnownWithoutABus(t *testing.T) {
	address, end := startBus(t)
	s := startSystemd(t, address)
	const name = "pihole-FTL.service"
	s.set(name, fakeUnit{active: "active", main: uint32(start(t).Process.Pid)}, false)
	w := watchUnit(t, name)
	w.expect("it runs", "")
	var unsure *unsureError
	s.conn.Close()
	w.await("systemd has gone")
	if err := w.probe(t.Context()); !errors.As(err, &unsure) {
		t.Errorf("without systemd: %v", err)
	}
	end()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := w.probe(ctx); !errors.As(err, &unsure) {
		t.Errorf("without a bus: %v", err)
	}
}

// TestExecHandsOver: a server that is updated in place starts its successor and ends.
func TestExecHandsOver(t *testing.T) {
	path := copyOf(t, "sleep")
	former := sleeps(t, path)
	p := newExecProber(&Check{Kind: Exec, Target: path})
	defer p.close()
	assert.NoError(t, p.probe(t.Context()))
	sleeps(t, path)
	former.Process.Kill()
	<-p.changes()
	assert.ErrorIs(t, p.probe(t.Context()), nil, "its successor runs")
}

// TestExecByLink: the kernel knows a process by the file that a symbolic link leads to.
func TestExecByLink(t *testing.T) {
	target := copyOf(t, "sleep")
	link := filepath.Join(t.TempDir(), "server")
	assert.NoError(t, os.Symlink(target, link))
	sleeps(t, link)
	want(t, "started by a link", Check{Kind: Exec, Target: link}, "")
}

// TestEachAddressIsTried: a name may have an address on which nothing listens.
func TestEachAddressIsTried(t *testing.T) {
	var tried []string
	err := dialer{}.each(t.Context(), "localhost:53", func(addrPort string) error {
		tried = append(tried, addrPort)
		if host, _, _ := net.SplitHostPort(addrPort); host == "127.0.0.1" {
			return nil
		}
		return errors.New("connection refused")
	})
	assert.ErrorIs(t, err, nil, "tried %v", tried)
}

// TestLongReason: a server's nonsense is not repeated as a whole.
func TestLongReason(t *testing.T) {
	long := strings.Repeat("ä", 3*textMax)
	assert.Is(t, textMax+1, len([]rune(shortened(long, textMax))), "characters that are left")
	assert.Is(t, "refused", shortened("refused", textMax), "")
}

// TestEndlessReport: a checker that somebody has taken over cannot fill the daemon's memory. What is longer than messageMax,
// or makes no sense, ends the checker.
func TestEndlessReport(t *testing.T) {
	for _, bad := range []string{`{"text": "` + strings.Repeat("x", messageMax) + `"}`, "nonsense"} {
		ours, theirs, err := socketPair()
		assert.NoError(t, err)
		starter := exec.Command("sleep", "600") // which ends by the signal
		assert.NoError(t, starter.Start())
		p := &Process{conn: ours, starter: starter.Process, reports: make(chan Report), tried: make(chan message, 8)}
		go p.read()
		for _, said := range []string{`{"text": "short"}`, bad} {
			_, err := theirs.WriteString(said)
			assert.NoError(t, err)
		}
		assert.Equal(t, Report{Text: "short"}, <-p.reports, "the only report")
		assert.ErrorContains(t, starter.Wait(), killSignal.String(), "what the starter is told")
		theirs.Close()
		_, more := <-p.reports
		assert.Is(t, false, more, "there are more reports")
	}
}

// TestOrdersWhileChecksRun: the interface of the group becomes known when the checker has begun already. The race detector
// looks.
func TestOrdersWhileChecksRun(t *testing.T) {
	r, w := io.Pipe()
	go func() { _, _ = io.Copy(io.Discard, r) }()
	c := newChecker(w)
	go func() {
		for range c.messages {
		}
	}()
	gateway := Check{Kind: Gateway, Every: time.Second, Timeout: time.Second, Rise: 1, Fall: 1}
	for range 50 {
		c.carryOut(request{Order: &Order{Checks: []Check{gateway}, Interface: "eth0"}})
		c.carryOut(request{Order: &Order{Checks: []Check{gateway}, Interface: "eth1"}})
	}
	if len(c.tasks) == 0 {
		t.Error("no check runs")
	}
	c.end()
}
