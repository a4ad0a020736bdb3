package report

// The keys of the events that the goals are about. A report may have others as
// well; they get their table and their place in the pictures like these.
const (
	CablePulled   = "cable-pulled"   // the leader's carrier goes
	FramesDropped = "frames-dropped" // the switch drops the leader's frames, the carrier stays
	PathHealed    = "path-healed"    // the end of frames-dropped; Two counts from the first frame that passes
	Killed        = "sigkill"        // of the daemon
	Stopped       = "sigstop"        // of the daemon for 10 s, then SIGCONT; a run covers both
	BothFrozen    = "both-frozen"    // SIGSTOP of all processes of the leader's board
	Terminated    = "sigterm"        // as a service manager stops it
	Resigned      = "resign"         // hand-over by command
	Returned      = "return"         // the old leader comes back to a group whose leader stays
	Preempted     = "preempt"        // the old leader comes back and takes over, as it is told to
	CableFlaps    = "cable-flaps"    // out and in ten times, every 500 ms
)
