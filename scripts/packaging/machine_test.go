package packaging

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/netns"
)

// timeout is how long a test waits for what must happen.
const timeout = 30 * time.Second

// askInterval is how often it looks: to ask systemctl takes 20 ms of a processor that other tests need.
const askInterval = 100 * time.Millisecond

// machine is a throw-away copy of this machine's system on a board of a LAN; see
// testdata/machine.
type machine struct {
	t        testing.TB
	process1 int // its process 1, as this machine numbers it
}

// newMachine starts one. shared is the directory that it sees as /srv.
func newMachine(t testing.TB, board *netns.Host, shared, process1 string) *machine {
	t.Helper()
	script, err := filepath.Abs("testdata/machine")
	must(t, err)
	var said bytes.Buffer
	p, err := board.Start(context.Background(), script, []string{t.TempDir(), shared, process1}, netns.Stdout(&said), netns.Stderr(&said))
	must(t, err)
	m := &machine{t: t}
	t.Cleanup(func() {
		if t.Failed() && process1 == "systemd" {
			t.Logf("the journal:\n%s", m.ask("journalctl", "-n", "100", "-o", "short-monotonic"))
		}
		if err := p.Signal(syscall.SIGTERM); err != nil {
			t.Errorf("the machine has ended by itself: %v", err)
		}
		select {
		case <-p.Exited():
		case <-time.After(timeout):
			t.Error("the machine does not end")
			p.Kill()
		}
		p.Wait() // until all that it said has been read; it was killed
		if t.Failed() {
			t.Logf("the machine said: %s", said.String())
		}
	})
	last := "/srv/ready" // among the last things that it gets
	if process1 == "systemd" {
		last = "/run/systemd/private" // the socket on which systemd is asked
	}
	eventually(t, "the machine runs", func() error {
		if m.process1, err = grandchild(p.PID); err != nil {
			return err
		}
		if _, err := os.Stat(m.path("/mnt/srv")); err == nil {
			return errors.New("it has this machine's root")
		}
		if _, err := os.Stat(m.path(last)); err != nil || process1 != "systemd" {
			return err
		}
		return m.try("systemctl", "is-active", "machine.target")
	})
	return m
}

// grandchild is the only child of the only child of a process.
func grandchild(pid int) (int, error) {
	for range 2 {
		list, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
		if err != nil {
			return 0, err
		}
		if pid, err = strconv.Atoi(strings.TrimSpace(string(list))); err != nil {
			return 0, fmt.Errorf("not one child: %w", err)
		}
	}
	return pid, nil
}

// command is one that runs in the machine.
func (m *machine) command(name string, args ...string) *exec.Cmd {
	enter := []string{"--target", strconv.Itoa(m.process1), "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--root", "--wd=/", name}
	c := exec.Command("nsenter", append(enter, args...)...)
	c.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive", "SYSTEMD_PAGER="}
	return c
}

// try runs a command, and says what it said if it fails.
func (m *machine) try(name string, args ...string) error {
	if out, err := m.command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

// run runs a command that must succeed, and returns what it said.
func (m *machine) run(name string, args ...string) string {
	m.t.Helper()
	m.t.Logf("%s %v", name, args)
	out, err := m.command(name, args...).CombinedOutput()
	if err != nil {
		m.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// ask runs a command whose answer is what it says, whatever its exit status.
func (m *machine) ask(name string, args ...string) string {
	out, _ := m.command(name, args...).Output()
	return strings.TrimSpace(string(out))
}

// unit is the state of topdog's unit: "enabled active", for instance.
func (m *machine) unit() string { return m.state("topdog") }

// state is that of a unit.
func (m *machine) state(unit string) string {
	enabled, active := "", ""
	for line := range strings.Lines(m.ask("systemctl", "show", "-p", "UnitFileState", "-p", "ActiveState", unit)) {
		switch key, value, _ := strings.Cut(strings.TrimSpace(line), "="); key {
		case "UnitFileState":
			enabled = value
		case "ActiveState":
			active = value
		}
	}
	return enabled + " " + active
}

func (m *machine) wantUnit(when, want string) {
	m.t.Helper()
	assert.Is(m.t, want, m.unit(), "%s: the unit", when)
}

// mainPID is the daemon of the unit, as the machine numbers it.
func (m *machine) mainPID() string {
	return m.ask("systemctl", "show", "-p", "MainPID", "--value", "topdog")
}

// path is where this machine sees a file of the machine.
func (m *machine) path(path string) string {
	return filepath.Join("/proc", strconv.Itoa(m.process1), "root", path)
}

// write writes a file in the machine.
func (m *machine) write(path, text string, mode os.FileMode) {
	m.t.Helper()
	path = m.path(path)
	must(m.t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(m.t, os.WriteFile(path, []byte(text), mode))
	must(m.t, os.Chmod(path, mode))
}

// books are what dpkg, the journal and the user database write down, and keep.
var books = regexp.MustCompile(`^/(var/lib/dpkg|var/log|var/cache)/|^/etc/(g?shadow|group|passwd|\.pwd\.lock)-?$`)

// written is every file that the machine has changed, made or removed, and every
// directory that is called after topdog, without the books.
func (m *machine) written() []string {
	m.t.Helper()
	var written []string
	for path := range strings.Lines(m.run("find", "/media", "(", "!", "-type", "d", "-o", "-name", "*topdog*", ")", "-printf", "/%P\n")) {
		path = strings.TrimSpace(path)
		if !books.MatchString(path) {
			written = append(written, path)
		}
	}
	slices.Sort(written)
	return written
}

func eventually(t testing.TB, what string, check func() error) {
	t.Helper()
	deadline := time.Now().Add(timeout)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", what, err)
		}
		time.Sleep(askInterval)
	}
}

var must = assert.NoError

// holderPID is the process of the holder's unit.
func (m *machine) holderPID() string {
	return m.ask("systemctl", "show", "-p", "MainPID", "--value", "topdog-holder")
}

// wantNoRights holds that no thread of any process of the daemon's unit has a capability, or can get one.
func (m *machine) wantNoRights(pid string) {
	m.t.Helper()
	group := m.run("systemctl", "show", "-p", "ControlGroup", "--value", "topdog")
	pids := strings.Fields(m.run("cat", "/sys/fs/cgroup"+group+"/cgroup.procs"))
	if !slices.Contains(pids, pid) {
		m.t.Errorf("the processes of the unit are %v, without the daemon's %s", pids, pid)
	}
	for _, pid := range pids {
		status := m.run("sh", "-c", "cat /proc/"+pid+"/task/*/status")
		sets, privileges := 0, 0
		for line := range strings.Lines(status) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), ":\t")
			switch {
			case strings.HasPrefix(key, "Cap"):
				sets++
				if strings.Trim(value, "0") != "" {
					m.t.Errorf("process %s: %s", pid, line)
				}
			case key == "NoNewPrivs":
				privileges++
				if value != "1" {
					m.t.Errorf("process %s: %s", pid, line)
				}
			}
		}
		if sets < 5 || sets != 5*privileges {
			m.t.Errorf("process %s: %d sets of capabilities, of %d threads", pid, sets, privileges)
		}
	}
}
