package health

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"topdog/internal/check"
	"topdog/internal/lab/assert"
)

var (
	web      = check.Check{Kind: check.Unit, Target: "web.service", Every: time.Second, Timeout: time.Second, Rise: 2, Fall: 3}
	names    = check.Check{Kind: check.DNS, Target: "a @127.0.0.1", Every: time.Second, Timeout: time.Second, Rise: 2, Fall: 3}
	onLeader = check.Check{Kind: check.TCP, Target: "10.0.0.1:1", Every: time.Second, Timeout: time.Second, When: check.Leading, Grace: 30 * time.Second}
)

// story is a board whose time is told by the test. It wakes the board whenever it wants to be
// woken, and notes each change of its grade.
type story struct {
	*Health
	now   time.Duration
	grade string
	told  []string
}

func begin(startGrace time.Duration, checks ...check.Check) *story {
	s := &story{Health: New(0, startGrace, checks)}
	s.note()
	return s
}

// until lets time pass.
func (s *story) until(at time.Duration) *story {
	for {
		next, ok := s.Deadline(s.now)
		if !ok || next > at {
			break
		}
		if next <= s.now {
			panic(fmt.Sprintf("at %v it wants to be woken at %v", s.now, next))
		}
		s.now = next
		s.note()
	}
	s.now = at
	s.note()
	return s
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

func (s *story) passes(c check.Check) *story { return s.says(c, true) }
func (s *story) fails(c check.Check) *story  { return s.says(c, false) }

func (s *story) says(c check.Check, passing bool) *story {
	text := ""
	if !passing {
		text = "refused"
	}
	s.Report(s.now, c.ID(), passing, text)
	s.note()
	return s
}

func (s *story) do(act func(now time.Duration)) *story {
	act(s.now)
	s.note()
	return s
}

func (s *story) leads(leading bool) *story {
	return s.do(func(now time.Duration) { s.Lead(now, leading) })
}

const sec = time.Second

func TestGrades(t *testing.T) {
	for _, test := range []struct {
		name string
		tell func() *story
		want []string
	}{
		{"without checks", func() *story { return begin(10 * sec).until(time.Hour) }, []string{"0s passing"}},
		{"a start", func() *story { return begin(10*sec, web).until(2 * sec).passes(web).until(time.Hour) },
			[]string{"0s starting", "2s passing"}},
		{"a start with two checks", func() *story { return begin(10*sec, web, names).until(sec).passes(web).until(2 * sec).passes(names) },
			[]string{"0s starting", "2s passing"}},
		{"a service that starts after the board is no relapse", func() *story {
			return begin(10*sec, web).until(sec).fails(web).until(8 * sec).passes(web).until(time.Minute)
		}, []string{"0s starting", "8s passing"}},
		{"one that starts too late is none either", func() *story {
			return begin(10*sec, web).until(sec).fails(web).until(20 * sec).passes(web).until(time.Minute)
		}, []string{"0s starting", "10s failing", "20s passing"}},
		{"no grace at the start", func() *story { return begin(0, web).until(sec).passes(web) }, []string{"0s failing", "1s passing"}},
		{"a relapse", func() *story {
			return begin(10*sec, web).passes(web).until(time.Minute).fails(web).until(61 * sec).passes(web).until(time.Hour)
		}, []string{"0s starting", "0s passing", "1m0s failing", "1m1s probation for 5s", "1m6s passing"}},
		{"one of two fails", func() *story {
			return begin(10*sec, web, names).passes(web).passes(names).until(time.Minute).fails(names).until(61 * sec).passes(web).until(62 * sec).passes(names)
		}, []string{"0s starting", "0s passing", "1m0s failing", "1m2s probation for 5s"}},
		{"the probation doubles", func() *story {
			s := begin(10*sec, web).passes(web)
			for at := sec; at < 60*sec; at += 2 * sec {
				s.until(at).fails(web).until(at + sec).passes(web)
			}
			return s.until(3 * time.Hour)
		}, func() (want []string) {
			want = []string{"0s starting", "0s passing"}
			lasts := 5 * sec
			for at := sec; at < 60*sec; at += 2 * sec {
				want = append(want, fmt.Sprintf("%v failing", at), fmt.Sprintf("%v probation for %v", at+sec, lasts))
				lasts = min(2*lasts, 10*time.Minute)
			}
			return append(want, "11m0s passing")
		}()},
		{"ten restarts within a second each", func() *story {
			s := begin(10*sec, web).passes(web)
			for range 10 {
				s.until(s.now + 900*time.Millisecond).fails(web).until(s.now + 100*time.Millisecond)
			}
			return s.until(s.now + 2*sec).passes(web).until(time.Hour)
		}, []string{"0s starting", "0s passing", "900ms failing", "12s probation for 5s", "17s passing"}},
		{"relapses are forgotten after an hour without one", func() *story {
			s := begin(10*sec, web).passes(web).until(10 * sec).fails(web).until(11 * sec).passes(web).until(20 * sec).fails(web).until(21 * sec).passes(web)
			return s.until(time.Hour + 20*sec).fails(web).until(time.Hour + 21*sec).passes(web)
		}, []string{"0s starting", "0s passing", "10s failing", "11s probation for 5s", "16s passing", "20s failing", "21s probation for 10s", "31s passing",
			"1h0m20s failing", "1h0m21s probation for 5s"}},
		{"and not before", func() *story {
			s := begin(10*sec, web).passes(web).until(10 * sec).fails(web).until(11 * sec).passes(web)
			return s.until(time.Hour).fails(web).until(time.Hour + sec).passes(web)
		}, []string{"0s starting", "0s passing", "10s failing", "11s probation for 5s", "16s passing", "1h0m0s failing", "1h0m1s probation for 10s"}},
		{"it fails while on probation", func() *story {
			return begin(10*sec, web).passes(web).until(10 * sec).fails(web).until(11 * sec).passes(web).until(12 * sec).fails(web).until(30 * sec).passes(web)
		}, []string{"0s starting", "0s passing", "10s failing", "11s probation for 5s", "12s failing", "30s probation for 10s"}},
		{"drained", func() *story {
			s := begin(10*sec, web).passes(web).until(10 * sec)
			drain := func(drained bool) { s.do(func(now time.Duration) { s.Drain(now, drained) }) }
			drain(true)
			s.until(20 * sec).fails(web).until(21 * sec).passes(web).until(30 * sec)
			drain(false)
			return s
		}, []string{"0s starting", "0s passing", "10s drained", "20s failing", "21s drained", "30s passing"}},
		{"the kernel refuses the address", func() *story {
			s := begin(10 * sec)
			s.until(sec).do(func(now time.Duration) { s.Unheld(now, true) })
			return s.until(2 * sec).do(func(now time.Duration) { s.Unheld(now, false) })
		}, []string{"0s passing", "1s failing", "2s passing"}},
		{"the checks do not run", func() *story {
			s := begin(10*sec, web).passes(web)
			s.until(20 * sec).do(func(now time.Duration) { s.Uncheck(now, true) })
			s.until(25 * sec).do(func(now time.Duration) { s.Uncheck(now, false) })
			return s.until(26 * sec).passes(web)
		}, []string{"0s starting", "0s passing", "20s failing", "26s probation for 5s"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			assert.Equal(t, test.want, test.tell().told, "grades")
		})
	}
}

func TestOnTheLeaderOnly(t *testing.T) {
	for _, test := range []struct {
		name string
		tell func() *story
		want []string
	}{
		{"a follower is not judged", func() *story { return begin(10*sec, onLeader).fails(onLeader).until(time.Hour) }, []string{"0s passing"}},
		{"what starts in time", func() *story {
			return begin(10*sec, onLeader).until(10 * sec).leads(true).until(11 * sec).fails(onLeader).until(39 * sec).passes(onLeader).until(time.Hour)
		}, []string{"0s passing"}},
		{"what does not: it hands over, and stands back", func() *story {
			return begin(10*sec, onLeader).until(10 * sec).leads(true).until(11 * sec).fails(onLeader).until(41 * sec).leads(false).until(time.Hour)
		}, []string{"0s passing", "40s failing", "46s passing"}},
		{"what is silent", func() *story {
			return begin(10*sec, onLeader).until(10 * sec).leads(true).until(41 * sec)
		}, []string{"0s passing", "40s failing"}},
		{"nobody else takes it", func() *story {
			return begin(10*sec, onLeader).leads(true).passes(onLeader).until(50 * sec).fails(onLeader).until(60 * sec).passes(onLeader).until(time.Hour)
		}, []string{"0s passing", "50s failing", "1m0s probation for 5s", "1m5s passing"}},
		{"it fails again when it has the lead again", func() *story {
			s := begin(10*sec, onLeader).leads(true).passes(onLeader).until(50 * sec).fails(onLeader).leads(false)
			s.until(60 * sec).leads(true).fails(onLeader).until(91 * sec).leads(false)
			return s.until(time.Hour)
		}, []string{"0s passing", "50s failing", "55s passing", "1m30s failing", "1m41s passing"}},
		{"another check fails as well: it does not stand back", func() *story {
			s := begin(10*sec, web, onLeader).passes(web).leads(true).passes(onLeader).until(50 * sec).fails(onLeader).fails(web).leads(false)
			return s.until(60 * sec).passes(web).until(time.Hour)
		}, []string{"0s starting", "0s passing", "50s failing", "1m0s probation for 5s", "1m5s passing"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			assert.Equal(t, test.want, test.tell().told, "grades")
		})
	}
}

// TestConfigure: a reload changes what is judged, and a check that is new does not count until it has run.
func TestConfigure(t *testing.T) {
	s := begin(10*sec, web).passes(web).until(time.Minute)
	configure := func(checks ...check.Check) {
		s.do(func(now time.Duration) { s.Configure(now, 10*sec, checks) })
	}
	configure(web, names)
	s.until(62 * sec).passes(names).until(70 * sec)
	configure(names)
	s.fails(web).until(80 * sec)
	configure(names, web) // which never runs
	s.until(95 * sec)
	configure(names)
	s.until(2 * time.Minute)
	configure()
	want := []string{"0s starting", "0s passing", "1m30s failing", "1m35s probation for 5s", "1m40s passing"}
	assert.Equal(t, want, s.told, "grades")
}

// TestConfigureEndsStandingBack: a board stands back because of a check that is not there any more.
func TestConfigureEndsStandingBack(t *testing.T) {
	s := begin(10*sec, web, onLeader).passes(web).until(10 * sec).leads(true).until(41 * sec).leads(false).until(42 * sec)
	s.do(func(now time.Duration) { s.Configure(now, 10*sec, []check.Check{web}) })
	want := []string{"0s starting", "0s passing", "40s failing", "42s passing"}
	assert.Equal(t, want, s.until(time.Hour).told, "grades")
}

func TestStates(t *testing.T) {
	s := begin(10*sec, web, names, onLeader)
	var got []string
	note := func() {
		var states []string
		for _, c := range s.Checks(s.now) {
			states = append(states, fmt.Sprintf("%v since %v", c.State, c.Since))
		}
		got = append(got, strings.Join(states, ", "))
	}
	note()
	s.until(sec).passes(web).fails(names)
	note()
	s.until(2 * sec).leads(true)
	note()
	s.until(3 * sec).fails(onLeader)
	note()
	s.until(40 * sec)
	note()
	s.leads(false)
	note()
	want := []string{
		"starting since 0s, starting since 0s, not_judged since 0s",
		"passing since 1s, failing since 1s, not_judged since 0s",
		"passing since 1s, failing since 1s, starting since 2s",
		"passing since 1s, failing since 1s, excused since 3s",
		"passing since 1s, failing since 1s, failing since 32s",
		"passing since 1s, failing since 1s, not_judged since 40s",
	}
	assert.Equal(t, want, got, "states")
}

func TestTexts(t *testing.T) {
	s := begin(10*sec, web, names).fails(web)
	text := func(want string) {
		t.Helper()
		if got := s.Judge(s.now).Text; got != want {
			t.Errorf("at %v: %q, want %q", s.now, got, want)
		}
	}
	text("its checks have not passed yet: unit web.service: refused; dns a @127.0.0.1 has not run yet")
	s.until(11 * sec)
	text("unit web.service: refused; dns a @127.0.0.1 has not run yet")
	s.passes(web).passes(names)
	text("its checks pass")
	s.until(20 * sec).fails(web).passes(web)
	text("its checks pass again, after a relapse")
	s.fails(web).passes(web)
	text("its checks pass again, after 2 relapses")
}
