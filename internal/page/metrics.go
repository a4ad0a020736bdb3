package page

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"topdog/election"
	"topdog/internal/boottime"
	"topdog/internal/console"
	"topdog/wire"
)

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

// sample is what the metrics are made of.
type sample struct {
	status     *console.Status // nil while no daemon answers
	age        time.Duration   // of the status
	leaseValid bool            // this board leads, and its lease is not over at this instant
	watching   time.Duration   // since this process began
}

// sample asks the daemon. The lease comes first, since it is judged by a status that is newer than the others need.
func (p *page) sample(ctx context.Context) *sample {
	s := &sample{leaseValid: p.source.leads(ctx).yes}
	a, err := p.source.shown(ctx)
	now := boottime.Now()
	s.watching = now.Sub(p.began)
	if err != nil {
		return s
	}
	if status, err := a.status(); err == nil {
		s.status, s.age = status, now.Sub(a.asked)
	}
	return s
}

// exposition returns the metrics as Prometheus reads them.
func (s *sample) exposition() []byte {
	var e exposition
	e.one(metricUp, s.status != nil)
	if s.status == nil {
		e.add(metricWatching, s.watching.Seconds())
		e.one(metricAddressHeld, false)
		e.one(metricLeaseValid, false)
		return e.text
	}
	s.addDaemon(&e)
	s.addLead(&e)
	addBoards(&e, s.status)
	addGrade(&e, s.status)
	addHeartbeats(&e, s.status)
	addDefences(&e, s.status)
	addProblems(&e, s.status)
	addCounters(&e, &s.status.Counters)
	return e.text
}

// addDaemon adds which daemon this is, and how old what it says.
func (s *sample) addDaemon(e *exposition) {
	d := s.status
	e.add(metricBuildInfo, 1, d.Version, d.Group, d.Algorithm, d.Detector.Kind, d.Fanout, d.Interface, d.Board.ID, d.Board.Name)
	if d.Board.UpSeconds != nil {
		e.add(metricUptime, *d.Board.UpSeconds)
	}
	e.add(metricWatching, s.watching.Seconds())
	e.add(metricStatusAge, s.age.Seconds())
}

// roles are those of a board's own view.
var roles = []string{
	console.RoleIsolated, console.RoleListener, console.RoleFollower, console.RoleCandidate, console.RoleLeader, console.RoleBarred,
}

// addLead adds who leads and has the address, and how it came to that.
func (s *sample) addLead(e *exposition) {
	d := s.status
	e.one(metricAddressHeld, d.Held())
	e.one(metricLeading, d.Role == console.RoleLeader)
	e.one(metricHolding, d.Holding && !d.MajorityUnheard)
	e.one(metricLeaseValid, s.leaseValid)
	e.oneOf(metricRole, d.Role, roles)
	if d.RoleSinceMs != nil {
		e.add(metricRoleAge, seconds(*d.RoleSinceMs))
	}
	if d.Leader != "" {
		e.add(metricLeaderInfo, 1, d.Leader, d.LeaderName)
	}
	if d.Term != 0 {
		e.add(metricTerm, float64(d.Term))
	}
	e.counts(metricChanges, d.Counters.ChangesByReason, election.ReasonIdentifiers())
	if len(d.Changes) == 0 {
		return
	}
	last := &d.Changes[0]
	e.add(metricChangeAge, seconds(last.AgoMs))
	if last.OutageMs != nil {
		e.add(metricOutage, seconds(*last.OutageMs))
	}
}

// grades are those that a board can have.
func grades() (names []string) {
	for g := wire.GradePassing; g <= wire.MaxGrade; g++ {
		names = append(names, g.String())
	}
	return names
}

// The states of boards.
const (
	live  = "live"
	stale = "stale"
	gone  = "gone"
)

func stateOf(b *console.Board) string {
	switch {
	case b.Gone:
		return gone
	case b.Stale:
		return stale
	}
	return live
}

// addBoards adds how many boards there are, and names those that are missing.
func addBoards(e *exposition, d *console.Status) {
	states, graded := map[string]uint64{}, map[string]uint64{}
	for i := range d.Boards {
		b := &d.Boards[i]
		states[stateOf(b)]++
		if stateOf(b) == live {
			graded[b.Grade]++
		}
	}
	e.counts(metricBoards, states, []string{live, stale, gone})
	e.counts(metricLiveBoards, graded, grades())
	for i := range d.Boards {
		if b := &d.Boards[i]; stateOf(b) != live {
			e.add(metricMissingBoard, 1, b.ID, b.Name, stateOf(b))
		}
	}
	e.add(metricPriority, float64(d.Board.Priority))
}

// The states of checks that count as failing.
const (
	checkFailing = "failing"
	checkExcused = "excused"
)

// checkStates are those that a check can have. A test holds that they are those of package health, which is
// not imported: it runs programs, and a page must not.
var checkStates = []string{"starting", "passing", checkFailing, checkExcused, "not_judged"}

// addGrade adds how fit this board is to lead, and why.
func addGrade(e *exposition, d *console.Status) {
	e.oneOf(metricGrade, d.Grade, grades())
	e.one(metricStarting, d.Starting)
	names := checkNames(d.Checks)
	for i, c := range d.Checks {
		e.oneOf(metricCheckState, c.State, checkStates, names[i], c.Kind, c.When)
	}
	for i, c := range d.Checks {
		e.add(metricCheckAge, time.Duration(c.SinceNs).Seconds(), names[i], c.Kind, c.When)
	}
	for i, c := range d.Checks {
		e.one(metricCheckFailing, c.State == checkFailing || c.State == checkExcused, names[i], c.Kind, c.When)
	}
	e.one(metricDrained, d.Drained)
	e.one(metricPaused, d.Paused)
}

// checkNames are the names of the checks for people, with a number behind those that are there already: two
// checks may differ in what their names do not say, and two series may not have the same labels.
func checkNames(checks []console.Check) (names []string) {
	for _, c := range checks {
		name := c.NameText
		for n := 2; slices.Contains(names, name); n++ {
			name = fmt.Sprintf("%s (%d)", c.NameText, n)
		}
		names = append(names, name)
	}
	return names
}

// addHeartbeats adds what this board has learned of the network. On the leader the detector
// means nothing.
func addHeartbeats(e *exposition, d *console.Status) {
	e.add(metricHeartbeat, seconds(d.HeartbeatMs))
	if d.Leader != "" && d.Leader != d.Board.ID {
		e.add(metricLoss, math.Round(d.Detector.LossPercent*1e4)/1e6)
		e.add(metricMargin, seconds(d.Detector.MarginMs))
		if d.Detector.RoundTripMs > 0 {
			e.add(metricRoundTrip, seconds(d.Detector.RoundTripMs))
		}
		e.add(metricQuestions, float64(d.Detector.Questions))
	}
	if d.Patience.GraceNs > 0 { // else there is no network yet
		e.add(metricGrace, time.Duration(d.Patience.GraceNs).Seconds())
		e.add(metricDefaultGrace, time.Duration(d.Patience.DefaultGraceNs).Seconds())
	}
}

// addDefences adds what keeps the address on one board.
func addDefences(e *exposition, d *console.Status) {
	for _, defence := range d.Defences {
		e.one(metricDefence, defence.On, defence.Kind)
	}
	e.add(metricWitnesses, float64(len(d.Witnesses)))
	e.add(metricWitnessesAnswering, count(d.Witnesses, func(w *console.Witness) bool { return w.Answers }))
	e.add(metricVoters, float64(len(d.Voters)))
	e.add(metricVotersUnheard, count(d.Voters, func(v *console.Voter) bool { return v.Unheard || v.Supports != nil && !*v.Supports }))
	e.one(metricMajorityUnheard, d.MajorityUnheard)
	e.one(metricPortSilent, d.PortSilent)
}

// count returns how many are so.
func count[T any](all []T, is func(*T) bool) (n float64) {
	for i := range all {
		if is(&all[i]) {
			n++
		}
	}
	return n
}

// addProblems adds how many problems need attention.
func addProblems(e *exposition, d *console.Status) {
	kinds := map[string]float64{}
	for _, p := range d.Problems {
		kinds[string(p.Kind)]++
	}
	e.add(metricProblems, float64(len(d.Problems)))
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		e.add(metricProblemsByKind, kinds[kind], kind)
	}
}

// dropReasons are the reasons for which a packet is not accepted.
func dropReasons() []string {
	names := slices.Clone(console.SocketDrops)
	for r := wire.Accepted + 1; int(r) < wire.DropReasons; r++ {
		names = append(names, r.Identifier())
	}
	return names
}

// addCounters adds what is counted since the daemon started.
func addCounters(e *exposition, c *console.Counters) {
	e.add(metricReceived, float64(c.PacketsReceived))
	e.add(metricSent, float64(c.PacketsSent))
	e.counts(metricDropped, c.DroppedByReason, dropReasons())
	e.add(metricReceiveErrors, float64(c.ReceiveErrors))
	e.add(metricReceiveOverruns, float64(c.ReceiveOverruns))
	e.add(metricSendErrors, float64(c.SendErrors))
	e.add(metricWithoutRoute, float64(c.MessagesWithoutRoute))
	e.add(metricAddressRestored, float64(c.AddressRestored))
	e.add(metricGroupRejoined, float64(c.GroupRejoined))
	e.add(metricRivalLeaders, float64(c.RivalLeadersHeard))
}

// seconds converts milliseconds, to the nanosecond.
func seconds(ms float64) float64 { return math.Round(ms*1e6) / 1e9 }

// metricsType is the Content-Type of what exposition writes.
const metricsType = "text/plain; version=0.0.4; charset=utf-8"

// exposition writes metrics as Prometheus reads them, in its text format 0.0.4.
type exposition struct {
	text []byte
	last *metric
}

// add adds a series, with a value for each label of its metric. All series of a metric must be added one after the
// other.
func (e *exposition) add(m *metric, value float64, labels ...string) {
	if e.last != m {
		e.last = m
		e.text = append(e.text, "# HELP "+m.name+" "+helpEscapes.Replace(m.help)+"\n# TYPE "+m.name+" "+m.kind+"\n"...)
	}
	e.text = append(e.text, m.name...)
	separator := byte('{')
	for i, label := range m.labels {
		e.text = append(e.text, separator)
		e.text = append(e.text, label+`="`+labelEscapes.Replace(printable(labels[i]))+`"`...)
		separator = ','
	}
	if len(m.labels) > 0 {
		e.text = append(e.text, '}')
	}
	e.text = append(e.text, ' ')
	e.text = strconv.AppendFloat(e.text, value, 'f', -1, 64)
	e.text = append(e.text, '\n')
}

// one adds a series that is 1 or 0.
func (e *exposition) one(m *metric, is bool, labels ...string) {
	value := 0.0
	if is {
		value = 1
	}
	e.add(m, value, labels...)
}

// oneOf adds a series for each value that the last label can have: 1 for the one that it has, and
// 0 for the others. A value that is not among them has a series too: the daemon may be newer.
func (e *exposition) oneOf(m *metric, value string, all []string, labels ...string) {
	if value != "" && !slices.Contains(all, value) {
		all = append(slices.Clone(all), value)
	}
	for _, v := range all {
		e.one(m, v == value, append(slices.Clone(labels), v)...)
	}
}

// counts adds a series for each value that the label can have, and for those that are counted all
// the same. Those that are 0 are there as well, or Prometheus would not see the first event of a kind.
func (e *exposition) counts(m *metric, counted map[string]uint64, all []string) {
	for value := range counted {
		if !slices.Contains(all, value) {
			all = append(slices.Clone(all), value)
		}
	}
	for _, value := range slices.Sorted(slices.Values(all)) {
		e.add(m, float64(counted[value]), value)
	}
}

var (
	labelEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	helpEscapes  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
)

// printable replaces what Prometheus does not take, or people would not see: bytes that are not UTF-8, and
// characters that steer a terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(text, string(unicode.ReplacementChar)))
}
