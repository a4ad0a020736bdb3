package pi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Supply makes what the boards are made of: images, and topdog's package. It
// runs the scripts of a source tree and keeps images in a directory.
type Supply struct {
	Source   string    // the top of topdog's source tree
	Dir      string    // where images are kept
	Progress io.Writer // what the scripts say
}

// Check looks for everything that a lab needs of this machine. The error names
// all that is missing at once: what is built first takes a minute or two.
func (s *Supply) Check(ctx context.Context) error {
	missing, err := s.script(ctx, "", "pilab-image", "--missing")
	if packages := strings.Fields(missing); len(packages) > 0 {
		err = errors.New("install what is missing: apt-get install --no-install-recommends " + strings.Join(packages, " "))
	}
	if os.Geteuid() != 0 {
		err = errors.Join(err, errNoRoot)
	}
	return err
}

// Image returns the directory of the image for a machine, and builds it if
// there is none yet from the present script.
func (s *Supply) Image(ctx context.Context, m Machine) (string, error) {
	dir, err := s.script(ctx, "", "pilab-image", "--once", m.Arch, s.Dir)
	return strings.TrimSpace(dir), err
}

// Program builds topdog for this machine, of a version, as it is released.
func (s *Supply) Program(ctx context.Context, version, path string) error {
	_, err := s.script(ctx, "TOPDOG_VERSION="+version, "release-build", path)
	return err
}

// Package builds topdog's package for a machine into a directory and
// returns its path. An empty version is what scripts/package makes of the tree.
func (s *Supply) Package(ctx context.Context, m Machine, version, dir string) (string, error) {
	out, err := s.script(ctx, "VERSION="+version, "package", "-o", dir, m.Package)
	if err != nil {
		return "", err
	}
	words := strings.Fields(out)
	if len(words) == 0 || !strings.HasSuffix(words[len(words)-1], ".deb") {
		return "", errors.New("build the package: scripts/package named no .deb")
	}
	return words[len(words)-1], nil
}

// ARMv6 runs what the package for 32-bit boards contains, and the unit tests, on
// an emulated ARM1176, the processor of a Pi Zero. It refuses instructions of
// ARMv7, which a newer board would run without a word. It returns what was run.
//
// What Go's libraries do with the processor is what is asked; the package
// and the tests are built with the same settings.
func (s *Supply) ARMv6(ctx context.Context) (string, error) {
	qemu, err := exec.LookPath("qemu-arm-static")
	if err != nil {
		qemu, err = exec.LookPath("qemu-arm") // as the package qemu-user calls it
	}
	if err != nil {
		return "", fmt.Errorf("%w; install it: apt-get install --no-install-recommends qemu-user-static", err)
	}
	emulator := "-exec=" + qemu + " -cpu arm1176"
	version, err := s.goARMv6(ctx, "run", "-trimpath", emulator, "./cmd/topdog", "version")
	if err == nil {
		_, err = s.goARMv6(ctx, "test", "-count=1", "-vet=off", "-ldflags=-s -w", emulator, "./wire", "./election", "./gpio")
	}
	return strings.TrimSpace(version) + "; tests of wire, election, gpio pass", err
}

// Test builds a test of a package for 32-bit boards.
func (s *Supply) Test(ctx context.Context, of, path string) error {
	_, err := s.goARMv6(ctx, "test", "-c", "-ldflags=-s -w", "-o", path, of)
	return err
}

// goARMv6 runs the go command for 32-bit boards.
func (s *Supply) goARMv6(ctx context.Context, args ...string) (string, error) {
	return s.run(ctx, "go", args, "CGO_ENABLED=0", "GOOS=linux", "GOARCH=arm", "GOARM=6")
}

// script runs a script with a setting in its environment.
func (s *Supply) script(ctx context.Context, setting, name string, args ...string) (string, error) {
	return s.run(ctx, filepath.Join("scripts", name), args, setting)
}

// run runs a program in the source tree with settings in its environment, and returns what it prints. It has a process group of
// its own, so that an interruption gives it the time to clean up after itself instead of hitting it twice.
func (s *Supply) run(ctx context.Context, program string, args []string, settings ...string) (string, error) {
	var out bytes.Buffer
	c := exec.CommandContext(ctx, program, args...)
	c.Dir = s.Source
	c.Env = append(c.Environ(), settings...)
	c.Stdout, c.Stderr = &out, s.Progress
	c.SysProcAttr = &unix.SysProcAttr{Setpgid: true, Pdeathsig: unix.SIGTERM}
	c.Cancel = func() error { return unix.Kill(-c.Process.Pid, unix.SIGTERM) }
	c.WaitDelay = endTime
	if err := c.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w %s", program, strings.Join(args, " "), err, bytes.TrimSpace(out.Bytes()))
	}
	return out.String(), nil
}
