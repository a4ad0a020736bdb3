package netns

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"topdog/internal/lab/observe"
)

const (
	// sampleInterval is how often the run delays of all processes of a test are read. Delays within it add up.
	sampleInterval = 200 * time.Millisecond
	// changeInterval is how often an address is changed, to see how long the kernel takes.
	changeInterval = 20 * time.Millisecond
	// lateMost is how late a board may be: half of the grace of the default heartbeat (silence.DefaultGrace), since both
	// the leader and who waits for it may be.
	lateMost = 5 * time.Millisecond
	// testLateMost is how late the test itself may be, whose priority is that of the machine's other work. It bounds
	// what the test sees of an answer or of a change.
	testLateMost = 20 * time.Millisecond
	// keep is how many observations are kept. One a second would fill an hour.
	keep = 4096
)

// Machine watches the machine that all namespaces share: how long this process and those that it has started wait for a
// processor, and how long the kernel takes for a change of an address.
type Machine struct {
	stop    chan struct{}
	running sync.WaitGroup

	mu     sync.Mutex
	late   []observation
	usages []usage
}

// usage is what the machine's processors had done by a moment since it was started, in the kernel's ticks.
type usage struct {
	at         time.Time
	all, spare int64
}

type observation struct {
	at   time.Time
	text string
}

// WatchMachine watches the machine until Close.
func WatchMachine() *Machine {
	m := &Machine{stop: make(chan struct{})}
	m.running.Go(m.sample)
	m.running.Go(m.change)
	return m
}

// Close ends the watch, and waits until it has no file open.
func (m *Machine) Close() {
	close(m.stop)
	m.running.Wait()
}

// Late says what has been late since a moment: the first few, and how many there were.
func (m *Machine) Late(t time.Time) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var texts []string
	for _, o := range m.late {
		if o.at.After(t) {
			texts = append(texts, fmt.Sprintf("after %.1f s %s", o.at.Sub(t).Seconds(), o.text))
		}
	}
	const shown = 5
	if len(texts) > shown {
		texts = append(texts[:shown], fmt.Sprintf("%d more", len(texts)-shown))
	}
	return strings.Join(texts, "; ")
}

// Busy is the share of the time since a moment in which a processor had something to do that gives way to nobody.
func (m *Machine) Busy(since time.Time) float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, _ := slices.BinarySearchFunc(m.usages, since, func(u usage, t time.Time) int { return u.at.Compare(t) })
	if n >= len(m.usages)-1 {
		return 0
	}
	first, last := m.usages[n], m.usages[len(m.usages)-1]
	return 1 - float64(last.spare-first.spare)/float64(last.all-first.all)
}

// measureUsage notes what the processors have done.
func (m *Machine) measureUsage() {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return // a machine without it is taken for one that is not busy
	}
	u := usage{at: time.Now()}
	u.all, u.spare = ticks(string(text))
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.usages) >= keep {
		m.usages = append(m.usages[:0], m.usages[keep/2:]...)
	}
	m.usages = append(m.usages, u)
}

// ticks reads the first line of /proc/stat (proc_stat(5)): "cpu", and the ticks that all processors have spent with work
// of each kind. The last two kinds are in the first two already. What runs as nice gives way to the tests, as if
// the processor were spare.
func ticks(stat string) (all, spare int64) {
	const nice, idle, iowait, guest = 1, 3, 4, 8
	line, _, _ := strings.Cut(stat, "\n")
	for i, field := range strings.Fields(line)[1:] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil || i == guest {
			break
		}
		all += n
		if i == nice || i == idle || i == iowait {
			spare += n
		}
	}
	return all, spare
}

func (m *Machine) note(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.late) >= keep {
		m.late = append(m.late[:0], m.late[keep/2:]...)
	}
	m.late = append(m.late, observation{time.Now(), fmt.Sprintf(format, args...)})
}

// sample notes which threads of this process, or of a process that it has started, have waited for a processor, and
// how busy the machine is.
func (m *Machine) sample() {
	tick := time.NewTicker(sampleInterval)
	defer tick.Stop()
	former := map[string]time.Duration{}
	for first := true; ; first = false {
		now := map[string]time.Duration{}
		for _, pid := range family(os.Getpid()) {
			limit := lateMost
			if pid == os.Getpid() {
				limit = testLateMost
			}
			tasks := fmt.Sprintf("/proc/%d/task", pid)
			for _, thread := range namesIn(tasks) {
				f := filepath.Join(tasks, thread, "schedstat")
				_, delay, err := observe.Schedstat(f)
				if err != nil {
					continue // it has ended
				}
				if waited := delay - former[f]; waited > limit && !first {
					m.note("process %d (%s) waited for a processor for %.1f ms", pid, nameOf(pid), float64(waited)/1e6)
				}
				now[f] = delay
			}
		}
		former = now
		m.measureUsage()
		select {
		case <-m.stop:
			return
		case <-tick.C:
		}
	}
}

func nameOf(pid int) string {
	name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	return strings.TrimSpace(string(name))
}

// family returns a process and its living descendants.
func family(root int) []int {
	all := []int{root}
	for i := 0; i < len(all); i++ {
		// The children of a process are those of its threads (proc_pid_tid_children(5)).
		tasks := fmt.Sprintf("/proc/%d/task", all[i])
		for _, thread := range namesIn(tasks) {
			children, _ := os.ReadFile(filepath.Join(tasks, thread, "children"))
			for _, child := range strings.Fields(string(children)) {
				if pid, err := strconv.Atoi(child); err == nil {
					all = append(all, pid)
				}
			}
		}
	}
	return all
}

// namesIn returns the names in a directory, or none.
func namesIn(dir string) []string {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	names, _ := f.Readdirnames(-1)
	return names
}

// change changes an address in a namespace of its own, and notes when the kernel was slow. One lock of the kernel
// guards the networks of all namespaces, and is held for long when one of them is taken apart.
func (m *Machine) change() {
	runtime.LockOSThread() // and never unlocked: the thread, in its namespace, ends with this goroutine
	ns, err := netns.New()
	if err != nil {
		return // without root there is no test that asks for it
	}
	defer ns.Close()
	nl, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return
	}
	defer nl.Close()
	loopback, err := nl.LinkByName("lo")
	if err != nil {
		return
	}
	address, err := netlink.ParseAddr("10.77.1.1/32")
	if err != nil {
		return
	}
	// As a board has it; what is measured is the kernel's lock.
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, -10)
	tick := time.NewTicker(changeInterval)
	defer tick.Stop()
	for {
		began := time.Now()
		err := nl.AddrAdd(loopback, address)
		if err == nil {
			err = nl.AddrDel(loopback, address)
		}
		if took := time.Since(began); err == nil && took > lateMost {
			m.note("the kernel took %.1f ms to change an address", float64(took)/1e6)
		}
		select {
		case <-m.stop:
			return
		case <-tick.C:
		}
	}
}
