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
	r := &runner{Options: o, states: newNewest(), told: map[script]told{}, remarked: map[remark]bool{}}
	ended := make(chan struct{})
	following, stopFollowing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopFollowing()
	go func() {
		r.run(following)
		close(ended)
	}()
	go func() {
		<-ctx.Done()
		// At a shutdown the daemon ends just before this program, so its last transition may be on its way.
		time.AfterFunc(lastWords, stopFollowing)
	}()
	err := follow(following, c, console.WatchOptions{}, r.Log, r.states.put)
	stopFollowing()
	<-ended
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
	states   *newest
	now      state
	told     map[script]told // of each script that was run
	remarked map[remark]bool // the remarks that were logged
}

// told is the state that a script was told last.
type told struct {
	word   word
	leader string
}

// run runs scripts whenever the state changes, until ctx ends.
func (r *runner) run(ctx context.Context) {
	runtime.LockOSThread() // see start
	r.look()
	for {
		select {
		case <-r.states.wake:
			r.settle()
		case <-ctx.Done():
			select {
			case <-r.states.wake:
				r.settle()
			default:
			}
			return
		}
	}
}

// settle runs scripts until all of them know the state of the board. After each it starts over with the newest state,
// so that no script is told an old one.
func (r *runner) settle() {
	var all []script
	for {
		s, another, overtaken := r.states.take()
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
	for m := range r.remarked {
		if !slices.Contains(remarks, m) {
			delete(r.remarked, m)
		}
	}
	for _, m := range remarks {
		if r.remarked[m] {
			continue
		}
		r.remarked[m] = true
		if m.bad {
			r.Log.Warnf("%s: %s", m.path, m.text)
		} else {
			r.Log.Infof("%s %s", m.path, m.text)
		}
	}
	for s := range r.told {
		if !slices.Contains(found, s) {
			delete(r.told, s)
		}
	}
	return found
}

// due reports whether a script must be told the present state.
func (r *runner) due(s script) bool {
	before := r.told[s]
	if s.eachLeader {
		return r.now.Leader != "" && r.now.Leader != before.leader
	}
	return r.now.word != before.word
}

// runScript runs one script to its end.
func (r *runner) runScript(s script) {
	r.told[s] = told{r.now.word, r.now.Leader}
	began := time.Now()
	p, err := start(s.path, r.now.arguments(), append(inherited(os.Environ()), r.now.environment()...))
	if err == nil {
		err = p.wait(r.Timeout)
	}
	took := time.Since(began).Round(time.Millisecond)
	switch {
	case err == nil:
		r.Log.Infof("%s %s: done in %v", s.path, r.now.word, took)
	case errors.Is(err, errTooLong):
		r.Log.Warnf("%s %s: %v after %v, with all that it had started (--timeout)", s.path, r.now.word, err, took)
	case errors.Is(err, syscall.ENOEXEC):
		r.Log.Warnf("%s %s: it cannot be run: its first line must name its interpreter, such as #!/bin/sh", s.path, r.now.word)
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

// process is a command in a process group of its own, so that whatever it starts can be ended with it.
type process struct {
	command *exec.Cmd
	ended   chan error // receives the command's exit error, or nil
}

// start starts a command. If this program is killed, so is the command. The kernel does that when the thread ends that
// has started it (PR_SET_PDEATHSIG, prctl(2)), so the caller must have locked that thread.
func start(path string, args, env []string) (*process, error) {
	c := exec.Command(path, args...)
	c.Env = env
	// Its output goes where this program's log goes. Processes that it leaves behind would hold a pipe open.
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	c.SysProcAttr = &unix.SysProcAttr{Setpgid: true, Pdeathsig: unix.SIGKILL}
	if err := c.Start(); err != nil {
		return nil, err
	}
	p := &process{command: c, ended: make(chan error, 1)}
	go func() { p.ended <- c.Wait() }()
	return p, nil
}

// signal sends a signal to the whole group, if that hasn't ended.
func (p *process) signal(sig unix.Signal) {
	_ = unix.Kill(-p.command.Process.Pid, sig)
}

// errTooLong says that a command was killed because it took too long.
var errTooLong = errors.New("it did not end in time, and was killed")

// wait waits for the command's end, and kills its group after the timeout.
func (p *process) wait(timeout time.Duration) error {
	limit := time.NewTimer(timeout)
	defer limit.Stop()
	select {
	case err := <-p.ended:
		return err
	case <-limit.C:
		p.signal(unix.SIGKILL)
		<-p.ended
		return errTooLong
	}
}
