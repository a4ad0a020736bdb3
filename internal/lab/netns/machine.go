package netns

import (
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
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

// usage is what the machine's processors had done by a moment since it was started, in seconds.
type usage struct {
	at         time.Time
	all, spare float64
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
	return 1 - (last.spare-first.spare)/(last.all-first.all)
}

// measureUsage notes what the processors have done.
func (m *Machine) measureUsage() {
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return // a machine without it is taken for one that is not busy
	}
	stat, err := proc.Stat()
	if err != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.usages = append(bounded(m.usages), usageOf(time.Now(), stat.CPUTotal))
}

// usageOf is what all processors have done with work of each kind. That of guests is in the first two kinds already. What
// runs as nice gives way to the tests, as if the processor were spare.
func usageOf(at time.Time, c procfs.CPUStat) usage {
	spare := c.Nice + c.Idle + c.Iowait
	return usage{at: at, all: spare + c.User + c.System + c.IRQ + c.SoftIRQ + c.Steal, spare: spare}
}

// bounded forgets the older half of a list that is full.
func bounded[T any](list []T) []T {
	if len(list) < keep {
		return list
	}
	return append(list[:0], list[keep/2:]...)
}

func (m *Machine) note(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.late = append(bounded(m.late), observation{time.Now(), fmt.Sprintf(format, args...)})
}

// sample notes which threads of this process, or of a process that it has started, have waited for a processor, and
// how busy the machine is.
func (m *Machine) sample() {
	tick := time.NewTicker(sampleInterval)
	defer tick.Stop()
	former := map[int]uint64{} // for how many nanoseconds each thread had waited
	for first := true; ; first = false {
		now := map[int]uint64{}
		for _, pid := range family(os.Getpid()) {
			limit := lateMost
			if pid == os.Getpid() {
				limit = testLateMost
			}
			threads, _ := procfs.AllThreads(pid)
			for _, thread := range threads {
				stat, err := thread.Schedstat()
				if err != nil {
					continue // it has ended
				}
				now[thread.PID] = stat.WaitingNanoseconds
				waited := time.Duration(stat.WaitingNanoseconds - former[thread.PID])
				if waited > limit && !first {
					name, _ := thread.Comm()
					m.note("process %d (%s) waited for a processor for %.1f ms", pid, name, float64(waited)/1e6)
				}
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

// family returns a process and its living descendants.
func family(root int) []int {
	all := []int{root}
	for i := 0; i < len(all); i++ {
		// The children of a process are those of its threads (proc_pid_tid_children(5)).
		threads, _ := procfs.AllThreads(all[i])
		for _, thread := range threads {
			children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", all[i], thread.PID))
			for _, child := range strings.Fields(string(children)) {
				if pid, err := strconv.Atoi(child); err == nil {
					all = append(all, pid)
				}
			}
		}
	}
	return all
}

// change changes an address in a namespace of its own, and notes when the kernel was slow. One lock of the kernel
// guards the networks of all namespaces, and is held for long when one of them is taken apart.
func (m *Machine) change() {
	ns, nl, err := newNamespace("")
	if err != nil {
		return // without root there is no test that asks for it
	}
	defer freeNamespace(&ns, nl)
	address := kernelAddr(netip.MustParsePrefix("10.77.1.1/32"))
	// As a board has it; what is measured is the kernel's lock. The thread ends with this goroutine, which never unlocks it.
	runtime.LockOSThread()
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
