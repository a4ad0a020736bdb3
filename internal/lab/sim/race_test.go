//go:build race

package sim_test

// underRace says that the race detector watches, for which one thread has no use, and which
// makes it ten times slower. What a sweep says of the algorithms, it says without it.
const underRace = true
