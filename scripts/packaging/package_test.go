package packaging

import (
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/judge"
)

const root = "../.." // of the tree

// ownArch is this machine's architecture, as Debian calls it.
var ownArch = map[string]string{"amd64": "amd64", "arm64": "arm64", "arm": "armhf"}[runtime.GOARCH]

// built is where the packages of this run are: each is built once.
var built string

func TestMain(m *testing.M) {
	judge.Setup()
	os.Exit(func() int {
		var err error
		if built, err = os.MkdirTemp("", "topdog-packages"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(built)
		return m.Run()
	}())
}

// needs skips a test where a program is missing.
func needs(t testing.TB, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("%s is not installed", p)
		}
	}
}

const (
	version = "1.0.0"
	newer   = "1.0.1"
)

// To compile a release takes most of a minute of processor time, for each architecture.
var ofAll = flag.Bool("all-packages", false, "build and look at the packages of all architectures")

// archs are the architectures whose packages this run builds.
func archs() []string {
	if *ofAll {
		return []string{"armhf", "arm64", "amd64"}
	}
	return []string{ownArch}
}

// packages builds and unpacks the packages, once.
var packages = sync.OnceValue(func() error {
	err := build(root, built, archs())
	for _, arch := range archs() {
		if err != nil {
			break
		}
		err = dpkgDeb("-R", packagePath(built, arch), filepath.Join(built, arch))
	}
	return err
})

func dpkgDeb(args ...string) error {
	if out, err := exec.Command("dpkg-deb", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("dpkg-deb %q: %w\n%s", args, err, out)
	}
	return nil
}

// ownPackage returns the package for this machine.
func ownPackage(t testing.TB) string {
	t.Helper()
	return packageOf(t, ownArch)
}

// packageOf returns the package of an architecture.
func packageOf(t testing.TB, arch string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: to build the packages takes seconds")
	}
	needs(t, "dpkg-deb")
	if os.Getuid() != 0 {
		t.Skip("root installs the packages in the machines of these tests; to build them, and the program that packs them, takes minutes")
	}
	must(t, packages())
	return packagePath(built, arch)
}

// filesOf returns the directory with the files of the package of an architecture, and with those for dpkg in DEBIAN.
func filesOf(t testing.TB, arch string) string {
	t.Helper()
	packageOf(t, arch)
	return filepath.Join(built, arch)
}

func packagePath(dir, arch string) string {
	return filepath.Join(dir, "topdog_"+version+"_"+arch+".deb")
}

// build builds packages of a tree.
func build(tree, out string, archs []string, env ...string) error {
	c := exec.Command(filepath.Join(tree, "scripts/package"), append([]string{"-o", out}, archs...)...)
	// The time is not that of the last commit, so that a build of another tree gives the same.
	c.Env = append(append(os.Environ(), "VERSION="+version, "SOURCE_DATE_EPOCH=1700000000"), env...)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	stdout, err := c.Output()
	if err != nil {
		return fmt.Errorf("scripts/package: %w\n%s", err, stderr.String())
	}
	var want []string
	for _, arch := range archs {
		want = append(want, packagePath(out, arch))
	}
	if got := strings.Fields(string(stdout)); !slices.Equal(got, want) {
		return fmt.Errorf("scripts/package says that it wrote %q, want %q", got, want)
	}
	return nil
}

// The same tree gives the same bytes, wherever it lies and whoever builds it.
func TestReproducible(t *testing.T) {
	needs(t, "git", "tar")
	t.Parallel()
	first, err := os.ReadFile(ownPackage(t))
	must(t, err)

	elsewhere, out := t.TempDir(), t.TempDir()
	// What git knows and what it would take up; a copy has other times and modes.
	script := `cd "$1" && git ls-files -z --cached --others --exclude-standard |
		xargs -0 sh -c 'for f; do [ ! -e "$f" ] || printf "%s\0" "$f"; done' sh |
		tar --null -T - -c | tar -xm -C "$2"`
	if out, err := exec.Command("sh", "-c", "umask 077; "+script, "sh", root, elsewhere).CombinedOutput(); err != nil {
		t.Fatalf("copy the tree: %v\n%s", err, out)
	}
	must(t, build(elsewhere, out, []string{ownArch}, "TZ=Pacific/Auckland", "LC_ALL=C.UTF-8", "USER=somebody"))
	second, err := os.ReadFile(packagePath(out, ownArch))
	must(t, err)
	if !bytes.Equal(first, second) {
		t.Errorf("two builds of the same tree differ: %d and %d bytes", len(first), len(second))
	}
}

func TestContents(t *testing.T) {
	t.Parallel()
	var want []string
	for _, path := range []string{
		"usr/lib/systemd/network/10-topdog.network",
		"usr/lib/systemd/system/topdog-holder.service",
		"usr/lib/systemd/system/topdog-hooks.service",
		"usr/lib/systemd/system/topdog-leader.service",
		"usr/lib/systemd/system/topdog-leader.target",
		"usr/lib/systemd/system/topdog-leave.service",
		"usr/lib/systemd/system/topdog-page.service",
		"usr/lib/systemd/system/topdog-witness.service",
		"usr/lib/systemd/system/topdog.service",
		"usr/lib/sysusers.d/topdog.conf",
		"usr/lib/udev/rules.d/71-topdog.rules",
		"usr/share/bash-completion/completions/topdog",
		"usr/share/doc/topdog/README.md",
		"usr/share/doc/topdog/SECURITY.md",
		"usr/share/doc/topdog/changelog.gz",
		"usr/share/doc/topdog/copyright",
		"usr/share/doc/topdog/examples/networkd-keep-address.conf",
		"usr/share/doc/topdog/examples/topdog.toml",
		"usr/share/fish/vendor_completions.d/topdog.fish",
		"usr/share/lintian/overrides/topdog",
		"usr/share/man/man1/topdog.1.gz",
		"usr/share/man/man5/topdog.toml.5.gz",
		"usr/share/zsh/vendor-completions/_topdog",
	} {
		want = append(want, "-rw-r--r-- root/root ./"+path)
	}
	for _, command := range commands(t) {
		want = append(want, "-rw-r--r-- root/root ./usr/share/man/man1/topdog-"+strings.Join(command, "-")+".1.gz")
	}
	must(t, fs.WalkDir(os.DirFS(root), "docs", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			want = append(want, "-rw-r--r-- root/root ./usr/share/doc/topdog/"+path)
		}
		return err
	}))
	want = append(want, "-rwxr-xr-x root/root ./usr/bin/topdog")
	slices.Sort(want)

	out, err := exec.Command("dpkg-deb", "-c", ownPackage(t)).Output()
	must(t, err)
	var got []string
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if f[0] == "drwxr-xr-x" && f[1] == "root/root" {
			continue // the way there
		}
		got = append(got, f[0]+" "+f[1]+" "+f[5])
	}
	slices.Sort(got)
	assert.Equal(t, want, got, "")
}

// The verbs that no board needs are in a package of their own, and the board's program says where.
func TestLab(t *testing.T) {
	t.Parallel()
	topdog := filepath.Join(filesOf(t, ownArch), "usr/bin/topdog")
	for _, verb := range []string{"demo", "sim"} {
		out, err := exec.Command(topdog, verb, "--page").CombinedOutput()
		if want := "run topdog-lab " + verb; err == nil || !strings.Contains(string(out), want) {
			t.Errorf("topdog %s says %q, want an error with %q", verb, out, want)
		}
	}
	dir := t.TempDir()
	c := exec.Command(root+"/scripts/package", "-l", "-o", dir, ownArch)
	c.Env = append(os.Environ(), "VERSION="+version)
	out, err := c.Output()
	must(t, err)
	path := filepath.Join(dir, "topdog-lab_"+version+"_"+ownArch+".deb")
	assert.Is(t, path+"\n", string(out), "what scripts/package says")
	must(t, dpkgDeb("-x", path, dir))
	for command, want := range map[string]string{
		"usr/bin/topdog-lab version":                                      "topdog-lab 1.0.0 (",
		"usr/bin/topdog-lab sim run --kill 5@2s":                          "heir, 5 boards",
		"man --local-file usr/share/man/man1/topdog-lab.1.gz":             "topdog-lab-sim(1)",
		"man --local-file usr/share/man/man1/topdog-lab-sim-compare.1.gz": "topdog-lab sim compare",
		"cat usr/share/bash-completion/completions/topdog-lab":            "__start_topdog-lab topdog-lab",
		"cat usr/share/zsh/vendor-completions/_topdog-lab":                "#compdef topdog-lab",
		"cat usr/share/fish/vendor_completions.d/topdog-lab.fish":         "complete -c topdog-lab",
		"zcat usr/share/doc/topdog-lab/changelog.gz":                      "topdog-lab (1.0.0)",
		"cat usr/share/doc/topdog-lab/copyright":                          "License: Expat",
	} {
		c := exec.Command("sh", "-fc", command)
		c.Dir = dir
		if out, err := c.CombinedOutput(); err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v and %q, want %q", command, err, out, want)
		}
	}
}

// commands are those that the packaged program offers below one, and below those.
func commands(t testing.TB, above ...string) (all [][]string) {
	t.Helper()
	c := exec.Command(filepath.Join(filesOf(t, ownArch), "usr/bin/topdog"), append(append([]string{"__complete"}, above...), "")...)
	out, err := c.Output()
	must(t, err)
	for line := range strings.Lines(string(out)) {
		name, about, found := strings.Cut(line, "\t")
		// What begins with a lower-case letter is a value: of an argument.
		if found && name != "help" && about[0] >= 'A' && about[0] <= 'Z' {
			command := append(slices.Clone(above), name)
			all = append(append(all, command), commands(t, command...)...)
		}
	}
	return all
}

// The programs are what the boards can run: static, and armhf for ARMv6.
func TestPrograms(t *testing.T) {
	t.Parallel()
	here, err := filepath.Abs(root)
	must(t, err)
	settings := map[string]map[string]string{
		"armhf": {"GOARCH": "arm", "GOARM": "6", "CGO_ENABLED": "0", "GOOS": "linux"},
		"arm64": {"GOARCH": "arm64", "CGO_ENABLED": "0", "GOOS": "linux"},
		"amd64": {"GOARCH": "amd64", "CGO_ENABLED": "0", "GOOS": "linux"},
	}
	for _, arch := range archs() {
		t.Run(arch, func(t *testing.T) {
			t.Parallel()
			program := filepath.Join(filesOf(t, arch), "usr/bin/topdog")
			info, err := buildinfo.ReadFile(program)
			must(t, err)
			want, got := settings[arch], map[string]string{}
			for _, s := range info.Settings {
				if _, ok := want[s.Key]; ok {
					got[s.Key] = s.Value
				}
				if strings.HasPrefix(s.Key, "vcs") {
					t.Errorf("%s=%s: the bytes must not depend on the state of the repository", s.Key, s.Value)
				}
			}
			assert.Equal(t, want, got, "")
			file, err := elf.Open(program)
			must(t, err)
			defer file.Close()
			if file.Section(".interp") != nil || file.Section(".symtab") != nil {
				t.Error("the program is not static and stripped")
			}
			content, err := os.ReadFile(program)
			must(t, err)
			if bytes.Contains(content, []byte(here)) {
				t.Errorf("the program contains %s, where it was built", here)
			}
			fields, err := exec.Command("dpkg-deb", "-f", packageOf(t, arch), "Package", "Version", "Architecture").Output()
			must(t, err)
			assert.Is(t, "Package: topdog\nVersion: 1.0.0\nArchitecture: "+arch+"\n", string(fields), "what the package says")
			assert.Equal(t, rest(t, ownArch), rest(t, arch), "all but the program, for %s and %s", ownArch, arch)
		})
	}
}

// rest is what the packages of all architectures have in common, so that what lintian says of one is true of all: all but the
// program and the name of the architecture.
func rest(t testing.TB, arch string) string {
	t.Helper()
	script := `find . -type f ! -path ./usr/bin/topdog ! -path ./DEBIAN/control ! -path ./DEBIAN/md5sums | sort | xargs sha256sum
		grep -v ' usr/bin/topdog$' DEBIAN/md5sums
		grep -v -e ^Architecture: -e ^Installed-Size: DEBIAN/control`
	c := exec.Command("sh", "-ec", script)
	c.Dir = filesOf(t, arch)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", arch, err, out)
	}
	return string(out)
}

// Where the version comes from, by way of the names of the files.
func TestVersion(t *testing.T) {
	needs(t, "git")
	t.Parallel()
	commit := regexp.MustCompile(`\.g?[0-9a-f]{7}_`)
	for _, tt := range []struct {
		name    string
		git     string // commands; "" is a tree without git
		version string // in the environment
		want    string // with COMMIT; "" is an error
	}{
		{"no git", "", "", "0.2.0~source"},
		{"before the first release", "git init -q; git add .; git commit -qm x", "", "0.2.0~git20231114221320.COMMIT"},
		{"a release", "git init -q; git add .; git commit -qm x; git tag v1.2.3", "", "1.2.3"},
		{"a candidate", "git init -q; git add .; git commit -qm x; git tag v1.3.0-rc1", "", "1.3.0~rc1"},
		{"after a release", "git init -q; git add .; git commit -qm x; git tag v1.2.3; git commit -qm y --allow-empty", "", "1.2.3+1.COMMIT"},
		{"after a candidate", "git init -q; git add .; git commit -qm x; git tag v1.3.0-rc1; git commit -qm y --allow-empty", "", "1.3.0~rc1+1.COMMIT"},
		{"changed since", "git init -q; git add .; git commit -qm x; git tag v1.2.3; echo >>scripts/package", "", "1.2.3.dirty"},
		{"another's tag", "git init -q; git add .; git commit -qm x; git tag nightly", "", "0.2.0~git20231114221320.COMMIT"},
		{"given", "", "2.0.0", "2.0.0"},
		{"given as a tag", "", "v2.0.0-rc2", "2.0.0~rc2"},
		{"no version", "", "latest", ""},
		{"an attempt", "", "1.0;reboot", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			script, err := os.ReadFile(root + "/scripts/package")
			must(t, err)
			must(t, os.MkdirAll(filepath.Join(dir, "scripts/packaging"), 0o755))
			assert.WriteFile(t, filepath.Join(dir, "scripts/package"), script, 0o755)
			must(t, os.WriteFile(filepath.Join(dir, "scripts/packaging/changelog"),
				[]byte("topdog (0.2.0) UNRELEASED; urgency=medium\n\n  * A change.\n\n -- A B <a@b.example>  Tue, 14 Nov 2023 22:13:20 +0000\n"), 0o644))
			env := append(os.Environ(), "VERSION="+tt.version, "SOURCE_DATE_EPOCH=",
				"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir),
				"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b.example", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b.example",
				"GIT_COMMITTER_DATE=2023-11-14T22:13:20Z")
			run := func(name string, args ...string) (string, error) {
				c := exec.Command(name, args...)
				c.Dir, c.Env = dir, env
				out, err := c.CombinedOutput()
				return string(out), err
			}
			if out, err := run("sh", "-ec", tt.git); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			out, err := run("scripts/package", "-n", "armhf")
			if tt.want == "" {
				if err == nil || !strings.Contains(out, "is no Debian version") {
					t.Errorf("got %v and %q, want an error", err, out)
				}
				return
			}
			must(t, err)
			if strings.Contains(tt.want, "COMMIT") {
				out = commit.ReplaceAllString(out, ".COMMIT_")
			}
			assert.Is(t, "dist/topdog_"+tt.want+"_armhf.deb\n", out, "")
			if len(tt.want) > 0 && !strings.Contains(tt.want, "COMMIT") {
				needs(t, "dpkg")
				if out, err := run("dpkg", "--validate-version", tt.want); err != nil {
					t.Errorf("%s", out)
				}
			}
		})
	}
}

// man finds nothing to complain about, and the pages say what they should.
func TestManual(t *testing.T) {
	needs(t, "man")
	t.Parallel()
	dir := filesOf(t, ownArch)
	for page, want := range map[string][]string{
		"man1/topdog.1.gz":          {"topdog-init(1)", "--config", "EXIT STATUS", "78", "topdog.toml(5)"},
		"man1/topdog-init.1.gz":     {"topdog-init - Set up", "--force", "--config", "sudo topdog init 192.168.1.250"},
		"man1/topdog-led-test.1.gz": {"topdog led test [LED]"},
		"man5/topdog.toml.5.gz":     {"address", "heartbeat", `Default: "100ms"`, `For example: "eth0"`, "topdog(1)"},
	} {
		c := exec.Command("man", "--local-file", "--warnings=w", filepath.Join(dir, "usr/share/man", page))
		c.Env = append(os.Environ(), "MANWIDTH=100", "LC_ALL=C", "MAN_KEEP_FORMATTING=")
		var stderr bytes.Buffer
		c.Stderr = &stderr
		out, err := c.Output()
		if err != nil || stderr.Len() > 0 {
			t.Errorf("%s: %v\n%s", page, err, stderr.String())
		}
		for _, w := range want {
			if !strings.Contains(string(out), w) {
				t.Errorf("%s does not say %s:\n%s", page, w, out)
			}
		}
	}
}

// Each shell completes with the file that the package has for it. Nobody sits at these shells, so bash
// and zsh are asked as they ask themselves: by calling the function that the file has told them of.
func TestCompletions(t *testing.T) {
	needs(t, "bash", "zsh", "fish")
	t.Parallel()
	const ofBash = "/usr/share/bash-completion/bash_completion"
	if _, err := os.Stat(ofBash); err != nil {
		t.Skip("bash-completion is not installed")
	}
	top := filesOf(t, ownArch)
	dir := filepath.Join(top, "usr/share")
	for _, shell := range []struct{ name, script string }{
		{"bash", ". " + ofBash + `
. bash-completion/completions/topdog
compopt() { :; } # is for a completion that the shell has begun
COMP_WORDS=(topdog sta) COMP_CWORD=1 COMP_LINE="topdog sta" COMP_POINT=10 COMP_TYPE=9
__start_topdog
echo "${COMPREPLY[@]}"`},
		{"zsh", `compdef() { : }
_describe() { print -l $completions }
. zsh/vendor-completions/_topdog
words=(topdog sta) CURRENT=2
_topdog`},
		{"fish", `source fish/vendor_completions.d/topdog.fish; complete -C "topdog sta"`},
	} {
		c := exec.Command(shell.name, "-c", shell.script)
		c.Dir = dir
		c.Env = append(os.Environ(), "PATH="+top+"/usr/bin:"+os.Getenv("PATH"), "HOME="+t.TempDir())
		out, err := c.CombinedOutput()
		if err != nil || !strings.HasPrefix(string(out), "status") {
			t.Errorf("%s completes \"topdog sta\" with %q: %v", shell.name, out, err)
		}
	}
	for path, want := range map[string]string{
		"zsh/vendor-completions/_topdog":                 "#compdef topdog",
		"fish/vendor_completions.d/topdog.fish":          "complete -c topdog",
		"bash-completion/completions/topdog":             "complete -o default -F __start_topdog topdog",
		"doc/topdog/examples/topdog.toml":                "address = ",
		"doc/topdog/copyright":                           "License: Expat",
		"lintian/overrides/topdog":                       "statically-linked-binary",
		"doc/topdog/examples/networkd-keep-address.conf": "KeepConfiguration=yes",
	} {
		text, err := os.ReadFile(filepath.Join(dir, path))
		must(t, err)
		if !strings.Contains(string(text), want) {
			t.Errorf("%s does not contain %q", path, want)
		}
	}
}
