package check

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/assert"
)

// script writes a shell script and returns its path.
func script(t *testing.T, text string) string {
	t.Helper()
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skipf("needs a shell: %v", err)
	}
	path := filepath.Join(t.TempDir(), "program")
	assert.WriteFile(t, path, []byte("#!"+shell+"\n"+text+"\n"), 0o755)
	return path
}

// testOutputMax is how much the commands of the tests may print.
const testOutputMax = 512

// run runs a real command that should end long before the test's time limit.
func run(t *testing.T, words ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	output, err := runProgram(ctx, words, testOutputMax)
	if ctx.Err() != nil {
		t.Fatalf("%q did not end", words)
	}
	return string(output), err
}

// reason is why something has failed, or "".
func reason(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestRun(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "/run/nothing")
	t.Setenv("LC_ALL", "de_DE.UTF-8")
	t.Setenv("GOMEMLIMIT", "16MiB")
	for _, test := range []struct{ name, text, want, err string }{
		{"a number", `echo 42`, "42\n", ""},
		{"arguments, as they are", `echo "$#" "$1" "$2"`, "2 a b $HOME;\n", ""},
		{"where it runs", `pwd`, "/\n", ""},
		{"its environment", `echo "${NOTIFY_SOCKET-none} ${GOMEMLIMIT-none} $LC_ALL"`, "none none C\n", ""},
		{"its standard input", `cat; echo end`, "end\n", ""},
		{"a failure", `echo 42; exit 3`, "", "failed (exit status 3)"},
		{"a failure that says why", `echo "no such sensor" >&2; exit 3`, "", `failed (exit status 3): "no such sensor"`},
		{"a lot on its standard error", `n=0; while [ $n -lt 1000 ]; do echo 1234567890 >&2; n=$((n+1)); done; echo 7`, "7\n", ""},
		{"a complaint without a failure", `echo "slow today" >&2; echo 7`, "7\n", ""},
		{"its own death", `kill -9 $$`, "", "failed (signal: killed)"},
		{"a flood", `while echo 1234567890 2>/dev/null; do n=$((n+1)); [ $n -lt 1000 ] || break; done`, "", "printed more than 512 bytes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := run(t, script(t, test.text), "a b", "$HOME;")
			assert.Is(t, test.want, got, "")
			assert.Is(t, test.err, reason(err), "")
		})
	}
}

func TestRunCannotStart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "program")
	_, err := run(t, path)
	assert.Is(t, "cannot be started: no such file or directory", fmt.Sprint(err), "what does not exist")
	assert.NoError(t, os.WriteFile(path, []byte("42"), 0o644))
	_, err = run(t, path)
	assert.Is(t, "cannot be started: permission denied", fmt.Sprint(err), "what is no program")
}

// TestRunIsKilled: when the time is over, the program goes and with it
// what it has started.
func TestRunIsKilled(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pids")
	path := script(t, `sleep 1000 & echo $! $$ >"$1.new"; mv "$1.new" "$1"; wait`)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := runProgram(ctx, []string{path, pids}, testOutputMax)
		ended <- err
	}()
	both := started(t, pids)
	cancel()
	select {
	case err := <-ended:
		if err == nil || !strings.Contains(err.Error(), "killed") {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Error("it was not killed")
	}
	for _, pid := range both {
		gone(t, pid)
	}
	_, err := runProgram(ctx, []string{path, pids}, testOutputMax)
	assert.ErrorIs(t, err, context.Canceled, "when the time is over")
}

// TestRunLeavesNothing: what a program has started ends with it, and does not keep the daemon waiting for its output. A program that
// prints without end is ended at once, also if it does not mind that nobody reads.
func TestRunLeavesNothing(t *testing.T) {
	for _, test := range []struct{ name, text, want, err string }{
		{"a program that ends", `sleep 1000 & echo $! >>"$1"; echo 42`, "42\n", ""},
		{"a program", `while :; do echo 1234567890; done 2>/dev/null`, "", "printed more than 512 bytes"},
		{"a child of it", `while :; do echo 1234567890; done 2>/dev/null & wait`, "", "printed more than 512 bytes"},
		{"to its standard error", `while :; do echo 1234567890 >&2; done 2>&2`, "", "wrote more than 65536 bytes to its standard error"},
	} {
		t.Run(test.name, func(t *testing.T) {
			pids := filepath.Join(t.TempDir(), "pids")
			path := script(t, `trap "" PIPE; sleep 1000 >/dev/null 2>&1 & echo $! $$ >"$1.new"; mv "$1.new" "$1"; `+test.text)
			output, err := run(t, path, pids) // fails if it does not end
			assert.Is(t, test.want, output, "")
			assert.Is(t, test.err, reason(err), "")
			for _, pid := range started(t, pids) {
				gone(t, pid)
			}
		})
	}
}

// withAmbient marks the test binary that was started with an ambient capability.
const withAmbient = "TOPDOG_TEST_AMBIENT"

// runsWithAmbient runs the present test in a process with an ambient capability, unless this process is that one. It
// reports whether it did.
func runsWithAmbient(t *testing.T) bool {
	t.Helper()
	if os.Getenv(withAmbient) != "" {
		return false
	}
	c := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	c.Env = append(os.Environ(), withAmbient+"=1")
	c.SysProcAttr = &syscall.SysProcAttr{AmbientCaps: []uintptr{unix.CAP_NET_RAW}}
	output, err := c.CombinedOutput()
	if errors.Is(err, syscall.EPERM) {
		t.Skipf("needs CAP_NET_RAW to give away: %v", err)
	}
	if err != nil {
		t.Errorf("%v\n%s", err, output)
	}
	return true
}

// started waits for a file with the numbers of processes.
func started(t *testing.T, path string) (pids []int) {
	t.Helper()
	assert.Until(t, "the script has started", func() bool {
		text, _ := os.ReadFile(path)
		for _, word := range strings.Fields(string(text)) {
			pid, err := strconv.Atoi(word)
			assert.NoError(t, err)
			pids = append(pids, pid)
		}
		return len(pids) > 0
	})
	return pids
}

// gone waits until a process is no more, or only waits for its parent to notice.
func gone(t *testing.T, pid int) {
	t.Helper()
	assert.Until(t, fmt.Sprintf("process %d has ended", pid), func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || strings.Contains(string(stat), ") Z ")
	})
}

// TestSignalsOfPrograms: the signals that end a program in a shell end it here too. One that is ignored stays so for whatever
// a checker runs.
func TestSignalsOfPrograms(t *testing.T) {
	reasons, err := openTrying(t).Try(t.Context(), Order{Checks: []Check{
		program("kill -PIPE $$"), program("ulimit -c 0; kill -ABRT $$"),
	}})
	assert.NoError(t, err)
	assert.Equal(t, []string{"failed (signal: broken pipe)", "failed (signal: aborted)"}, reasons, "the reasons")
}
