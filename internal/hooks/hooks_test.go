package hooks

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"

	"topdog/internal/console"
	"topdog/internal/lab/assert"
)

// deadline ends a test that waits for what never comes.
const deadline = 20 * time.Second

func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for end := time.Now().Add(deadline); !done(); <-look.C {
		if time.Now().After(end) {
			t.Fatalf("%s: it did not happen in time", what)
		}
	}
}

// lines collects what is logged.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), text)
}

func newTestLog() (*logrus.Entry, *lines) {
	said := &lines{}
	log := logrus.New()
	log.SetOutput(io.MultiWriter(said))
	return logrus.NewEntry(log), said
}

// book is a file in which scripts write down what they are told.
type book string

func newBook(t *testing.T) book { return book(filepath.Join(t.TempDir(), "book")) }

func (b book) lines() []string {
	text, _ := os.ReadFile(string(b))
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// wants waits until these lines are in it, and no others.
func (b book) wants(t *testing.T, want ...string) {
	t.Helper()
	waitFor(t, fmt.Sprintf("%q is written, not %q", want, b.lines()), func() bool { return slices.Equal(b.lines(), want) })
}

// hooked is a runner whose scripts have a book.
type hooked struct {
	*runner
	t      *testing.T
	states *newest
	book   book
	said   *lines
	end    func()
}

func newHooked(t *testing.T) *hooked {
	h := &hooked{t: t, book: newBook(t)}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("it has logged:\n%s", h.said.text.String())
		}
	})
	log, said := newTestLog()
	h.said = said
	h.runner = newRunner(Options{Directory: directory(t), Timeout: deadline, Log: log})
	i, _ := h.of("", &console.Transition{})
	h.states = i.states
	return h
}

func (h *hooked) script(name, text string) {
	h.t.Helper()
	path := filepath.Join(h.Directory, name)
	assert.NoError(h.t, os.MkdirAll(filepath.Dir(path), 0o755))
	write(h.t, path, "#!/bin/sh\nbook="+string(h.book)+"\n"+text+"\n", 0o755)
}

// begin begins to run the scripts; it ends with the test, or when end is called.
func (h *hooked) begin() {
	ctx, cancel := context.WithCancel(h.t.Context())
	ended := make(chan struct{})
	go func() { h.run(ctx); close(ended) }()
	h.end = sync.OnceFunc(func() { cancel(); <-ended })
	h.t.Cleanup(h.end)
}

func (h *hooked) put(w word, leader string, term uint32) {
	h.states.put(state{w, console.Transition{
		Event: console.EventRoleChanged, Role: "role", Reason: "reason", Group: "a group", Priority: 100, Leader: leader, LeaderName: "pi 1",
		Addresses: []string{"192.168.1.250/24", "fd00:1::250/64"}, Interface: "eth0", Term: term, Board: "192.168.1.11", Grade: "passing",
	}})
}

func (h *hooked) wantBook(want ...string) {
	h.t.Helper()
	h.book.wants(h.t, want...)
}

// A script gets what keepalived gives to notify scripts, and more in the environment.
func TestArguments(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "/run/systemd/notify")
	t.Setenv("TOPDOG_ROLE", "another")
	h := newHooked(t)
	h.script("notify", `printf '%s|' "$@" >"$book.new"; env | grep -E '^(TOPDOG_|NOTIFY|PATH=)' | sort >>"$book.new"; mv "$book.new" "$book"`)
	h.begin()
	h.put(master, "192.168.1.11", 8)
	h.wantBook("INSTANCE|a group|MASTER|100|PATH="+os.Getenv("PATH"),
		"TOPDOG_ADDRESSES=192.168.1.250/24 fd00:1::250/64", "TOPDOG_BOARD=192.168.1.11", "TOPDOG_EVENT=role_changed",
		"TOPDOG_GRADE=passing", "TOPDOG_GROUP=a group", "TOPDOG_INTERFACE=eth0", "TOPDOG_LEADER=192.168.1.11", "TOPDOG_LEADER_NAME=pi 1",
		"TOPDOG_REASON=reason", "TOPDOG_ROLE=role", "TOPDOG_TERM=8")
}

func TestInherited(t *testing.T) {
	got := inherited([]string{"A=1", "TOPDOG_X=1", "WATCHDOG_USEC=1"})
	assert.Equal(t, []string{"A=1", defaultPath}, got, "")
}

// Scripts run in the order of their names, each state once, and those of leader.d for each leader.
func TestOrder(t *testing.T) {
	h := newHooked(t)
	h.script("20-b", `echo "b $3" >>"$book"`)
	h.script("10-a", `echo "a $3" >>"$book"`)
	h.script("leader.d/50-l", `echo "l $3 $TOPDOG_LEADER" >>"$book"`)
	h.begin()
	h.put(backup, "", 1)
	h.wantBook("a BACKUP", "b BACKUP")
	h.put(backup, "two", 1)
	h.wantBook("a BACKUP", "b BACKUP", "l BACKUP two")
	h.put(backup, "", 1)
	h.put(backup, "two", 1)
	h.put(backup, "three", 2)
	h.wantBook("a BACKUP", "b BACKUP", "l BACKUP two", "l BACKUP three")
	h.put(master, "one", 3)
	h.wantBook("a BACKUP", "b BACKUP", "l BACKUP two", "l BACKUP three", "a MASTER", "b MASTER", "l MASTER one")

	// One that is put there later is told at the next change, as the others.
	assert.NoError(t, os.Remove(string(h.book)))
	h.script("15-new", `echo "new $3" >>"$book"`)
	h.put(stop, "", 0)
	h.wantBook("a STOP", "new STOP", "b STOP")
}

// What is over before its turn is left out, and no script is told what is over when another ran before it.
func TestOvertaken(t *testing.T) {
	h := newHooked(t)
	gate := filepath.Join(t.TempDir(), "gate")
	assert.NoError(t, unix.Mkfifo(gate, 0o600))
	h.script("10-slow", `echo "slow $3" >>"$book"; [ "$3" = BACKUP ] || read x <`+gate)
	h.script("20-fast", `echo "fast $3" >>"$book"`)
	h.begin()
	h.put(backup, "a", 1)
	h.wantBook("slow BACKUP", "fast BACKUP")
	h.put(master, "b", 2)
	h.wantBook("slow BACKUP", "fast BACKUP", "slow MASTER")
	h.put(fault, "", 2)
	h.put(backup, "c", 3)
	assert.NoError(t, os.WriteFile(gate, []byte("go\n"), 0))
	// The fast one was told BACKUP already, and MASTER is over.
	h.wantBook("slow BACKUP", "fast BACKUP", "slow MASTER", "slow BACKUP")
	waitFor(t, "it is logged", func() bool {
		return h.said.has("changes that were over before the hooks could be told: 1; now this board is BACKUP")
	})
	h.end()
	h.wantBook("slow BACKUP", "fast BACKUP", "slow MASTER", "slow BACKUP")
}

// noChildren fails the test if a process of its own is left, also as a zombie.
func noChildren(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	assert.NoError(t, err)
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			continue // it has ended
		}
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		if parent, _ := strconv.Atoi(fields[1]); parent == os.Getpid() {
			t.Errorf("a process is left: %s", text[:40])
		}
	}
}

// A script that hangs is killed with all that it has started, and the next state is told.
func TestTimeout(t *testing.T) {
	var h *hooked
	var child book
	for limit := 300 * time.Millisecond; ; limit *= 4 { // longer where this machine is too slow to start a child in time
		h = newHooked(t)
		h.Timeout = limit
		h.script("hangs", `echo "$3" >>"$book"
[ "$3" = MASTER ] || exit 3
trap '' TERM HUP INT
sh -c 'echo $$ >"'"$book"'.child"; trap "" TERM; sleep 1000 & wait' &
wait`)
		h.begin()
		h.put(master, "", 1)
		child = h.book + ".child"
		waitFor(t, "its child runs", func() bool { return child.lines()[0] != "" || h.said.has("was killed after") })
		if child.lines()[0] != "" {
			break
		}
	}
	h.put(backup, "", 2)
	h.wantBook("MASTER", "BACKUP")
	waitFor(t, "it is logged", func() bool {
		return h.said.has("hangs MASTER: it did not end in time, and was killed after") && h.said.has("hangs BACKUP: exit status 3 after")
	})
	waitFor(t, "its child is dead", func() bool {
		stat, err := os.ReadFile("/proc/" + child.lines()[0] + "/stat")
		return err != nil || bytes.Contains(stat, []byte(") Z ")) // whoever inherits it has yet to notice
	})
}

// What cannot be run is logged with what to do, once if nothing changes.
func TestCannotRun(t *testing.T) {
	h := newHooked(t)
	write(t, filepath.Join(h.Directory, "plain"), "echo no first line\n", 0o755)
	write(t, filepath.Join(h.Directory, "windows"), "#!/bin/sh\r\necho\r\n", 0o755)
	write(t, filepath.Join(h.Directory, "others"), "#!/bin/sh\n", 0o777)
	h.begin()
	h.put(backup, "", 1)
	h.put(master, "", 2)
	waitFor(t, "it is logged", func() bool {
		return h.said.has("plain MASTER: it cannot be run: its first line must name its interpreter, such as #!/bin/sh") &&
			h.said.has("windows MASTER: it cannot be run") && h.said.has("must not end with CR LF")
	})
	h.end()
	h.said.mu.Lock()
	defer h.said.mu.Unlock()
	refused := strings.Count(h.said.text.String(), "others may be written to by others than root")
	assert.Is(t, 1, refused, "times that it is refused in the log")
}
