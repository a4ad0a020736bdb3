package bench

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"

	"topdog/internal/lab/netns"
)

// usage is what processes have used and use, together.
type usage struct {
	busy     time.Duration // user and system
	wakes    uint64        // of all threads
	rss, pss uint64        // bytes
}

// usage looks at the processes of every board, without its service. Of each board, processes of one name count together.
func (g *Group) usage() (all []map[string]usage, err error) {
	err = each(g.boards, func(b *board) error {
		pids, err := b.Processes()
		if err != nil {
			return err
		}
		named := map[string][]int{}
		for _, pid := range b.withoutService(pids) {
			if name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); err == nil { // else it has ended
				key := strings.TrimSpace(string(name))
				named[key] = append(named[key], pid)
			}
		}
		of := map[string]usage{}
		for name, pids := range named {
			if of[name], err = usageOf(pids); err != nil {
				return fmt.Errorf("%s: %w", b.Name, err)
			}
		}
		all = append(all, of)
		return nil
	})
	return all, err
}

// Busy returns for how long the processes of a machine have been on a processor, without some that are no part of its system.
func Busy(h *netns.Host, strangers ...int) (time.Duration, error) {
	pids, err := h.Processes()
	if err != nil {
		return 0, err
	}
	u, err := usageOf(slices.DeleteFunc(pids, func(pid int) bool { return slices.Contains(strangers, pid) }))
	return u.busy, err
}

// userTick is the unit of the times of a process (USER_HZ, which is 100 on all machines that Go runs on).
const userTick = 10 * time.Millisecond

// usageOf reads the usage of processes, with that of their children that have ended. One that ends meanwhile, such as a
// script, counts as its parent's.
func usageOf(pids []int) (sum usage, err error) {
	for _, pid := range pids {
		p, err := procfs.NewProc(pid)
		memory, memoryErr := p.ProcSMapsRollup()
		stat, statErr := p.Stat()
		threads, threadsErr := procfs.AllThreads(pid)
		switch err := errors.Join(err, memoryErr, statErr, threadsErr); {
		case ended(err):
			continue
		case err != nil:
			return sum, err
		}
		sum.rss += memory.Rss
		sum.pss += memory.Pss
		sum.busy += time.Duration(stat.CUTime+stat.CSTime) * userTick
		for _, thread := range threads {
			// Threads have nanoseconds; the process has ticks of 10 ms.
			ran, err := thread.Schedstat()
			if err != nil && !ended(err) {
				return sum, err
			}
			sum.busy += time.Duration(ran.RunningNanoseconds)
			status, err := thread.NewStatus()
			if err != nil && !ended(err) {
				return sum, err
			}
			sum.wakes += status.VoluntaryCtxtSwitches
		}
	}
	return sum, nil
}

func ended(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) }

// processorModel returns what the processor calls itself.
func processorModel() string {
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return "unknown"
	}
	all, err := proc.CPUInfo()
	if err != nil || len(all) == 0 {
		return "unknown"
	}
	return cmp.Or(all[0].ModelName, "unknown")
}
