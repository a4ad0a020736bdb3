package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"

	"topdog/internal/config"
	"topdog/internal/lab/assert"
)

const (
	aKey = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n"
	// longAway is how long a file is not there: much longer than a mistake is waited for.
	longAway = 50 * mendWithin
	aBoard   = "address = \"192.168.1.250/24\"\nkey_file = \"key\"\n"
)

// A file that is replaced while the daemon starts does not end it for ever: systemd does not start again what ends with exitConfig.
func TestFilesReplacedAtTheStart(t *testing.T) {
	for _, test := range []struct {
		name       string
		spoil      func(dir string) error // what is wrong at the start
		mendAfter  time.Duration          // 0: nobody mends it
		atTerminal bool
		took       time.Duration
		status     int    // 0: it starts
		logged     string // the one line, or nothing
	}{
		{name: "nothing is wrong", spoil: func(string) error { return nil }},
		{"a key that is half written", write("key", aKey[:20], 0o600), time.Second, false, time.Second, 0, ""},
		{"an empty key file", write("key", "", 0o600), time.Second, false, time.Second, 0, ""},
		{"a key that everybody may read", write("key", aKey, 0o644), time.Second, false, time.Second, 0, ""},
		{"a configuration that is half written", write("topdog.toml", aBoard[:20], 0o600), time.Second, false, time.Second, 0, ""},
		{"a configuration that everybody may write", write("topdog.toml", aBoard, 0o666), time.Second, false, time.Second, 0, ""},
		{"no key", remove("key"), longAway, false, longAway, 0, "there is no key file"},
		{"no configuration", remove("topdog.toml"), longAway, false, longAway, 0, "cannot read the configuration: no such file or directory"},
		{"a mistake that stays", write("topdog.toml", "no_such_key = 1\n", 0o600), 0, false, mendWithin, exitConfig, ""},
		{"a file that cannot be the right one", write("topdog.toml", strings.Repeat("# a line\n", 10_000), 0o600), 0, false, mendWithin, exitConfig, ""},
		{"a directory in its place", func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "key")), os.Mkdir(filepath.Join(dir, "key"), 0o700))
		}, 0, false, mendWithin, exitConfig, ""},
		{"a mode that stays", write("key", aKey, 0o644), 0, false, mendWithin, exitConfig, ""},
		{"a mistake, at a terminal", write("key", aKey[:20], 0o600), time.Second, true, 0, exitConfig, ""},
		{"no key, at a terminal", remove("key"), time.Second, true, 0, exitConfig, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			mend := func() error {
				return errors.Join(write("key", aKey, 0o600)(dir), write("topdog.toml", aBoard, 0o600)(dir))
			}
			must(t, mend())
			must(t, test.spoil(dir))
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				log := logrus.New()
				log.SetOutput(&out)
				if test.mendAfter > 0 {
					mender := time.AfterFunc(test.mendAfter-time.Millisecond, func() {
						if err := mend(); err != nil {
							t.Error(err)
						}
					})
					defer mender.Stop()
				}
				began := time.Now()
				err := readFiles(t.Context(), test.atTerminal, logrus.NewEntry(log), func() error {
					_, err := readBoard(filepath.Join(dir, "topdog.toml"), runOptions{})
					return err
				})
				if got := statusOf(err); got != test.status {
					t.Errorf("status %d, want %d: %v", got, test.status, err)
				}
				assert.Is(t, test.took, time.Since(began), "it took")
				if got := out.String(); strings.Count(got, "\n") > 1 || (got == "") != (test.logged == "") || !strings.Contains(got, test.logged) {
					t.Errorf("logged %q, want one line with %q", got, test.logged)
				}
			})
		})
	}
}

// A mistake that comes after a long absence has its time as well: the file is copied now.
func TestFileComesLateAndInParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, absent := config.LoadGroups(filepath.Join(t.TempDir(), "none"))
		answers := map[time.Duration]error{}
		for at := time.Duration(0); at < longAway; at += retryEvery {
			answers[at] = absent
		}
		for at := longAway; at < longAway+mendWithin; at += retryEvery {
			answers[at] = config.Errors{{Message: "half written"}}
		}
		began := time.Now()
		log := logrus.New()
		log.SetOutput(&bytes.Buffer{})
		if err := readFiles(t.Context(), false, logrus.NewEntry(log), func() error { return answers[time.Since(began)] }); err != nil {
			t.Error(err)
		}
	})
}

// To end a program that waits for its files is no failure.
func TestEndedWhileFilesAreMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		log := logrus.New()
		log.SetOutput(&bytes.Buffer{})
		err := readFiles(ctx, false, logrus.NewEntry(log), func() error {
			_, err := config.LoadGroups(filepath.Join(t.TempDir(), "none"))
			return err
		})
		if err == nil || statusOf(err) != 0 || ctx.Err() == nil {
			t.Errorf("status %d: %v", statusOf(err), err)
		}
	})
}

func write(name, text string, mode os.FileMode) func(dir string) error {
	return func(dir string) error {
		path := filepath.Join(dir, name)
		return errors.Join(os.WriteFile(path, []byte(text), mode), os.Chmod(path, mode))
	}
}

func remove(name string) func(dir string) error {
	return func(dir string) error { return os.Remove(filepath.Join(dir, name)) }
}
