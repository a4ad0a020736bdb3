package seccomp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"topdog/internal/lab/assert"
)

// Of the kernel's tables.
const (
	x86     = 0x40000003
	x86_64  = 0xc000003e
	arm     = 0x40000028
	aarch64 = 0xc00000b7
	riscv64 = 0xc00000f3
)

// execs are the numbers of execve and execveat.
var execs = map[string][]uint32{"amd64": {59, 322}, "arm64": {221, 281}, "arm": {11, 387}}

// TestFilter runs the program of each architecture over calls.
func TestFilter(t *testing.T) {
	const allowed, eperm = unix.SECCOMP_RET_ALLOW, unix.SECCOMP_RET_ERRNO | 1
	for _, test := range []struct {
		program      string
		architecture uint32
		number       uint32
		want         int
	}{
		{"amd64", x86_64, 0, allowed},
		{"amd64", x86_64, 59, eperm},
		{"amd64", x86_64, 322, eperm},
		{"amd64", x86_64, 58, allowed},             // vfork
		{"amd64", x86_64, 60, allowed},             // exit
		{"amd64", x86_64, 221, allowed},            // fadvise64, which is execve on arm64
		{"amd64", x86_64, 0x40000000, eperm},       // read of x32
		{"amd64", x86_64, 0x40000000 | 520, eperm}, // execve of x32
		{"amd64", x86, 11, eperm},                  // execve by int 0x80
		{"amd64", x86, 4, eperm},                   // write likewise
		{"amd64", riscv64, 0, eperm},               // cannot be
		{"amd64", x86_64, 0xffffffff, eperm},       // likewise
		{"arm64", aarch64, 64, allowed},            // write
		{"arm64", aarch64, 221, eperm},             //
		{"arm64", aarch64, 281, eperm},             //
		{"arm64", aarch64, 11, allowed},            // llistxattr
		{"arm64", arm, 11, eperm},                  // of 32 bits
		{"arm64", arm, 4, eperm},                   // write likewise
		{"arm", arm, 4, allowed},                   //
		{"arm", arm, 11, eperm},                    //
		{"arm", arm, 387, eperm},                   //
		{"arm", arm, 221, allowed},                 // fcntl64
		{"arm", arm, 0x0f0002, allowed},            // cacheflush
		{"arm", arm, 0x0f0005, allowed},            // set_tls
		{"arm", aarch64, 221, eperm},               //
		{"arm", arm &^ 0x40000000, 4, eperm},       // of the other byte order
	} {
		vm, err := bpf.NewVM(filter(architectures[test.program], execs[test.program]))
		assert.NoError(t, err)
		// The interpreter reads a packet, which has the other byte order.
		call := make([]byte, 64)
		binary.BigEndian.PutUint32(call[numberAt:], test.number)
		binary.BigEndian.PutUint32(call[architectureAt:], test.architecture)
		if got, err := vm.Run(call); err != nil || got != test.want {
			t.Errorf("%s: call %#x of %#x: %#x, %v; want %#x", test.program, test.number, test.architecture, got, err, test.want)
		}
	}
}

// TestRefused: each call of the list is refused here, and what the daemon lives by is not.
func TestRefused(t *testing.T) {
	architecture, known := architectures[runtime.GOARCH]
	if !known {
		t.Skipf("there is no filter for %s", runtime.GOARCH)
	}
	for _, number := range execs[runtime.GOARCH] {
		if !slices.Contains(refused, number) {
			t.Errorf("call %d is not refused", number)
		}
	}
	vm, err := bpf.NewVM(filter(architecture, refused))
	assert.NoError(t, err)
	for number := range uint32(1 << 10) {
		call := make([]byte, 64)
		binary.BigEndian.PutUint32(call[numberAt:], number)
		binary.BigEndian.PutUint32(call[architectureAt:], architecture)
		got, err := vm.Run(call)
		assert.NoError(t, err)
		assert.Is(t, slices.Contains(refused, number), got != unix.SECCOMP_RET_ALLOW, "call %d is refused", number)
	}
}

// refusing marks the test binary that refuses itself everything.
const refusing = "TOPDOG_TEST_REFUSE"

// TestRefuseExec: in all threads, those that were there and those that come, for good, and nothing else stops.
func TestRefuseExec(t *testing.T) {
	if os.Getenv(refusing) == "" {
		c := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
		c.Env = append(os.Environ(), refusing+"=1")
		output, err := c.CombinedOutput()
		if strings.Contains(string(output), "--- SKIP") {
			t.Skipf("%s", output)
		}
		if err != nil || !strings.Contains(string(output), "--- PASS") { // what executes another program says neither
			t.Errorf("%v\n%s", err, output)
		}
		return
	}
	former := held(t, 4)
	if err := RefuseExec(); errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EINVAL) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	later := held(t, 4)
	for _, thread := range append(former, later...) {
		for _, try := range []func() error{
			func() error { return unix.Exec("/bin/true", []string{"true"}, nil) },
			func() error { return execveat("/bin/true") },
		} {
			assert.ErrorIs(t, thread(try), unix.EPERM, "a program that a thread executes")
		}
	}
	assert.ErrorIs(t, exec.Command("/bin/true").Run(), unix.EPERM, "a program that a child executes")
	files, err := filepath.Glob("/proc/self/task/*/status")
	if err != nil || len(files) < 9 {
		t.Fatalf("%d threads, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		for _, want := range []string{"Seccomp:\t2\n", "NoNewPrivs:\t1\n"} {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s: not %q", file, want)
			}
		}
	}
	assert.ErrorIs(t, os.WriteFile(filepath.Join(t.TempDir(), "file"), nil, 0o600), nil, "what is no part of it")
	assert.ErrorIs(t, RefuseExec(), nil, "once more")
}

// held returns threads that do what they are told.
func held(t *testing.T, n int) (threads []func(func() error) error) {
	for range n {
		work, result := make(chan func() error), make(chan error)
		go func() {
			runtime.LockOSThread()
			for do := range work {
				result <- do()
			}
		}()
		threads = append(threads, func(do func() error) error {
			select {
			case work <- do:
				return <-result
			case <-time.After(10 * time.Second):
				return fmt.Errorf("the thread is stuck")
			}
		})
	}
	for _, thread := range threads { // so that each has one
		assert.NoError(t, thread(func() error { return nil }))
	}
	return threads
}

func execveat(name string) error {
	path, err := unix.BytePtrFromString(name)
	if err != nil {
		return err
	}
	arguments := []*byte{path, nil}
	_, _, errno := unix.Syscall6(unix.SYS_EXECVEAT, ^uintptr(0), uintptr(unsafe.Pointer(path)), uintptr(unsafe.Pointer(&arguments[0])), 0, 0, 0)
	return errno
}
