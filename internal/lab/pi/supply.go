package pi

import (
	"bytes"
	"context"
	"crypto/sha256"
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

// imageDir is where the image for an architecture is, once it has been built by the present script.
func (s *Supply) imageDir(arch string) (string, error) {
	text, err := os.ReadFile(s.imageScript())
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	hash.Write(text)
	fmt.Fprint(hash, os.Getenv("PILAB_SUITE"))
	return filepath.Join(s.Dir, fmt.Sprintf("image-%s-%x", arch, hash.Sum(nil)[:4])), nil
}

// Image returns the directory of the image for an architecture, and builds it if
// there is none yet from the present script.
func (s *Supply) Image(ctx context.Context, arch string) (string, error) {
	dir, err := s.imageDir(arch)
	if err != nil {
		return "", err
	}
	// Two commands that need the same image build it once.
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return "", err
	}
	lock, err := os.OpenFile(filepath.Join(s.Dir, "image.lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return "", fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	// The image of an older script is of no use any more: boards have copies.
	older, _ := filepath.Glob(filepath.Join(s.Dir, "image-"+arch+"-*"))
	for _, path := range older {
		if err := os.RemoveAll(path); err != nil {
			return "", err
		}
	}
	c := exec.CommandContext(ctx, s.imageScript(), arch, dir)
	c.Stdout, c.Stderr = s.Progress, s.Progress
	if err := runGently(c); err != nil {
		return "", fmt.Errorf("build the image for %s: %w", arch, err)
	}
	return dir, nil
}

// Program builds topdog for this machine, of a version, as it is released.
func (s *Supply) Program(ctx context.Context, version, path string) error {
	c := exec.CommandContext(ctx, filepath.Join(s.Source, "scripts", "release-build"), path)
	c.Stderr = s.Progress
	c.Env = append(c.Environ(), "TOPDOG_VERSION="+version)
	if err := runGently(c); err != nil {
		return fmt.Errorf("build topdog: %w", err)
	}
	return nil
}

// Package builds topdog's package for an architecture into a directory and
// returns its path. An empty version is what scripts/package makes of the tree.
func (s *Supply) Package(ctx context.Context, arch, version, dir string) (string, error) {
	script := filepath.Join(s.Source, "scripts", "package")
	c := exec.CommandContext(ctx, script, "-o", dir, arch)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, s.Progress
	if version != "" {
		c.Env = append(c.Environ(), "VERSION="+version)
	}
	if err := runGently(c); err != nil {
		return "", fmt.Errorf("build the package for %s: %w", arch, err)
	}
	lines := strings.Fields(out.String())
	if len(lines) == 0 || !strings.HasSuffix(lines[len(lines)-1], ".deb") {
		return "", errors.New("build the package: scripts/package named no .deb")
	}
	return lines[len(lines)-1], nil
}

// runGently runs a script in a process group of its own, so that an interruption
// gives it the time to clean up after itself instead of hitting it twice.
func runGently(c *exec.Cmd) error {
	c.SysProcAttr = &unix.SysProcAttr{Setpgid: true, Pdeathsig: unix.SIGTERM}
	c.Cancel = func() error { return unix.Kill(-c.Process.Pid, unix.SIGTERM) }
	c.WaitDelay = killTimeout
	return c.Run()
}
