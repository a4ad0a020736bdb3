package daemon

import (
	"maps"
	"slices"
	"time"

	"github.com/sirupsen/logrus"

	"topdog/election"
	"topdog/internal/console"
	"topdog/wire"
)

// reporter tells people and programs how this board is: by the log, by systemd, and by the problems and the history that topdog
// status shows. None of it can fail in a way that the election would notice.
type reporter struct {
	log      *logrus.Entry
	unit     *unitPart
	problems problems
	history  history
	fedAt    time.Duration // when systemd's watchdog was fed
	taken    int           // probes in a row that found an owner of the address while nobody led
}

func newReporter(log *logrus.Entry, unit *unitPart, now func() time.Duration) *reporter {
	return &reporter{log: log, unit: unit, problems: problems{now: now}, history: history{now: now}}
}

// failed logs a failure of something that the election does not depend on.
func (r *reporter) failed(what string, err error) { logFailure(r.log, what, err) }

func logFailure(log *logrus.Entry, what string, err error) {
	if err != nil {
		log.Warnf("%s: %v", what, err)
	}
}

// show has the status show a problem of this board for as long as there is a text. It logs nothing.
func (r *reporter) show(kind console.ProblemKind, text string) {
	if text == "" {
		r.solved(kind)
	} else {
		r.problems.note(kind, wire.Nobody, text, forever)
	}
}

// set warns of a problem of this board for as long as there is a text.
func (r *reporter) set(kind console.ProblemKind, text string) {
	if text == "" {
		r.solved(kind)
	} else {
		r.say(logrus.WarnLevel, kind, wire.Nobody, text, forever)
	}
}

// alert is set for what keeps the address from the users.
func (r *reporter) alert(kind console.ProblemKind, text string) {
	r.say(logrus.ErrorLevel, kind, wire.Nobody, text, forever)
}

// warn warns of a problem of this board that is over if it is not seen again for a minute.
func (r *reporter) warn(kind console.ProblemKind, text string) {
	r.say(logrus.WarnLevel, kind, wire.Nobody, text, time.Minute)
}

// say notes a problem, and logs it if that is due.
func (r *reporter) say(level logrus.Level, kind console.ProblemKind, board wire.ID, text string, lasts time.Duration) {
	if r.problems.note(kind, board, text, lasts).tell(r.problems.now()) {
		r.log.Log(level, text)
	}
}

// only warns of one kind of problem, with other boards or, for wire.Nobody, with several. said lists all that exist
// now; any other problem of that kind is over.
func (r *reporter) only(kind console.ProblemKind, said map[wire.ID]string) {
	r.problems.end(kind, said)
	for _, id := range slices.Sorted(maps.Keys(said)) {
		r.say(logrus.WarnLevel, kind, id, said[id], forever)
	}
}

// solved ends a problem.
func (r *reporter) solved(kind console.ProblemKind) { r.problems.end(kind, nil) }

// noticed tells of something that the core has noticed, in these words.
func (r *reporter) noticed(n election.Notice, text string) {
	level := logrus.WarnLevel
	switch n.Kind {
	case election.NoticeNoMulticast:
		r.log.Warn(text) // no problem here: a status asks the core which boards get no multicast
		return
	case election.NoticeDuplicateID, election.NoticeOtherAlgorithm, election.NoticeOtherVersion:
		level = logrus.ErrorLevel // one of the boards stays out until somebody repairs it
	case election.NoticeRival:
		r.history.rivalHeard()
	}
	r.say(level, console.ProblemKind(n.Kind.Identifier()), n.Board, text, time.Minute)
}

// remember enters a change of role or leader into the history. lastSeen is when the
// old leader was heard last, or 0.
func (r *reporter) remember(c election.Change, lastSeen time.Duration) {
	r.history.add(c, lastSeen)
	if c.NewLeader != wire.Nobody {
		// The machine that had the address was a board of the group, or has given it up.
		r.addressFree()
	}
}

// addressTaken tells people, in these words, of a machine that has the address although nobody leads, when it is found the
// second time in a row. The first time it may be a board that began to lead a moment ago, and is heard of soon.
func (r *reporter) addressTaken(text string) {
	if r.taken++; r.taken > 1 {
		r.say(logrus.ErrorLevel, console.ProblemAddressNotFree, wire.Nobody, text, time.Minute)
	}
}

// addressFree ends what addressTaken has told.
func (r *reporter) addressFree() {
	r.taken = 0
	r.solved(console.ProblemAddressNotFree)
}

// claimIsForeign reports whether a claim to the address comes from outside of the group.
func (r *reporter) claimIsForeign(now time.Duration) bool { return r.history.claimIsForeign(now) }

// tell logs a change of role or leader, which text describes, and tells systemd.
func (r *reporter) tell(c election.Change, text string) {
	if routine(c) {
		r.log.Debug(text)
	} else {
		r.log.Info(text)
	}
	if c.To != election.Candidate || c.From == election.Leader {
		r.failed("tell systemd", r.unit.tell(capitalised(text)))
	}
}

// waiting tells of a link that is not there, which is no failure.
func (r *reporter) waiting(problem string) {
	r.set(console.ProblemLink, problem)
	r.failed("tell systemd", r.unit.tell("waiting: "+problem))
}

// routine reports whether a change is of no interest to a person: a question
// that was asked, and answered or given up.
func routine(c election.Change) bool {
	switch {
	case c.From == election.Leader:
		return false // the address was released, whatever the next question is
	case c.To == election.Candidate:
		return true
	case c.From == election.Candidate && c.To == election.Follower:
		return !c.LeaderChanged()
	case c.To == election.Follower:
		return !c.LeaderChanged() || c.NewLeader == wire.Nobody
	}
	return false
}

// ready tells systemd that the board runs.
func (r *reporter) ready() { r.failed("tell systemd", r.unit.begins()) }

// stopping tells systemd that the board hands over and ends.
func (r *reporter) stopping() { r.failed("tell systemd", r.unit.ends()) }

// feedWatchdog tells systemd that the loop turns if that is due by the next look.
func (r *reporter) feedWatchdog(now time.Duration) {
	if every := r.unit.notifier.WatchdogInterval(); every > 0 && now >= r.fedAt+every-lookEvery {
		r.fedAt = now
		r.failed("feed the watchdog", r.unit.feed(now))
	}
}

// beforeLong is called before the loop waits for what may take long. Systemd is told, whether or not that is due, that the loop
// turns: the watchdog then counts from here.
func (r *reporter) beforeLong(now time.Duration) {
	r.fedAt = now - r.unit.notifier.WatchdogInterval()
	r.feedWatchdog(now)
}

func silent() *logrus.Entry {
	l := logrus.New()
	l.SetLevel(logrus.PanicLevel)
	return logrus.NewEntry(l)
}
