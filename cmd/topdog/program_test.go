package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/cluster"
	"topdog/internal/lab/judge"
	"topdog/internal/lab/netns"
)

// beTopdog makes the test binary the program itself, so that what the tests start is what is
// under test, built with the race detector if they are.
const beTopdog = "TOPDOG_BE_TOPDOG"

func TestMain(m *testing.M) {
	if os.Getenv(beTopdog) == "1" {
		main() // does not return
	}
	if os.Getenv(beUser) == "1" {
		os.Exit(userMain(os.Args[1:], os.Stdout))
	}
	judge.Main(m)
}

// itself is the program that this test binary is.
func itself() cluster.Program {
	return cluster.Program{Path: "/proc/self/exe", Env: []string{beTopdog + "=1"}}
}

// outcome is what became of a command.
type outcome struct {
	stdout, stderr string
	status         int
}

func (o outcome) String() string {
	return fmt.Sprintf("exit status %d\nstdout: %s\nstderr: %s", o.status, o.stdout, o.stderr)
}

// want wants an exit status and these words, which a failure says on standard error. tried is what was done.
func (o outcome) want(t testing.TB, status int, tried string, words ...string) {
	t.Helper()
	text := o.stdout
	if status != 0 {
		text = o.stderr
	}
	if o.status != status || !containsAll(text, words) {
		t.Errorf("%s: want exit status %d and %q, got %v", tried, status, words, o)
	}
}

// executed runs a command line of topdog in this process, which takes a thirtieth of the time of a process. It is for verbs
// that read arguments and files, and not for what starts a daemon.
func executed(t testing.TB, args ...string) outcome {
	t.Helper()
	var files [2]*os.File
	for n := range files {
		f, err := os.CreateTemp(t.TempDir(), "")
		must(t, err)
		defer f.Close()
		files[n] = f
	}
	o := outcome{status: execute(t.Context(), args, files[0], files[1])}
	for n, text := range []*string{&o.stdout, &o.stderr} {
		said, err := os.ReadFile(files[n].Name())
		must(t, err)
		*text = string(said)
	}
	return o
}

// execHere runs a command line of topdog to its end on this machine, as a process.
func execHere(t testing.TB, args ...string) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), cluster.Timeout)
	defer cancel()
	var stdout, stderr bytes.Buffer
	c := exec.CommandContext(ctx, itself().Path, args...)
	c.Env = append(c.Environ(), itself().Env...)
	c.Stdout, c.Stderr = &stdout, &stderr
	status := exitStatusOf(t, c.Run())
	return outcome{stdout.String(), stderr.String(), status}
}

// execOn runs a command line to its end on a host of a LAN.
func execOn(t testing.TB, p cluster.Program, h *netns.Host, args []string, opts ...netns.StartOption) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), cluster.Timeout)
	defer cancel()
	var stdout, stderr bytes.Buffer
	opts = append(opts, netns.Env(p.Env...), netns.Stdout(&stdout), netns.Stderr(&stderr))
	process, err := h.Start(ctx, p.Path, args, opts...)
	assert.NoError(t, err)
	status := exitStatusOf(t, process.Wait())
	return outcome{stdout.String(), stderr.String(), status}
}

func exitStatusOf(t testing.TB, err error) int {
	t.Helper()
	exit, ended := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
		return 0
	case ended && exit.Exited():
		return exit.ExitCode()
	}
	t.Fatalf("topdog did not end by itself: %v", err)
	return -1
}
