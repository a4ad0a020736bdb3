package bench

import (
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"topdog/internal/lab/assert"
)

// Each question is . if it has an answer, a millisecond after it was asked, and - if it has none.
// There is one every millisecond. The report is made when the last one has waited for long.
func TestSilences(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name, questions string
		since, until    time.Duration // from the first question; until 0 is late
		want            silence
	}{
		{"all are answered", "......", 0, 0, silence{}},
		{"one is not", "..-...", 0, 0, silence{longest: 2 * ms}},
		{"the longest counts", ".-.---..-.", 0, 0, silence{longest: 4 * ms}},
		{"it began before", ".---..-..", 3 * ms, 0, silence{longest: 4 * ms}},
		{"it ended before", ".---.....-..", 7 * ms, 0, silence{longest: 2 * ms}},
		{"it has not ended", ".-.---", 0, 203 * ms, silence{longest: 200 * ms, open: true}},
		{"the last one may get an answer", "..-..-", 0, 20 * ms, silence{}},
		{"nobody was asked", "", 0, 0, silence{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			first := time.Unix(1, 0)
			var questions []nameQuestion
			for i, what := range c.questions {
				q := nameQuestion{asked: first.Add(time.Duration(i) * ms)}
				if what == '.' {
					q.answered = q.asked.Add(ms)
				}
				questions = append(questions, q)
			}
			until := first.Add(c.until)
			if c.until == 0 {
				until = first.Add(time.Hour)
			}
			got := silencesOf(questions, first.Add(c.since), until)
			assert.Is(t, c.want, got, "")
		})
	}
}

// Answers find their questions by 16 bits, in any order. One that is late is none.
func TestAnswered(t *testing.T) {
	l := &nameLine{}
	began := time.Now()
	const asked = 1<<16 + 10
	for range asked {
		l.questions = append(l.questions, nameQuestion{asked: began})
	}
	var got []bool
	for _, a := range []struct {
		id uint16
		at time.Duration
	}{{10, 1}, {9, 1}, {11, 1}, {8, answerWithin + 1}} {
		got = append(got, l.answered(a.id, began.Add(a.at)))
	}
	assert.Equal(t, []bool{true, true, true, false}, got, "")
	var answered []int
	for i, q := range l.questions {
		if !q.answered.IsZero() {
			answered = append(answered, i+1)
		}
	}
	assert.Equal(t, []int{11, asked - 1, asked}, answered, "the questions with an answer")
	if (&nameLine{}).answered(1, began) {
		t.Error("an answer to nothing")
	}
}

func TestParseAnswer(t *testing.T) {
	name := dnsmessage.MustNewName(serviceName + ".")
	answer := func(change func(*dnsmessage.Message)) []byte {
		m := dnsmessage.Message{
			Header: dnsmessage.Header{ID: 77, Response: true},
			Answers: []dnsmessage.Resource{{
				Header: dnsmessage.ResourceHeader{Name: name, Class: dnsmessage.ClassINET},
				Body:   &dnsmessage.AResource{A: [4]byte{192, 0, 2, 3}},
			}},
		}
		change(&m)
		packed, err := m.Pack()
		assert.NoError(t, err)
		return packed
	}
	if id, board, err := parseAnswer(answer(func(*dnsmessage.Message) {})); id != 77 || board != 3 || err != nil {
		t.Errorf("%d of board %d, %v", id, board, err)
	}
	for name, message := range map[string][]byte{
		"no message": nil,
		"refused":    answer(func(m *dnsmessage.Message) { m.RCode = dnsmessage.RCodeRefused }),
		"nothing":    answer(func(m *dnsmessage.Message) { m.Answers = nil }),
		"a text":     answer(func(m *dnsmessage.Message) { m.Answers[0].Body = &dnsmessage.TXTResource{TXT: []string{"x"}} }),
	} {
		if _, board, err := parseAnswer(message); err == nil {
			t.Errorf("%s was taken for an answer of board %d", name, board)
		}
	}
}
