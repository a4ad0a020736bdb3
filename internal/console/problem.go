package console

// Problem is something that a person should look into.
type Problem struct {
	Kind  ProblemKind `json:"kind"`
	Board string      `json:"board,omitempty"` // id of the board that it is about, if it is about one
	Text  string      `json:"text"`            // one sentence
}

// String returns the text.
func (p Problem) String() string { return p.Text }

// ProblemKind says what a problem is about. Beside those below, the identifiers of
// election.NoticeKind are kinds (for problems with another board), and those of
// wire.DropReason (for packets that show that a board is set up wrongly).
type ProblemKind string

// The kinds of problems of this board.
const (
	ProblemAddressConflict    ProblemKind = "address_conflict"          // a foreign machine claims the address that this board holds
	ProblemAddressElsewhere   ProblemKind = "address_elsewhere"         // a floating address is in the network of another interface
	ProblemAddressNotFree     ProblemKind = "address_not_free"          // one has the address, or nobody can tell; so it is not acquired
	ProblemAddressNotHeld     ProblemKind = "address_not_held"          // the kernel does not let this board hold the address
	ProblemBoardSilent        ProblemKind = "board_silent"              // another board is not heard
	ProblemCheckAim           ProblemKind = "check_aim"                 // a check turned out to be aimed at a floating address
	ProblemChecker            ProblemKind = "checker"                   // the process that runs the checks cannot be started, or is not heard
	ProblemChecks             ProblemKind = "checks"                    // a check fails, so that this board does not stand for the lead
	ProblemAskLAN             ProblemKind = "ask_lan"                   // whether this board's port receives cannot be found out
	ProblemClockRate          ProblemKind = "clock_rate"                // the clock is too far off its rate for a voter
	ProblemAddressNotReleased ProblemKind = "address_not_released"      // nor let go of it, and another board waits
	ProblemControlSocket      ProblemKind = "control_socket"            // it cannot be made
	ProblemDeadmanOutdated    ProblemKind = "dead_mans_switch_outdated" // it cannot be told what it has to do
	ProblemDrain              ProblemKind = "drain"                     // whether this board is drained cannot be read, or noted
	ProblemOutside            ProblemKind = "outside_network"           // a board of the group has an address outside of this board's networks
	ProblemOwnAddress         ProblemKind = "own_address"               // another machine has this board's own address as well
	ProblemPaused             ProblemKind = "paused"                    // somebody has paused the group
	ProblemEvenVoters         ProblemKind = "even_voters"               // one less would be as good
	ProblemFence              ProblemKind = "fence"                     // it is not on every interface
	ProblemFirewall           ProblemKind = "firewall"                  // of this board, drops the group's packets
	ProblemInterface          ProblemKind = "interface_not_found"       // none has a network with the address
	ProblemInterfaceAmbiguous ProblemKind = "interface_ambiguous"       // several have
	ProblemLeaderUnfit        ProblemKind = "leader_unfit"              // it leads on, since no board is fitter
	ProblemLED                ProblemKind = "led"                       // it cannot be switched
	ProblemLink               ProblemKind = "link"                      // the interface is missing, or has no address or no carrier
	ProblemMulticastMissing   ProblemKind = "multicast_missing"         // a board's broadcast or unicast arrives, and its multicast does not
	ProblemUnicastMissing     ProblemKind = "unicast_missing"           // the other way round
	ProblemNoRoute            ProblemKind = "no_route"                  // the address of a board is not known
	ProblemNoSpare            ProblemKind = "no_spare"                  // no board could take over from the leader
	ProblemNoVoter            ProblemKind = "no_voter"                  // this board is not among the voters
	ProblemPortSilent         ProblemKind = "port_silent"               // nothing arrives on this board's port
	ProblemScoreCommand       ProblemKind = "score_command"             // it fails
	ProblemSend               ProblemKind = "send"                      // packets cannot be sent
	ProblemSameName           ProblemKind = "same_name"                 // several boards have one name
	ProblemSettings           ProblemKind = "settings_differ"           // a board has not what all must have alike
	ProblemSockets            ProblemKind = "sockets"                   // those of the group cannot be opened
	ProblemStrayAddress       ProblemKind = "stray_address"             // this board's kernel has the address, and topdog has not put it there
	ProblemStarter            ProblemKind = "starter"                   // what starts the checker has ended
	ProblemWitness            ProblemKind = "witness_silent"            // it does not answer ARP
)
