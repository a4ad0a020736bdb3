package trial

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// ARMv6 runs what the package for 32-bit boards contains, and the unit tests, on
// an emulated ARM1176, the processor of a Pi Zero. It refuses instructions of
// ARMv7, which a newer board would run without a word. source is the top of topdog's
// source tree. It returns what was run.
//
// What Go's libraries do with the processor is what is asked; the package
// and the tests are built with the same settings.
func ARMv6(ctx context.Context, source string) (string, error) {
	qemu, err := exec.LookPath("qemu-arm-static")
	if err != nil {
		qemu, err = exec.LookPath("qemu-arm") // as the package qemu-user calls it
	}
	if err != nil {
		return "", fmt.Errorf("%w; install it: apt-get install --no-install-recommends qemu-user-static", err)
	}
	emulator := "-exec=" + qemu + " -cpu arm1176"
	version, err := goARMv6(ctx, source, "run", "-trimpath", emulator, "./cmd/topdog", "version")
	if err != nil {
		return "", err
	}
	_, err = goARMv6(ctx, source, "test", "-count=1", "-vet=off", "-ldflags=-s -w", emulator, "./wire", "./election", "./gpio")
	return strings.TrimSpace(version) + "; tests of wire, election, gpio pass", err
}

// goARMv6 runs the go command for 32-bit boards, and returns all that it says.
func goARMv6(ctx context.Context, source string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, "go", args...)
	c.Dir = source
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=arm", "GOARM=6")
	out, err := c.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("go %s for ARMv6: %w\n%s", strings.Join(args, " "), err, out)
	}
	return string(out), err
}
