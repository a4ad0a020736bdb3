package console

import (
	"math"
	"time"

	"topdog/internal/boottime"
)

// Status is what GET /v1/status returns: everything that one board knows of its group. The keys and identifiers in the
// JSON are part of the interface: some are added, none is renamed. A key that ends with text has words for people. A
// Raspberry Pi has no trustworthy clock, so there are no times of day, only ages. Times have their unit in the key. A
// null means unknown.
type Status struct {
	Version    string `json:"version"`    // of the daemon, which may differ from that of the client
	Transition uint64 `json:"transition"` // number of the last transition that is part of this; 0 if there was none
	// AsOf is when this status was made, by CLOCK_BOOTTIME of this board. All ages and remaining times count from then: a
	// client may get a status that was made for another client a moment before.
	AsOf      boottime.Instant `json:"as_of_ns"`
	Group     string           `json:"group"`      // name of the group
	Algorithm string           `json:"algorithm"`  // "heir", "bully", …
	Fanout    string           `json:"fanout"`     // how messages to several boards travel: "multicast" or "unicast"
	ScoreFrom string           `json:"score_from"` // what the algorithm "score" compares; "" with the others
	Interface string           `json:"interface"`  // the group's network interface

	// SecondPath is the second path to the other boards; nil if none is configured.
	SecondPath *SecondPath `json:"second_path,omitempty"`

	Board       Board    `json:"board"`         // this one
	Role        string   `json:"role"`          // one of the Role constants
	Reason      string   `json:"reason"`        // why it has that role, as of the last change: an identifier of election.Reason
	ReasonText  string   `json:"reason_text"`   // the same for people
	RoleSinceMs *float64 `json:"role_since_ms"` // since that change

	Grade         string  `json:"grade"`            // how fit this board is to lead: an identifier of wire.Grade
	GradeText     string  `json:"grade_text"`       // why, for people
	GradeEndsInNs int64   `json:"grade_ends_in_ns"` // until the grade ends by itself; 0 if it does not
	Starting      bool    `json:"starting"`         // it is failing only because its checks have not passed yet
	Checks        []Check `json:"checks"`           // of this board
	Drained       bool    `json:"drained"`          // somebody has asked this board to leave the lead to others
	DrainLeftNs   int64   `json:"drain_left_ns"`    // until that ends by itself; 0 if it does not

	// Paused means that the address stays where it is: only PauseLeader may lead.
	Paused      bool   `json:"paused"`
	PauseLeader string `json:"pause_leader"`  // id; "" if the group is not paused
	PauseLeftNs int64  `json:"pause_left_ns"` // until the pause ends by itself

	Leader        string   `json:"leader"` // id; "" if this board knows of none
	LeaderName    string   `json:"leader_name"`
	LeaderSinceMs *float64 `json:"leader_since_ms"` // how long this board has known it as the leader
	Term          uint32   `json:"term"`
	Heir          string   `json:"heir"` // id of the board that would take over next; "" if there is none
	HeirName      string   `json:"heir_name"`
	Spares        *int     `json:"spares"` // how many boards that are fit to lead could take over from the leader now

	Addresses []string `json:"addresses"` // the floating addresses with prefix length: "192.168.1.250/24"
	Holding   bool     `json:"holding"`   // this board has them now
	// LeaseEndsInNs is how long this board may answer for them if its daemon does nothing more: 0 if it may not answer now,
	// and NoLeaseEnd if there is no end.
	LeaseEndsInNs int64     `json:"lease_ends_in_ns"`
	HeldBy        string    `json:"held_by"`     // id of the board that has them as far as this one knows; "" if none
	HoldMethod    string    `json:"hold_method"` // how this board holds them, or would: "lifetime", …; "" until it knows
	HoldText      string    `json:"hold_text"`   // the same for people, with the device and the reason
	Defences      []Defence `json:"defences"`    // the quickest first
	LEDPattern    string    `json:"led_pattern"` // what the LED shows: "leader", …; "" if there is none, or it fails
	LEDText       string    `json:"led_text"`    // the same for people: "ACT, a short blink every 2 s"; or why it shows nothing

	HeartbeatMs float64  `json:"heartbeat_ms"` // time between two heartbeats of the leader
	Detector    Detector `json:"detector"`
	Patience    Patience `json:"patience"`
	Watch       Watch    `json:"watch"`

	// Witnesses are the hosts that are asked when it is in doubt whether this board's port receives.
	Witnesses []Witness `json:"witnesses,omitempty"`

	// Trusted are the ids of the boards that the group's judge trusts, with the algorithm "agents" only.
	Trusted []string `json:"trusted,omitempty"`

	// Voters are those of the algorithm "strict". The other algorithms have none. A leader that does not hear the majority of
	// the voters remains leader, but does not answer for the addresses. Another board that does not hear the majority, and
	// has no leader, waits.
	Voters          []Voter `json:"voters,omitempty"`
	MajorityUnheard bool    `json:"majority_unheard"`

	// PortSilent means that this board asks, and that nothing at all arrives on its port.
	PortSilent bool `json:"port_silent"`

	Boards  []Board  `json:"boards"`  // all boards, this one included, the highest rank first
	Changes []Change `json:"changes"` // of leader, the newest first

	Counters Counters  `json:"counters"` // since the daemon started
	Problems []Problem `json:"problems"` // what needs a person's attention
}

// NoLeaseEnd is Status.LeaseEndsInNs of a leader that knows of no live board that could take over.
const NoLeaseEnd int64 = 1<<63 - 1

// The roles of this board (Status.Role). Boards have in addition RoleHeir.
const (
	RoleIsolated  = "isolated"  // its link is down, or a firewall drops what is said to it
	RoleListener  = "listener"  // listens for a leader before it sends anything
	RoleFollower  = "follower"  // follows a leader, or awaits the next
	RoleCandidate = "candidate" // asks whether anybody leads
	RoleLeader    = "leader"    // holds the address
	RoleBarred    = "barred"    // stays out, because of a conflict
	RoleHeir      = "heir"      // a follower: the one that takes over next
)

// Witness is a host of the LAN that is asked by ARP.
type Witness struct {
	Address string `json:"address"`
	Answers bool   `json:"answers"` // it answered the last question
}

// Board is what is known of one board.
type Board struct {
	ID        string   `json:"id"`
	Name      string   `json:"name"`    // "" until it has said so
	Address   string   `json:"address"` // its own, not the floating one
	Priority  int      `json:"priority"`
	Grade     string   `json:"grade"`      // how fit it says it is to lead: "passing", "probation", "drained" or "failing"
	GradeText string   `json:"grade_text"` // the same for people; "" if it passes
	Score     *uint32  `json:"score"`      // the algorithm "score" orders boards by it; null with the others, and until the board has told it
	Role      string   `json:"role"`       // "" if unknown; the last known one if the board is stale or gone
	Self      bool     `json:"self"`
	HeardMs   *float64 `json:"heard_ms"`   // since its last message by the first path, from which all of this is known; null for this board, and if none has come
	Stale     bool     `json:"stale"`      // silent for so long that it counts as dead
	Gone      bool     `json:"gone"`       // it has said that it leaves, or was replaced
	Following string   `json:"following"`  // id of the leader that it says it follows
	UpSeconds *float64 `json:"up_seconds"` // since its daemon started

	// HeardBySecondPathMs is since its last message by the second path. It is missing if none has come.
	HeardBySecondPathMs *float64 `json:"heard_by_second_path_ms,omitempty"`

	Version  string   `json:"version,omitempty"`  // of its program; "" if it has not told it
	Floating []string `json:"floating,omitempty"` // the floating addresses of its configuration; none if it has told none

	SignsWith   string `json:"signs_with"`   // fingerprint of the key that signs what it sends; "" if it has told none
	AlsoAccepts string `json:"also_accepts"` // the same of a second key that it accepts while the group changes its key; "" if there is none
}

// SecondPath is a second interface by which this board hears the others. The floating addresses are never on it.
type SecondPath struct {
	Interface string `json:"interface"`
	Address   string `json:"address"` // this board's own on it; "" while it has none
	State     string `json:"state"`   // one of the SecondPath constants
	Text      string `json:"text"`    // why it does not work, and what to do, with the name of the interface; "" if it works
}

// The states of a second path (SecondPath.State).
const (
	SecondPathWorks  = "works"  // other boards were heard by it of late, or there are none
	SecondPathSilent = "silent" // no board is heard by it (yet), and some are by the first path
	SecondPathWaits  = "waits"  // it has no interface, no address or no carrier
)

// Defence is something that keeps this board from answering for the floating addresses when it may not, or that limits what
// an attacker who has taken over the daemon can do.
type Defence struct {
	Kind   string `json:"kind"`   // one of the Defence constants
	On     bool   `json:"on"`     // this board has it
	Method string `json:"method"` // of the fence: "tcx" or "xdp"; "" for the others
	Text   string `json:"text"`   // what it does, or why it is missing, or missing on some interfaces
}

// The defences (Defence.Kind).
const (
	DefenceFence    = "fence"            // a program in the kernel drops packets to the addresses when the lease is over
	DefenceSwitch   = "dead_mans_switch" // a process of its own releases the addresses then
	DefenceTUN      = "tun"              // they are on a device that ends with the daemon
	DefenceLifetime = "lifetime"         // the kernel removes them when nobody renews them
	DefenceNoExec   = "no_exec"          // the kernel refuses the daemon to execute anything
)

// Check is the state of a check of this board.
type Check struct {
	Kind     string `json:"kind"`      // an identifier of check.Kind
	Target   string `json:"target"`    // what it looks at, as in the configuration; "" for the gateway
	When     string `json:"when"`      // an identifier of check.When
	State    string `json:"state"`     // an identifier of health.State
	SinceNs  int64  `json:"since_ns"`  // how long it has had that state
	NameText string `json:"name_text"` // the name of the check for people
	Text     string `json:"text"`      // why it fails; "" if it does not
}

// Voter is what is known of one voter.
type Voter struct {
	ID       string `json:"id"`
	Name     string `json:"name"`     // "" until it has said so
	Supports *bool  `json:"supports"` // it acknowledges this leader's heartbeats; null on a board that does not lead
	Unheard  bool   `json:"unheard"`  // this board does not hear it
	Twice    bool   `json:"twice"`    // two processes have its id, so it does not count
}

// live reports whether what is known of the board is still true.
func (b *Board) live() bool { return !b.Stale && !b.Gone }

// heardElsewhere reports whether the board is heard by the second path now, on which a leader speaks every second, and was heard by the
// first before.
func (b *Board) heardElsewhere() bool {
	const now = 3 * 1000 // ms
	second := b.HeardBySecondPathMs
	return second != nil && *second < now && (b.HeardMs == nil || *second < *b.HeardMs)
}

// Detector is what the failure detector has learned of the network. It means nothing on the leader itself.
type Detector struct {
	Kind            string  `json:"kind"`              // "ask", "fixed" or "nfd-e"
	LossPercent     float64 `json:"loss_percent"`      // of heartbeats
	MarginMs        float64 `json:"margin_ms"`         // how late a heartbeat may be
	RoundTripMs     float64 `json:"round_trip_ms"`     // to the leader; 0 if never measured
	Questions       int     `json:"questions"`         // how often a suspect is asked before it is replaced
	QuestionEveryMs float64 `json:"question_every_ms"` // time between two questions
	AnswerWithinMs  float64 `json:"answer_within_ms"`  // how long the last question waits for an answer
}

// Patience is how late a leader of the group may be before it is replaced, and what that was learned from. Times are in
// nanoseconds.
type Patience struct {
	GraceNs        int64  `json:"grace_ns"`         // how late a leader may be
	DefaultGraceNs int64  `json:"default_grace_ns"` // the same while nothing was learned
	LimitNs        int64  `json:"limit_ns"`         // the longest grace that may be learned
	Learned        string `json:"learned"`          // how it was learned: an identifier of silence.LessonKind
	LearnedText    string `json:"learned_text"`     // the same for people; "" if nothing was
	Board          string `json:"board"`            // id of the board that was late, asked for more or announced it; "" if nothing was learned
	LateNs         int64  `json:"late_ns"`          // by how much it was late; 0 if this board has not measured that
	LearnedAgoNs   int64  `json:"learned_ago_ns"`   // since then
	HalvesInNs     int64  `json:"halves_in_ns"`     // until it is halved, unless it is needed before
}

// Watch is how this board asks the leader's kernel for the floating address between two heartbeats. Times are in nanoseconds.
type Watch struct {
	// State is an identifier of election.WatchState, or one of netio.WatchState if the watch does not run as it should.
	State       string  `json:"state"`
	EveryNs     int64   `json:"every_ns"`      // between two questions at present; 0 if none are asked, or too few to be of use
	RoundTripNs int64   `json:"round_trip_ns"` // how long an answer takes; 0 if none has come
	LostPercent float64 `json:"lost_percent"`  // of the questions, how many were not answered of late
}

// Lead says who leads, and why. It is the part that all descriptions of a change of leader have in common.
type Lead struct {
	Leader     string `json:"leader"` // the id of the new one; "" if nobody led from then on
	LeaderName string `json:"leader_name"`
	Term       uint32 `json:"term"`
	Reason     string `json:"reason"` // an identifier of election.Reason
	ReasonText string `json:"reason_text"`
}

// Change is a change of leader.
type Change struct {
	AgoMs float64 `json:"ago_ms"`
	Lead
	OutageMs *float64 `json:"outage_ms"` // how long nobody led, if this board could tell
}

// fill replaces missing lists and objects by empty ones, because a script that loops over a list would fail on null.
func (s *Status) fill() {
	fillList(&s.Addresses)
	fillList(&s.Defences)
	fillList(&s.Checks)
	fillList(&s.Boards)
	fillList(&s.Changes)
	fillList(&s.Problems)
	for _, counts := range []*map[string]uint64{&s.Counters.DroppedByReason, &s.Counters.ChangesByReason} {
		if *counts == nil {
			*counts = map[string]uint64{}
		}
	}
}

func fillList[T any](list *[]T) {
	if *list == nil {
		*list = []T{}
	}
}

// Milliseconds returns d for a key that ends with _ms: in milliseconds, rounded to the microsecond.
func Milliseconds(d time.Duration) float64 {
	return math.Round(float64(d)/float64(time.Microsecond)) / 1000
}

// Counters count since the daemon started. They help to find the cause of something; docs/status.md explains each.
type Counters struct {
	PacketsReceived      uint64 `json:"packets_received"`
	PacketsSent          uint64 `json:"packets_sent"`
	ReceiveErrors        uint64 `json:"receive_errors"`
	ReceiveOverruns      uint64 `json:"receive_overruns"` // packets that came faster than the daemon could read or judge them
	SendErrors           uint64 `json:"send_errors"`
	MessagesWithoutRoute uint64 `json:"messages_without_route"` // not sent, because the board's address is unknown
	AddressRestored      uint64 `json:"address_restored"`       // something else had deleted it
	GroupRejoined        uint64 `json:"group_rejoined"`         // the multicast group
	RivalLeadersHeard    uint64 `json:"rival_leaders_heard"`

	// DroppedByReason counts the packets that were not accepted. The keys are the identifiers of wire.DropReason, and
	// SocketDrops.
	DroppedByReason map[string]uint64 `json:"dropped_by_reason"`
	// ChangesByReason counts the changes of role or leader. The keys are the identifiers of election.Reason.
	ChangesByReason map[string]uint64 `json:"changes_by_reason"`
}

// The keys for packets that are dropped before they are decoded.
const (
	DroppedWrongTTL  = "wrong_ttl"  // they come from beyond the link
	DroppedOverRate  = "over_rate"  // they are more than one sender may send
	DroppedLocalUser = "local_user" // a user of this board was about to send them
)

// SocketDrops are all of these keys.
var SocketDrops = []string{DroppedWrongTTL, DroppedOverRate, DroppedLocalUser}

// Problem is something that needs a person's attention.
type Problem struct {
	Kind  ProblemKind `json:"kind"`
	Board string      `json:"board,omitempty"` // id of the board that it is about, if there is one
	Text  string      `json:"text"`            // one sentence
}

// String returns the text.
func (p Problem) String() string { return p.Text }

// ProblemKind says what a problem is about. Besides those below, there are the identifiers of election.NoticeKind, for
// problems with another board, and of wire.DropReason, for packets that show that a board is set up wrongly.
type ProblemKind string

// The kinds of problems of this board.
const (
	ProblemAddressConflict    ProblemKind = "address_conflict"          // another machine claims the address that this board holds
	ProblemAddressElsewhere   ProblemKind = "address_elsewhere"         // a floating address is in the network of another interface, or no machine may have it
	ProblemAddressNotFree     ProblemKind = "address_not_free"          // another machine has the address, or nobody can tell, so it is not acquired
	ProblemAddressNotHeld     ProblemKind = "address_not_held"          // the kernel does not let this board hold the address, or an IPv6 one of several
	ProblemAddressUnanswered  ProblemKind = "address_unanswered"        // the leader's kernel does not answer for the address
	ProblemBoardSilent        ProblemKind = "board_silent"              // another board is not heard
	ProblemCheckAim           ProblemKind = "check_aim"                 // a check is aimed at a floating address
	ProblemChecker            ProblemKind = "checker"                   // the process that runs the checks cannot be started, or is not heard
	ProblemChecks             ProblemKind = "checks"                    // a check fails, so that this board does not stand for the lead
	ProblemAskLAN             ProblemKind = "ask_lan"                   // this board cannot find out whether its port receives
	ProblemClockRate          ProblemKind = "clock_rate"                // the clock's rate is too far off for a voter
	ProblemAddressNotReleased ProblemKind = "address_not_released"      // the kernel does not let it release the address, and another board waits
	ProblemControlSocket      ProblemKind = "control_socket"            // the control socket cannot be made
	ProblemDeadmanOutdated    ProblemKind = "dead_mans_switch_outdated" // the dead man's switch cannot be told what to do
	ProblemDrain              ProblemKind = "drain"                     // whether this board is drained cannot be read or written
	ProblemOutside            ProblemKind = "outside_network"           // a board of the group has an address outside this board's networks
	ProblemOwnAddress         ProblemKind = "own_address"               // another machine has this board's own address as well
	ProblemPaused             ProblemKind = "paused"                    // somebody has paused the group
	ProblemEvenVoters         ProblemKind = "even_voters"               // the number of voters is even: one less would be as good
	ProblemFence              ProblemKind = "fence"                     // the fence is not on every interface
	ProblemFirewall           ProblemKind = "firewall"                  // a firewall on this board drops the group's packets
	ProblemInterface          ProblemKind = "interface_not_found"       // no interface has a network with the address
	ProblemInterfaceAmbiguous ProblemKind = "interface_ambiguous"       // several interfaces have a network with the address
	ProblemFirstPathMissing   ProblemKind = "first_path_missing"        // a board is heard by the second path, and not by the first
	ProblemSecondPathMissing  ProblemKind = "second_path_missing"       // a board is heard by the first path, and not by the second
	ProblemSecondPath         ProblemKind = "second_path"               // the second path has no interface, no address or no carrier, or cannot be opened
	ProblemLeaderUnfit        ProblemKind = "leader_unfit"              // the leader is unfit, and leads on since no board is fitter
	ProblemLED                ProblemKind = "led"                       // the LED cannot be switched
	ProblemLink               ProblemKind = "link"                      // the interface is missing, or has no address or no carrier
	ProblemMulticastMissing   ProblemKind = "multicast_missing"         // a board's broadcast or unicast arrives, but not its multicast
	ProblemUnicastMissing     ProblemKind = "unicast_missing"           // a board's multicast arrives, but not its unicast
	ProblemNoRoute            ProblemKind = "no_route"                  // the address of a board is not known
	ProblemNoSpare            ProblemKind = "no_spare"                  // no board could take over from the leader
	ProblemNoVoter            ProblemKind = "no_voter"                  // this board is not among the voters
	ProblemPortSilent         ProblemKind = "port_silent"               // nothing arrives on this board's port
	ProblemScoreCommand       ProblemKind = "score_command"             // the score command fails
	ProblemSend               ProblemKind = "send"                      // packets cannot be sent
	ProblemSameName           ProblemKind = "same_name"                 // several boards have one name
	ProblemSettings           ProblemKind = "settings_differ"           // a board has other settings than this one, where all must agree
	ProblemSockets            ProblemKind = "sockets"                   // the sockets of the group cannot be opened
	ProblemStrayAddress       ProblemKind = "stray_address"             // this board's kernel has the address, but not from topdog
	ProblemStarter            ProblemKind = "starter"                   // the process that starts the checker has ended
	ProblemWitness            ProblemKind = "witness_silent"            // a witness does not answer ARP
)
