package config

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func mode(t *testing.T, path string) fs.FileMode {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode()
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestInit(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "it's topdog")
	done, err := Init(dir, "192.168.1.250/24", InitOptions{Group: "shelf"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"key", "topdog.toml"}, names(t, dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if got := mode(t, done.KeyPath); got != 0o600 {
		t.Errorf("the key has mode %v", got)
	}
	if got := mode(t, done.ConfigPath); got != 0o644 {
		t.Errorf("the configuration has mode %v", got)
	}
	c, err := Load(done.ConfigPath)
	if err != nil {
		t.Fatal(err)
	}
	standard, err := Parse("/etc/topdog/topdog.toml", []byte(good)) // on this machine, which has a name
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"address", "group", "key_file"}, standard.Changed(c)); diff != "" {
		t.Errorf("what the new file changes (-want +got):\n%s", diff)
	}
	k, err := LoadKey(c.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	if !done.KeyIsNew || done.Key != k.String() {
		t.Errorf("Init says %q (new: %v), the file has %s", done.Key, done.KeyIsNew, k)
	}
	secret := strings.Split(read(t, done.KeyPath), "\n")[2]
	if len(secret) != 64 || strings.Contains(read(t, done.ConfigPath), secret) {
		t.Errorf("the key is somewhere else than in its file, or not there: %+v", done)
	}
}

// What is asked for is what the new file says.
func TestInitWritesOptions(t *testing.T) {
	dir := t.TempDir()
	done, err := Init(dir, "10.0.0.9", InitOptions{LED: `GPIO17:low`, Interface: "wlan0"})
	if err != nil {
		t.Fatal(err)
	}
	c, err := Load(done.ConfigPath)
	if err != nil || c.LED != light("GPIO17:low") || c.Interface != "wlan0" {
		t.Errorf("led %q, interface %q, %v", c.LED, c.Interface, err)
	}
}

// In its usual place a new board's file needs no key_file.
func TestInitWritesNoDefaults(t *testing.T) {
	a, _ := ParseAddress("192.168.1.250")
	text := string(minimalConfig(a, "/etc/topdog", InitOptions{}))
	if changed := parse(t, good).Changed(parse(t, text)); changed != nil {
		t.Errorf("it changes %v:\n%s", changed, text)
	}
	if strings.Contains(text, "\nkey_file") {
		t.Errorf("it has a key_file:\n%s", text)
	}
}

func TestInitReplacesNothing(t *testing.T) {
	dir := t.TempDir()
	opts := InitOptions{}
	first, err := Init(dir, "192.168.1.250", opts)
	if err != nil {
		t.Fatal(err)
	}
	key, text := read(t, first.KeyPath), read(t, first.ConfigPath)

	if _, err := Init(dir, "192.168.1.251", opts); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second Init: %v", err)
	}
	if read(t, first.KeyPath) != key || read(t, first.ConfigPath) != text {
		t.Fatal("a second Init changed something")
	}

	// A board that got the key by hand still needs a configuration.
	if err := os.Remove(first.ConfigPath); err != nil {
		t.Fatal(err)
	}
	second, err := Init(dir, "192.168.1.250", opts)
	if err != nil {
		t.Fatal(err)
	}
	if second.KeyIsNew || second.Key != first.Key || read(t, first.KeyPath) != key {
		t.Errorf("Init replaced a good key: %+v", second)
	}

	// A bad key is not replaced either, and nothing else is written.
	if err := errors.Join(os.Remove(first.ConfigPath), os.WriteFile(first.KeyPath, []byte("x\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := Init(dir, "192.168.1.250", opts); err == nil || !strings.Contains(err.Error(), "hexadecimal") {
		t.Errorf("with a bad key: %v", err)
	}
	if diff := cmp.Diff([]string{"key"}, names(t, dir)); diff != "" {
		t.Errorf("files after a refused Init (-want +got):\n%s", diff)
	}

	opts.Force = true
	third, err := Init(dir, "192.168.1.251", opts)
	if err != nil {
		t.Fatal(err)
	}
	if !third.KeyIsNew || third.Key == first.Key || !strings.Contains(read(t, third.ConfigPath), "192.168.1.251") {
		t.Errorf("with Force: %+v", third)
	}
	if diff := cmp.Diff([]string{"key", "topdog.toml"}, names(t, dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// The rename itself refuses, not only the look before it.
func TestWriteFileDoesNotReplace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := writeFile(path, []byte("one"), 0o600, false); err != nil {
		t.Fatal(err)
	}
	if err := writeFile(path, []byte("two"), 0o600, false); !errors.Is(err, fs.ErrExist) {
		t.Errorf("err = %v", err)
	}
	if got := read(t, path); got != "one" {
		t.Errorf("the file is now %q", got)
	}
	if diff := cmp.Diff([]string{"f"}, names(t, filepath.Dir(path))); diff != "" {
		t.Errorf("files left behind (-want +got):\n%s", diff)
	}
	if err := writeFile(path, []byte("three"), 0o600, true); err != nil || read(t, path) != "three" {
		t.Errorf("with replace: %v", err)
	}
}

func TestInitRefusesBeforeItWrites(t *testing.T) {
	for _, tc := range []struct {
		name, address string
		opts          InitOptions
		want          string
	}{
		{"address", "localhost", InitOptions{}, "not an IPv4 address"},
		{"loopback", "127.0.0.1", InitOptions{}, "loopback"},
		{"group", "10.0.0.9", InitOptions{Group: "ü\x00\""}, "ASCII"},
		{"interface", "10.0.0.9", InitOptions{Interface: "a b\nid = 3"}, "interface"},
		{"led", "10.0.0.9", InitOptions{LED: "GPIO 17"}, `a line is written "GPIO17"`},
		{"randomness", "10.0.0.9", InitOptions{Rand: bytes.NewReader(nil)}, "random"},
	} {
		// Check knows all but what is found out while Init works.
		if err := tc.opts.Check(tc.address); tc.opts.Rand == nil && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: checked: %v, want something about %q", tc.name, err, tc.want)
		}
		dir := t.TempDir()
		if _, err := Init(dir, tc.address, tc.opts); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want something about %q", tc.name, err, tc.want)
		}
		if left := names(t, dir); left != nil {
			t.Errorf("%s: %v was written", tc.name, left)
		}
	}
}

func TestCheckAccepts(t *testing.T) {
	for _, address := range []string{"", "10.0.0.9", "10.0.0.9/24"} {
		opts := InitOptions{Group: "x", Interface: "eth0", LED: "ACT"}
		if err := opts.Check(address); err != nil {
			t.Errorf("%q: %v", address, err)
		}
	}
	if err := (InitOptions{Group: "ü"}).Check(""); err == nil {
		t.Error("a bad group is taken as long as there is no address")
	}
}

func TestInitWithoutKey(t *testing.T) {
	dir := t.TempDir()
	done, err := Init(dir, "10.0.0.9", InitOptions{NoKey: true})
	if err != nil {
		t.Fatal(err)
	}
	c, err := Load(done.ConfigPath)
	if err != nil || c.KeyFile != NoKey || done.KeyPath != "" || done.Key != "" {
		t.Errorf("%+v, key_file %v, %v", done, c, err)
	}
	if diff := cmp.Diff([]string{"topdog.toml"}, names(t, dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}
