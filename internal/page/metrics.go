package page

import (
	"context"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"topdog/election"
	"topdog/internal/boottime"
	"topdog/internal/console"
	"topdog/wire"
)

// The names of the metrics are part of the interface, as the keys of the JSON are: some are added, none is renamed.
// docs/monitoring.md has all of them, with the same words. The values of labels come from lists in this program and from
// this board's configuration, with two exceptions: the id and the name of the leader, of which there is one, and those of
// the missing boards, of which there are fewer than wire.MaxBoards (255). A live board has no series on the other boards,
// because Prometheus asks each board itself.

// sample is what the metrics of a group are made of.
type sample struct {
	group      string          // "" if there is no other
	status     *console.Status // nil while no daemon answers
	age        time.Duration   // of the status
	leaseValid bool            // this board leads, and its lease is not over at this instant
	watching   time.Duration   // since this process began
}

// serveMetrics tells Prometheus how this board is. One of the metrics is whether a daemon runs.
func (p *page) serveMetrics(w http.ResponseWriter, r *http.Request) error {
	groups := p.all()
	samples := make([]*sample, len(groups))
	var asking sync.WaitGroup
	for i, g := range groups {
		asking.Go(func() { samples[i] = p.sample(r.Context(), g) })
	}
	asking.Wait()
	w.Header().Set("Content-Type", metricsType)
	_, _ = w.Write(expose(samples...)) // a client that has gone is no failure
	return nil
}

// sample asks the daemon. The lease comes first, because it needs a newer status than the other metrics.
func (p *page) sample(ctx context.Context, g *group) *sample {
	s := &sample{group: g.label(), leaseValid: g.source.leads(ctx).yes}
	a, err := g.source.shown(ctx)
	now := boottime.Now()
	s.watching = now.Sub(p.began)
	if err == nil {
		s.status, s.age = a.Status, now.Sub(a.Asked)
	}
	return s
}

// expose returns the metrics of all groups as Prometheus reads them.
func expose(samples ...*sample) (text []byte) {
	var e exposition
	for _, s := range samples {
		e.group = s.group
		s.add(&e)
	}
	for _, m := range e.metrics {
		if len(m.series) > 0 {
			text = append(append(text, m.head...), m.series...)
		}
	}
	return text
}

// add adds the series of a group.
func (s *sample) add(e *exposition) {
	d := s.status
	e.gauge("topdog_up",
		"1 if the daemon of this board answers. If not, nearly all other metrics are missing.").is(d != nil)
	if d != nil {
		e.gauge("topdog_build_info",
			"1, with the version of the daemon and what it is: its group, its algorithm and its id (board).",
			"version", "group", "algorithm", "detector", "fanout", "interface", "board", "name").
			add(1, d.Version, d.Group, d.Algorithm, d.Detector.Kind, d.Fanout, d.Interface, d.Board.ID, d.Board.Name)
		e.gauge("topdog_uptime_seconds", "Time since the daemon of this board started.").known(d.Board.UpSeconds, 1)
	}
	e.gauge("topdog_page_watching_seconds", "Time since topdog page started on this board.").add(s.watching.Seconds())
	if d != nil {
		e.gauge("topdog_status_age_seconds", "Age of the status from which these metrics are made.").add(s.age.Seconds())
	}
	e.gauge("topdog_address_held",
		"1 if this board knows of a live leader that has the address, itself included.").is(d != nil && d.Held())
	if d != nil {
		e.gauge("topdog_leading", "1 if this board leads.").is(d.Role == console.RoleLeader)
		e.gauge("topdog_holding",
			"1 if this board has the address and answers for it.").is(d.Holding && !d.MajorityUnheard)
	}
	e.gauge("topdog_lease_valid", "1 if this board leads and its lease is not over at this instant.").is(s.leaseValid)
	if d != nil {
		addLead(e, d)
		addBoards(e, d)
		addGrade(e, d)
		addHeartbeats(e, d)
		addDefences(e, d)
		addProblems(e, d)
		addCounters(e, &d.Counters)
	}
}

// roles are the roles that a board can see itself in.
var roles = []string{
	console.RoleIsolated, console.RoleListener, console.RoleFollower, console.RoleCandidate, console.RoleLeader, console.RoleBarred,
}

// addLead adds who leads, and how that came about.
func addLead(e *exposition, d *console.Status) {
	e.gauge("topdog_role", "1 for the role that this board has, 0 for the others.", "role").oneOf(d.Role, roles)
	e.gauge("topdog_role_age_seconds", "Time since this board has had its role.").known(d.RoleSinceMs, 1e-3)
	if d.Leader != "" {
		e.gauge("topdog_leader_info",
			"1, with the id and the name of the leader that this board knows. Missing if it knows of none.", "board", "name").
			add(1, d.Leader, d.LeaderName)
	}
	if d.Term != 0 {
		e.gauge("topdog_term",
			"The term: it grows with every change of leader. Missing until this board knows it.").add(float64(d.Term))
	}
	e.counter("topdog_changes_total",
		"Changes of role or leader that this board has seen, by reason.", "reason").
		counts(d.Counters.ChangesByReason, election.ReasonIdentifiers())
	if len(d.Changes) > 0 {
		e.gauge("topdog_leader_change_age_seconds",
			"Time since the last change of leader. Missing if this board has seen none.").known(&d.Changes[0].AgoMs, 1e-3)
		e.gauge("topdog_last_outage_seconds",
			"How long nobody led at the last change of leader. Missing if this board could not tell.").
			known(d.Changes[0].OutageMs, 1e-3)
	}
}

// grades returns all grades that a board can have.
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
	e.gauge("topdog_boards",
		"Boards that this board knows, itself included, by state: live, stale (silent, so that it counts as dead) or gone (it has said that it leaves, or was replaced).", "state").
		counts(states, []string{live, stale, gone})
	e.gauge("topdog_live_boards", "Live boards, this one included, by grade.", "grade").counts(graded, grades())
	missing := e.gauge("topdog_missing_board",
		"1 for each board that is stale or gone. Live boards have no series.", "board", "name", "state")
	for i := range d.Boards {
		if b := &d.Boards[i]; stateOf(b) != live {
			missing.add(1, b.ID, b.Name, stateOf(b))
		}
	}
	e.gauge("topdog_priority", "The priority of this board.").add(float64(d.Board.Priority))
}

// The states of checks that count as failing.
const (
	checkFailing = "failing"
	checkExcused = "excused"
)

// checkStates are the states that a check can have. A test compares them with those of package health. The page does not
// import that package, because it imports package check, which runs programs.
var checkStates = []string{"starting", "passing", checkFailing, checkExcused, "not_judged"}

// addGrade adds how fit this board is to lead, and why.
func addGrade(e *exposition, d *console.Status) {
	e.gauge("topdog_grade", "1 for the grade that this board has, 0 for the others.", "grade").oneOf(d.Grade, grades())
	e.gauge("topdog_starting",
		"1 if this board is failing only because its checks have not passed yet since it started.").is(d.Starting)
	names := checkNames(d.Checks)
	states := e.gauge("topdog_check_state",
		"1 for the state that a check of this board has, 0 for the others.", "check", "kind", "when", "state")
	for i, c := range d.Checks {
		states.oneOf(c.State, checkStates, names[i], c.Kind, c.When)
	}
	ages := e.gauge("topdog_check_state_age_seconds", "Time since a check has had its state.", "check", "kind", "when")
	for i, c := range d.Checks {
		ages.add(time.Duration(c.SinceNs).Seconds(), names[i], c.Kind, c.When)
	}
	failing := e.gauge("topdog_check_failing", "1 if a check fails, also while it is excused.", "check", "kind", "when")
	for i, c := range d.Checks {
		failing.is(c.State == checkFailing || c.State == checkExcused, names[i], c.Kind, c.When)
	}
	e.gauge("topdog_drained", "1 if somebody has drained this board.").is(d.Drained)
	e.gauge("topdog_paused", "1 if somebody has paused the group.").is(d.Paused)
}

// checkNames returns the names of the checks for people, with a number behind a name that occurs already: two
// checks may differ only in what their names do not say, and two series may not have the same labels.
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
	e.gauge("topdog_heartbeat_interval_seconds",
		"Time between two heartbeats of the leader.").known(&d.HeartbeatMs, 1e-3)
	if d.Leader != "" && d.Leader != d.Board.ID {
		e.gauge("topdog_heartbeat_loss_ratio",
			"Part of the leader's heartbeats that was lost on the way to this board, 0 to 1. Missing on the leader, as the next three.").
			add(math.Round(d.Detector.LossPercent*1e4) / 1e6)
		e.gauge("topdog_heartbeat_margin_seconds",
			"How late a heartbeat may be before the leader is suspected.").known(&d.Detector.MarginMs, 1e-3)
		if d.Detector.RoundTripMs > 0 {
			e.gauge("topdog_round_trip_seconds",
				"Time of a question to the leader and its answer. Missing until it was measured.").
				known(&d.Detector.RoundTripMs, 1e-3)
		}
		e.gauge("topdog_questions",
			"How often a suspected leader is asked before it is replaced.").add(float64(d.Detector.Questions))
	}
	if d.Patience.GraceNs > 0 { // else there is no network yet
		e.gauge("topdog_grace_seconds",
			"How late the leader may be until it is replaced.").add(time.Duration(d.Patience.GraceNs).Seconds())
		e.gauge("topdog_default_grace_seconds",
			"The grace while the group has learned nothing.").add(time.Duration(d.Patience.DefaultGraceNs).Seconds())
	}
}

// addDefences adds what keeps the address on one board.
func addDefences(e *exposition, d *console.Status) {
	defences := e.gauge("topdog_defence_on",
		"1 if this board has that line of defence, which keeps it from answering for the address when it may not, or its daemon from executing anything.",
		"kind")
	for _, defence := range d.Defences {
		defences.is(defence.On, defence.Kind)
	}
	e.gauge("topdog_witnesses",
		"Hosts that are asked, when in doubt, whether anything arrives on this board's port.").add(float64(len(d.Witnesses)))
	e.gauge("topdog_witnesses_answering",
		"Those of them that answered when they were asked last.").
		add(count(d.Witnesses, func(w *console.Witness) bool { return w.Answers }))
	e.gauge("topdog_voters", "Voters. 0 without the algorithm strict.").add(float64(len(d.Voters)))
	e.gauge("topdog_voters_unheard",
		"Voters that this board does not hear, or that do not acknowledge its heartbeats.").add(count(d.Voters,
		func(v *console.Voter) bool { return v.Unheard || v.Supports != nil && !*v.Supports }))
	e.gauge("topdog_majority_unheard",
		"1 if this board leads and does not hear the majority of the voters, or has no leader and hears too few voters for one.").
		is(d.MajorityUnheard)
	e.gauge("topdog_port_silent", "1 if this board asks and nothing at all arrives on its port.").is(d.PortSilent)
	if d.SecondPath != nil {
		e.gauge("topdog_second_path_up", "1 if the second path of this board works. Missing if it has none.").
			is(d.SecondPath.State == console.SecondPathWorks)
	}
}

// count returns for how many elements is returns true.
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
	e.gauge("topdog_problems", "Problems that need a person's attention.").add(float64(len(d.Problems)))
	byKind := e.gauge("topdog_problems_by_kind", "The same by kind. Kinds without a problem have no series.", "kind")
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		byKind.add(kinds[kind], kind)
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
	e.counter("topdog_packets_received_total", "Packets that were received.").add(float64(c.PacketsReceived))
	e.counter("topdog_packets_sent_total", "Packets that were sent.").add(float64(c.PacketsSent))
	e.counter("topdog_packets_dropped_total",
		"Packets that were received and not accepted, by reason.", "reason").counts(c.DroppedByReason, dropReasons())
	e.counter("topdog_receive_errors_total", "Failures to receive.").add(float64(c.ReceiveErrors))
	e.counter("topdog_receive_overruns_total",
		"Packets that came faster than the daemon could read or judge them.").add(float64(c.ReceiveOverruns))
	e.counter("topdog_send_errors_total", "Failures to send.").add(float64(c.SendErrors))
	e.counter("topdog_messages_without_route_total",
		"Messages that were not sent, because the address of the board is not known.").add(float64(c.MessagesWithoutRoute))
	e.counter("topdog_address_restored_total",
		"Times that something else had deleted the address, and it was put back.").add(float64(c.AddressRestored))
	e.counter("topdog_group_rejoined_total",
		"Times that the multicast group was joined again.").add(float64(c.GroupRejoined))
	e.counter("topdog_rival_leaders_heard_total",
		"Times that this board led and heard another leader.").add(float64(c.RivalLeadersHeard))
}

// metricsType is the Content-Type of what exposition writes.
const metricsType = "text/plain; version=0.0.4; charset=utf-8"

// exposition has metrics as Prometheus reads them, in its text format 0.0.4. All series of a metric come one after the
// other.
type exposition struct {
	group   string // of the series that are added, which they have as a label; "" if there is no other
	metrics []*metric
}

// metric is a metric to which series are added. A metric without series is not written.
type metric struct {
	name   string
	labels []string
	group  string // as exposition.group
	head   string
	series []byte
}

// gauge returns a gauge, which is new unless another group has it too. The help is one line.
func (e *exposition) gauge(name, help string, labels ...string) *metric {
	return e.metric(name, "gauge", help, labels)
}

// counter returns a counter.
func (e *exposition) counter(name, help string, labels ...string) *metric {
	return e.metric(name, "counter", help, labels)
}

func (e *exposition) metric(name, kind, help string, labels []string) *metric {
	i := slices.IndexFunc(e.metrics, func(m *metric) bool { return m.name == name })
	if i < 0 {
		i = len(e.metrics)
		e.metrics = append(e.metrics, &metric{name: name, labels: labels, head: "# HELP " + name + " " + help + "\n# TYPE " + name + " " + kind + "\n"})
	}
	e.metrics[i].group = e.group
	return e.metrics[i]
}

// add adds a series, with a value for each label of its metric. The group comes first, unless it is one of these labels.
func (m *metric) add(value float64, labels ...string) {
	names := m.labels
	if m.group != "" && !slices.Contains(names, "group") {
		names, labels = append([]string{"group"}, names...), append([]string{m.group}, labels...)
	}
	text := append(m.series, m.name...)
	separator := byte('{')
	for i, label := range names {
		text = append(text, separator)
		text = append(text, label+`="`+labelEscapes.Replace(printable(labels[i]))+`"`...)
		separator = ','
	}
	if len(names) > 0 {
		text = append(text, '}')
	}
	text = append(text, ' ')
	text = strconv.AppendFloat(text, value, 'f', -1, 64)
	m.series = append(text, '\n')
}

// known adds a series unless its value is unknown. The unit is the unit of the value, in units of the metric. The product is
// rounded to a billionth.
func (m *metric) known(value *float64, unit float64) {
	if value != nil {
		m.add(math.Round(*value*unit*1e9) / 1e9)
	}
}

// is adds a series that is 1 or 0.
func (m *metric) is(yes bool, labels ...string) {
	value := 0.0
	if yes {
		value = 1
	}
	m.add(value, labels...)
}

// oneOf adds a series for each value that the last label can have: 1 for the one that it has, and 0 for the others. A
// value that is not among them has a series too: the daemon may be newer.
func (m *metric) oneOf(value string, all []string, labels ...string) {
	if value != "" && !slices.Contains(all, value) {
		all = append(slices.Clone(all), value)
	}
	for _, v := range all {
		m.is(v == value, append(slices.Clone(labels), v)...)
	}
}

// counts adds a series for each value that the label can have, and for any other value that was counted. Counters that are 0
// have a series too: otherwise Prometheus would not see the first event of a kind.
func (m *metric) counts(counted map[string]uint64, all []string) {
	for value := range counted {
		if !slices.Contains(all, value) {
			all = append(slices.Clone(all), value)
		}
	}
	for _, value := range slices.Sorted(slices.Values(all)) {
		m.add(float64(counted[value]), value)
	}
}

var labelEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// printable replaces bytes that are not UTF-8, which Prometheus does not accept, and control characters, which people
// would not see.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(text, string(unicode.ReplacementChar)))
}
