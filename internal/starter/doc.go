// Package starter starts checkers for the daemon. The daemon starts one such process in its life, the starter, before it
// hears its first packet, and then has the kernel refuse it any other program (see internal/seccomp). What it needs
// later, it asks the starter for.
//
// The starter starts nothing but its own program, with the word of a checker. It has no capabilities, so none of them has.
// The daemon gives it the files that the checker finds open, through a socket, and waits for nothing: the loop of the election
// asks, and a process of which nobody knows the number yet can be killed as well.
//
// Each process has a leash, which is a pair of sockets. The starter tells its number there, and how it has ended. A message
// of the daemon kills it. The end of the leash is that of the process.
//
// The starter ends with the daemon, and the checkers end with the starter.
package starter
