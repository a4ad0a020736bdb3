package pi

import (
	"os"
	"os/exec"
	"testing"

	"topdog/internal/lab/assert"
)

// sleeper starts a process that does nothing until it is killed.
func sleeper(t *testing.T) *exec.Cmd {
	t.Helper()
	c := exec.Command("cat") // reads a pipe that nobody writes to
	in, err := c.StdinPipe()
	assert.NoError(t, err)
	assert.NoError(t, c.Start())
	t.Cleanup(func() {
		in.Close()
		_ = c.Wait()
	})
	return c
}

func TestKillEndsTheProcess(t *testing.T) {
	c := sleeper(t)
	p, err := identify(c.Process.Pid)
	if err != nil || !p.runs() {
		t.Fatalf("identify: %+v, %v", p, err)
	}
	assert.NoError(t, p.kill())
	if p.runs() {
		t.Error("it runs after kill")
	}
	assert.ErrorIs(t, p.kill(), nil, "kill again")
}

// A number that another process has by now ends nobody.
func TestKillSparesStrangers(t *testing.T) {
	c := sleeper(t)
	p, err := identify(c.Process.Pid)
	assert.NoError(t, err)
	stranger := p
	stranger.Start++
	if stranger.runs() {
		t.Error("a process with another start time is taken for ours")
	}
	assert.ErrorIs(t, stranger.kill(), nil, "")
	if !p.runs() {
		t.Error("a stranger was killed")
	}
	if (processID{}).runs() {
		t.Error("a board that was never on runs")
	}
}

func TestSetNice(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("raising a priority needs root")
	}
	c := sleeper(t)
	p, err := identify(c.Process.Pid)
	assert.NoError(t, err)
	assert.NoError(t, p.setNice(runNice))
	fields, err := statFields(p.PID)
	assert.NoError(t, err)
	if got := fields[16]; got != "-5" { // field 19 of proc(5)
		t.Errorf("nice %s, want -5", got)
	}
}
