// Package hooks runs programs when something happens to this board: an administrator's scripts (`topdog hooks`), a
// command while the board leads (`topdog lead`), and a systemd unit while it leads (`topdog target`).
//
// Each of these verbs is a process of its own that follows the daemon's stream of transitions, see [console.Client.Follow].
// None is part of the daemon: no script may disturb the heartbeats.
//
// All three see the board as keepalived's scripts do, in one of four states ([state]). Changes don't queue up while a
// program runs: the newest state counts, and is always delivered.
package hooks

import (
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"

	"topdog/internal/console"
)

// Options are those of `topdog hooks`.
type Options struct {
	Directory string
	Timeout   time.Duration // of one script
	Log       *logrus.Entry
}

// Run runs the hooks until ctx ends. It finishes the script that runs then, and those that are due.
func Run(ctx context.Context, c *console.Client, o Options) error {
	r := &runner{Options: o, told: map[script]state{}, remarked: map[remark]bool{}}
	// At a shutdown the daemon ends just before this program, so its last transition may be on its way.
	following, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(lastWords, end) })()
	err := follow(following, c, o.Log, r.run)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// lastWords is how long the last transition may take to arrive.
const lastWords = 100 * time.Millisecond

// runner runs scripts, one at a time. Each script is told every state that concerns it, unless a newer state comes
// before its turn. Every script is told the last state.
type runner struct {
	Options
	now      state
	told     map[script]state // the one that each script was told last
	remarked map[remark]bool  // the remarks that were logged
}

// run runs scripts whenever the state changes, until ctx ends.
func (r *runner) run(ctx context.Context, states *newest) {
	runtime.LockOSThread() // see command
	defer runtime.UnlockOSThread()
	r.look()
	for ctx.Err() == nil {
		select {
		case <-states.wake:
		case <-ctx.Done():
		}
		r.settle(states)
	}
}

// settle runs scripts until all of them know the state of the board. After each it starts over with the newest state,
// so that no script is told an old one.
func (r *runner) settle(states *newest) {
	var all []script
	for {
		s, another, overtaken := states.take()
		if overtaken > 0 {
			r.Log.Infof("changes that were over before the hooks could be told: %d; now this board is %s", overtaken, s.word)
		}
		r.now = s
		if another {
			all = r.look()
		}
		i := slices.IndexFunc(all, r.due)
		if i < 0 {
			return
		}
		r.runScript(all[i])
	}
}

// look returns the scripts, and logs once why other files don't run.
func (r *runner) look() []script {
	found, remarks := scripts(r.Directory)
	remarked := map[remark]bool{}
	for _, m := range remarks {
		remarked[m] = true
		switch {
		case r.remarked[m]:
		case m.bad:
			r.Log.Warnf("%s: %s", m.path, m.text)
		default:
			r.Log.Infof("%s %s", m.path, m.text)
		}
	}
	r.remarked = remarked
	maps.DeleteFunc(r.told, func(s script, _ state) bool { return !slices.Contains(found, s) })
	return found
}

// due reports whether a script must be told the present state.
func (r *runner) due(s script) bool {
	before := r.told[s]
	if s.eachLeader {
		return r.now.Leader != "" && r.now.Leader != before.Leader
	}
	return r.now.word != before.word
}

// runScript runs one script to its end.
func (r *runner) runScript(s script) {
	r.told[s] = r.now
	ctx, cancel := context.WithTimeout(context.Background(), r.Timeout)
	defer cancel()
	c := command(ctx, s.path, r.now.arguments()...)
	c.Env = append(inherited(os.Environ()), r.now.environment()...)
	began := time.Now()
	err := c.Run()
	took := time.Since(began).Round(time.Millisecond)
	switch {
	case err == nil:
		r.Log.Infof("%s %s: done in %v", s.path, r.now.word, took)
	case ctx.Err() != nil:
		r.Log.Warnf("%s %s: it did not end in time, and was killed after %v, with all that it had started (--timeout)",
			s.path, r.now.word, took)
	case errors.Is(err, syscall.ENOEXEC), errors.Is(err, syscall.ENOENT):
		r.Log.Warnf("%s %s: it cannot be run: its first line must name its interpreter, such as #!/bin/sh, and must not end "+
			"with CR LF, as Windows writes it: sed -i 's/\\r$//' %[1]s", s.path, r.now.word)
	default:
		r.Log.Warnf("%s %s: %v after %v", s.path, r.now.word, err, took)
	}
}

// arguments returns the arguments that keepalived gives to a notify script.
func (s *state) arguments() []string {
	return []string{"INSTANCE", s.Group, string(s.word), strconv.Itoa(s.Priority)}
}

// environment returns what a script's environment says in addition.
func (s *state) environment() []string {
	return []string{
		"TOPDOG_EVENT=" + string(s.Event),
		"TOPDOG_ROLE=" + s.Role,
		"TOPDOG_REASON=" + s.Reason,
		"TOPDOG_GROUP=" + s.Group,
		"TOPDOG_ADDRESSES=" + strings.Join(s.Addresses, " "),
		"TOPDOG_INTERFACE=" + s.Interface,
		"TOPDOG_LEADER=" + s.Leader,
		"TOPDOG_LEADER_NAME=" + s.LeaderName,
		"TOPDOG_TERM=" + strconv.FormatUint(uint64(s.Term), 10),
		"TOPDOG_BOARD=" + s.Board,
		"TOPDOG_GRADE=" + s.Grade,
	}
}

// defaultPath is for scripts when this program has no PATH. It is the shell's default.
const defaultPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// inherited returns the environment without variables for this program alone. For instance, a script must not send
// systemd READY=1 in this program's name.
func inherited(env []string) (kept []string) {
	path := false
	for _, v := range env {
		name, _, _ := strings.Cut(v, "=")
		switch {
		case strings.HasPrefix(name, "TOPDOG_"):
		case name == "NOTIFY_SOCKET", name == "WATCHDOG_PID", name == "WATCHDOG_USEC", name == "INVOCATION_ID":
		default:
			kept = append(kept, v)
		}
		path = path || name == "PATH"
	}
	if !path {
		kept = append(kept, defaultPath)
	}
	return kept
}

// command returns a command in a process group of its own, which is killed as a whole when ctx ends. If this program is
// killed, so is the command. The kernel does that when the thread that started the command ends (PR_SET_PDEATHSIG,
// prctl(2)), so the caller must have locked its thread.
func command(ctx context.Context, path string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, path, args...)
	// Its output goes where this program's log goes. Processes that it leaves behind would hold a pipe open.
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	c.SysProcAttr = &unix.SysProcAttr{Setpgid: true, Pdeathsig: unix.SIGKILL}
	c.Cancel = func() error { return signalGroup(c, unix.SIGKILL) }
	return c
}

// signalGroup sends a signal to a command and to all that it has started, if they haven't ended.
func signalGroup(c *exec.Cmd, sig unix.Signal) error { return unix.Kill(-c.Process.Pid, sig) }
