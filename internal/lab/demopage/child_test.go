package demopage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/netns"
)

// This program is also the child of its tests, and a parent that is killed.
const (
	childWord  = "page-child"
	parentWord = "page-parent"
)

func TestMain(m *testing.M) {
	switch {
	case len(os.Args) == 2 && os.Args[1] == childWord:
		if err := AttendChild(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	case len(os.Args) == 2 && os.Args[1] == parentWord:
		port, err := net.Listen("tcp", "127.0.0.1:0")
		if err == nil {
			fmt.Println(port.Addr())
			err = ServeByChild(context.Background(), childCommand, port, &fakeSource{}, testOptions)
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

var childCommand = []string{"/proc/self/exe", childWord}

// onlyChild is the process that is the only child of another one.
func onlyChild(t *testing.T, parent int) int {
	t.Helper()
	var found []int
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended meanwhile
		}
		_, rest, _ := strings.Cut(string(text), ") ")
		fields := strings.Fields(rest)
		pid, _ := strconv.Atoi(strings.Split(path, "/")[2])
		if len(fields) > 1 && fields[1] == strconv.Itoa(parent) && fields[0] != "Z" {
			found = append(found, pid)
		}
	}
	if len(found) != 1 {
		t.Fatalf("the children of %d are %v, want one", parent, found)
	}
	return found[0]
}

// get asks a page until it answers: the child may not be there yet.
func get(t *testing.T, url string) string {
	t.Helper()
	client := http.Client{Timeout: 10 * time.Second}
	answer, err := client.Get(url)
	assert.NoError(t, err)
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	return string(text)
}

// awaitProcess waits until a process has ended.
func awaitProcess(t *testing.T, pidfd int) {
	t.Helper()
	ended := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}
	n, err := unix.Poll(ended, 10_000)
	for errors.Is(err, unix.EINTR) { // the runtime sends signals to its own threads
		n, err = unix.Poll(ended, 10_000)
	}
	if err != nil || n != 1 {
		t.Fatalf("the process has not ended: %v", err)
	}
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
}

// servedByChild has a child serve the page. It returns the child, what asks its parent to end, and how that ends.
func servedByChild(t *testing.T) (child int, end func(), ended chan error) {
	t.Helper()
	needRoot(t)
	ctx, cancel := context.WithCancel(t.Context())
	port, err := net.Listen("tcp", "127.0.0.1:0")
	assert.NoError(t, err)
	t.Cleanup(func() {
		cancel()
		port.Close()
	})
	ended = make(chan error, 1)
	go func() { ended <- ServeByChild(ctx, childCommand, port, &fakeSource{}, testOptions) }()
	assert.Is(t, `{"this":"state"}`, get(t, "http://"+port.Addr().String()+"/v1/demo"), "the page")
	return onlyChild(t, os.Getpid()), cancel, ended
}

// TestChild: what talks to browsers owns nothing and may do nothing, in none of its threads.
func TestChild(t *testing.T) {
	child, end, ended := servedByChild(t)
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", child))
	if len(threads) < 2 {
		t.Fatalf("the threads are %v", threads)
	}
	for _, path := range threads {
		text, err := os.ReadFile(path)
		assert.NoError(t, err)
		got := map[string]string{}
		for line := range strings.Lines(string(text)) {
			name, value, _ := strings.Cut(line, ":")
			got[name] = strings.Join(strings.Fields(value), " ")
		}
		for name, want := range map[string]string{
			"Uid": "65534 65534 65534 65534", "Gid": "65534 65534 65534 65534", "Groups": "", "NoNewPrivs": "1", "Seccomp": "2",
			"CapEff": "0000000000000000", "CapPrm": "0000000000000000", "CapInh": "0000000000000000", "CapAmb": "0000000000000000",
		} {
			assert.Equal(t, want, got[name], "%s, %s", path, name)
		}
	}
	ours, _ := os.Readlink("/proc/self/ns/net")
	theirs, _ := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", child))
	assert.Is(t, ours, theirs, "the network of the child")
	end()
	assert.ErrorIs(t, <-ended, nil, "")
}

// TestStoppedChild: a child that was stopped does not keep its parent from ending.
func TestStoppedChild(t *testing.T) {
	child, end, ended := servedByChild(t)
	assert.NoError(t, netns.Freeze(child))
	end()
	select {
	case err := <-ended:
		assert.ErrorIs(t, err, nil, "")
	case <-time.After(20 * childEndsWithin):
		t.Error("the parent waits for its child")
		_ = unix.Kill(child, unix.SIGKILL)
		<-ended
	}
}

// TestParentKilled: the child ends when its parent does, however that ends.
func TestParentKilled(t *testing.T) {
	needRoot(t)
	parent := exec.Command("/proc/self/exe", parentWord)
	out, err := parent.StdoutPipe()
	assert.NoError(t, err)
	assert.NoError(t, parent.Start())
	defer parent.Wait()
	defer parent.Process.Kill()
	var at string
	if _, err := fmt.Fscanln(out, &at); err != nil {
		t.Fatal(err)
	}
	get(t, "http://"+at+"/v1/demo")
	child, err := unix.PidfdOpen(onlyChild(t, parent.Process.Pid), 0)
	assert.NoError(t, err)
	defer unix.Close(child)
	assert.NoError(t, parent.Process.Kill())
	awaitProcess(t, child)
}

// TestChildEnds: a child that has ended ends the page, with an error.
func TestChildEnds(t *testing.T) {
	needRoot(t)
	port, err := net.Listen("tcp", "127.0.0.1:0")
	assert.NoError(t, err)
	defer port.Close()
	assert.ErrorContains(t, ServeByChild(t.Context(), []string{"/bin/false"}, port, &fakeSource{}, testOptions), "has ended", "")
}

// TestAttendChild: nobody but a parent starts a child.
func TestAttendChild(t *testing.T) {
	if text, err := exec.Command("/proc/self/exe", childWord).CombinedOutput(); err == nil || !strings.Contains(string(text), "a part of") {
		t.Errorf("%v: %s", err, text)
	}
}
