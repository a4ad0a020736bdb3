package observe

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Schedstat reads the file schedstat of a thread: for how long it has had a processor, and for how long it has waited for one.
func Schedstat(path string) (ran, waited time.Duration, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, 0, err
	}
	if ran, waited, err = parseSchedstat(string(text)); err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return ran, waited, err
}

// parseSchedstat reads the first two of three numbers, which are nanoseconds (Documentation/scheduler/sched-stats.rst of Linux).
func parseSchedstat(text string) (ran, waited time.Duration, err error) {
	fields := strings.Fields(text)
	if len(fields) != 3 {
		return 0, 0, fmt.Errorf("%q are not three numbers", text)
	}
	for n, into := range []*time.Duration{&ran, &waited} {
		ns, err := strconv.ParseInt(fields[n], 10, 64)
		if err != nil {
			return 0, 0, err
		}
		*into = time.Duration(ns)
	}
	return ran, waited, nil
}
