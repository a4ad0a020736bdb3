package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/cluster"
	"topdog/internal/lab/judge"
	"topdog/internal/lab/netns"
)

// hooked is `topdog hooks` on a board, with one hook that writes down what it is told and when.
type hooked struct {
	*cluster.Daemon
	board *board
	dir   string // of the hooks
	book  string // where the hook writes
}

func (b *board) hooks() *hooked {
	b.c.t.Helper()
	if os.Getuid() != 0 {
		b.c.t.Skip("only root can make hooks, which must belong to root")
	}
	d, err := b.c.NewDaemon(b.Number)
	must(b.c.t, err)
	h := &hooked{Daemon: d, board: b, dir: filepath.Join(d.Dir, "hooks.d"), book: filepath.Join(d.Dir, "book")}
	must(b.c.t, os.Mkdir(h.dir, 0o755))
	// While there is a file "slow", MASTER takes for ever.
	script := fmt.Sprintf(`#!/bin/bash
echo "$EPOCHREALTIME,$2,$3,$4,$TOPDOG_EVENT,$TOPDOG_TERM" >>%[1]s/book
if [ "$3" = MASTER ] && [ -e %[1]s/slow ]; then echo $$ >%[1]s/pid; sleep 1000 & wait; fi
`, d.Dir)
	assert.WriteFile(b.c.t, filepath.Join(h.dir, "notify"), []byte(script), 0o755)
	h.run()
	return h
}

func (h *hooked) run() {
	h.board.c.t.Helper()
	p := h.board.c.program
	must(h.board.c.t, h.Launch(p.Path, []string{"hooks", "--dir", h.dir, "--config", h.board.ConfigFile()}, netns.Env(p.Env...)))
}

// line is what the hook was told at a time.
type line struct {
	at    time.Time
	group string
	word  string
	event string
}

func (h *hooked) lines() (all []line) {
	h.board.c.t.Helper()
	text, _ := os.ReadFile(h.book)
	for l := range strings.Lines(string(text)) {
		f := strings.Split(strings.TrimSuffix(l, "\n"), ",")
		// Of a daemon that has not been there yet, neither the name nor the priority is known.
		if len(f) != 6 || f[3] != "100" && (f[1] != "" || f[2] != "STOP" || f[3] != "0") {
			h.board.c.t.Fatalf("%s: the hook was told %q", h.board, l)
		}
		micros, err := strconv.ParseInt(strings.ReplaceAll(f[0], ".", ""), 10, 64)
		must(h.board.c.t, err)
		all = append(all, line{time.UnixMicro(micros), f[1], f[2], f[4]})
	}
	return all
}

// toldSince waits until the hook was told some words since a moment, in this order and the last one last, and returns when
// it was told that. Others may stand between them: the lead may rightly move, and return, on a busy machine.
func (h *hooked) toldSince(t time.Time, words ...string) time.Time {
	h.board.c.t.Helper()
	var last line
	h.board.c.until(fmt.Sprintf("%s: the hook is told %q", h.board, words), func() string {
		var got []string
		for _, l := range h.lines() {
			if l.at.After(t) {
				got, last = append(got, l.word), l
			}
		}
		missing := words
		for _, word := range got {
			if len(missing) > 0 && missing[0] == word {
				missing = missing[1:]
			}
		}
		if len(missing) > 0 || last.word != words[len(words)-1] {
			return fmt.Sprintf("it was told %q", got)
		}
		return ""
	})
	return last.at
}

// A hook knows where the address is. A daemon that is killed is a stopped one, and so is one that stands still and cannot say so:
// its hooks find out by themselves. A board whose checks fail is FAULT, as to keepalived's scripts. How soon a hook
// knows is measured by scripts/bench --events hook.
func TestHooks(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 3, nil)
		began := time.Now()
		hooks, works := map[*board]*hooked{}, map[*board]string{}
		for _, b := range c.boards {
			works[b] = filepath.Join(b.Dir, "works")
			must(t, os.WriteFile(works[b], nil, 0o644))
			b.set(settings{"check": fmt.Sprintf(`[{ command = ["/usr/bin/test", "-e", %q], every = "200ms", rise = 1, fall = 1 }]`, works[b])})
			hooks[b] = b.hooks() // before the daemon, as at a boot
		}
		for _, b := range c.boards {
			hooks[b].toldSince(began, "STOP")
		}
		c.start(c.boards...)
		for _, b := range c.boards {
			b.untilGrade("passing")
		}
		leader := c.agree()
		hooks[leader].toldSince(began, "STOP", "MASTER") // no BACKUP if the board leads before its hooks find the daemon
		for _, b := range c.except(leader) {
			hooks[b].toldSince(began, "BACKUP")
		}

		moved := time.Now()
		leader.topdog("resign")
		next := c.agree()
		hooks[leader].toldSince(moved, "BACKUP")
		told := hooks[next].toldSince(moved, "MASTER")
		spans := c.Holders.Since(moved).Spans
		t.Logf("a hook ran %.1f ms after the address had moved", ms(told.Sub(spans[len(spans)-1].From)))

		leader, killed := next, time.Now()
		leader.signal(syscall.SIGKILL)
		stopped := hooks[leader].toldSince(killed, "STOP")
		t.Logf("a hook was told of the daemon's death after %.1f ms", ms(stopped.Sub(killed)))
		next = c.agreeWithout(leader)
		hooks[next].toldSince(killed, "MASTER")
		leader.gone()
		leader.start()
		leader.untilGrade("passing")
		hooks[leader].toldSince(killed, "STOP", "BACKUP")

		leader = c.agree()
		failed := time.Now()
		must(t, os.Remove(works[leader]))
		c.untilTakenFrom(leader)
		next = c.agree()
		hooks[leader].toldSince(failed, "FAULT")
		hooks[next].toldSince(failed, "MASTER")
		repaired := time.Now()
		must(t, os.WriteFile(works[leader], nil, 0o644))
		hooks[leader].toldSince(repaired, "BACKUP")

		frozen := time.Now()
		next.signal(syscall.SIGSTOP)
		stopped = hooks[next].toldSince(frozen, "STOP")
		t.Logf("a hook was told after %.1f s that its daemon stands still", stopped.Sub(frozen).Seconds())
		next.signal(syscall.SIGCONT)
		hooks[next].toldSince(frozen, "STOP", "BACKUP")

		leader = c.agree()
		stop := time.Now()
		leader.signal(syscall.SIGTERM)
		hooks[leader].toldSince(stop, "STOP")
		leader.ended()
	})
}

// A `topdog hooks` that is killed takes its hook along, and when it is back it tells how things are.
func TestHooksKilled(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 1, nil)
		b := c.board(1)
		began := time.Now()
		h := b.hooks()
		must(t, os.WriteFile(filepath.Join(h.Dir, "slow"), nil, 0o644))
		c.start(b)
		c.agreeOn(b, b)
		h.toldSince(began, "BACKUP", "MASTER")
		var pid int
		c.until("the hook runs", func() string {
			text, _ := os.ReadFile(filepath.Join(h.Dir, "pid"))
			if _, err := fmt.Sscan(string(text), &pid); err != nil {
				return "it does not"
			}
			return ""
		})
		must(t, h.Signal(syscall.SIGKILL))
		c.untilEnded("the hook", pid)
		must(t, os.Remove(filepath.Join(h.Dir, "slow")))
		again := time.Now()
		h.run()
		h.toldSince(again, "MASTER")
		if lines := h.lines(); lines[len(lines)-1].event != "snapshot" || lines[0].group != "topdog" {
			t.Errorf("the hook was told %+v", lines)
		}
		// It ends as a service does, and says nothing of the daemon that runs on.
		must(t, h.Signal(syscall.SIGTERM))
		if !h.Ended(cluster.Timeout) || h.Wait() != nil {
			t.Errorf("it ended with %v", h.Wait())
		}
		h.toldSince(again, "MASTER")
	})
}

// The verbs that say whether a board leads, and what becomes of a command that runs as long as it does.
func TestLeadVerbs(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 2, nil)
		c.board(1).topdog("is-leader").want(t, 3, "without a daemon", "does not run")
		c.start(c.boards...)
		leader := c.agree()
		follower := c.except(leader)[0]
		for b, want := range map[*board]int{leader: 0, follower: 1} {
			assert.Is(t, outcome{status: want}, b.topdog("is-leader"), "is-leader on %s", b)
		}
		leader.topdog("lead").want(t, exitUsage, "lead without a command")

		watch := follower.launch("watch")
		lead := follower.launch("lead", "--", "sh", "-c", "echo pid $$; exec sleep 1000")
		c.until("the follower is watched", func() string {
			if !watch.Log.Logged("snapshot", "follower of "+leader.String()) {
				return "it has said " + watch.Log.String()
			}
			return ""
		})
		if lead.Log.Logged("pid") {
			t.Error("the command runs on a follower")
		}
		leader.topdog("resign")
		c.agreeOn(follower, c.boards...)
		var pid int
		c.until("the command runs", func() string {
			_, said, _ := strings.Cut(lead.Log.String(), "pid ")
			if _, err := fmt.Sscan(said, &pid); err != nil {
				return "it has said " + lead.Log.String()
			}
			return ""
		})
		c.until("it is watched", func() string {
			if !watch.Log.Logged("role_changed", "leader with "+vip24.String()) || !watch.Log.Logged("address_acquired") {
				return "it has said " + watch.Log.String()
			}
			return ""
		})
		must(t, lead.Signal(syscall.SIGKILL))
		c.untilEnded("the command", pid)
		follower.signal(syscall.SIGKILL)
		c.untilTrue("the watch has ended", func() bool { return watch.Ended(0) })
		if !watch.Log.Logged("ended meanwhile") {
			t.Errorf("the watch has said %s", watch.Log)
		}
	})
}

// launch starts a verb that goes on, with the configuration of the board.
func (b *board) launch(args ...string) *cluster.Daemon {
	b.c.t.Helper()
	d, err := b.c.NewDaemon(b.Number)
	must(b.c.t, err)
	p := b.c.program
	args = slices.Insert(args, 1, "--config", b.ConfigFile())
	must(b.c.t, d.Launch(p.Path, args, netns.Env(p.Env...)))
	return d
}
