// Package assert says in one line what a test wants, with a readable difference if it does not get it.
// The format says what was looked at, unless the name of the test does.
package assert

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// NoError ends the test if there is an error.
func NoError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// ErrorContains fails the test unless there is an error with this text. An empty text wants no error.
func ErrorContains(t testing.TB, err error, text, format string, args ...any) {
	t.Helper()
	switch {
	case text == "" && err != nil:
		t.Errorf("%sgot error %v, want none", about(format, args...), err)
	case text != "" && (err == nil || !strings.Contains(err.Error(), text)):
		t.Errorf("%sgot error %v, want one with %q", about(format, args...), err, text)
	}
}

// ErrorIs fails the test unless the error is this one, or wraps it. With nil it wants no error, and the test goes on.
func ErrorIs(t testing.TB, err, target error, format string, args ...any) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("%sgot error %v, want %v", about(format, args...), err, target)
	}
}

// Until ends the test unless something becomes so within ten seconds. It polls, so it is only for what another process does
// and nobody tells.
func Until(t testing.TB, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("never: " + what)
			return
		}
	}
}

// Is fails the test if a plain value is not the one that is wanted.
func Is[T comparable](t testing.TB, want, got T, format string, args ...any) {
	t.Helper()
	if got == want {
		return
	}
	verb := "%v"
	if _, text := any(want).(string); text {
		verb = "%q"
	}
	t.Errorf("%sgot "+verb+", want "+verb, about(format, args...), got, want)
}

// Equal fails the test if a value with parts is not the one that is wanted. Parts that are not exported count as well.
func Equal(t testing.TB, want, got any, format string, args ...any) {
	t.Helper()
	if diff := cmp.Diff(want, got, everything); diff != "" {
		t.Errorf("%s(-want +got):\n%s", about(format, args...), diff)
	}
}

var everything = cmp.Exporter(func(reflect.Type) bool { return true })

func about(format string, args ...any) string {
	if format == "" {
		return ""
	}
	return fmt.Sprintf(format, args...) + ": "
}

// WriteFile writes a file that may be executed at once. Nothing is forked meanwhile: the child would have the file open for
// writing until it executes something, and until then the kernel refuses to execute the file (ETXTBSY; Go issue 22315).
func WriteFile(t testing.TB, path string, text []byte, mode os.FileMode) {
	t.Helper()
	syscall.ForkLock.RLock()
	err := os.WriteFile(path, text, mode)
	syscall.ForkLock.RUnlock()
	NoError(t, err)
}
