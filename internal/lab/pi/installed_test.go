package pi

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"topdog/internal/lab/assert"
)

// withPrograms lets this process find nothing but a shell and these programs, which do nothing.
func withPrograms(t *testing.T, names ...string) {
	t.Helper()
	dir := t.TempDir()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip(err)
	}
	assert.NoError(t, os.Symlink(bash, filepath.Join(dir, "bash")))
	for _, name := range names {
		assert.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o755))
	}
	t.Setenv("PATH", dir)
}

// All that is missing is named at once, with the command that installs it.
func TestCheck(t *testing.T) {
	machine, err := FindMachine("raspi3b")
	assert.NoError(t, err)
	for _, test := range []struct {
		name    string
		present []string
		want    []string // Debian packages
	}{
		{"nothing is installed", nil, []string{
			"coreutils", "cpio", "device-tree-compiler", "dpkg", "e2fsprogs", "kmod", "mmdebstrap", "qemu-system-arm",
		}},
		{"two are missing", []string{
			"cp", "fdtput", "debugfs", "mke2fs", "depmod", "cpio", "dpkg-deb", "qemu-system-aarch64",
		}, []string{"mmdebstrap"}},
		{"all are there", []string{
			"cp", "fdtput", "debugfs", "mke2fs", "depmod", "cpio", "dpkg-deb", "qemu-system-aarch64", "mmdebstrap",
		}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			withPrograms(t, test.present...)
			s := &Supply{Source: "../../..", Dir: t.TempDir()}
			missing, err := s.missing(t.Context(), machine)
			assert.NoError(t, err)
			// No program tells whether this machine has the keyring.
			got := strings.ReplaceAll(strings.Join(missing, " "), " debian-archive-keyring", "")
			got = strings.TrimPrefix(got, "debian-archive-keyring")
			assert.Is(t, strings.Join(test.want, " "), got, "what is missing")
			err = s.Check(t.Context(), machine)
			if len(test.want) > 0 && (err == nil || !strings.Contains(err.Error(), "apt-get install --no-install-recommends "+missing[0])) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// What the image is built with is not needed where there is one.
func TestCheckWithAnImage(t *testing.T) {
	machine, err := FindMachine("raspi0")
	assert.NoError(t, err)
	withPrograms(t, "cp", "fdtput", "debugfs")
	s := &Supply{Source: "../../..", Dir: t.TempDir()}
	dir, err := s.imageDir(machine.Arch)
	assert.NoError(t, err)
	assert.NoError(t, os.Mkdir(dir, 0o755))
	missing, err := s.missing(t.Context(), machine)
	if want := "qemu-system-arm"; err != nil || strings.Join(missing, " ") != want {
		t.Errorf("%q are missing, %v, want %s", missing, err, want)
	}
}

// A program is found by each of its names, and where there is none, the error says what to install.
func TestFindProgram(t *testing.T) {
	withPrograms(t, "qemu-arm")
	path, err := FindProgram(UserEmulator)
	if err != nil || filepath.Base(path) != "qemu-arm" {
		t.Errorf("by its other name it is %q, %v", path, err)
	}
	withPrograms(t)
	_, err = FindProgram(UserEmulator)
	assert.ErrorContains(t, err, "apt-get install --no-install-recommends qemu-user-static", "")
}
