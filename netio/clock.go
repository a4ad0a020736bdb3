package netio

import (
	"time"

	"topdog/internal/boottime"
)

// Now is the clock of the leases: the kernel's, on which all processes of a machine agree, and the programs that run in
// its kernel; see [boottime.Now].
func Now() time.Duration { return time.Duration(boottime.Now()) }
