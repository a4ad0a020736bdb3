package check

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// keptBytes is how much of a program's output is kept. Nobody wants to read more in a log.
	keptBytes = 512
	// commandOutputMax is how much the program of a check may print. Nobody reads it, but many print something.
	commandOutputMax = 64 << 10
	// scoreOutputMax is how much the score command may print. A number needs ten characters.
	scoreOutputMax = 512
	// complaintMax is how much a program may write to its standard error. Reading a runaway script would take
	// all of a small board's processor.
	complaintMax = 64 << 10
	// outputWithin is how long the output may stay open once the program has ended. Only processes that the program has
	// left behind can hold it open.
	outputWithin = 100 * time.Millisecond
)

// runProgram runs a program and returns the beginning of its output. The program is killed when ctx ends, or when it
// prints more than outputMax bytes. Whatever happens, its process group ends with it. It gets no capabilities, since a
// checker has none.
func runProgram(ctx context.Context, words []string, outputMax int) ([]byte, error) {
	// The kernel sends the parent-death signal when this thread ends, so keep it until the program has ended.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	ctx, kill := context.WithCancel(ctx)
	defer kill()
	stdout, stderr := limited{most: outputMax, exceeded: kill}, limited{most: complaintMax, exceeded: kill}
	c := exec.CommandContext(ctx, words[0], words[1:]...)
	c.Stdout, c.Stderr = &stdout, &stderr
	c.Dir = "/"
	c.Env = environment(os.Environ())
	c.WaitDelay = outputWithin
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	killGroup := func() { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.Cancel = func() error {
		killGroup()
		return c.Process.Kill() // in case it has left its group
	}
	if err := c.Start(); err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		return nil, fmt.Errorf("cannot be started: %w", plainError(err))
	}
	err := c.Wait()
	killGroup() // kills what the program has left behind: as long as there is anything, no other group has this number
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // it ended well, and a process that it has left behind held its output open
	}
	switch {
	case stdout.total > stdout.most:
		return nil, fmt.Errorf("printed more than %d bytes", stdout.most)
	case stderr.total > stderr.most:
		return nil, fmt.Errorf("wrote more than %d bytes to its standard error", stderr.most)
	}
	said := quoted(strings.TrimSpace(string(stderr.kept)))
	switch {
	case err != nil && len(stderr.kept) > 0:
		return nil, fmt.Errorf("failed (%w): %s", err, said)
	case err != nil:
		return nil, fmt.Errorf("failed (%w)", err)
	}
	return stdout.kept, nil
}

// environment returns the environment of a program. The locale is C, so that numbers look the same everywhere. The
// variables that connect the daemon to systemd, and those that keep the checker's memory small, are left out.
func environment(env []string) []string {
	env = slices.DeleteFunc(slices.Clone(env), func(setting string) bool {
		name, _, _ := strings.Cut(setting, "=")
		switch name {
		case "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LC_ALL", "GOMAXPROCS", "GOGC", "GOMEMLIMIT":
			return true
		}
		return false
	})
	return append(env, "LC_ALL=C")
}

// quoted returns the beginning of a program's output on one line.
func quoted(text string) string { return strconv.Quote(shortened(text, 60)) }

// limited keeps the beginning of what is written to it.
type limited struct {
	most     int    // how many bytes may be written
	exceeded func() // called when more are written
	kept     []byte
	total    int
}

// Write fails beyond the limit, so that reading stops. A process that has left the group isn't killed, and mustn't keep the
// checker busy either.
func (l *limited) Write(b []byte) (int, error) {
	l.kept = append(l.kept, b[:min(len(b), keptBytes-len(l.kept))]...)
	l.total += len(b)
	if l.total > l.most {
		l.exceeded()
		return 0, errors.New("too much output")
	}
	return len(b), nil
}

const (
	// scoreEvery is how often the score command is run. If scores changed faster than people can follow, they would
	// drag the address around. Starting a small program takes a Raspberry Pi Zero about 10 ms, which is 0.2 % of this.
	scoreEvery = 5 * time.Second
	// scoreWithin is how long the command may take. It is less than scoreEvery, so that a command that always hangs is
	// still run each time, and long enough for a script to start from a busy SD card.
	scoreWithin = 4 * time.Second
)

// Score is the result of one run of the score command.
type Score struct {
	Program string `json:"program"` // what was run; another command may be configured by now
	Value   uint32 `json:"value"`
	Failure string `json:"failure,omitempty"` // why there is no value
}

// scoreRunner runs a score command and returns its output; runScoreCommand is the real one.
type scoreRunner func(ctx context.Context, words []string) ([]byte, error)

// runScores runs the score command at once and then every scoreEvery, until ctx ends. Runs don't overlap.
func runScores(ctx context.Context, words []string, run scoreRunner, report func(Score)) {
	tick := time.NewTicker(scoreEvery)
	defer tick.Stop()
	for {
		score := Score{Program: words[0]}
		var err error
		if score.Value, err = runScore(ctx, words, run); err != nil {
			score.Failure = err.Error()
		}
		report(score)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// runScore runs a score command once.
func runScore(ctx context.Context, words []string, run scoreRunner) (uint32, error) {
	ctx, cancel := context.WithTimeout(ctx, scoreWithin)
	defer cancel()
	output, err := run(ctx, words)
	switch {
	case ctx.Err() != nil:
		return 0, fmt.Errorf("did not end within %v and was killed", scoreWithin)
	case err != nil:
		return 0, err
	}
	return parseScore(output)
}

// runScoreCommand runs a real score command.
func runScoreCommand(ctx context.Context, words []string) ([]byte, error) {
	return runProgram(ctx, words, scoreOutputMax)
}

// parseScore reads one whole number, which may have white space around it.
func parseScore(output []byte) (uint32, error) {
	text := strings.TrimSpace(string(output))
	score, err := strconv.ParseUint(text, 10, 32)
	switch {
	case text == "":
		return 0, fmt.Errorf("printed nothing")
	case err != nil:
		return 0, fmt.Errorf("printed %s, which is not one whole number from 0 to 4294967295", quoted(text))
	}
	return uint32(score), nil
}
