package installcluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"topdog/internal/config"
	"topdog/internal/lab/assert"
	"topdog/wire"
)

// site is a place with boards.
type site struct {
	t      *testing.T
	dir    string
	script string
	env    []string
}

const (
	version = "1.2.0"
	first   = "192.168.1.250"
)

// newSite is a site without boards. Without the program, which takes long to build, nothing can be set up on it.
func newSite(t *testing.T, program string) *site {
	t.Helper()
	for _, tool := range []string{"bash", "sed", "sort", "find", "mktemp"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("needs %s: %v", tool, err)
		}
	}
	dir := t.TempDir()
	s := &site{t: t, dir: dir, script: filepath.Join(dir, "scripts/install-cluster"), env: append(os.Environ(),
		"PATH="+filepath.Join(dir, "here")+":"+os.Getenv("PATH"),
		"BOARDS="+filepath.Join(dir, "boards"),
		"TMPDIR="+filepath.Join(dir, "operator"), "TOPDOG="+program)}
	assert.NoError(t, os.Mkdir(filepath.Join(dir, "operator"), 0o755))
	// The script, beside a scripts/package that makes our kind of packages.
	for to, from := range map[string]string{"here/ssh": "testdata/ssh", "scripts/install-cluster": "../install-cluster"} {
		text, err := os.ReadFile(from)
		assert.NoError(t, err)
		s.write(to, string(text), 0o755)
	}
	s.write("scripts/package", `#!/bin/sh
set -e
[ "$1" = -n ] && { only=yes; shift; }
[ "$1" = -o ]; out=$2; shift 2
[ -n "$only" ] || { mkdir -p "$out"; echo "package $*" >>"$BOARDS/../built"; }
for a; do
	f=$out/topdog_`+version+`_$a.deb; echo "$f"
	[ -n "$only" ] || echo "`+version+` $a" >"$f"
done
`, 0o755)
	return s
}

// board is one on which nothing is installed.
func (s *site) board(name, arch string) {
	s.t.Helper()
	s.write("boards/"+name+"/arch", arch+"\n", 0o644)
	assert.NoError(s.t, os.MkdirAll(filepath.Join(s.dir, "boards", name, "tmp"), 0o755))
}

func (s *site) write(name, text string, mode os.FileMode) {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	assert.NoError(s.t, os.MkdirAll(filepath.Dir(path), 0o755))
	assert.WriteFile(s.t, path, []byte(text), mode)
}

// boards returns the names of all boards, in order.
func (s *site) boards() (names []string) {
	s.t.Helper()
	entries, err := os.ReadDir(filepath.Join(s.dir, "boards"))
	if !errors.Is(err, os.ErrNotExist) {
		assert.NoError(s.t, err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// keys are the fingerprints of the keys of a board, which nobody else may read.
func (s *site) keys(board string) wire.Keys {
	s.t.Helper()
	path := filepath.Join(s.dir, "boards", board, "etc/topdog/key")
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return wire.Keys{}
	}
	assert.NoError(s.t, err)
	assert.Is(s.t, 0o600, info.Mode(), "the mode of the key of %s", board)
	keys, err := config.LoadKeys(path)
	assert.NoError(s.t, err)
	return keys.Fingerprints()
}

// install runs the script, and checks what must hold always: no key in what it says, nothing that steers the terminal of who
// runs it, and nothing left on that machine.
func (s *site) install(args ...string) (output string, status int) {
	s.t.Helper()
	// Longer than anything here takes, and than --timeout.
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.script, append([]string{"--timeout", "2"}, args...)...)
	cmd.Env = s.env
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); cmd.ProcessState == nil || !cmd.ProcessState.Exited() {
		s.t.Fatalf("%q: %v\n%s", args, err, out.String())
	}
	for _, b := range s.boards() {
		text, _ := os.ReadFile(filepath.Join(s.dir, "boards", b, "etc/topdog/key")) // it may have none
		for line := range strings.Lines(string(text)) {                             // both keys, while it has two
			if secret := strings.TrimSpace(line); secret[0] != '#' && strings.Contains(out.String(), secret) {
				s.t.Errorf("%q: the key of %s is in the output", args, b)
			}
		}
	}
	left, err := os.ReadDir(filepath.Join(s.dir, "operator"))
	assert.NoError(s.t, err)
	assert.Is(s.t, 0, len(left), "%q: %v, on the operator's machine", args, left)
	assert.Is(s.t, "", steers(out.String()), "%q: what reaches the terminal", args)
	return out.String(), cmd.ProcessState.ExitCode()
}

// built is where the program is.
var built string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	var err error
	if built, err = os.MkdirTemp("", "installcluster"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(built)
	return m.Run()
}

// topdog builds the program, once.
var topdog = sync.OnceValues(func() (path string, err error) {
	path = filepath.Join(built, "topdog")
	if out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", path, "topdog/cmd/topdog").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build topdog: %w\n%s", err, out)
	}
	return path, nil
})
