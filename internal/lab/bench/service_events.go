package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/bench/report"
)

// Each board has a service here, and that fails, not the board.

const (
	// restarts is how often the service of one board is killed, and is back restartAfter later. That takes
	// a second each time.
	restarts     = 10
	restartEvery = time.Second
	restartAfter = 300 * time.Millisecond
	// deadFor is how long the service is dead on all boards: longer than a check that is run every second needs.
	deadFor = 4 * time.Second
	// serviceGroups is how many groups of one system run beside each other, at most. Their services and scripts
	// keep this machine busy.
	serviceGroups = 4
	// bootTime is what a board needs from the end of its daemon to the next start, and serviceLate how much
	// later its service is there.
	bootTime    = 2 * time.Second
	serviceLate = 10 * time.Second
)

// serviceEvents are those of services. Whoever has seen one is more careful with that board, so each
// run has a group of its own.
func serviceEvents() []event {
	events := []event{
		{run: killService, tables: []report.Event{
			{Key: report.ServiceKilled, Title: "the leader's service is killed"},
		}},
		{run: freezeService, unable: seesProcesses, tables: []report.Event{
			{Key: report.ServiceFrozen, Title: "the leader's service is frozen"},
		}},
		{run: restartService(report.ServiceRestarts), tables: []report.Event{
			{Key: report.ServiceRestarts, Title: "the first leader's service is killed and restarts within a second, ten times"},
		}},
		{run: restartService(report.ServiceRestartsPreempt), variant: variant{preempt: true}, tables: []report.Event{
			{Key: report.ServiceRestartsPreempt, Title: "the same, and the first leader preempts"},
		}},
		{run: killAllServices, tables: []report.Event{
			{Key: report.ServiceNowhere, Title: "the service dies on all boards, the leader's last (outage: not counted)"},
			{Key: report.ServiceFirst, Title: "then another board's service starts (outage: from its start to its first answer at the address)"},
		}},
		{run: rebootLeader(report.LeaderReboots), tables: []report.Event{
			{Key: report.LeaderReboots, Title: "the leader's board reboots, and its service needs 10 s to start"},
		}},
		{run: rebootLeader(report.LeaderRebootsPreempt), variant: variant{preempt: true}, tables: []report.Event{
			{Key: report.LeaderRebootsPreempt, Title: "the same, and it preempts"},
		}},
		{run: rebootFollower, variant: variant{preempt: true}, tables: []report.Event{
			{Key: report.FollowerReboots, Title: "a follower's board reboots, and its service needs 10 s to start"},
		}},
		{run: runHook, variant: variant{hooked: true}, tables: []report.Event{
			{Key: report.Hook, Title: "hand-over by command, with a script that runs when a board begins to lead (hook: from the moment when it has the address)"},
		}},
	}
	for i := range events {
		events[i].served, events[i].teaches = true, true
		for k := range events[i].tables {
			events[i].tables[k].Service = true
		}
	}
	return events
}

// seesProcesses: a process that stands still is there.
func seesProcesses(s system) string {
	if k, ok := s.(*keepalived); ok && k.track == trackProcess {
		return "track_process sees that the process is there"
	}
	return ""
}

func killService(ctx context.Context, t *trial) error {
	faultAt := time.Now()
	if err := t.leader.service.kill(); err != nil {
		return err
	}
	return t.noteTakeover(ctx, report.ServiceKilled, faultAt)
}

func freezeService(ctx context.Context, t *trial) error {
	faultAt := time.Now()
	if err := t.leader.service.process.Signal(unix.SIGSTOP); err != nil {
		return err
	}
	t.leader.Log.Note("the service is frozen")
	return t.noteTakeover(ctx, report.ServiceFrozen, faultAt)
}

// restartService counts moves. The service is always that of the board that led first.
func restartService(key string) func(context.Context, *trial) error {
	return func(ctx context.Context, t *trial) error {
		began := time.Now()
		for range restarts {
			if err := t.leader.service.kill(); err != nil {
				return err
			}
			if err := wait(ctx, restartAfter); err != nil {
				return err
			}
			if err := t.leader.service.start(); err != nil {
				return err
			}
			t.releaseSlot() // Whoever moves the address from now on moves it for nothing.
			if err := wait(ctx, restartEvery-restartAfter); err != nil {
				return err
			}
		}
		if err := wait(ctx, settleFor); err != nil {
			return err
		}
		return t.note(ctx, key, began)
	}
}

// killAllServices lets no service be left, the leader's for the longest. Then one of another board starts.
func killAllServices(ctx context.Context, t *trial) error {
	t.releaseSlot()
	var other *board
	for _, b := range t.boards {
		if b == t.leader {
			continue
		}
		other = b
		if err := b.service.kill(); err != nil {
			return err
		}
	}
	if err := wait(ctx, deadFor); err != nil {
		return err
	}
	began := time.Now()
	if err := t.leader.service.kill(); err != nil {
		return err
	}
	if err := wait(ctx, deadFor); err != nil {
		return err
	}
	t.record(report.ServiceNowhere, began)
	run := t.runs[report.ServiceNowhere]
	run.Outage, run.Censored = 0, false // There is nobody who could answer.

	if err := t.acquireSlot(ctx); err != nil {
		return err
	}
	started := time.Now()
	if err := other.service.start(); err != nil {
		return err
	}
	if err := t.atMost(ctx, t.maxOutage(), func(ctx context.Context) error {
		_, err := t.asker.WaitAnswer(ctx, func(n int) bool { return n == other.Number })
		return err
	}); err != nil {
		return err
	}
	answered := t.asker.Report(started).First
	if err := wait(ctx, t.watchAfter()); err != nil {
		return err
	}
	t.record(report.ServiceFirst, started)
	run = t.runs[report.ServiceFirst]
	run.Outage, run.Censored = answered.At.Sub(started), false
	if answered.Board != other.Number {
		run.Outage, run.Censored = time.Since(started), true
	}
	return nil
}

func rebootLeader(key string) func(context.Context, *trial) error {
	return func(ctx context.Context, t *trial) error { return t.noteReboot(ctx, key, t.leader) }
}

func rebootFollower(ctx context.Context, t *trial) error {
	return t.noteReboot(ctx, report.FollowerReboots, t.boards[len(t.boards)-2]) // the next in rank: the last one leads
}

func (t *trial) noteReboot(ctx context.Context, key string, b *board) error {
	began := time.Now()
	if err := t.reboot(ctx, b); err != nil {
		return err
	}
	return t.note(ctx, key, began)
}

// runHook hands over, and reads when the script of the next leader was run.
func runHook(ctx context.Context, t *trial) error {
	do, undo := t.sys.resign(t.leader)
	began := time.Now()
	if err := do(ctx); err != nil {
		return err
	}
	if err := t.noteTakeover(ctx, report.Hook, began); err != nil {
		return err
	}
	if undo != nil {
		if err := undo(ctx); err != nil {
			return err
		}
	}
	for _, span := range t.Holders.Since(began).Spans {
		if span.Board == t.leader.Number {
			continue
		}
		ran, err := t.boards[span.Board-1].awaitHook(ctx, began)
		if err != nil {
			return err
		}
		t.runs[report.Hook].Hook = max(0, ran.Sub(span.From)) // keepalived may run it before
		return nil
	}
	return fmt.Errorf("nobody took over from %s", t.leader.Name)
}

// hookText is a script that writes down when it was run, and what has become of the board. Both programs
// give it the same arguments.
func (b *board) hookText() string {
	return fmt.Sprintf("#!/bin/bash\necho \"$EPOCHREALTIME $3\" >>%s\n", b.hookLog())
}

func (b *board) hookPath() string { return filepath.Join(b.Dir, "hooks.d", "notify") }
func (b *board) hookLog() string  { return filepath.Join(b.Dir, "hook.log") }

// writeHook installs the script.
func (b *board) writeHook() error {
	if err := os.MkdirAll(filepath.Dir(b.hookPath()), 0o755); err != nil {
		return err
	}
	return os.WriteFile(b.hookPath(), []byte(b.hookText()), 0o755)
}

// awaitHook waits until the script was run for a leader since a moment, and returns when that was.
func (b *board) awaitHook(ctx context.Context, since time.Time) (at time.Time, err error) {
	deadline := time.Now().Add(exitTimeout)
	for time.Now().Before(deadline) {
		text, err := os.ReadFile(b.hookLog())
		if err != nil && !os.IsNotExist(err) {
			return at, err
		}
		for line := range strings.Lines(string(text)) {
			when, word, _ := strings.Cut(strings.TrimSpace(line), " ")
			micros, err := strconv.ParseInt(strings.Replace(when, ".", "", 1), 10, 64)
			if at = time.UnixMicro(micros); err == nil && word == "MASTER" && at.After(since) {
				return at, nil
			}
		}
		if err := wait(ctx, pollInterval); err != nil {
			return at, err
		}
	}
	return at, fmt.Errorf("%s has the address, and its hook was not run; it says\n%s", b.Name, b.Log.Last(lastLines))
}
