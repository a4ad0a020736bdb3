package health

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"topdog/internal/check"
	"topdog/internal/lab/assert"
)

const sec = time.Second

// checks are those of the scenes, by name.
var checks = map[string]check.Check{
	"web":     {Kind: check.Unit, Target: "web.service", Every: sec, Timeout: sec, Rise: 2, Fall: 3},
	"names":   {Kind: check.DNS, Target: "a @127.0.0.1", Every: sec, Timeout: sec, Rise: 2, Fall: 3},
	"leading": {Kind: check.TCP, Target: "10.0.0.1:1", Every: sec, Timeout: sec, When: check.Leading, Grace: 30 * sec},
}

// story is a board whose time is told by the test. It wakes the board whenever it wants to be
// woken, and notes each change of its grade.
type story struct {
	*Health
	now   time.Duration
	grade string
	told  []string
}

// begin begins a story of a board that has checks with these names.
func begin(startGrace time.Duration, names ...string) *story {
	s := &story{Health: New(0, startGrace, named(names))}
	s.note()
	return s
}

func named(names []string) (all []check.Check) {
	for _, name := range names {
		all = append(all, checks[name])
	}
	return all
}

// tell goes on with what has happened: 3s is a time, web+ is a check that passes then, and web- one that fails.
// A list of checks, such as [web,names], is that of a new configuration.
func (s *story) tell(words ...string) *story {
	for _, word := range words {
		name, passing := strings.CutSuffix(word, "+")
		name, failing := strings.CutSuffix(name, "-")
		switch at, err := time.ParseDuration(word); {
		case err == nil:
			s.until(at)
		case passing:
			s.Report(s.now, id(name), true, "")
		case failing:
			s.Report(s.now, id(name), false, "refused")
		case word == "leads", word == "follows":
			s.Lead(s.now, word == "leads")
		case word == "drained", word == "undrained":
			s.Drained = word == "drained"
		case word == "unheld", word == "held":
			s.Unheld = word == "unheld"
		case word == "unchecked", word == "checked":
			s.Uncheck(s.now, word == "unchecked")
		case word[0] == '[':
			list := strings.FieldsFunc(word, func(r rune) bool { return strings.ContainsRune("[,]", r) })
			s.Configure(s.now, 10*sec, named(list))
		default:
			panic("what is " + word)
		}
		s.note()
	}
	return s
}

func id(name string) string {
	c, known := checks[name]
	if !known {
		panic("there is no check " + name)
	}
	return c.ID()
}

// until lets time pass, and asks for the grade all the time.
func (s *story) until(at time.Duration) {
	const often = 100 * time.Millisecond
	for s.now < at {
		s.now = min(at, s.now.Truncate(often)+often)
		s.note()
	}
}

// note notes the grade if it has changed.
func (s *story) note() {
	j := s.Judge(s.now)
	grade := j.Grade.String()
	if j.Starting {
		grade = "starting"
	}
	if j.Until != 0 {
		grade += " for " + (j.Until - s.now).String()
	}
	if again := s.Judge(s.now); again != j {
		panic("to ask changes the answer")
	}
	name, _, _ := strings.Cut(grade, " for ")
	if former, _, _ := strings.Cut(s.grade, " for "); name == former {
		return
	}
	s.grade = grade
	s.told = append(s.told, fmt.Sprintf("%v %s", s.now, grade))
}

// failingAgain is a board that fails and passes again every two seconds, and what it is told.
func failingAgain() (scene, want string) {
	scene, want = "10s web: web+", "0s starting, 0s passing"
	lasts := 5 * sec
	for at := sec; at < 60*sec; at += 2 * sec {
		scene += fmt.Sprintf(" %v web- %v web+", at, at+sec)
		want += fmt.Sprintf(", %v failing, %v probation for %v", at, at+sec, lasts)
		lasts = min(2*lasts, 10*time.Minute)
	}
	return scene + " 3h", want + ", 11m0s passing"
}

// restarts is a board whose service is down for the last 100 ms of each of ten seconds.
func restarts() string {
	scene := "10s web: web+"
	for second := range 10 {
		scene += fmt.Sprintf(" %d.9s web- %ds", second, second+1)
	}
	return scene + " 12s web+ 1h"
}

// A scene begins with the grace at the start and the checks, as in story.tell.
func TestGrades(t *testing.T) {
	doubling, doubled := failingAgain()
	for _, test := range []struct{ name, scene, want string }{
		{"without checks", "10s: 1h", "0s passing"},
		{"a start", "10s web: 2s web+ 1h", "0s starting, 2s passing"},
		{"a start with two checks", "10s web names: 1s web+ 2s names+", "0s starting, 2s passing"},
		{"a service that starts after the board is no relapse", "10s web: 1s web- 8s web+ 1m", "0s starting, 8s passing"},
		{"one that starts too late is none either", "10s web: 1s web- 20s web+ 1m", "0s starting, 10s failing, 20s passing"},
		{"no grace at the start", "0s web: 1s web+", "0s failing, 1s passing"},
		{"a relapse", "10s web: web+ 1m web- 61s web+ 1h",
			"0s starting, 0s passing, 1m0s failing, 1m1s probation for 5s, 1m6s passing"},
		{"one of two fails", "10s web names: web+ names+ 1m names- 61s web+ 62s names+",
			"0s starting, 0s passing, 1m0s failing, 1m2s probation for 5s"},
		{"the probation doubles", doubling, doubled},
		{"ten restarts within a second each", restarts(),
			"0s starting, 0s passing, 900ms failing, 12s probation for 5s, 17s passing"},
		{"relapses are forgotten after an hour without one", "10s web: web+ 10s web- 11s web+ 20s web- 21s web+ 1h0m20s web- 1h0m21s web+",
			"0s starting, 0s passing, 10s failing, 11s probation for 5s, 16s passing, 20s failing, 21s probation for 10s, 31s passing, " +
				"1h0m20s failing, 1h0m21s probation for 5s"},
		{"and not before", "10s web: web+ 10s web- 11s web+ 1h web- 1h1s web+",
			"0s starting, 0s passing, 10s failing, 11s probation for 5s, 16s passing, 1h0m0s failing, 1h0m1s probation for 10s"},
		{"it fails while on probation", "10s web: web+ 10s web- 11s web+ 12s web- 30s web+",
			"0s starting, 0s passing, 10s failing, 11s probation for 5s, 12s failing, 30s probation for 10s"},
		{"drained", "10s web: web+ 10s drained 20s web- 21s web+ 30s undrained",
			"0s starting, 0s passing, 10s drained, 20s failing, 21s drained, 30s passing"},
		{"the kernel refuses the address", "10s: 1s unheld 2s held", "0s passing, 1s failing, 2s passing"},
		{"the checks do not run", "10s web: web+ 20s unchecked 25s checked 26s web+",
			"0s starting, 0s passing, 20s failing, 26s probation for 5s"},

		{"a follower is not judged", "10s leading: leading- 1h", "0s passing"},
		{"what starts in time on the leader", "10s leading: 10s leads 11s leading- 39s leading+ 1h", "0s passing"},
		{"what does not: it hands over, and stands back", "10s leading: 10s leads 11s leading- 41s follows 1h",
			"0s passing, 40s failing, 46s passing"},
		{"what is silent on the leader", "10s leading: 10s leads 41s", "0s passing, 40s failing"},
		{"nobody else takes the lead", "10s leading: leads leading+ 50s leading- 60s leading+ 1h",
			"0s passing, 50s failing, 1m0s probation for 5s, 1m5s passing"},
		{"it fails again when it has the lead again", "10s leading: leads leading+ 50s leading- follows 60s leads leading- 91s follows 1h",
			"0s passing, 50s failing, 55s passing, 1m30s failing, 1m41s passing"},
		{"another check fails as well: it does not stand back",
			"10s web leading: web+ leads leading+ 50s leading- web- follows 60s web+ 1h",
			"0s starting, 0s passing, 50s failing, 1m0s probation for 5s, 1m5s passing"},

		{"a reload changes what is judged, and a new check does not count until it has run, or is late",
			"10s web: web+ 1m [web,names] 62s names+ 70s [names] web- 80s [names,web] 95s [names] 2m []",
			"0s starting, 0s passing, 1m30s failing, 1m35s probation for 5s, 1m40s passing"},
		{"a board stands back because of a check that a reload takes away",
			"10s web leading: web+ 10s leads 41s follows 42s [web] 1h",
			"0s starting, 0s passing, 40s failing, 42s passing"},
	} {
		t.Run(test.name, func(t *testing.T) {
			before, words, _ := strings.Cut(test.scene, ":")
			setting := strings.Fields(before)
			grace, err := time.ParseDuration(setting[0])
			assert.NoError(t, err)
			s := begin(grace, setting[1:]...).tell(strings.Fields(words)...)
			assert.Equal(t, strings.Split(test.want, ", "), s.told, "grades")
		})
	}
}

func TestStates(t *testing.T) {
	s := begin(10*sec, "web", "names", "leading")
	for _, test := range []struct{ scene, want string }{
		{"", "starting since 0s, starting since 0s, not_judged since 0s"},
		{"1s web+ names-", "passing since 1s, failing since 1s, not_judged since 0s"},
		{"2s leads", "passing since 1s, failing since 1s, starting since 2s"},
		{"3s leading-", "passing since 1s, failing since 1s, excused since 3s"},
		{"40s", "passing since 1s, failing since 1s, failing since 32s"},
		{"follows", "passing since 1s, failing since 1s, not_judged since 40s"},
	} {
		var states []string
		for _, c := range s.tell(strings.Fields(test.scene)...).Checks(s.now) {
			states = append(states, fmt.Sprintf("%v since %v", c.State, c.Since))
		}
		assert.Is(t, test.want, strings.Join(states, ", "), "after %q", test.scene)
	}
}

func TestTexts(t *testing.T) {
	s := begin(10*sec, "web", "names")
	for _, test := range []struct{ scene, want string }{
		{"web-", "its checks have not passed yet: unit web.service: refused; dns a @127.0.0.1 has not run yet"},
		{"11s", "unit web.service: refused; dns a @127.0.0.1 has not run yet"},
		{"web+ names+", "its checks pass"},
		{"20s web- web+", "its checks pass again, after a relapse"},
		{"web- web+", "its checks pass again, after 2 relapses"},
	} {
		assert.Is(t, test.want, s.tell(strings.Fields(test.scene)...).Judge(s.now).Text, "after %q", test.scene)
	}
}
