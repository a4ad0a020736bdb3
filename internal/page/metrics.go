package page

// metric is what Prometheus is told of a metric.
type metric struct {
	name   string
	kind   string // counter or gauge
	labels []string
	help   string // one line; docs/monitoring.md has the same
}

// metrics are all metrics, in the order in which they are exposed.
var metrics []*metric

func gauge(name, help string, labels ...string) *metric {
	m := &metric{name, "gauge", labels, help}
	metrics = append(metrics, m)
	return m
}

func counter(name, help string, labels ...string) *metric {
	m := gauge(name, help, labels...)
	m.kind = "counter"
	return m
}

// The names are part of the interface, as the keys of the JSON are: some are added, none is renamed. What a label says
// comes from lists of this program and from this board's configuration, with two exceptions: the ids and names of the
// board that leads, of which there is one, and of those that are missing, of which there are less than wire.MaxBoards
// (255). A live board has no series on the other boards: it is asked itself.
var (
	metricUp        = gauge("topdog_up", "1 if the daemon of this board answers. If not, nearly all other metrics are missing.")
	metricBuildInfo = gauge("topdog_build_info",
		"1, with the version of the daemon and what it is: its group, its algorithm and its id (board).",
		"version", "group", "algorithm", "detector", "fanout", "interface", "board", "name")
	metricUptime    = gauge("topdog_uptime_seconds", "Time since the daemon of this board started.")
	metricWatching  = gauge("topdog_page_watching_seconds", "Time since topdog page started on this board.")
	metricStatusAge = gauge("topdog_status_age_seconds", "Age of what is told of the daemon here.")

	metricAddressHeld = gauge("topdog_address_held",
		"1 if this board knows of a live leader that has the address, itself included.")
	metricLeading    = gauge("topdog_leading", "1 if this board leads.")
	metricHolding    = gauge("topdog_holding", "1 if this board has the address and answers for it.")
	metricLeaseValid = gauge("topdog_lease_valid", "1 if this board leads and its lease is not over at this instant.")
	metricRole       = gauge("topdog_role", "1 for the role that this board has, 0 for the others.", "role")
	metricRoleAge    = gauge("topdog_role_age_seconds", "Time since this board has had its role.")
	metricLeaderInfo = gauge("topdog_leader_info",
		"1, with the id and the name of the leader that this board knows. Missing if it knows of none.",
		"board", "name")
	metricTerm = gauge("topdog_term",
		"The term: it grows with every change of leader. Missing until this board knows it.")
	metricChanges = counter("topdog_changes_total",
		"Changes of role or leader that this board has seen, by reason.",
		"reason")
	metricChangeAge = gauge("topdog_leader_change_age_seconds",
		"Time since the last change of leader. Missing if this board has seen none.")
	metricOutage = gauge("topdog_last_outage_seconds",
		"How long nobody led at the last change of leader. Missing if this board could not tell.")

	metricBoards = gauge("topdog_boards",
		"Boards that this board knows, itself included, by state: live, stale (silent, so that it counts as dead) or gone (it has said that it leaves, or was replaced).",
		"state")
	metricLiveBoards   = gauge("topdog_live_boards", "Live boards, this one included, by grade.", "grade")
	metricMissingBoard = gauge("topdog_missing_board",
		"1 for each board that is stale or gone. Live boards have no series.",
		"board", "name", "state")
	metricPriority = gauge("topdog_priority", "The priority of this board.")

	metricGrade    = gauge("topdog_grade", "1 for the grade that this board has, 0 for the others.", "grade")
	metricStarting = gauge("topdog_starting",
		"1 if this board is failing only because its checks have not passed yet since it started.")
	metricCheckState = gauge("topdog_check_state",
		"1 for the state that a check of this board has, 0 for the others.",
		"check", "kind", "when", "state")
	metricCheckAge = gauge("topdog_check_state_age_seconds",
		"Time since a check has had its state.",
		"check", "kind", "when")
	metricCheckFailing = gauge("topdog_check_failing",
		"1 if a check fails, also while it is excused.",
		"check", "kind", "when")
	metricDrained = gauge("topdog_drained", "1 if somebody has drained this board.")
	metricPaused  = gauge("topdog_paused", "1 if somebody has paused the group.")

	metricHeartbeat = gauge("topdog_heartbeat_interval_seconds", "Time between two heartbeats of the leader.")
	metricLoss      = gauge("topdog_heartbeat_loss_ratio",
		"Part of the leader's heartbeats that was lost on the way to this board, 0 to 1. Missing on the leader, as the next three.")
	metricMargin = gauge("topdog_heartbeat_margin_seconds",
		"How late a heartbeat may be before the leader is suspected.")
	metricRoundTrip = gauge("topdog_round_trip_seconds",
		"Time of a question to the leader and its answer. Missing until it was measured.")
	metricQuestions    = gauge("topdog_questions", "How often a suspected leader is asked before it is replaced.")
	metricGrace        = gauge("topdog_grace_seconds", "How late the leader may be until it is replaced.")
	metricDefaultGrace = gauge("topdog_default_grace_seconds", "The same as long as the group has learned nothing.")

	metricDefence = gauge("topdog_defence_on",
		"1 if this board has that line of defence, which keeps it from answering for the address when it may not, or its daemon from executing anything.",
		"kind")
	metricWitnesses = gauge("topdog_witnesses",
		"Hosts that are asked, when in doubt, whether anything arrives on this board's port.")
	metricWitnessesAnswering = gauge("topdog_witnesses_answering",
		"Those of them that answered when they were asked last.")
	metricVoters        = gauge("topdog_voters", "Voters. 0 without the algorithm strict.")
	metricVotersUnheard = gauge("topdog_voters_unheard",
		"Voters that this board does not hear, or that do not acknowledge its heartbeats.")
	metricMajorityUnheard = gauge("topdog_majority_unheard",
		"1 if this board leads and does not hear the majority of the voters, or has no leader and hears too few voters for one.")
	metricPortSilent     = gauge("topdog_port_silent", "1 if this board asks and nothing at all arrives on its port.")
	metricProblems       = gauge("topdog_problems", "Problems that need a person's attention.")
	metricProblemsByKind = gauge("topdog_problems_by_kind",
		"The same by kind. Kinds without a problem have no series.",
		"kind")

	metricReceived = counter("topdog_packets_received_total", "Packets that were received.")
	metricSent     = counter("topdog_packets_sent_total", "Packets that were sent.")
	metricDropped  = counter("topdog_packets_dropped_total",
		"Packets that were received and not accepted, by reason.",
		"reason")
	metricReceiveErrors   = counter("topdog_receive_errors_total", "Failures to receive.")
	metricReceiveOverruns = counter("topdog_receive_overruns_total",
		"Packets that came faster than the daemon could read or judge them.")
	metricSendErrors   = counter("topdog_send_errors_total", "Failures to send.")
	metricWithoutRoute = counter("topdog_messages_without_route_total",
		"Messages that were not sent, because the address of the board is not known.")
	metricAddressRestored = counter("topdog_address_restored_total",
		"Times that something else had deleted the address, and it was put back.")
	metricGroupRejoined = counter("topdog_group_rejoined_total", "Times that the multicast group was joined again.")
	metricRivalLeaders  = counter("topdog_rival_leaders_heard_total",
		"Times that this board led and heard another leader.")
)
