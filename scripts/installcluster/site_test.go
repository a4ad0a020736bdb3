package installcluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"topdog/internal/lab/assert"
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
export BOARD="$BOARDS/${1#*@}" TMPDIR="$BOARDS/${1#*@}/tmp" PATH="$PROGRAMS:$PATH"
[ -d "$BOARD" ] && [ ! -e "$BOARD/dead" ] || { echo "ssh: connect to host ${1#*@} port 22: No route to host" >&2; exit 255; }
command=
while :; do
	case $2 in
	*/etc/topdog*) command=$command${2%%/etc/topdog*}$BOARD/etc/topdog; set -- "$1" "${2#*/etc/topdog}" ;;
	*) break ;;
	esac
done
command=$command$2

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
	while read -r line; do key="$key $line"; done <"$1/etc/topdog/key"
}
eval "$command"
`

// programs are those of a board whose names are none for a function. A package is a file with its version and its
// architecture.
var programs = map[string]string{
	"dpkg-query": `[ -e "$BOARD/version" ] || exit 1
read -r version <"$BOARD/version"
printf 'installed %s' "$version"`,
	"apt-get": `for file; do :; done
read -r version arch <"$file"
read -r own <"$BOARD/arch"
if [ -e "$BOARD/full" ]; then cat "$BOARD/full"; echo "E: You don't have enough free space in /var/cache/apt/archives/."; exit 100; fi
[ "$arch" = "$own" ] || { echo "package architecture ($arch) does not match system"; exit 100; }
echo "$version" >"$BOARD/version"
echo "apt-get install $version" >>"$BOARD/log"`,
}

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

// newSite is a site with the program, and with boards on which nothing is installed.
func newSite(t *testing.T, boards ...string) *site {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: to install a cluster takes seconds")
	}
	s := siteToLookAt(t, boards...)
	program, err := topdog()
	must(t, err)
	s.env = append(s.env, "TOPDOG="+program)
	return s
}

// siteToLookAt is a site where nothing is set up. Without the program it takes no time. Its test runs in parallel with others.
func siteToLookAt(t *testing.T, boards ...string) *site {
	t.Helper()
	t.Parallel()
	for _, tool := range []string{"bash", "sed", "sort", "find", "mktemp"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("needs %s: %v", tool, err)
		}
	}
	s := siteIn(t, t.TempDir())
	must(t, os.Mkdir(filepath.Join(s.dir, "operator"), 0o755))
	s.write("here/ssh", ssh, 0o755)
	for name, text := range programs {
		s.write("programs/"+name, "#!/bin/sh\n"+text+"\n", 0o755)
	}
	for _, b := range boards {
		s.board(b, "arm64")
	}
	// The script, beside a scripts/package that makes our kind of packages.
	text, err := os.ReadFile("../install-cluster")
	must(t, err)
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

// siteIn is the site of a directory.
func siteIn(t *testing.T, dir string) *site {
	return &site{t: t, dir: dir, script: filepath.Join(dir, "scripts/install-cluster"), env: append(os.Environ(),
		"PATH="+filepath.Join(dir, "here")+":"+os.Getenv("PATH"),
		"BOARDS="+filepath.Join(dir, "boards"), "PROGRAMS="+filepath.Join(dir, "programs"),
		"TMPDIR="+filepath.Join(dir, "operator"))}
}

func (s *site) board(name, arch string) {
	s.write("boards/"+name+"/arch", arch+"\n", 0o644)
	must(s.t, os.MkdirAll(filepath.Join(s.dir, "boards", name, "tmp"), 0o755))
}

func (s *site) write(name, text string, mode os.FileMode) string {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	must(s.t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(s.t, os.WriteFile(path, []byte(text), mode))
	return path
}

// is makes it so that something is the case on a board.
func (s *site) is(board, what string) { s.write("boards/"+board+"/"+what, "", 0o644) }

// log returns what changed a board since the last call.
func (s *site) log(board string) []string {
	s.t.Helper()
	path := filepath.Join(s.dir, "boards", board, "log")
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	must(s.t, err)
	must(s.t, os.Remove(path))
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

func (s *site) key(board string) string {
	text, err := os.ReadFile(filepath.Join(s.dir, "boards", board, "etc/topdog/key"))
	if err != nil {
		return ""
	}
	return string(text)
}

// install runs the script, and checks what must hold always: no key in what it
// says, and none on the operator's machine.
func (s *site) install(status int, args ...string) string {
	s.t.Helper()
	// Longer than anything here takes, and than --timeout.
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.script, append([]string{"--timeout", "2"}, args...)...)
	cmd.Env = s.env
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok || ok && exit.ExitCode() != status || err == nil && status != 0 {
		s.t.Errorf("%q: %v, want exit status %d\n%s", args, err, status, out.String())
	}
	boards, err := os.ReadDir(filepath.Join(s.dir, "boards"))
	must(s.t, err)
	for _, b := range boards {
		for line := range strings.Lines(s.key(b.Name())) { // both keys, while it has two
			if secret := strings.TrimSpace(line); secret[0] != '#' && strings.Contains(out.String(), secret) {
				s.t.Errorf("%q: the key of %s is in the output", args, b.Name())
			}
		}
	}
	left, err := os.ReadDir(filepath.Join(s.dir, "operator"))
	must(s.t, err)
	if len(left) > 0 {
		s.t.Errorf("%q: %v is left on the operator's machine", args, left)
	}
	return out.String()
}

// says checks that a text has all parts, in order.
func (s *site) says(text string, parts ...string) {
	s.t.Helper()
	rest := text
	for _, part := range parts {
		_, after, found := strings.Cut(rest, part)
		if !found {
			s.t.Errorf("%q is not said, or not in this order:\n%s", part, text)
			return
		}
		rest = after
	}
}

func (s *site) logs(board string, want ...string) {
	s.t.Helper()
	if diff := cmp.Diff(want, s.log(board)); diff != "" {
		s.t.Errorf("done on %s (-want +got):\n%s", board, diff)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	assert.NoError(t, err)
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

// Three bare boards become a cluster; a second run finds nothing to do; a board
// more gets the same key; a new version goes on one board after the other.
func TestWholeLifeOfACluster(t *testing.T) {
	s := newSite(t, "b1", "b2", "b3")
	s.board("b2", "armhf")
	all := []string{"pi@b1", "pi@b2", "pi@b3"}

	out := s.install(0, append(all, "--address", first, "--led", "GPIO17:low")...)
	s.says(out,
		"[pi@b1] arm64, topdog is not installed\n", "[pi@b2] armhf, ",
		"builds the packages for", "[pi@b1] installs topdog 1.2.0", "[pi@b2] installs topdog 1.2.0", "[pi@b3] installs topdog 1.2.0",
		"[pi@b1] wrote ", "[pi@b2] wrote ", "[pi@b3] wrote ",
		"[pi@b1] enables and starts topdog",
		"One leader: b3 (id-of-b3). All boards follow it.")
	s.logs("b1", "apt-get install 1.2.0", "topdog init 192.168.1.250 --led GPIO17:low", "systemctl enable --now topdog")
	s.logs("b2", "apt-get install 1.2.0", "systemctl enable --now topdog")
	if s.key("b1") == "" || s.key("b1") != s.key("b2") || s.key("b1") != s.key("b3") {
		t.Error("the boards do not have one key")
	}
	for _, b := range []string{"b1", "b2", "b3"} {
		info, err := os.Stat(filepath.Join(s.dir, "boards", b, "etc/topdog/key"))
		must(t, err)
		if info.Mode() != 0o600 {
			t.Errorf("%s: the key has the mode %v", b, info.Mode())
		}
	}
	built, err := os.ReadFile(filepath.Join(s.dir, "built"))
	must(t, err)
	if fields := strings.Fields(string(built)); len(fields) != 3 || !slices.Contains(fields, "armhf") || !slices.Contains(fields, "arm64") {
		t.Errorf("built %q, want armhf and arm64, once", built)
	}
	s.log("b3")

	// Again, also with what was said the first time.
	for _, more := range [][]string{nil, {"--address", first}, {"--dry-run"}} {
		out = s.install(0, append(slices.Clone(all), more...)...)
		want := "Nothing had to be changed."
		if slices.Contains(more, "--dry-run") {
			want = "Nothing would be changed."
		}
		s.says(out, "[pi@b1] arm64, topdog 1.2.0, configured, runs", want)
		for _, b := range []string{"b2", "b3"} {
			s.logs(b)
		}
		if log := s.log("b1"); len(log) > 1 || len(log) == 1 && !strings.HasPrefix(log[0], "topdog init") {
			t.Errorf("%q: done on b1: %q", more, log)
		}
	}

	// A new board, named first; and one that is no longer there does not matter.
	s.board("b0", "amd64")
	key := s.key("b1")
	out = s.install(0, "pi@b0", "pi@b2")
	s.says(out, "[pi@b0] amd64, topdog is not installed", "[pi@b0] wrote ", "One leader: b3")
	s.logs("b0", "apt-get install 1.2.0", "systemctl enable --now topdog")
	s.logs("b2")
	if s.key("b0") != key {
		t.Error("the new board has another key")
	}

	// A new version.
	for _, arch := range []string{"amd64", "arm64", "armhf"} {
		s.write("debs/topdog_1.9.0_"+arch+".deb", "1.9.0 "+arch+"\n", 0o644)
		s.write("debs/topdog_1.10.0_"+arch+".deb", "1.10.0 "+arch+"\n", 0o644)
	}
	s.write("boards/b3/version", "1.11.0\n", 0o644)
	out = s.install(0, append(all, "--packages", filepath.Join(s.dir, "debs"))...)
	s.says(out, "[pi@b1] installs topdog 1.10.0", "[pi@b2] installs topdog 1.10.0", "[pi@b3] keeps topdog 1.11.0, which is newer than 1.10.0", "One leader")
	s.logs("b1", "apt-get install 1.10.0")
	s.logs("b2", "apt-get install 1.10.0")
	s.logs("b3")
}

// With --page the page runs on all boards, also on those that were installed before without.
func TestPage(t *testing.T) {
	s := newSite(t, "b1", "b2")
	s.says(s.install(0, "pi@b1", "--address", first), "One leader")
	s.log("b1")
	out := s.install(0, "--dry-run", "--page", "pi@b1", "pi@b2")
	s.says(out, "[pi@b2] would enable and start topdog\n", "[pi@b1] would enable and start topdog-page", "[pi@b2] would enable and start topdog-page")
	s.logs("b1")

	out = s.install(0, "--page", "pi@b1", "pi@b2")
	s.says(out, "[pi@b2] enables and starts topdog\n", "[pi@b1] enables and starts topdog-page", "[pi@b2] enables and starts topdog-page",
		"One leader: b2 (id-of-b2). All boards follow it.\nIn a browser: http://192.168.1.250:9254/\n")
	s.logs("b1", "systemctl enable --now topdog-page", "topdog init --page")
	s.logs("b2", "apt-get install 1.2.0", "systemctl enable --now topdog", "systemctl enable --now topdog-page")

	s.says(s.install(0, "--page", "pi@b1", "pi@b2"), "In a browser: http://192.168.1.250:9254/\nNothing had to be changed.")
	s.logs("b2")

	// A page that ran before its board had a configuration has another port by that.
	s.board("b3", "arm64")
	s.write("boards/b3/topdog-page-runs", "", 0o644)
	s.says(s.install(0, "pi@b1", "pi@b3"), "[pi@b3] wrote ")
	s.logs("b3", "apt-get install 1.2.0", "systemctl restart topdog-page", "systemctl enable --now topdog")
}

func TestDryRunChangesNothing(t *testing.T) {
	s := siteToLookAt(t, "b1", "b2")
	out := s.install(0, "--dry-run", "--address="+first, "pi@b1", "pi@b2", "--ssh-option", "Port=2222")
	s.says(out, "[pi@b1] would install topdog 1.2.0", "[pi@b2] would install topdog 1.2.0",
		"[pi@b1] would run: topdog init 192.168.1.250", "[pi@b2] would get configuration and key from pi@b1",
		"[pi@b1] would enable and start topdog")
	s.logs("b1")
	s.logs("b2")
	if _, err := os.Stat(filepath.Join(s.dir, "built")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("packages were built: %v", err)
	}
	options, err := os.ReadFile(filepath.Join(s.dir, "ssh-options"))
	must(t, err)
	if !strings.HasPrefix(string(options), "Port=2222\n") {
		t.Errorf("ssh got the options %q", options)
	}
}

// What goes wrong on one board: the others are done, and it is said which one it
// was and what to do.
func TestOneBoardFails(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		prepare func(s *site)
		says    []string
	}{
		{"no sudo", func(s *site) { s.is("b2", "no-sudo") }, []string{
			"[pi@b2] FAILED: the user may not use sudo without a password", "NOPASSWD", "pi@b2: the user may not"}},
		{"architecture", func(s *site) { s.board("b2", "riscv64") }, []string{
			"[pi@b2] FAILED: there is no package for its architecture riscv64", "armhf, arm64 and amd64 exist"}},
		{"no space", func(s *site) { s.is("b2", "full") }, []string{
			"[pi@b2] FAILED: the package could not be installed", "sudo apt-get -f install", "    E: You don't have enough free space"}},
		{"the unit", func(s *site) { s.is("b2", "broken-unit") }, []string{
			"[pi@b2] FAILED: topdog does not start", "systemctl status topdog", "    Job for topdog.service failed."}},
		{"another cluster's", func(s *site) {
			s.write("boards/b2/etc/topdog/topdog.toml", "address = \""+first+"\"\nkey_file = \"key\"\n", 0o644)
			s.write("boards/b2/etc/topdog/key", strings.Repeat("ab", 32)+"\n", 0o600)
			s.install(0, "pi@b1", "--address", first)
			s.log("b1")
		}, []string{"[pi@b2] FAILED: configuration and key could not be copied from pi@b1", "this board belongs to another group"}},
		{"cut off", func(s *site) { s.is("b2", "cut-off") }, []string{
			"waits until all boards follow one leader", "[pi@b2] FAILED: after 2 s it follows nobody", "topdog status; journalctl -u topdog"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSite(t, "b1", "b2", "b3")
			tc.prepare(s)
			out := s.install(1, "pi@b1", "pi@b2", "pi@b3", "--address", first)
			s.says(out, append(tc.says, "1 of 3 boards failed; put that right and run this again.")...)
			if s.key("b1") == "" || s.key("b1") != s.key("b3") {
				t.Error("the other boards were not set up")
			}
			for _, b := range []string{"b1", "b3"} {
				if _, err := os.Stat(filepath.Join(s.dir, "boards", b, "runs")); err != nil {
					t.Errorf("%s does not run: %v", b, err)
				}
			}
		})
	}
}

// A board that cannot be reached may have the key of the cluster.
func TestDeadBoard(t *testing.T) {
	s := newSite(t, "b1", "b2", "b3")
	s.is("b2", "dead")
	out := s.install(1, "pi@b1", "pi@b2", "--address", first)
	s.says(out, "[pi@b2] FAILED: it cannot be reached by ssh", "try: ssh pi@b2 true", "No route to host",
		"Nothing was changed: pi@b2 might have the cluster's key already.")
	s.logs("b1")

	// Where another one has it, the dead one is no obstacle.
	s.install(0, "pi@b1", "--address", first)
	out = s.install(1, "pi@b2", "pi@b3", "pi@b1")
	s.says(out, "[pi@b3] wrote ", "One leader: b3", "pi@b2: it cannot be reached by ssh\n1 of 3 boards failed")
	if s.key("b3") == "" || s.key("b3") != s.key("b1") {
		t.Error("the new board has not got the key")
	}

	// And then it comes back.
	must(t, os.Remove(filepath.Join(s.dir, "boards/b2/dead")))
	s.says(s.install(0, "pi@b1", "pi@b2", "pi@b3"), "[pi@b2] installs", "One leader")
}

// So may one that answers and has a configuration, whatever else is wrong with it.
func TestNoSecondKey(t *testing.T) {
	cluster := newSite(t, "b1", "b2", "b3")
	cluster.install(0, "pi@b1", "pi@b3", "--address", first)
	for _, tc := range []struct {
		name    string
		prepare func(s *site)
	}{
		{"no sudo", func(s *site) { s.is("b1", "no-sudo") }},
		{"architecture", func(s *site) { s.board("b1", "riscv64") }},
		{"no package", func(s *site) { s.board("b1", "armhf") }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := cluster.copy(t)
			tc.prepare(s)
			s.write("debs/topdog_1_arm64.deb", "1 arm64\n", 0o644)
			args := []string{"pi@b1", "pi@b2", "--address", first, "--packages", filepath.Join(s.dir, "debs")}
			s.says(s.install(1, args...), "[pi@b1] FAILED", "Nothing was changed: pi@b1 might have the cluster's key already.")
			s.logs("b2")
			if s.key("b2") != "" {
				t.Error("b2 has a key: two clusters with one address")
			}
			// Where a third one has it too, that one gives it.
			s.says(s.install(1, append(args, "pi@b3")...), "[pi@b2] wrote ", "1 of 3 boards failed")
			if s.key("b2") == "" || s.key("b2") != s.key("b3") {
				t.Error("b2 has not got the key of b3")
			}
		})
	}
}

// Nobody is left: then no leader is waited for, and none is claimed.
func TestAllBoardsFail(t *testing.T) {
	s := newSite(t, "b1", "b2")
	s.is("b1", "broken-unit")
	s.is("b2", "broken-unit")
	out := s.install(1, "pi@b1", "pi@b2", "--address", first)
	s.says(out, "pi@b1: topdog does not start\npi@b2: topdog does not start\n2 of 2 boards failed")
	if strings.Contains(out, "leader") {
		t.Errorf("it talks of a leader:\n%s", out)
	}
}

// The first board fails: nothing more is done.
func TestSourceFails(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		prepare func(s *site)
		args    []string
		says    string
	}{
		{"no space", func(s *site) { s.is("b1", "full") }, []string{"--address", first}, "Stopped: the others get their key from pi@b1."},
		{"no such address", func(*site) {}, []string{"--address", "192.168.1"}, `not an IPv4 address`},
		{"no such light", func(*site) {}, []string{"--address", first, "--led", "gpio17"}, `a line is written "GPIO17"`},
		{"another address", func(s *site) { s.install(0, "pi@b1", "--address", first) }, []string{"--address", "192.168.1.9"},
			"it has the address 192.168.1.250 instead of 192.168.1.9"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSite(t, "b1", "b2")
			tc.prepare(s)
			s.says(s.install(1, append(tc.args, "pi@b1", "pi@b2")...), tc.says)
			if s.key("b2") != "" {
				t.Error("the second board has a key")
			}
		})
	}
}

func TestCommandLine(t *testing.T) {
	s := newSite(t, "b1")
	for _, tc := range []struct {
		args []string
		says string
	}{
		{nil, "which boards?"},
		{[]string{"pi@b1", "pi@b1"}, "pi@b1 is there twice"},
		{[]string{"--adress", first, "pi@b1"}, "there is no option --adress"},
		{[]string{"pi@b1", "--address"}, "--address needs a value"},
		{[]string{"pi@b1", "--packages", "/nowhere"}, "--packages /nowhere is not a directory"},
		{[]string{"pi@b1", "--timeout", "soon"}, "--timeout soon is not a number"},
		{[]string{"pi@b1", "--timeout", "1234567"}, "--timeout 1234567 is not a number"},
		{[]string{"pi@b1", "--address="}, "--address needs a value"},
		{[]string{"", "--address", first}, "a board without a name"},
		{[]string{"pi@b1"}, "say which address they shall keep"},
	} {
		s.says(s.install(2, tc.args...), tc.says)
	}
	s.logs("b1")
	s.says(s.install(0, "--help"), "scripts/install-cluster [OPTION...] USER@BOARD...", "Exit status")
	s.write("debs/topdog_1_amd64.deb", "", 0o644)
	s.says(s.install(1, "pi@b1", "--address", first, "--packages", filepath.Join(s.dir, "debs")), "there is no topdog_VERSION_arm64.deb in", "No board is left")
	// 08 is eight seconds, and not a mistake in an octal number.
	s.says(s.install(0, "pi@b1", "--address", first, "--timeout", "08"), "One leader: b1 (id-of-b1). All boards follow it.")
}
