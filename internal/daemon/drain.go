package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/wire"
)

// drain is whether somebody has asked this board to leave the lead to others. That outlives the daemon and, unless it
// was asked for a limited time, the next boot of the board: see drainNote.
type drain struct {
	shared
	file     drainFile
	awake    func() time.Duration // for how long the machine has been awake since its boot
	changing chan struct{}        // is full while the file is being changed; see change

	on    bool
	until time.Duration // by awake; never if it has no end
}

// The bounds of a drain with an end.
const (
	minDrain = time.Second
	maxDrain = 30 * 24 * time.Hour
)

func newDrain(s shared, file drainFile) *drain {
	return &drain{shared: s, file: file, awake: s.platform.Awake, changing: make(chan struct{}, 1), until: never}
}

// load reads what was asked of an earlier daemon of this board.
func (d *drain) load(board wire.ID) {
	note, err := d.file.read()
	switch {
	case err != nil:
		d.reporter.set(console.ProblemDrain, err.Error())
	case note == nil:
	case note.Board != board.String():
		d.reporter.set(console.ProblemDrain, fmt.Sprintf("%s is of board %s, and this is board %v, so this board is not drained: "+
			"run topdog drain if it shall be, or remove the file", d.file.path(), note.Board, board))
	case note.Boot != "" && (note.Boot != bootID() || time.Duration(note.UntilNs) <= d.awake()):
		d.forget() // it was asked for a time, which is over
	default:
		d.set(note.until())
		d.reporter.log.Info("this board is drained; topdog undrain ends that")
	}
}

// set notes that this board is drained, until that time.
func (d *drain) set(until time.Duration) {
	d.on, d.until = true, until
	d.reporter.solved(console.ProblemDrain)
}

// end notes that this board is not drained any more.
func (d *drain) end() { d.on, d.until = false, never }

// expire ends a drain whose time is over. While the machine is suspended that time stands still.
func (d *drain) expire() {
	if d.until == never || d.awake() < d.until {
		return
	}
	d.end()
	d.forget()
	d.reporter.log.Info("this board is not drained any more: the time is over")
}

// forget removes the file, outside of the loop, unless somebody has drained the board again meanwhile.
func (d *drain) forget() {
	d.tasks.start(func(ctx context.Context) {
		err := d.change(ctx, func() error {
			on := false
			if err := d.tasks.call(ctx, func() error { on = d.on; return nil }); err != nil || on {
				return err
			}
			return d.file.remove()
		})
		if err != nil && ctx.Err() == nil {
			d.tasks.tryPost(func() { d.reporter.set(console.ProblemDrain, err.Error()) })
		}
	})
}

// change runs do, which changes the file and then tells the loop, when no other change is running. The loop itself never
// calls it.
func (d *drain) change(ctx context.Context, do func() error) error {
	select {
	case d.changing <- struct{}{}:
		defer func() { <-d.changing }()
		return do()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// status fills in what topdog status shows of it.
func (d *drain) status(s *console.Status) {
	s.Drained = d.on
	if d.until != never {
		s.DrainLeftNs = int64(max(0, d.until-d.awake()))
	}
}

// drainFile notes on the disk that a board is drained. It is the only file that the daemon writes to the disk, and it
// does so only when somebody drains the board.
type drainFile struct {
	dir  string // "" for nowhere: then a drain ends with the daemon
	name string
}

// drainedName is the file of an only group.
const drainedName = "drained"

// inheritDrain gives the groups the note of the only group that the board was in before, so that it stays drained.
func (b *Board) inheritDrain() error {
	former := drainFile{b.daemons[0].drain.file.dir, drainedName}
	note, err := former.read()
	if note == nil || err != nil {
		return err
	}
	for _, d := range b.daemons {
		if own, err := d.drain.file.read(); own == nil && err == nil {
			if err := d.drain.file.write(note); err != nil {
				return err
			}
		}
	}
	return former.remove()
}

// newDrainFile returns the file of a group. Where a board has several, each has its own.
func newDrainFile(dir string, cfg *config.Config) drainFile {
	f := drainFile{dir, drainedName}
	if cfg.Several {
		f.name += fmt.Sprintf("-%04x", wire.TagOf(cfg.Group)) // a name may have characters that no file has
	}
	return f
}

// drainNote is its content, as JSON.
type drainNote struct {
	// Board is the id of the board. A disk that is copied drains no other one.
	Board string `json:"board"`
	// Boot is the boot during which the drain ends, at UntilNs on CLOCK_MONOTONIC. It is "" for a drain that has
	// no end.
	Boot    string `json:"boot,omitempty"`
	UntilNs int64  `json:"until_ns,omitempty"`
}

// until is when the drain ends; never if it has no end.
func (n *drainNote) until() time.Duration {
	if n.Boot == "" {
		return never
	}
	return time.Duration(n.UntilNs)
}

func (f drainFile) path() string { return filepath.Join(f.dir, f.name) }

// read returns the note, or nil if there is none.
func (f drainFile) read() (*drainNote, error) {
	if f.dir == "" {
		return nil, nil
	}
	text, err := os.ReadFile(f.path())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot find out whether this board is drained: %w", err)
	}
	note := new(drainNote)
	if err := json.Unmarshal(text, note); err != nil || note.Board == "" {
		return nil, fmt.Errorf("%s does not say which board is drained, so this one is not: run topdog drain if it shall be, or remove the file", f.path())
	}
	return note, nil
}

// write writes the note so that after a power cut it is there as a whole, or not at all.
func (f drainFile) write(note *drainNote) error {
	if f.dir == "" {
		return nil
	}
	next := f.path() + ".new"
	file, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err == nil {
		err = errors.Join(json.NewEncoder(file).Encode(note), file.Sync(), file.Close())
	}
	if err == nil {
		err = os.Rename(next, f.path())
	}
	if err == nil {
		err = f.syncDir()
	}
	if err != nil {
		return fmt.Errorf("cannot note that this board is drained: %w", err)
	}
	return nil
}

// remove removes the note, so that it stays away after a power cut.
func (f drainFile) remove() error {
	if f.dir == "" {
		return nil
	}
	err := os.Remove(f.path())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err = errors.Join(err, f.syncDir()); err != nil {
		return fmt.Errorf("cannot note that this board is not drained any more: %w", err)
	}
	return nil
}

func (f drainFile) syncDir() error {
	dir, err := os.Open(f.dir)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// bootID names the present boot of the machine.
func bootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "unknown" // without /proc, one boot cannot be told from another
	}
	return strings.TrimSpace(string(id))
}
