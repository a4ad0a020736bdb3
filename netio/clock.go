package netio

import "time"

// origin is the zero point of Now. It carries a monotonic reading, which is
// the only part of it that Now uses.
var origin = time.Now()

// Now reads the monotonic clock: the time since some arbitrary moment before
// the first call. It never jumps, whatever NTP or an administrator does to the
// date (a Raspberry Pi has no clock battery and jumps by years when NTP first
// arrives), and it stands still while the machine is suspended, as the
// kernel's address lifetimes do. Only differences between two readings mean anything.
//
// In a testing/synctest bubble it follows the bubble's virtual time.
func Now() time.Duration { return time.Since(origin) }
