package pi

import (
	"errors"
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
	for _, test := range []struct {
		name    string
		present []string
		want    []string // Debian packages
	}{
		{"nothing is installed", nil, []string{
			"mmdebstrap", "kmod", "cpio", "device-tree-compiler", "e2fsprogs", "dpkg", "qemu-system-arm",
		}},
		{"two are missing", []string{
			"fdtput", "mke2fs", "depmod", "cpio", "dpkg-deb", "qemu-system-aarch64",
		}, []string{"mmdebstrap"}},
		{"all are there", []string{
			"fdtput", "mke2fs", "depmod", "cpio", "dpkg-deb", "qemu-system-aarch64", "mmdebstrap",
		}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			withPrograms(t, test.present...)
			s := &Supply{Source: "../../..", Dir: t.TempDir()}
			err := s.Check(t.Context())
			if err == nil {
				err = errors.New("")
			}
			// No program tells whether this machine has the keyring.
			got, _, _ := strings.Cut(strings.ReplaceAll(err.Error(), " debian-archive-keyring", ""), "\n")
			want := ""
			if len(test.want) > 0 {
				want = "install what is missing: apt-get install --no-install-recommends " + strings.Join(test.want, " ")
			}
			assert.Is(t, want, strings.TrimSuffix(got, errNoRoot.Error()), "the error")
		})
	}
}
