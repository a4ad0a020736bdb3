//go:build race

package explore

// underRace says that the race detector watches, for which one thread has no use, and which
// makes it ten times slower.
const underRace = true
