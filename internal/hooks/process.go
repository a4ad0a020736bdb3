package hooks

import (
	"errors"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"
)

// process is a command that runs in a process group of its own, so that all that it has started can be ended with it.
type process struct {
	command *exec.Cmd
	ended   chan error // has how it ended
}

// start starts a command. It ends with the thread that has started it, if this program is killed: who
// calls start has locked that thread (prctl(2), PR_SET_PDEATHSIG).
func start(path string, args, env []string) (*process, error) {
	c := exec.Command(path, args...)
	c.Env = env
	// What it says goes where this program's log goes. Pipes would be held open by what it leaves behind.
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	c.SysProcAttr = &unix.SysProcAttr{Setpgid: true, Pdeathsig: unix.SIGKILL}
	if err := c.Start(); err != nil {
		return nil, err
	}
	p := &process{command: c, ended: make(chan error, 1)}
	go func() { p.ended <- c.Wait() }()
	return p, nil
}

// signal sends a signal to the whole group. That the group has ended is no failure.
func (p *process) signal(sig unix.Signal) {
	_ = unix.Kill(-p.command.Process.Pid, sig)
}

// errTooLong says that a command did not end in time.
var errTooLong = errors.New("it did not end in time, and was killed")

// wait waits for the end, and kills the whole group when that takes too long.
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
