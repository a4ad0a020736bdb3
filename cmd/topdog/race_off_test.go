//go:build !race

package main

import "time"

const underRace = false

// heartbeat is that of all tests: the default.
const heartbeat = 100 * time.Millisecond
