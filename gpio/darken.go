package gpio

import (
	"errors"
	"fmt"
)

// DarkenLeftovers puts out the lights that a daemon had when it died, whatever the
// configuration names by now, and gives them back to what made them blink before.
// A light that is busy has a living owner, most likely another daemon that keeps
// its notes in the same directory.
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

// Darken switches a light off. One that does not exist shines on nobody.
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
