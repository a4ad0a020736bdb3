package daemon

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/boottime"
)

// drainFile is where it is noted that a board is drained. It is the one file that the daemon writes to the
// disk, and it does so only when somebody drains the board.
type drainFile struct {
	dir string // "" for nowhere: then a drain ends with the daemon
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

func (f drainFile) path() string { return filepath.Join(f.dir, "drained") }

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

// write writes the note so that it is there after a power cut, whole or not at all.
func (f drainFile) write(note *drainNote) (err error) {
	if f.dir == "" {
		return nil
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot note that this board is drained: %w", err)
		}
	}()
	text, err := json.Marshal(note)
	if err != nil {
		return err
	}
	next := f.path() + ".new"
	file, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(append(text, '\n'))
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := os.Rename(next, f.path()); err != nil {
		return err
	}
	return f.syncDir()
}

// remove removes the note for good.
func (f drainFile) remove() error {
	if f.dir == "" {
		return nil
	}
	err := os.Remove(f.path())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = f.syncDir()
	}
	if err != nil {
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
		return "unknown" // without /proc no boot is told from another one
	}
	return strings.TrimSpace(string(id))
}

// awakeSinceBoot reads CLOCK_MONOTONIC, which stands still while the machine is suspended.
func awakeSinceBoot() time.Duration { return boottime.Read(unix.CLOCK_MONOTONIC) }
