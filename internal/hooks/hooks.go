package hooks

import (
	"context"
	"errors"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/sirupsen/logrus"

	"topdog/internal/console"
)

// Options are those of `topdog hooks`.
type Options struct {
	Directory string
	Timeout   time.Duration // of one script
	Log       *logrus.Entry
}

// Run runs the hooks until ctx ends. A script that runs then, and what is still due, is finished.
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
		// At a shutdown the daemon has ended just before this program is told to. What that means
		// for the hooks is on its way.
		time.AfterFunc(lastWords, stopFollowing)
	}()
	err := follow(following, c, console.WatchOptions{ForHooks: true}, r.Log, r.states.put)
	stopFollowing()
	<-ended
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// lastWords is how long the end of a stream may take to arrive.
const lastWords = 100 * time.Millisecond

// runner runs scripts, one at a time. Each is told every state that counts for it, unless that is
// overtaken before its turn. The last one is always told.
type runner struct {
	Options
	states   *newest
	now      state
	told     map[script]told // by script that was run
	remarked map[remark]bool // was logged
}

// told is what a script was told last.
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

// settle runs scripts until all have been told how the board is. After each of them it begins
// anew with the newest state, so that none is told what is over.
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

// look returns the scripts that there are, and logs once what is wrong with others.
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

// due reports whether a script has to be told the present state.
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

// arguments are those that keepalived gives to a notify script.
func (s *state) arguments() []string {
	return []string{"INSTANCE", s.Group, string(s.word), strconv.Itoa(s.Priority)}
}

// environment is what a script finds in addition.
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

// defaultPath is for scripts of a program that has no PATH, as the shell has it.
const defaultPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// inherited is the environment without what is meant for this program alone: a script that
// told systemd READY=1 would speak for it.
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
