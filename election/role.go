package election

// Role is what a board is at the moment.
type Role uint8

// The roles. Package documentation says what they mean.
const (
	Isolated Role = iota
	Listener
	Follower
	Candidate
	Leader
	Barred
	roleCount
)

var roleNames = [roleCount]string{
	Isolated: "isolated", Listener: "listener", Follower: "follower",
	Candidate: "candidate", Leader: "leader", Barred: "barred",
}

func (r Role) String() string { return name(roleNames[:], uint8(r), "role") }

// Reason says why a board changed its role or its leader. It is what the log,
// the history and the metrics show.
type Reason uint8

// The reasons.
const (
	ReasonNone Reason = iota
	ReasonLinkUp
	ReasonLinkLost
	ReasonHeardLeader
	ReasonProclaimed
	ReasonSilence
	ReasonLeaderAlive
	ReasonEvidence
	ReasonOutranked
	ReasonUnanswered
	ReasonNoLeader
	ReasonHandover
	ReasonResigned
	ReasonStopping
	ReasonPreempted
	ReasonRival
	ReasonRestarted
	ReasonSuspended
	ReasonAddressInUse
	ReasonDuplicateID
	ReasonOtherAlgorithm
	ReasonConflictOver
	ReasonJoining
	ReasonNoPriority
	ReasonCalledUpon
	ReasonOutranks
	ReasonUnheard
	ReasonNamed
	ReasonNewRound
	ReasonElected
	ReasonNamedAnother
	ReasonLeaseExpired
	ReasonOtherVersion
	ReasonHigherTerm
	ReasonMajorityUnheard
	ReasonClock
	ReasonHearsAgain
	ReasonDeaf
	ReasonRivalServed
	ReasonFailing
	ReasonDrained
	ReasonRivalFitter
	ReasonPaused
	ReasonAddressSilent
	ReasonAddressReturned
	ReasonSecondPath
	reasonCount
)

// reasons has both forms of every reason. The identifiers are part of the JSON
// that docs/status.md describes, so they stay as they are; the texts may be bettered.
var reasons = [reasonCount]struct{ identifier, text string }{
	ReasonNone:            {"none", "no reason"},
	ReasonLinkUp:          {"link_up", "the link came up"},
	ReasonLinkLost:        {"link_lost", "the link was lost"},
	ReasonHeardLeader:     {"heard_leader", "heard the leader"},
	ReasonProclaimed:      {"leader_proclaimed", "a new leader proclaimed itself"},
	ReasonSilence:         {"leader_silent", "the leader fell silent"},
	ReasonLeaderAlive:     {"leader_answered", "the leader answered"},
	ReasonEvidence:        {"leader_heard_by_another", "another board has heard the leader since"},
	ReasonOutranked:       {"outranked", "a board of higher rank is at it"},
	ReasonUnanswered:      {"nobody_answered", "nobody answered for the leader"},
	ReasonNoLeader:        {"no_leader", "nobody was leading"},
	ReasonHandover:        {"handed_over", "the leader handed over"},
	ReasonResigned:        {"leader_resigned", "the leader resigned"},
	ReasonStopping:        {"leader_stopped", "the leader's daemon stopped"},
	ReasonPreempted:       {"preempted", "a board of higher rank asked for the lead"},
	ReasonRival:           {"rival_outranks", "another leader has the higher rank"},
	ReasonRestarted:       {"leader_restarted", "the leader's daemon restarted"},
	ReasonSuspended:       {"suspended", "this daemon was not running for a while"},
	ReasonAddressInUse:    {"address_in_use", "a foreign machine has the address"},
	ReasonDuplicateID:     {"duplicate_id", "another board has the same id"},
	ReasonOtherAlgorithm:  {"other_algorithm", "the group runs another algorithm"},
	ReasonConflictOver:    {"conflict_over", "the conflict is over"},
	ReasonJoining:         {"joining", "joining"},
	ReasonNoPriority:      {"priority_zero", "its priority was set to 0"},
	ReasonCalledUpon:      {"election_by_lower_rank", "a board of lower rank holds an election"},
	ReasonOutranks:        {"outranks_leader", "outranks the leader"},
	ReasonUnheard:         {"unheard", "another board leads, and nobody hears this one"},
	ReasonNamed:           {"named_by_judge", "the judge named it"},
	ReasonNewRound:        {"another_judge", "another board is the judge"},
	ReasonElected:         {"elected", "an election named this board"},
	ReasonNamedAnother:    {"another_elected", "an election named another board"},
	ReasonLeaseExpired:    {"lease_expired", "this daemon did not run, and its dead man's switch released the address"},
	ReasonOtherVersion:    {"other_version", "the group speaks another version of the protocol"},
	ReasonHigherTerm:      {"higher_term", "another board was elected since"},
	ReasonMajorityUnheard: {"majority_unheard", "this leader has not heard the majority of the voters for long"},
	ReasonClock:           {"clock_not_trusted", "this board's clock does not run at its rate"},
	ReasonHearsAgain:      {"hears_again", "this board's port receives again"},
	ReasonDeaf:            {"deaf", "this board let go of the lead, since nothing arrives on its port any more"},
	ReasonRivalServed:     {"rival_served", "another leader has served meanwhile"},
	ReasonFailing:         {"failing", "what this board serves does not work, and another board is fitter"},
	ReasonDrained:         {"drained", "this board was drained"},
	ReasonRivalFitter:     {"rival_fitter", "another leader is fitter"},
	ReasonPaused:          {"paused", "the group is paused"},
	ReasonAddressSilent:   {"address_silent", "the leader's address did not answer"},
	ReasonAddressReturned: {"address_returned", "the leader's address answers again"},
	ReasonSecondPath:      {"heard_by_second_path", "the leader was heard by the second path"},
}

// String returns the reason for people.
func (r Reason) String() string {
	if r < reasonCount {
		return reasons[r].text
	}
	return "an unknown reason"
}

// ReasonIdentifiers returns the identifiers of all reasons.
func ReasonIdentifiers() (all []string) {
	for r := range reasonCount {
		all = append(all, r.Identifier())
	}
	return all
}

// Identifier returns the reason for programs.
func (r Reason) Identifier() string {
	if r < reasonCount {
		return reasons[r].identifier
	}
	return "unknown"
}
