package gpio

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// notes are small files, one for each light that this process has taken, in a directory
// that a reboot empties (/run/topdog). The zero value notes nothing.
type notes struct {
	dir    string
	report func(error)
}

// notePrefix begins the name of a note, and the light follows: "led.GPIO17".
const notePrefix = "led."

// maxNoteBytes is more than any trigger's name has (TRIG_NAME_MAX is 50).
const maxNoteBytes = 128

func (n notes) path(spec Spec) string {
	return filepath.Join(n.dir, notePrefix+url.PathEscape(spec.String()))
}

// keep notes that the light is taken, and which trigger had it.
func (n notes) keep(spec Spec, trigger string) {
	if n.dir == "" {
		return
	}
	if err := n.write(n.path(spec), trigger+"\n"); err != nil {
		n.report(fmt.Errorf("note that the LED %q is taken, in case this process gets killed: %w", spec, err))
	}
}

// write makes a new file. It never writes through a file or a link that
// exists already: the directory may belong to a user with fewer rights.
func (n notes) write(path, text string) error {
	const mode = 0o755 // as RuntimeDirectoryMode= in the unit
	if err := os.MkdirAll(n.dir, mode); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// trigger returns the trigger in the note about the light, or "".
func (n notes) trigger(spec Spec) string {
	if n.dir == "" {
		return ""
	}
	f, err := os.OpenFile(n.path(spec), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return ""
	}
	defer f.Close()
	text := make([]byte, maxNoteBytes)
	size, _ := f.Read(text) // A note that cannot be read says nothing.
	return strings.TrimSpace(string(text[:size]))
}

// drop removes the note: the light has been given back.
func (n notes) drop(spec Spec) {
	if n.dir == "" {
		return
	}
	if err := os.Remove(n.path(spec)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		n.report(fmt.Errorf("forget that the LED %q was taken: %w", spec, err))
	}
}

// Leftovers returns the lights that a process has noted in the directory (see
// [Options]) and has not given back. While that process lives, opening one of them
// fails with ErrBusy. Files with other names are skipped, and a directory that does not
// exist has no notes.
func Leftovers(dir string) ([]Spec, error) {
	list, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for notes about LEDs: %w", err)
	}
	var specs []Spec
	for _, entry := range list {
		escaped, ok := strings.CutPrefix(entry.Name(), notePrefix)
		if !ok {
			continue
		}
		text, err := url.PathUnescape(escaped)
		if err != nil {
			continue // Not one of ours.
		}
		if spec, err := ParseSpec(text); err == nil && spec != (Spec{}) {
			specs = append(specs, spec)
		}
	}
	return specs, nil
}

// DarkenLeftovers puts out the lights that a daemon had when it died, whatever light the
// configuration names by now, and gives them back to the triggers that had them before.
// A light that is busy has a living owner, most likely another daemon that keeps
// its notes in the same directory. It is left alone.
func DarkenLeftovers(options Options) error {
	lights, err := Leftovers(options.NotesIn)
	failed := []error{err}
	options.Report = func(err error) { failed = append(failed, err) }
	for _, spec := range lights {
		if err := Darken(spec, options); !errors.Is(err, ErrBusy) {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// Darken switches a light off. It is no error if there is no such light.
func Darken(spec Spec, options Options) error {
	Init(spec)
	light, err := Open(spec, options) // an opened light is dark
	switch {
	case errors.Is(err, ErrNoGPIO), errors.Is(err, ErrNotFound):
		return nil
	case err != nil:
		return fmt.Errorf("switch the LED off: %w", err)
	}
	return light.Close()
}
