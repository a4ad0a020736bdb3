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
)

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
