package pi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// packageOf says which Debian package a program comes from. What the image is built with stands
// in scripts/pilab-image.
var packageOf = map[string]string{
	"cp":                  "coreutils",
	"fdtput":              "device-tree-compiler",
	"debugfs":             "e2fsprogs",
	"qemu-system-aarch64": "qemu-system-arm",
	"qemu-system-arm":     "qemu-system-arm",
	UserEmulator:          "qemu-user-static",
}

// UserEmulator runs a program for 32-bit boards on this machine.
const UserEmulator = "qemu-arm-static"

// alsoCalled are other names of a program, in other packages.
var alsoCalled = map[string]string{UserEmulator: "qemu-arm"}

// FindProgram returns the path of a program of this machine, or which package has it.
func FindProgram(name string) (string, error) {
	path, err := exec.LookPath(name)
	if other := alsoCalled[name]; err != nil && other != "" {
		if path, otherErr := exec.LookPath(other); otherErr == nil {
			return path, nil
		}
	}
	if err != nil {
		return "", fmt.Errorf("%w; install it: %s", err, aptGet(packageOf[name]))
	}
	return path, nil
}

// aptGet is the command line that installs packages.
func aptGet(packages ...string) string {
	return "apt-get install --no-install-recommends " + strings.Join(packages, " ")
}

// Check looks for everything that a lab of such boards needs of this machine. The error names
// all that is missing at once: what is built first takes a minute or two.
func (s *Supply) Check(ctx context.Context, m Machine) error {
	var problems []error
	missing, err := s.missing(ctx, m)
	switch {
	case err != nil:
		problems = append(problems, err)
	case len(missing) > 0:
		problems = append(problems, fmt.Errorf("install what is missing: %s", aptGet(missing...)))
	}
	if os.Geteuid() != 0 {
		problems = append(problems, errNoRoot)
	}
	return errors.Join(problems...)
}

// errNoRoot is why nobody but root can have a lab.
var errNoRoot = errors.New("network namespaces need root: use sudo")

// missing returns the packages of which something is needed and not there, sorted.
func (s *Supply) missing(ctx context.Context, m Machine) (packages []string, err error) {
	for _, name := range []string{"cp", "fdtput", "debugfs", m.qemu} {
		if _, err := FindProgram(name); err != nil {
			packages = append(packages, packageOf[name])
		}
	}
	dir, err := s.imageDir(m.Arch)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(dir); err != nil { // it will be built
		var said bytes.Buffer
		c := exec.CommandContext(ctx, s.imageScript(), "--missing")
		c.Stderr = &said
		out, err := c.Output()
		if err != nil {
			return nil, fmt.Errorf("ask scripts/pilab-image what it lacks: %w: %s", err, said.String())
		}
		packages = append(packages, strings.Fields(string(out))...)
	}
	slices.Sort(packages)
	return slices.Compact(packages), nil
}

// imageScript builds images.
func (s *Supply) imageScript() string { return filepath.Join(s.Source, "scripts", "pilab-image") }
