// Package check finds out whether the services of a board work.
//
// A [Check] says what is looked at, how often, and how many results in a row count. The
// checks run in a process of their own, the checker: the same program, which the starter
// starts when the daemon asks it with [Start], and whose main function is [Attend]. So nothing that a service
// answers is read by the process that holds the address, and nothing that hangs delays a
// heartbeat. The checker has no capabilities, only a lane to
// the holder, which asks the gateway by ARP for it, and keeps the rest of the unit's sandbox. It runs the score command as well, since the
// daemon executes nothing.
//
// The daemon sends an [Order] as a line of JSON: all that the checker has to know. The checker sends
// a [Report] for each change of a check, one for each run of the score command, and an empty one every second, so that one that is
// stuck is noticed. The end of the pipe ends it.
//
// Most kinds are polled (worker.go). Each has a rhythm of its own, counted from its start and not from
// the end of the last run, with a little jitter; a run ends before its timeout, and the next one does not begin
// before it has ended. Two kinds are told of changes: a unit by systemd's D-Bus signals, and
// a process by its pidfd. A slow poll is behind both.
package check
