package setup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"topdog/internal/config"
	"topdog/internal/lab/assert"
)

func mode(t *testing.T, path string) fs.FileMode {
	t.Helper()
	info, err := os.Stat(path)
	assert.NoError(t, err)
	return info.Mode()
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	assert.NoError(t, err)
	return string(data)
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	assert.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// board is one whose files are in dir.
func board(dir string) Board {
	return Board{Path: filepath.Join(dir, configName), Addresses: []string{"192.168.1.250"}}
}

func mustWrite(t *testing.T, b Board) written {
	t.Helper()
	done, err := b.write()
	assert.NoError(t, err)
	return done
}

func mustLoad(t *testing.T, b Board) *config.Config {
	t.Helper()
	groups, err := config.LoadGroups(b.Path)
	assert.NoError(t, err)
	return groups.First()
}

// says fails the test unless all these texts are in what is said.
func says(t *testing.T, said string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(said, text) {
			t.Errorf("it does not say %q but:\n%s", text, said)
		}
	}
}

// TestInitSaysWhere: also if the path is relative, so that it can be found again.
func TestInitSaysWhere(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	b := Board{Path: "." + string(filepath.Separator) + configName, Addresses: []string{"192.168.1.250"}, Interfaces: []string{"eth0"}}
	var out strings.Builder
	assert.NoError(t, b.Init(t.Context(), strings.NewReader(""), &out))
	says(t, out.String(), "wrote "+filepath.Join(dir, configName), "wrote "+filepath.Join(dir, keyName))
}

// changed are the keys of a configuration that are not as a file has them that sets
// only an address.
func changed(t *testing.T, c *config.Config) []string {
	t.Helper()
	standard, err := config.ParseGroups(config.DefaultPath, []byte("address = \"192.168.1.250\"\n"))
	assert.NoError(t, err)
	return standard.First().Changed(c)
}

func TestWrite(t *testing.T) {
	b := board(filepath.Join(t.TempDir(), "new", "it's topdog"))
	b.Addresses, b.Group = []string{"192.168.1.250/24"}, "shelf"
	done := mustWrite(t, b)
	assert.Equal(t, []string{"key", "topdog.toml"}, names(t, filepath.Dir(b.Path)), "files")
	assert.Is(t, 0o600, mode(t, done.keyPath), "the mode of the key")
	assert.Is(t, 0o644, mode(t, b.Path), "the mode of the configuration")
	c := mustLoad(t, b)
	assert.Equal(t, []string{"address", "group", "key_file"}, changed(t, c), "what the new file changes")
	if err := (config.Groups{c}).ReadKeys(); err != nil || !done.keyIsNew || c.KeyFile != done.keyPath {
		t.Errorf("%+v, and the key file is %s: %v", done, c.KeyFile, err)
	}
	secret := strings.Split(read(t, done.keyPath), "\n")[2]
	if len(secret) != 64 || strings.Contains(read(t, b.Path), secret) {
		t.Errorf("the key is somewhere else than in its file, or not there: %+v", done)
	}
}

// What is asked for is what the new file says.
func TestWriteOptions(t *testing.T) {
	b := board(t.TempDir())
	b.LED, b.Interfaces = "GPIO17:low", []string{"wlan0", "eth0"}
	mustWrite(t, b)
	c := mustLoad(t, b)
	assert.Is(t, b.LED, c.LED.String(), "led")
	assert.Equal(t, config.Paths{Interface: "wlan0", SecondInterface: "eth0"}, c.Paths, "interfaces")
}

// In its usual place a new board's file needs no key_file.
func TestWriteNoDefaults(t *testing.T) {
	text := Board{Path: config.DefaultPath, Addresses: []string{"192.168.1.250"}}.config()
	groups, err := config.ParseGroups(config.DefaultPath, text)
	assert.NoError(t, err)
	c := groups.First()
	assert.Equal(t, []string(nil), changed(t, c), "what it changes:\n%s", text)
	assert.Is(t, false, c.Sets("key_file"), "it has a key_file:\n%s", text)
}

func TestWriteReplacesNothing(t *testing.T) {
	b := board(t.TempDir())
	first := mustWrite(t, b)
	key, text := read(t, first.keyPath), read(t, b.Path)

	other := b
	other.Addresses = []string{"192.168.1.251"}
	_, err := other.write()
	assert.ErrorIs(t, err, fs.ErrExist, "a second time")
	if read(t, first.keyPath) != key || read(t, b.Path) != text {
		t.Fatal("the second time something was changed")
	}

	// A board that got the key by hand still needs a configuration.
	assert.NoError(t, os.Remove(b.Path))
	if second := mustWrite(t, b); second.keyIsNew || read(t, first.keyPath) != key {
		t.Errorf("a good key was replaced: %+v", second)
	}

	// A bad key is not replaced either, and nothing else is written.
	assert.NoError(t, errors.Join(os.Remove(b.Path), os.WriteFile(first.keyPath, []byte("x\n"), 0o600)))
	_, err = b.write()
	assert.ErrorContains(t, err, "hexadecimal", "with a bad key")
	assert.Equal(t, []string{"key"}, names(t, filepath.Dir(b.Path)), "files after a refusal")

	other.Force = true
	if third := mustWrite(t, other); !third.keyIsNew || read(t, third.keyPath) == key || !strings.Contains(read(t, b.Path), other.Addresses[0]) {
		t.Errorf("with Force: %+v", third)
	}
	assert.Equal(t, []string{"key", "topdog.toml"}, names(t, filepath.Dir(b.Path)), "files")
}

// The rename itself refuses, not only the look before it.
func TestWriteFileDoesNotReplace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	assert.NoError(t, writeFile(path, []byte("one"), 0o600, false))
	assert.ErrorIs(t, writeFile(path, []byte("two"), 0o600, false), fs.ErrExist, "")
	assert.Is(t, "one", read(t, path), "the file")
	assert.Equal(t, []string{"f"}, names(t, filepath.Dir(path)), "files left behind")
	if err := writeFile(path, []byte("three"), 0o600, true); err != nil || read(t, path) != "three" {
		t.Errorf("with replace: %v", err)
	}
}

func TestRefusesBeforeItWrites(t *testing.T) {
	for _, tc := range []struct {
		name string
		b    Board
		want string
	}{
		{"address", Board{Addresses: []string{"localhost"}}, "not an IPv4 address"},
		{"IPv6 alone", Board{Addresses: []string{"fd00:1::250"}}, "an IPv4 address is missing"},
		{"link-local", Board{Addresses: []string{"10.0.0.9", "fe80::250"}}, "link-local"},
		{"twice", Board{Addresses: []string{"10.0.0.9", "fd00:1::250", "fd00:1:0::250"}}, "fd00:1::250 is listed twice"},
		{"loopback", Board{Addresses: []string{"127.0.0.1"}}, "loopback"},
		{"group", Board{Addresses: []string{"10.0.0.9"}, Group: "ü\x00\""}, "ASCII"},
		{"interface", Board{Addresses: []string{"10.0.0.9"}, Interfaces: []string{"a b\nid = 3"}}, "interface"},
		{"interface twice", Board{Addresses: []string{"10.0.0.9"}, Interfaces: []string{"eth0", "eth0"}}, "eth0 is listed twice"},
		{"three interfaces", Board{Addresses: []string{"10.0.0.9"}, Interfaces: []string{"eth0", "wlan0", "wwan0"}}, "number 3 of 3"},
		{"led", Board{Addresses: []string{"10.0.0.9"}, LED: "GPIO 17"}, `a line is written "GPIO17"`},
	} {
		assert.ErrorContains(t, tc.b.check(), tc.want, "%s: checked", tc.name)
		dir := t.TempDir()
		tc.b.Path = filepath.Join(dir, configName)
		_, err := tc.b.write()
		assert.ErrorContains(t, err, tc.want, "%s", tc.name)
		assert.Equal(t, []string(nil), names(t, dir), "%s: written files", tc.name)
	}
}

func TestCheckAccepts(t *testing.T) {
	for _, address := range []string{"", "10.0.0.9", "10.0.0.9/24", "10.0.0.9,fd00:1::250", "fd00:1::250/64 10.0.0.9/24 10.0.0.8"} {
		assert.ErrorIs(t, (Board{Addresses: SplitAddresses(address), Group: "x", Interfaces: []string{"eth0"}, LED: "ACT"}).check(), nil, "%q", address)
	}
	if err := (Board{Group: "ü"}).check(); err == nil {
		t.Error("a bad group is taken as long as there is no address")
	}
}

// Root gives the key to the daemon, but not what a link in its place points to.
func TestTheKeyIsGivenAndNoLinkFollowed(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, which may give files away")
	}
	const daemon = 4242
	dir := t.TempDir()
	foreign, key := filepath.Join(dir, "foreign"), filepath.Join(dir, "key")
	owner := func(path string) uint32 {
		t.Helper()
		var status unix.Stat_t
		assert.NoError(t, unix.Stat(path, &status))
		return status.Uid
	}
	assert.NoError(t, os.WriteFile(foreign, nil, 0o600))
	assert.NoError(t, os.WriteFile(key, nil, 0o600))
	assert.NoError(t, giveTo(daemon, daemon, key))
	assert.Is(t, daemon, owner(key), "the owner of the key")
	assert.NoError(t, os.Remove(key))
	assert.NoError(t, os.Symlink(foreign, key))
	assert.NoError(t, giveTo(daemon, daemon, key))
	assert.Is(t, 0, owner(foreign), "the owner of what a link points to")
}
