//go:build race

package main

import "time"

// underRace says that the race detector slows everything down. A killed process
// then also takes longer to die: its shadow memory is freed before its files
// are closed, and the address goes with a file.
const underRace = true

// heartbeat is that of all tests. With the race detector, on two processors, a
// process that became ready may have to wait for tens of milliseconds, more
// than the grace of the default interval: boards would be right to take over
// from a leader that a test wants to stay.
const heartbeat = 300 * time.Millisecond
