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

// ssh finds the board's directory by the host's name, BOARD, and runs the command in it, with its /etc/topdog and /tmp.
// What is in the directory decides how the programs of the board answer, and what changes the board is written to BOARD/log. The
// programs are functions of this shell: to start one takes longer than what it does.
const ssh = `#!/bin/sh
while [ $# -gt 0 ]; do
	case $1 in
	-o) echo "$2" >>"$BOARDS/../ssh-options"; shift 2 ;;
	-O) exit 0 ;;
	-t) shift ;;
	--) shift; break ;;
	*) echo "ssh: what is $1?" >&2; exit 255 ;;
	esac
done
export BOARD="$BOARDS/${1#*@}" TMPDIR="$BOARDS/${1#*@}/tmp"
[ -d "$BOARD" ] && [ ! -e "$BOARD/dead" ] || { echo "ssh: connect to host ${1#*@} port 22: No route to host" >&2; exit 255; }
command=
while :; do
	case $2 in
	*/etc/topdog*) command=$command${2%%/etc/topdog*}$BOARD/etc/topdog; set -- "$1" "${2#*/etc/topdog}" ;;
	*) break ;;
	esac
done
command=$command$2
# The name of a function has no hyphen.
for name in dpkg-query apt-get; do
	case $command in *"$name "*) command="${command%%"$name "*}${name%-*}_${name#*-} ${command#*"$name "}" ;; esac
done

sh() { shift; eval "$1"; }
id() { echo 1000; } # nobody's tests run on boards as root
env() { shift; "$@"; }
# says shows a file.
says() { while IFS= read -r line || [ -n "$line" ]; do printf '%s\n' "$line"; done <"$1"; }
sudo() {
	if [ "$1" = -n ]; then shift; fi
	if [ -e "$BOARD/chatters" ]; then case $1 in env | systemctl) cat "$BOARD/chatters" ;; esac; fi
	if [ -e "$BOARD/no-sudo" ]; then echo "sudo: a password is required" >&2; return 1; fi
	"$@"
}
dpkg() {
	case $1 in
	--print-architecture) says "$BOARD/arch" ;;
	--compare-versions)
		if [ -e "$BOARD/chatters" ]; then cat "$BOARD/chatters"; fi
		[ "$(printf '%s\n' "$2" "$4" | sort -V | tail -n 1)" = "$2" ] && [ "$2" != "$4" ] ;;
	*) return 9 ;;
	esac
}
dpkg_query() {
	[ -e "$BOARD/version" ] && read -r version <"$BOARD/version" && printf 'installed %s' "$version"
}
# A package is a file with its version and its architecture.
apt_get() {
	for file; do :; done
	read -r version arch <"$file"
	read -r own <"$BOARD/arch"
	if [ -e "$BOARD/full" ]; then cat "$BOARD/full"; echo "E: You don't have enough free space in /var/cache/apt/archives/."; return 100; fi
	[ "$arch" = "$own" ] || { echo "package architecture ($arch) does not match system"; return 100; }
	echo "$version" >"$BOARD/version"
	echo "apt-get install $version" >>"$BOARD/log"
}
systemctl() {
	case $1 in
	is-enabled | is-active) case $2 in topdog) [ -e "$BOARD/runs" ] ;; *) [ -e "$BOARD/$2-runs" ] ;; esac ;;
	enable)
		if [ -e "$BOARD/broken-unit" ]; then echo "Job for topdog.service failed." >&2; return 1; fi
		echo "systemctl $*" >>"$BOARD/log"
		case $3 in topdog) : >"$BOARD/runs" ;; *) : >"$BOARD/$3-runs" ;; esac ;;
	*) echo "systemctl $*" >>"$BOARD/log" ;;
	esac
}
# topdog is the real one, but for the daemon: whoever runs with the same key
# and address follows the board that has the greatest name among these.
topdog() {
	config=$BOARD/etc/topdog/topdog.toml
	if [ ! -e "$BOARD/version" ]; then echo "topdog: not found" >&2; return 127; fi
	verb=$1; shift
	case $verb in
	init)
		for a; do case $a in --export | --import) "$TOPDOG" init --config "$config" "$@"; return ;; esac; done
		echo "topdog init $*" >>"$BOARD/log"
		for a; do [ "$a" != --interface ] || { "$TOPDOG" init --config "$config" "$@"; return; }; done
		if [ -e "$BOARD/asks" ]; then printf 'Which %s? ' "$(cat "$BOARD/asks")"; read -r address; set -- "$address"; fi
		[ -e "$config" ] || set -- "$@" --interface eth0
		"$TOPDOG" init --config "$config" "$@" ;;
	status)
		if [ ! -e "$BOARD/runs" ]; then echo "topdog: the daemon does not run" >&2; return 3; fi
		if [ -e "$BOARD/cut-off" ]; then printf '{\n  "leader": "",\n  "leader_name": ""\n}\n'; return 1; fi
		key_of "$BOARD"; own=$key
		for b in "$BOARDS"/*; do
			if [ -e "$b/runs" ]; then key_of "$b"; if [ "$key" = "$own" ]; then leader=${b##*/}; fi; fi
		done
		name=$leader
		if [ -e "$BOARDS/$leader/name" ]; then name=$(cat "$BOARDS/$leader/name"); fi
		printf '{\n  "board": {\n    "leader": "no"\n  },\n  "leader": "id-of-%s",\n  "leader_name": "%s",\n  "term": 1\n}\n' "$leader" "$name" ;;
	key)
		echo "topdog key $*" >>"$BOARD/log"
		if [ "$1" != export ] && [ -e "$BOARD/says" ]; then cat "$BOARD/says"; cat "$BOARD/says" >&2; fi
		if [ -e "$BOARD/old-program" ]; then echo 'topdog: unknown command "key" for "topdog"' >&2; return 2; fi
		if [ -e "$BOARD/refuses-$1" ]; then echo "topdog: nothing was changed, because of these boards" >&2; return 1; fi
		case $1 in
		export) "$TOPDOG" key "$@" --config "$config"; return ;;
		add) if [ -e "$BOARD/lost-behind-add" ]; then "$TOPDOG" key "$@" --config "$config" --socket "$BOARD/socket"; return 255; fi ;;
		first | drop) set -- "$@" --force ;; # no daemon says that the others are ready
		esac
		"$TOPDOG" key "$@" --config "$config" --socket "$BOARD/socket" ;;
	*) return 9 ;;
	esac
}
key_of() {
	key=
	while read -r line; do case $line in '#'*) ;; *) key="$key $line" ;; esac; done <"$1/etc/topdog/key"
}
eval "$command"
`

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
	s.write("here/ssh", ssh, 0o755)
	// The script, beside a scripts/package that makes our kind of packages.
	text, err := os.ReadFile("../install-cluster")
	assert.NoError(t, err)
	s.write("scripts/install-cluster", string(text), 0o755)
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
	assert.NoError(s.t, os.WriteFile(path, []byte(text), mode))
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
