package page

// The names of the metrics. They are part of the interface, as the keys of the JSON are: some are
// added, none is renamed.
const (
	metricUp        = "topdog_up"
	metricBuildInfo = "topdog_build_info"
	metricUptime    = "topdog_uptime_seconds"
	metricWatching  = "topdog_page_watching_seconds"
	metricStatusAge = "topdog_status_age_seconds"

	metricAddressHeld = "topdog_address_held"
	metricLeading     = "topdog_leading"
	metricHolding     = "topdog_holding"
	metricLeaseValid  = "topdog_lease_valid"
	metricRole        = "topdog_role"
	metricRoleAge     = "topdog_role_age_seconds"
	metricLeaderInfo  = "topdog_leader_info"
	metricTerm        = "topdog_term"
	metricChanges     = "topdog_changes_total"
	metricChangeAge   = "topdog_leader_change_age_seconds"
	metricOutage      = "topdog_last_outage_seconds"

	metricBoards       = "topdog_boards"
	metricLiveBoards   = "topdog_live_boards"
	metricMissingBoard = "topdog_missing_board"
	metricPriority     = "topdog_priority"

	metricGrade        = "topdog_grade"
	metricStarting     = "topdog_starting"
	metricCheckState   = "topdog_check_state"
	metricCheckAge     = "topdog_check_state_age_seconds"
	metricCheckFailing = "topdog_check_failing"
	metricDrained      = "topdog_drained"
	metricPaused       = "topdog_paused"

	metricHeartbeat    = "topdog_heartbeat_interval_seconds"
	metricLoss         = "topdog_heartbeat_loss_ratio"
	metricMargin       = "topdog_heartbeat_margin_seconds"
	metricRoundTrip    = "topdog_round_trip_seconds"
	metricQuestions    = "topdog_questions"
	metricGrace        = "topdog_grace_seconds"
	metricDefaultGrace = "topdog_default_grace_seconds"

	metricDefence            = "topdog_defence_on"
	metricWitnesses          = "topdog_witnesses"
	metricWitnessesAnswering = "topdog_witnesses_answering"
	metricVoters             = "topdog_voters"
	metricVotersUnheard      = "topdog_voters_unheard"
	metricMajorityUnheard    = "topdog_majority_unheard"
	metricPortSilent         = "topdog_port_silent"
	metricProblems           = "topdog_problems"
	metricProblemsByKind     = "topdog_problems_by_kind"

	metricReceived        = "topdog_packets_received_total"
	metricSent            = "topdog_packets_sent_total"
	metricDropped         = "topdog_packets_dropped_total"
	metricReceiveErrors   = "topdog_receive_errors_total"
	metricReceiveOverruns = "topdog_receive_overruns_total"
	metricSendErrors      = "topdog_send_errors_total"
	metricWithoutRoute    = "topdog_messages_without_route_total"
	metricAddressRestored = "topdog_address_restored_total"
	metricGroupRejoined   = "topdog_group_rejoined_total"
	metricRivalLeaders    = "topdog_rival_leaders_heard_total"
)

// metric is what whoever scrapes is told of a metric.
type metric struct {
	name   string
	kind   metricKind
	labels []string
	help   string // one line; docs/monitoring.md has the same
}

// metricKind is what a TYPE line says.
type metricKind string

const (
	counter metricKind = "counter"
	gauge   metricKind = "gauge"
)

// metrics are all there are. What a label says comes from lists of this program and from this board's
// configuration, with two exceptions: the ids and names of the board that leads, of which there is one, and of those
// that are missing, of which there are less than wire.MaxBoards (255). A live board has no series on the other
// boards: it is asked itself.
var metrics = []metric{
	{metricUp, gauge, nil, "1 if the daemon of this board answers. If not, nearly all other metrics are missing."},
	{metricBuildInfo, gauge, []string{"version", "group", "algorithm", "detector", "fanout", "interface", "board", "name"}, "1, with the version of the daemon and what it is: its group, its algorithm and its id (board)."},
	{metricUptime, gauge, nil, "Time since the daemon of this board started."},
	{metricWatching, gauge, nil, "Time since topdog page started on this board."},
	{metricStatusAge, gauge, nil, "Age of what is told of the daemon here."},

	{metricAddressHeld, gauge, nil, "1 if this board knows of a live leader that has the address, itself included."},
	{metricLeading, gauge, nil, "1 if this board leads."},
	{metricHolding, gauge, nil, "1 if this board has the address and answers for it."},
	{metricLeaseValid, gauge, nil, "1 if this board leads and its lease is not over at this instant."},
	{metricRole, gauge, []string{"role"}, "1 for the role that this board has, 0 for the others."},
	{metricRoleAge, gauge, nil, "Time since this board has had its role."},
	{metricLeaderInfo, gauge, []string{"board", "name"}, "1, with the id and the name of the leader that this board knows. Missing if it knows of none."},
	{metricTerm, gauge, nil, "The term: it grows with every change of leader. Missing until this board knows it."},
	{metricChanges, counter, []string{"reason"}, "Changes of role or leader that this board has seen, by reason."},
	{metricChangeAge, gauge, nil, "Time since the last change of leader. Missing if this board has seen none."},
	{metricOutage, gauge, nil, "How long nobody led at the last change of leader. Missing if this board could not tell."},

	{metricBoards, gauge, []string{"state"}, "Boards that this board knows, itself included, by state: live, stale (silent, so that it counts as dead) or gone (it has said that it leaves, or was replaced)."},
	{metricLiveBoards, gauge, []string{"grade"}, "Live boards, this one included, by grade."},
	{metricMissingBoard, gauge, []string{"board", "name", "state"}, "1 for each board that is stale or gone. Live boards have no series."},
	{metricPriority, gauge, nil, "The priority of this board."},

	{metricGrade, gauge, []string{"grade"}, "1 for the grade that this board has, 0 for the others."},
	{metricStarting, gauge, nil, "1 if this board is failing only because its checks have not passed yet since it started."},
	{metricCheckState, gauge, []string{"check", "kind", "when", "state"}, "1 for the state that a check of this board has, 0 for the others."},
	{metricCheckAge, gauge, []string{"check", "kind", "when"}, "Time since a check has had its state."},
	{metricCheckFailing, gauge, []string{"check", "kind", "when"}, "1 if a check fails, also while it is excused."},
	{metricDrained, gauge, nil, "1 if somebody has drained this board."},
	{metricPaused, gauge, nil, "1 if somebody has paused the group."},

	{metricHeartbeat, gauge, nil, "Time between two heartbeats of the leader."},
	{metricLoss, gauge, nil, "Part of the leader's heartbeats that was lost on the way to this board, 0 to 1. Missing on the leader, as the next three."},
	{metricMargin, gauge, nil, "How late a heartbeat may be before the leader is suspected."},
	{metricRoundTrip, gauge, nil, "Time of a question to the leader and its answer. Missing until it was measured."},
	{metricQuestions, gauge, nil, "How often a suspected leader is asked before it is replaced."},
	{metricGrace, gauge, nil, "How late the leader may be until it is replaced."},
	{metricDefaultGrace, gauge, nil, "The same as long as the group has learned nothing."},

	{metricDefence, gauge, []string{"kind"}, "1 if this board has that line of defence, which keeps it from answering for the address when it may not, or its daemon from executing anything."},
	{metricWitnesses, gauge, nil, "Hosts that are asked, when in doubt, whether anything arrives on this board's port."},
	{metricWitnessesAnswering, gauge, nil, "Those of them that answered when they were asked last."},
	{metricVoters, gauge, nil, "Voters. 0 without the algorithm strict."},
	{metricVotersUnheard, gauge, nil, "Voters that this board does not hear, or that do not acknowledge its heartbeats."},
	{metricMajorityUnheard, gauge, nil, "1 if this board leads and does not hear the majority of the voters, or has no leader and hears too few voters for one."},
	{metricPortSilent, gauge, nil, "1 if this board asks and nothing at all arrives on its port."},
	{metricProblems, gauge, nil, "Problems that a person should look into."},
	{metricProblemsByKind, gauge, []string{"kind"}, "The same by kind. Kinds without a problem have no series."},

	{metricReceived, counter, nil, "Packets that were received."},
	{metricSent, counter, nil, "Packets that were sent."},
	{metricDropped, counter, []string{"reason"}, "Packets that were received and not accepted, by reason."},
	{metricReceiveErrors, counter, nil, "Failures to receive."},
	{metricReceiveOverruns, counter, nil, "Packets that came faster than the daemon could read or judge them."},
	{metricSendErrors, counter, nil, "Failures to send."},
	{metricWithoutRoute, counter, nil, "Messages that were not sent, because the address of the board is not known."},
	{metricAddressRestored, counter, nil, "Times that something else had deleted the address, and it was put back."},
	{metricGroupRejoined, counter, nil, "Times that the multicast group was joined again."},
	{metricRivalLeaders, counter, nil, "Times that this board led and heard another leader."},
}
