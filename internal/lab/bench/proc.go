package bench

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"topdog/internal/lab/observe"
)

// usage is what processes have used and use, together.
type usage struct {
	busy      time.Duration // user and system
	rss, pss  uint64        // bytes
	processes int
}

// usageOf reads the usage of processes from /proc. One that ends meanwhile, such as
// a script, counts as its parent's.
func usageOf(pids []int) (sum usage, err error) {
	for _, pid := range pids {
		one, err := usageOfOne(filepath.Join("/proc", strconv.Itoa(pid)))
		switch {
		case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH):
			continue
		case err != nil:
			return sum, err
		}
		sum.busy += one.busy
		sum.rss += one.rss
		sum.pss += one.pss
		sum.processes++
	}
	return sum, nil
}

func usageOfOne(dir string) (u usage, err error) {
	// Threads have nanoseconds in schedstat; stat of the process has ticks of 10 ms.
	threads, err := filepath.Glob(filepath.Join(dir, "task", "*", "schedstat"))
	if err != nil {
		return u, err
	}
	for _, path := range threads {
		ran, _, err := observe.Schedstat(path)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue
		}
		if err != nil {
			return u, err
		}
		u.busy += ran
	}
	text, err := os.ReadFile(filepath.Join(dir, "smaps_rollup"))
	if err != nil {
		return u, err
	}
	u.rss, u.pss, err = parseRollup(string(text))
	if err != nil {
		return u, fmt.Errorf("%s/smaps_rollup: %w", dir, err)
	}
	if text, err = os.ReadFile(filepath.Join(dir, "stat")); err != nil {
		return u, err
	}
	ended, err := parseChildren(string(text))
	if err != nil {
		return u, fmt.Errorf("%s/stat: %w", dir, err)
	}
	u.busy += ended
	return u, nil
}

// userTick is the unit of times in stat (USER_HZ, which is 100 on all machines that Go runs on).
const userTick = 10 * time.Millisecond

// parseChildren reads for how long children that have ended were busy: cutime and cstime, the
// fields 16 and 17 (proc_pid_stat(5)). The second field is a name in parentheses, with anything in it.
func parseChildren(stat string) (time.Duration, error) {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 15 {
		return 0, fmt.Errorf("%q has no time of its children", stat)
	}
	var sum time.Duration
	for _, field := range fields[13:15] {
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, err
		}
		sum += time.Duration(ticks) * userTick
	}
	return sum, nil
}

// parseRollup reads Rss and Pss, in bytes.
func parseRollup(text string) (rss, pss uint64, err error) {
	values := map[string]uint64{}
	for line := range strings.Lines(text) {
		name, rest, _ := strings.Cut(line, ":")
		fields := strings.Fields(rest)
		if name != "Rss" && name != "Pss" || len(fields) != 2 || fields[1] != "kB" {
			continue
		}
		if values[name], err = strconv.ParseUint(fields[0], 10, 54); err != nil {
			return 0, 0, err
		}
	}
	if len(values) != 2 {
		return 0, 0, errors.New("has no Rss or no Pss")
	}
	return values["Rss"] * 1024, values["Pss"] * 1024, nil
}

// processorModel returns what the processor calls itself.
func processorModel() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown"
	}
	return parseModel(string(text))
}

// parseModel knows the words of x86 and of the Raspberry Pi.
func parseModel(cpuinfo string) string {
	model := "unknown"
	for line := range strings.Lines(cpuinfo) {
		name, value, _ := strings.Cut(line, ":")
		switch strings.TrimSpace(name) {
		case "Model": // of the whole board
			return strings.TrimSpace(value)
		case "model name":
			model = strings.TrimSpace(value)
		}
	}
	return model
}
