package election

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
	reasonCount
)

var reasonTexts = [reasonCount]string{
	ReasonNone:           "no reason",
	ReasonLinkUp:         "the link came up",
	ReasonLinkLost:       "the link was lost",
	ReasonHeardLeader:    "heard the leader",
	ReasonProclaimed:     "a new leader proclaimed itself",
	ReasonSilence:        "the leader fell silent",
	ReasonLeaderAlive:    "the leader answered",
	ReasonEvidence:       "another board has heard the leader since",
	ReasonOutranked:      "a board of higher rank is at it",
	ReasonUnanswered:     "nobody answered for the leader",
	ReasonNoLeader:       "there is no leader",
	ReasonHandover:       "the leader handed over",
	ReasonResigned:       "the leader resigned",
	ReasonStopping:       "the leader's daemon stopped",
	ReasonPreempted:      "a board of higher rank asked for the lead",
	ReasonRival:          "another leader has the higher rank",
	ReasonRestarted:      "the leader's daemon restarted",
	ReasonSuspended:      "this daemon was not running for a while",
	ReasonAddressInUse:   "a foreign machine has the address",
	ReasonDuplicateID:    "another board has the same id",
	ReasonOtherAlgorithm: "the group runs another algorithm",
	ReasonConflictOver:   "the conflict is over",
	ReasonJoining:        "joining",
	ReasonNoPriority:     "its priority was set to 0",
	ReasonCalledUpon:     "a board of lower rank holds an election",
	ReasonOutranks:       "outranks the leader",
	ReasonUnheard:        "another board leads, and nobody hears this one",
	ReasonNamed:          "the judge named it",
	ReasonNewRound:       "another board is the judge",
	ReasonElected:        "an election named this board",
	ReasonNamedAnother:   "an election named another board",
	ReasonLeaseExpired:   "this daemon did not run, and its dead man's switch let go",
}

func (r Reason) String() string {
	if r < reasonCount {
		return reasonTexts[r]
	}
	return "an unknown reason"
}
