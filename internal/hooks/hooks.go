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
	"sync"
	"sync/atomic"
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
	// Groups are the groups of the configuration, until the daemon says which it has; none if the configuration has only one.
	Groups []string
	Log    *logrus.Entry
}

// Run runs the hooks until ctx ends. It finishes the script that runs then, and those that are due.
func Run(ctx context.Context, c *console.Client, o Options) {
	r := newRunner(o)
	// At a shutdown the daemon ends just before this program, so its last transition may be on its way.
	following, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(lastWords, end) })()
	var all sync.WaitGroup
	all.Go(func() { r.follow(following, c) })
	r.run(following)
	all.Wait()
}

// lastWords is how long the last transition may take to arrive.
const lastWords = 100 * time.Millisecond

// runner runs scripts, one at a time, for whichever group they are. Each script is told every state that concerns it, unless
// a newer state comes before its turn. Every script is told the last state of each group.
type runner struct {
	Options
	wake     chan struct{}   // has an element when an instance has a new state
	remarked map[remark]bool // the remarks that were logged
	turn     int             // of the instance that comes first when scripts are due
	several  atomic.Bool     // whether the board has several groups

	mu        sync.Mutex // for what follows
	instances []*instance
	only      *instance // of the group that was followed last as the only one
}

func newRunner(o Options) *runner {
	return &runner{Options: o, wake: make(chan struct{}, 1), remarked: map[remark]bool{}}
}

// run runs scripts whenever the state changes, until ctx ends.
func (r *runner) run(ctx context.Context) {
	runtime.LockOSThread() // see command
	defer runtime.UnlockOSThread()
	r.look()
	for ctx.Err() == nil {
		select {
		case <-r.wake:
		case <-ctx.Done():
		}
		r.settle()
	}
}

// settle runs scripts until all of them know the state of the board. After each it starts over with the newest states,
// so that no script is told an old one.
func (r *runner) settle() {
	var all []script
	for {
		news := false
		for _, i := range r.known() {
			s, another, overtaken := i.states.take()
			if overtaken > 0 {
				r.logOf(s.Group).Infof("changes that were over before the hooks could be told: %d; now this board is %s", overtaken, s.word)
			}
			i.now, news = s, news || another
		}
		if news {
			all = r.look()
		}
		i, s, due := r.next(all)
		if !due {
			return
		}
		r.runScript(i, s)
	}
}

// next returns the script that is due, and for which group. After each script it is another group's turn, so that one that
// changes all the time does not keep the others waiting.
func (r *runner) next(all []script) (i *instance, s script, due bool) {
	instances := r.known()
	for n := range instances {
		turn := (r.turn + n) % len(instances)
		i := instances[turn]
		if found := slices.IndexFunc(all, i.due); found >= 0 {
			r.turn = turn + 1
			return i, all[found], true
		}
	}
	return nil, s, false
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
	for _, i := range r.known() {
		maps.DeleteFunc(i.told, func(s script, _ state) bool { return !slices.Contains(found, s) })
	}
	return found
}

// runScript runs one script for a group to its end.
func (r *runner) runScript(i *instance, s script) {
	i.told[s] = i.now
	ctx, cancel := context.WithTimeout(context.Background(), r.Timeout)
	defer cancel()
	c := command(ctx, s.path, i.now.arguments()...)
	c.Env = append(inherited(os.Environ()), i.now.environment()...)
	began := time.Now()
	err := c.Run()
	log := r.logOf(i.now.Group)
	took := time.Since(began).Round(time.Millisecond)
	switch {
	case err == nil:
		log.Infof("%s %s: done in %v", s.path, i.now.word, took)
	case ctx.Err() != nil:
		log.Warnf("%s %s: it did not end in time, and was killed after %v, with all that it had started (--timeout)",
			s.path, i.now.word, took)
	case errors.Is(err, syscall.ENOEXEC), errors.Is(err, syscall.ENOENT):
		log.Warnf("%s %s: it cannot be run: its first line must name its interpreter, such as #!/bin/sh, and must not end "+
			"with CR LF, as Windows writes it: sed -i 's/\\r$//' %[1]s", s.path, i.now.word)
	default:
		log.Warnf("%s %s: %v after %v", s.path, i.now.word, err, took)
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
