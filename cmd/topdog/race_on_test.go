//go:build race

package main

// underRace says that the race detector slows everything down. A killed process
// then also takes longer to die: its shadow memory is freed before its files
// are closed, and the address goes with a file.
const underRace = true
