package gpio

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// boardLED is one of the board's own LEDs. Every Raspberry Pi has ACT, so a
// demonstration needs no wiring. Switching such an LED does not write to the SD card: its
// files exist in the kernel only. See Documentation/leds/leds-class.rst in the kernel's sources.
type boardLED struct {
	dir  string // /sys/class/leds/ACT
	name string
	// trigger is the trigger that had the LED before us, "mmc0" for ACT. Close gives
	// the LED back to it. If the process is killed instead, the kernel tells the next process
	// "none", and only the note has the trigger.
	trigger string
	spec    Spec
	notes   notes
	claim   *os.File // keeps other processes away, see claimAlone; may be nil
}

const noTrigger = "none"

// The brightness that is written to an LED. The kernel lowers it to the most that the LED can do.
const (
	dark = "0"
	lit  = "255"
)

func openSysfs(root string, spec Spec, notes notes) (LED, error) {
	name := spec.name
	l := &boardLED{dir: filepath.Join(root, name), name: name, trigger: noTrigger, spec: spec, notes: notes}
	fail := func(err error) (LED, error) {
		l.release()
		return nil, fmt.Errorf("open the LED %q: %w", name, l.explain(err))
	}
	if _, err := os.Stat(l.dir); err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			return fail(err)
		}
		return fail(fmt.Errorf("%w: %s does not exist; there are %s", ErrNotFound, l.dir, listed(entries(root))))
	}
	if err := l.claimAlone(); err != nil {
		return fail(err)
	}

	// A kernel without triggers has no such file, and nothing in it makes the LED blink.
	triggers, err := os.ReadFile(filepath.Join(l.dir, "trigger"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fail(err)
	}
	if err := l.takeFrom(string(triggers)); err != nil {
		return fail(err)
	}
	if err := l.Set(false); err != nil {
		err = errors.Join(err, l.restoreTrigger())
		l.release()
		return nil, err
	}
	return l, nil
}

// claimAlone keeps other processes that use this package, such as a second daemon
// or its cleanup, from taking the LED as well. The kernel does that for lines
// only. The claim is a lock on the LED's directory in /sys, see flock(2), so it ends
// with the process, however that ends. If locking fails for any reason other than that
// another process has the lock, the LED is used without one.
func (l *boardLED) claimAlone() error {
	dir, err := os.Open(l.dir)
	if err != nil {
		return nil
	}
	err = unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		_ = dir.Close() // Nothing was written.
		return fmt.Errorf("%w: another topdog on this board has it; give each a light of its own", ErrBusy)
	}
	l.claim = dir
	return nil
}

func (l *boardLED) release() {
	if l.claim != nil {
		_ = l.claim.Close() // Nothing was written.
		l.claim = nil
	}
}

// takeFrom takes the LED from its trigger, and remembers the trigger. The note
// is written first, so that it exists whenever the trigger is gone.
func (l *boardLED) takeFrom(triggers string) error {
	l.trigger = activeTrigger(triggers)
	if l.trigger == noTrigger {
		// Either nothing made it blink, or a process that was killed had taken it. The
		// note counts only if the kernel knows the trigger: somebody who may write a
		// note must not be able to write anything else into /sys.
		if noted := l.notes.trigger(l.spec); knowsTrigger(triggers, noted) {
			l.trigger = noted
		}
		l.notes.keep(l.spec, l.trigger)
		return nil
	}
	l.notes.keep(l.spec, l.trigger)
	if err := l.write("trigger", noTrigger); err != nil {
		l.notes.drop(l.spec)
		return err
	}
	return nil
}

// knowsTrigger reports whether a trigger is in the kernel's list. The active one, which is
// in brackets, does not count.
func knowsTrigger(list, name string) bool {
	return name != "" && name[0] != '[' && slices.Contains(strings.Fields(list), name)
}

// activeTrigger returns the trigger in brackets: "none timer [mmc0] heartbeat".
func activeTrigger(list string) string {
	for word := range strings.FieldsSeq(list) {
		if inner, ok := strings.CutPrefix(word, "["); ok && strings.HasSuffix(inner, "]") {
			return strings.TrimSuffix(inner, "]")
		}
	}
	return noTrigger
}

// entries returns the names in a directory, or none if it cannot be read.
func entries(dir string) []string {
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

func (l *boardLED) Set(on bool) error {
	value := dark
	if on {
		value = lit
	}
	if err := l.write("brightness", value); err != nil {
		return fmt.Errorf("switch the LED %s %s: %w", l, onOff(on), l.explain(err))
	}
	return nil
}

// Close switches the LED off, then gives it back to the trigger that had it. The
// trigger's own settings, such as the delays of the trigger timer, are lost.
func (l *boardLED) Close() error {
	defer l.release()
	return errors.Join(l.Set(false), l.restoreTrigger())
}

func (l *boardLED) restoreTrigger() error {
	if l.trigger != noTrigger {
		if err := l.write("trigger", l.trigger); err != nil {
			return fmt.Errorf("give the LED %s back to its trigger %q: %w", l, l.trigger, l.explain(err))
		}
	}
	l.notes.drop(l.spec)
	return nil
}

func (l *boardLED) String() string { return l.name + " (sysfs)" }

// write opens the file each time. That costs microseconds, and still works after
// the LED's driver was unloaded and loaded again. It never creates the file.
func (l *boardLED) write(attribute, value string) error {
	f, err := os.OpenFile(filepath.Join(l.dir, attribute), os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

func (l *boardLED) explain(err error) error {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w; LEDs belong to root: install topdog's udev rule, which gives them to the group gpio, and join that group", err)
	case errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%w; the service sees /sys read-only: add ReadWritePaths=%s to its unit", err, resolved(l.dir))
	}
	return err
}

// resolved follows the links of /sys/class, since a unit file must name the directory itself.
func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}
