package attack

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/netns"
)

// place says which processors the boards and the laptop have.
type place struct {
	Key   string  `json:"key"`
	Title string  `json:"title"`
	Share float64 `json:"share,omitempty"` // of a core, for the leader's board; 0 is no limit
	// apart gives the laptop a processor of its own, and all the rest to the boards, the client and this program.
	apart bool
}

func (p place) String() string { return p.Key }

func places() []place {
	return []place{
		{Key: "apart", Title: "the laptop has a processor of its own", apart: true},
		{Key: "shared", Title: "the laptop shares the boards' processors"},
		{Key: "tenth", Title: "the laptop has a processor of its own, the leader has a tenth of one", apart: true, Share: 0.1},
	}
}

// processors are those on which this process could run when it began.
var processors = func() (cores []int) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil
	}
	for core := range 8 * len(set) * strconv.IntSize / 8 {
		if set.IsSet(core) {
			cores = append(cores, core)
		}
	}
	return cores
}()

// split returns the processors of the boards and those of the laptop.
func (p place) split() (boards, laptop []int, err error) {
	if !p.apart {
		return processors, processors, nil
	}
	last := len(processors) - 1
	if last < 1 {
		return nil, nil, fmt.Errorf("attack: %s: this machine has one processor", p.Title)
	}
	return processors[:last], processors[last:], nil
}

// arrange moves this program to the processors of the boards. What it starts from now on inherits that.
func (p place) arrange() error {
	boards, _, err := p.split()
	if err != nil {
		return err
	}
	return netns.EachThread(os.Getpid(), func(id int) error { return pin(id, boards) })
}

// pin gives a thread its processors.
func pin(thread int, cores []int) error {
	var set unix.CPUSet
	for _, core := range cores {
		set.Set(core)
	}
	if err := unix.SchedSetaffinity(thread, &set); err != nil {
		return fmt.Errorf("run on the processors %v: %w", cores, err)
	}
	return nil
}

// quotaPeriod is that of systemd's CPUQuota=: a process that has used its share stands still for the rest of it.
const quotaPeriod = 100 * time.Millisecond

// quota is a control group whose processes have a part of a core.
type quota struct{ dir string }

// cgroups is where the kernel has the control groups of either version.
const cgroups = "/sys/fs/cgroup"

// newQuota makes a control group with a share of a core, and with the greatest weight, so that the share is there
// when it is wanted.
func newQuota(share float64) (*quota, error) {
	us := strconv.FormatInt(int64(share*float64(quotaPeriod.Microseconds())), 10)
	period := strconv.FormatInt(quotaPeriod.Microseconds(), 10)
	parent, settings := filepath.Join(cgroups, "cpu"), [][2]string{
		{"cpu.cfs_period_us", period}, {"cpu.cfs_quota_us", us}, {"cpu.shares", "262144"},
	}
	if unified, err := os.ReadFile(filepath.Join(cgroups, "cgroup.subtree_control")); err == nil {
		if !strings.Contains(" "+strings.TrimSpace(string(unified))+" ", " cpu ") {
			return nil, fmt.Errorf("attack: give the leader a part of a core: %s/cgroup.subtree_control does not have cpu", cgroups)
		}
		parent, settings = cgroups, [][2]string{{"cpu.max", us + " " + period}, {"cpu.weight", "10000"}}
	}
	q := &quota{filepath.Join(parent, fmt.Sprintf("topdog-attack-%d", os.Getpid()))}
	if err := os.Mkdir(q.dir, 0o755); err != nil {
		return nil, fmt.Errorf("attack: give the leader a part of a core: %w", err)
	}
	for _, s := range settings {
		if err := q.write(s[0], s[1]); err != nil {
			return nil, errors.Join(fmt.Errorf("attack: give the leader a part of a core: %w", err), q.remove())
		}
	}
	return q, nil
}

func (q *quota) write(file, text string) error {
	return os.WriteFile(filepath.Join(q.dir, file), []byte(text), 0)
}

// add moves processes into the group. One that has ended is no error.
func (q *quota) add(pids []int) error {
	for _, pid := range pids {
		if err := q.write("cgroup.procs", strconv.Itoa(pid)); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("attack: give the process %d a part of a core: %w", pid, err)
		}
	}
	return nil
}

// remove removes the group, when its last process has ended.
func (q *quota) remove() error {
	deadline := time.Now().Add(time.Second)
	for {
		err := os.Remove(q.dir)
		if err == nil || errors.Is(err, fs.ErrNotExist) || time.Now().After(deadline) || !errors.Is(err, unix.EBUSY) {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
}
