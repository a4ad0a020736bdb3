package daemon

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"topdog/internal/console"
	"topdog/internal/lab/assert"
	"topdog/netio"
	"topdog/wire"
)

// TestFolded plays what becomes of one problem, and says at which seconds it is logged.
func TestFolded(t *testing.T) {
	for _, test := range []struct {
		name    string
		lasts   time.Duration
		seconds int
		every   int // how often what is wrong is noted again
		says    func(second int) string
		want    []int
	}{
		{"it stays", forever, 3 * 3600, 1, func(int) string { return "a" }, []int{0, 3600, 7200}},
		{"it is noted once, and again much later", forever, 7200, 7000, func(int) string { return "a" }, []int{0, 7000}},
		{"it says something else each time", forever, 2 * 3600, 1, func(s int) string { return fmt.Sprint(s) }, []int{0, 10, 30, 70, 150, 310, 630, 1270, 2550, 5110}},
		{"others have it say something else each time", time.Minute, 3600, 1, func(s int) string { return fmt.Sprint(s) }, []int{0, 60, 180, 420, 900, 1860}},
		{"it comes and goes", forever, 1200, 1, func(s int) string { return map[bool]string{s%4 < 2: "a"}[true] }, []int{0, 12, 32, 72, 152, 312, 632}},
		{"it says something else once, too soon, and stays so", forever, 3000, 5000, func(s int) string {
			return map[bool]string{s == 0: "a", s == 4: "b"}[true] + map[bool]string{s != 0 && s != 4: "keep"}[true]
		}, []int{0}},
		{"it ends, and something else is wrong at once", forever, 3000, 5000, func(s int) string {
			return map[bool]string{s == 0: "a", s == 2: "", s == 4: "b"}[true] + map[bool]string{s == 1 || s == 3 || s > 4: "keep"}[true]
		}, []int{0, 4}},
	} {
		var now time.Duration
		p := problems{now: func() time.Duration { return now + time.Hour }}
		var got []int
		for s := range test.seconds {
			now = time.Duration(s) * time.Second
			switch text := test.says(s); {
			case text == "keep", text != "" && test.every > 1 && text == "a" && s%test.every != 0:
			case text == "":
				p.end(console.ProblemLink, nil)
			case p.note(console.ProblemLink, wire.Nobody, text, test.lasts).tell(p.now()):
				got = append(got, s)
			}
		}
		assert.Equal(t, test.want, got, "%s: the seconds at which it is logged", test.name)
	}
}

// TestOwnProblemsStay: what others cause, and what is wrong with other boards, gives way to what is wrong with this one.
func TestOwnProblemsStay(t *testing.T) {
	now := time.Hour
	p := problems{now: func() time.Duration { return now }}
	p.note(console.ProblemFence, wire.Nobody, "the fence is missing", forever)
	for id := range wire.ID(3 * problemsMax) {
		p.note(console.ProblemBoardSilent, id+1, "it is silent", forever)
		p.note(console.ProblemSend, wire.Nobody, "not sent", time.Minute)
	}
	current := p.current(func(console.ProblemKind, wire.ID) bool { return false })
	assert.Is(t, true, slices.ContainsFunc(current, func(c console.Problem) bool { return c.Kind == console.ProblemFence }), "the fence's problem is there")
	assert.Is(t, problemsMax, len(current), "problems")
}

// TestAnotherProblemIsLogged: a cable was out for two seconds, and soon after it is back the address goes. That is said.
func TestAnotherProblemIsLogged(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one, _, _ := l.three()
		pass(time.Minute)
		for range 5 {
			one.unplugged(true)
			pass(2 * time.Second)
			one.unplugged(false)
			pass(6 * time.Second)
		}
		one.get(func() { one.logged = nil })
		one.change(func(s *netio.Snapshot) { s.Link.Addrs = nil })
		pass(time.Minute)
		one.wantLogged(t, "has no IPv4 address (yet)", 1)
	})
}
