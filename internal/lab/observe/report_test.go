package observe

import (
	"testing"
	"time"

	"topdog/internal/lab/assert"
)

// answers makes a list of answers from pairs of milliseconds and board.
func answers(pairs ...int) (list []answer) {
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, answer{at: time.Duration(pairs[i]) * time.Millisecond, board: int32(pairs[i+1])})
	}
	return list
}

func TestReport(t *testing.T) {
	ms := time.Millisecond
	handover := askLog{
		start:   at(0),
		answers: answers(1, 1, 2, 1, 3, 1, 13, 2, 14, 2, 18, 2),
		pauses:  []pause{{5 * ms, 9 * ms}, {14 * ms, 17 * ms}},
	}
	for _, test := range []struct {
		name         string
		log          askLog
		since, until int
		want         Report
	}{
		{"nothing at all", askLog{start: at(0)}, 0, 20, Report{
			Since: at(0), Until: at(20), Longest: Gap{at(0), at(20), 0, 0, 0}, Unanswered: 20 * ms, Answers: map[int]int{},
		}},
		{"everything", handover, 0, 18, Report{
			Since: at(0), Until: at(18), Longest: Gap{at(3), at(13), 1, 2, 4 * ms}, Unanswered: 14 * ms,
			Answers: map[int]int{1: 3, 2: 3}, First: Answer{1, at(1)}, Pause: 4 * ms,
		}},
		{"since before the start", handover, -100, 18, Report{
			Since: at(0), Until: at(18), Longest: Gap{at(3), at(13), 1, 2, 4 * ms}, Unanswered: 14 * ms,
			Answers: map[int]int{1: 3, 2: 3}, First: Answer{1, at(1)}, Pause: 4 * ms,
		}},
		{"from within the gap", handover, 10, 18, Report{
			Since: at(10), Until: at(18), Longest: Gap{at(3), at(13), 1, 2, 4 * ms}, Unanswered: 14 * ms,
			Answers: map[int]int{2: 3}, First: Answer{2, at(13)}, Pause: 3 * ms,
		}},
		{"after the gap", handover, 14, 18, Report{
			Since: at(14), Until: at(18), Longest: Gap{at(14), at(18), 2, 2, 3 * ms}, Unanswered: 4 * ms,
			Answers: map[int]int{2: 2}, First: Answer{2, at(14)}, Pause: 3 * ms,
		}},
		{"silent at the end", handover, 14, 40, Report{
			Since: at(14), Until: at(40), Longest: Gap{at(18), at(40), 2, 0, 0}, Unanswered: 26 * ms,
			Answers: map[int]int{2: 2}, First: Answer{2, at(14)}, Pause: 3 * ms,
		}},
		{"still in the gap", handover, 4, 11, Report{
			Since: at(4), Until: at(11), Longest: Gap{at(3), at(11), 1, 0, 4 * ms}, Unanswered: 8 * ms,
			Answers: map[int]int{}, Pause: 4 * ms,
		}},
		{"answers were forgotten", askLog{start: at(0), answers: answers(10, 1, 11, 2), dropped: 7}, 0, 12, Report{
			Since: at(10), Until: at(12), Longest: Gap{at(10), at(11), 1, 2, 0},
			Answers: map[int]int{1: 1, 2: 1}, First: Answer{1, at(10)},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.want.Outage = test.want.Longest // they differ in TestOutage
			got := test.log.report(at(test.since), at(test.until), ms)
			assert.Equal(t, test.want, got, "")
		})
	}
}

// The log is bounded, and what was handed out stays as it was.
func TestAskLogForgets(t *testing.T) {
	l := askLog{start: at(0)}
	for i := range maxAnswers {
		l.add(at(i), 1)
	}
	snapshot := l
	for i := range maxAnswers {
		l.add(at(maxAnswers+i), 2)
	}
	for i := range 2 * maxPauses {
		l.addPause(at(i), at(i+1))
	}
	if len(l.answers) > maxAnswers || l.total() != 2*maxAnswers || len(l.pauses) > maxPauses {
		t.Errorf("%d answers of %d, %d pauses", len(l.answers), l.total(), len(l.pauses))
	}
	for i, a := range snapshot.answers {
		if a.board != 1 || a.at != at(i).Sub(at(0)) {
			t.Fatalf("answer %d of the snapshot is %v", i, a)
		}
	}
	assert.Is(t, 3, len(l.from(l.total()-3)), "answers from the third last")
	assert.Is(t, len(l.answers), len(l.from(0)), "answers from the forgotten ones on")
}

// The asker waits for an answer from when it has asked. What it did not ask about
// says nothing.
func TestReportWaited(t *testing.T) {
	const end = 100 * time.Millisecond
	for _, c := range []struct {
		name           string
		asked, answers []int // ms
		want           time.Duration
	}{
		{"every question has an answer at once", []int{10, 20, 90}, []int{10, 20, 90}, 0},
		{"nothing was asked for long", []int{10, 80}, []int{11, 81}, 2 * time.Millisecond},
		{"questions without answers", []int{10, 20, 30, 40, 50}, []int{10, 42, 50}, 23 * time.Millisecond},
		{"an answer that has not come yet", []int{10, 60, 70}, []int{10}, 41 * time.Millisecond},
		{"no answer at all", []int{30}, nil, 71 * time.Millisecond},
		{"no question", nil, nil, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := askLog{start: time.Now()}
			at := func(ms int) time.Time { return l.start.Add(time.Duration(ms) * time.Millisecond) }
			answers := c.answers
			for _, q := range c.asked {
				for len(answers) > 0 && answers[0] < q {
					l.add(at(answers[0]), 1)
					answers = answers[1:]
				}
				l.ask(at(q))
			}
			for _, a := range answers {
				l.add(at(a), 1)
			}
			assert.Is(t, c.want, l.report(l.start, l.start.Add(end), time.Millisecond).Waited, "waited")
		})
	}
}

// What is worth a mention is found among gaps that are not, with who answered before and after.
func TestGaps(t *testing.T) {
	ms := time.Millisecond
	l := askLog{
		start: at(0),
		answers: answers(
			300, 5, 301, 5, 303, 5, // two questions apart: nothing is missing
			400, 4, // the leader vanished
			401, 3, // handed over
			402, 3, 450, 3, // the machine stood still
			451, 3),
		// Each is of one gap and of no other.
		pauses: []pause{{304 * ms, 394 * ms}, {403 * ms, 443 * ms}},
	}
	want := []Gap{
		{From: at(0), To: at(300), After: 5},
		{From: at(303), To: at(400), Before: 5, After: 4, Paused: 90 * ms},
		{From: at(400), To: at(401), Before: 4, After: 3},
		{From: at(402), To: at(450), Before: 3, After: 3, Paused: 40 * ms},
	}
	for n, first := range map[int]int{0: 0, 3: 1, 4: 2, 5: 3, 6: 3} {
		assert.Equal(t, want[first:], l.gaps(n, ms), "the gaps after %d answers", n)
	}
	if got := l.gaps(7, ms); len(got) > 0 {
		t.Errorf("after all gaps come %v", got)
	}
	l.answers, l.dropped = l.answers[3:], 3
	assert.Equal(t, want[2:], l.gaps(0, ms), "the gaps when three answers were forgotten")
}

// A gap that has not ended counts as well, unless it is no longer than the client takes to ask.
func TestOutage(t *testing.T) {
	ms := time.Millisecond
	for _, test := range []struct {
		name         string
		answers      []answer
		since, until int
		want         Gap
	}{
		{"nothing is missing", answers(1, 4, 2, 4, 4, 4), 2, 6, Gap{}},
		{"handed over, and nothing is missing", answers(1, 4, 2, 3, 4, 3), 2, 6, Gap{at(1), at(2), 4, 3, 0}},
		{"began before", answers(1, 4, 50, 3, 51, 3), 20, 52, Gap{at(1), at(50), 4, 3, 0}},
		{"ended before", answers(1, 4, 50, 3, 51, 3), 51, 52, Gap{}},
		{"has not ended", answers(1, 4, 10, 4), 5, 60, Gap{at(10), at(60), 4, 0, 0}},
		{"nobody ever", nil, 10, 20, Gap{at(0), at(20), 0, 0, 0}},
	} {
		l := askLog{start: at(0), answers: test.answers}
		assert.Equal(t, test.want, l.report(at(test.since), at(test.until), ms).Outage, "%s", test.name)
	}
}
