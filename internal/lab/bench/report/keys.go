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

	// Nobody is dead, as far as a person would say.
	Bursts         = "bursts"             // the switch passes nothing for moments, forty times
	PagesPulled    = "cable-pulled-pages" // CablePulled while a hundred browsers look; Run.Pages is theirs
	BurstsAgain    = "bursts-again"       // and forty times more
	BurstsPulled   = "bursts-pulled"      // the cable of who leads after that
	Pauses         = "pauses"             // of all processes of the leader's board, forty times
	Deaf           = "deaf"               // nothing gets to the leader
	Mute           = "mute"               // nothing of the leader gets out
	CutShort       = "cut-300ms"          // both, and then neither
	CutLong        = "cut-3s"             // the same for longer than anybody is patient
	MulticastDies  = "multicast-dies"     // broadcast and unicast live
	MulticastDead  = "multicast-dead"     // from before the start
	SwitchOff      = "switch-5s"          // links up, nothing forwarded
	SwitchBack     = "switch-5s-back"     // it forwards
	SwitchOffLong  = "switch-35s"         // the same for longer than spanning tree takes
	SwitchBackLong = "switch-35s-back"    // it forwards
	Readdressed    = "ethernet-address"   // of the leader's interface, which gets another one
	Split          = "split"              // two boards here, three there
	SplitHealed    = "split-healed"       // the end of split; Two counts from the first frame that passes

	// The boards' service fails, and the boards don't. The outage is that of the service.
	ServiceKilled          = "service-killed"           // SIGKILL
	ServiceFrozen          = "service-frozen"           // SIGSTOP
	ServiceRestarts        = "service-restarts"         // killed ten times, always on the board that led first
	ServiceRestartsPreempt = "service-restarts-preempt" // the same with boards that preempt
	ServiceNowhere         = "service-nowhere"          // killed on all boards, on the leader last
	ServiceFirst           = "service-first"            // the end of service-nowhere on one follower
	LeaderReboots          = "leader-reboots"           // its service comes later than its daemon
	LeaderRebootsPreempt   = "leader-reboots-preempt"   // the same with boards that preempt
	FollowerReboots        = "follower-reboots"
	Hook                   = "hook" // hand-over by command; Run.Hook is what it is about
)
