package trial

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"topdog/internal/lab/pi"
)

// onBoard is a test that runs on a board too. In user-mode emulation the kernel that a test asks is this machine's; a board has
// one for ARM.
const onBoard = "TestKeepDescriptor0"

// ARMv6 runs what the package for 32-bit boards contains, and the unit tests, on
// an emulated ARM1176, the processor of a Pi Zero. It refuses instructions of
// ARMv7, which a newer board would run without a word. source is the top of topdog's
// source tree. It returns what was run.
func ARMv6(ctx context.Context, source string) (string, error) {
	qemu, err := pi.FindProgram(pi.UserEmulator)
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "topdog-armv6")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	// What Go's libraries do with the processor is what is asked; the package
	// and the tests are built with the same settings.
	bin := filepath.Join(dir, "topdog")
	if err := goARMv6(ctx, source, "build", "-trimpath", "-o", bin, "./cmd/topdog"); err != nil {
		return "", err
	}
	out, err := exec.CommandContext(ctx, qemu, "-cpu", "arm1176", bin, "version").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("topdog version: %w: %s", err, out)
	}
	for _, name := range []string{"wire", "election", "gpio"} {
		test := filepath.Join(dir, name+".test")
		if err := buildTest(ctx, source, name, test); err != nil {
			return "", err
		}
		c := exec.CommandContext(ctx, qemu, "-cpu", "arm1176", test)
		c.Dir = filepath.Join(source, name) // where the test data is
		if out, err := c.CombinedOutput(); err != nil {
			return "", fmt.Errorf("tests of %s: %w\n%s", name, err, out)
		}
	}
	return strings.TrimSpace(string(out)) + "; tests of wire, election, gpio pass", nil
}

// buildTest builds the test program of a package.
func buildTest(ctx context.Context, source, name, path string) error {
	return goARMv6(ctx, source, "test", "-c", "-ldflags=-s -w", "-o", path, "./"+name)
}

func goARMv6(ctx context.Context, source string, args ...string) error {
	c := exec.CommandContext(ctx, "go", args...)
	c.Dir = source
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=arm", "GOARM=6")
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s for ARMv6: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// gpioTest is the path of the test program that runs on a board.
func (t *trial) gpioTest() string { return filepath.Join(t.dir, "gpio.test") }

// armv6OnBoard runs a test of 32 bits on an emulated 3B: its kernel has 64 bits and runs programs of 32 too, as that of
// Raspberry Pi OS.
func (t *trial) armv6OnBoard(ctx context.Context) (string, error) {
	b := t.board(last)
	out, err := b.Run(ctx, "chmod +x /root/gpio.test && /root/gpio.test -test.v -test.run='^"+onBoard+"$'")
	if err == nil && !strings.Contains(out, "--- PASS: "+onBoard) {
		err = fmt.Errorf("%s did not run: %s", onBoard, out)
	}
	return onBoard, err
}
