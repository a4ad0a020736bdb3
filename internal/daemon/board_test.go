package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"

	"topdog/internal/config"
	"topdog/internal/lab/assert"
)

// TestDistinct: what has ended all groups is said once.
func TestDistinct(t *testing.T) {
	assert.ErrorIs(t, errors.Join(distinct([]error{nil, nil})...), nil, "nothing")
	lost := func() error { return errors.New("the holder has ended") }
	assert.Is(t, "the holder has ended\nanother", errors.Join(distinct([]error{lost(), nil, lost(), errors.New("another")})...).Error(), "what is said")
}

// TestInheritDrain: a drained board stays drained when its only group becomes one of several, until that is ended for each.
func TestInheritDrain(t *testing.T) {
	dir := t.TempDir()
	assert.NoError(t, drainFile{dir, drainedName}.write(&drainNote{Board: "10.0.0.1"}))
	b := NewBoard("", nil)
	for _, name := range []string{"dns1", "dns2"} {
		cfg := &config.Config{Group: name}
		cfg.Several = true
		d := &Daemon{drain: &drain{file: newDrainFile(dir, cfg)}}
		b.daemons = append(b.daemons, d)
	}
	assert.NoError(t, b.inheritDrain())
	for _, d := range b.daemons {
		note, err := d.drain.file.read()
		assert.NoError(t, err)
		assert.Is(t, "10.0.0.1", note.Board, "the board that %s names", d.drain.file.path())
	}
	_, err := os.Stat(filepath.Join(dir, drainedName))
	assert.ErrorIs(t, err, os.ErrNotExist, "the former note")
	assert.NoError(t, b.daemons[0].drain.file.remove())
	assert.NoError(t, b.inheritDrain())
	note, err := b.daemons[0].drain.file.read()
	assert.NoError(t, err)
	assert.Is(t, true, note == nil, "a group that is not drained any more stays so")
}

// TestWitnessReloadsItsGroups: the groups of the file in which a witness takes no part are no other groups than before.
func TestWitnessReloadsItsGroups(t *testing.T) {
	log := logrus.New()
	var said strings.Builder
	log.SetOutput(&said)
	b := NewBoard("", logrus.NewEntry(log))
	groups, err := config.ParseGroups("topdog.toml", []byte("key_file = \"none\"\n[[group]]\nname = \"dns1\"\naddress = \"192.168.1.250\"\n"+
		"[[group]]\nname = \"dns2\"\naddress = \"192.168.1.251\"\nalgorithm = \"strict\"\nvoters = [\"192.168.1.11\", \"192.168.1.12\", \"192.168.1.13\"]\n"))
	assert.NoError(t, err)
	d := &Daemon{witness: true, cfg: *groups.Named("dns2"), shared: shared{tasks: newTasks()}}
	b.daemons = []*Daemon{d}
	b.reconfigure(groups)
	assert.Is(t, 1, len(d.tasks.posted), "configurations that were passed on")
	assert.Is(t, "", said.String(), "logged")
}
