package daemon

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/internal/lab/assert"
	"topdog/wire"
)

// text is what topdog status prints.
func (b *fakeBoard) text(t *testing.T) string {
	t.Helper()
	var text bytes.Buffer
	assert.NoError(t, console.WriteStatus(&text, b.mustStatus(t), console.Options{}))
	return text.String()
}

// A board that hears too few voters says so, which they are, and what follows. It says so no more
// when there is a leader.
func TestTooFewVotersHeard(t *testing.T) {
	const missing = "this board hears 1 of the 3 voters"
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one := l.voters(1, nil)[0]
		if s := one.mustStatus(t); !s.MajorityUnheard || s.Voters[0].Unheard || !s.Voters[1].Unheard || !s.Voters[2].Unheard {
			t.Errorf("majority unheard: %v, voters %+v", s.MajorityUnheard, s.Voters)
		}
		if text := one.text(t); !strings.HasPrefix(text, "unknown who holds 10.0.0.100: "+missing+" (10.0.0.2 and 10.0.0.3 missing)") {
			t.Errorf("the status begins with %.200q", text)
		}
		if text := one.problem(t, "majority_unheard"); !strings.HasPrefix(text, missing+", not 10.0.0.2 and not 10.0.0.3; nobody takes the address without 2 of them: look at ") {
			t.Errorf("needs attention: %q", text)
		}
		one.wantLog(t, "warning: "+missing, 1)

		two := l.board(2, func(c *config.Config, _ *fakeBoard) {
			c.Algorithm, c.Voters = wire.AlgorithmStrict, votersOf(1, 2, 3)
		})
		pass(3 * time.Second)
		l.wantHolders(2)
		if s := one.mustStatus(t); s.MajorityUnheard || len(besidesSpares(s)) > 0 {
			t.Errorf("there is a leader, and majority unheard: %v, problems %q", s.MajorityUnheard, s.Problems)
		}
		two.wantLog(t, missing, 0)

		two.Kill()
		pass(8 * time.Second)
		if text := one.text(t); !strings.Contains(text, "last held by pi2 (10.0.0.2)") || !strings.Contains(text, missing+" (pi2 and 10.0.0.3 missing)") {
			t.Errorf("the leader is dead, and the status begins with %.200q", text)
		}
		if text := one.problem(t, "majority_unheard"); !strings.HasPrefix(text, missing) {
			t.Errorf("the leader is dead; needs attention: %q", text)
		}
	})
}

// A leader that does not hear the majority says so until it does.
func TestLeaderHearsMajorityAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		boards := l.voters(3, nil)
		deaf := func(so bool) {
			for _, b := range boards {
				b.get(func() { b.deaf = so })
			}
		}
		deaf(true)
		pass(150 * time.Millisecond)
		if text := boards[2].problem(t, "majority_unheard"); !strings.HasPrefix(text, "this leader does not hear the majority") {
			t.Errorf("needs attention: %q", text)
		}
		deaf(false)
		pass(lookEvery)
		boards[2].wantTold(t, "majority_unheard", "")
	})
}

// That the address of a silent leader answers is told as long as it does.
func TestAddressAnswersUntilTheTakeover(t *testing.T) {
	for _, test := range []struct {
		name string
		ends func(three *fakeBoard, run chan struct{})
	}{
		{"another board leads", func(three *fakeBoard, _ chan struct{}) { three.get(func() { three.silent = true }) }},
		{"it runs again", func(_ *fakeBoard, run chan struct{}) { run <- struct{}{} }},
	} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, l *fakeLAN) {
				_, two, three := l.three()
				pass(30 * time.Second)
				stands, run := make(chan struct{}), make(chan struct{}, 1)
				go three.tasks.post(func() { close(stands); <-run })
				<-stands
				defer func() { close(run) }()
				pass(time.Second)
				if text := two.problem(t, "address_answers"); !strings.Contains(text, "board 10.0.0.3 is silent, but its address still answers") {
					t.Fatalf("needs attention: %q", text)
				}
				pass(3 * time.Second)
				if text := two.problem(t, "address_stays"); text == "" {
					t.Error("it is not said that the address stays")
				}
				test.ends(three, run)
				pass(2 * time.Second)
				two.wantTold(t, "address_answers", "")
				two.wantTold(t, "address_stays", "")
			})
		})
	}
}

// A board on whose port nothing arrives is no healthy follower: the list of problems, the log and
// the light say so, until something arrives. A burst of lost packets is no such thing.
func TestPortSilent(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		_, two, _ := l.three()
		deaf := func(so bool, long time.Duration) {
			two.get(func() { two.deaf = so })
			pass(long)
		}
		pattern := func(want string) {
			t.Helper()
			assert.Is(t, want, two.mustStatus(t).LEDPattern, "the light shows")
		}
		const nothing = "nothing arrives on this board's port (eth0)"
		pass(time.Minute)
		deaf(true, time.Second)
		if s := two.mustStatus(t); !s.PortSilent || len(s.Problems) > 0 {
			t.Errorf("after a second: silent: %v, problems %q", s.PortSilent, s.Problems)
		}
		deaf(false, time.Second)
		pattern("follower")
		two.wantLog(t, nothing, 0)

		deaf(true, 10*time.Second)
		two.wantProblem(t, nothing)
		two.wantLog(t, "warning: "+nothing, 1)
		pattern("fault")
		deaf(false, time.Second)
		if s := two.mustStatus(t); s.PortSilent || len(s.Problems) > 0 {
			t.Errorf("it hears again, and silent: %v, problems %q", s.PortSilent, s.Problems)
		}
		pattern("follower")
	})
}

// The light of a board that never leads, and waits for a leader, is not that of a follower.
func TestLightOfAFollowerWithoutLeader(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		zero := l.board(1, func(c *config.Config, _ *fakeBoard) { c.Priority = 0 })
		two := l.board(2, nil)
		pass(5 * time.Second)
		for _, step := range []struct {
			do   func()
			want string
		}{
			{func() {}, "follower"},
			{func() { two.get(func() { two.mute = true }) }, "election"},
			{func() { two.get(func() { two.mute = false }) }, "follower"},
			{two.end, "election"},
		} {
			step.do()
			pass(8 * time.Second)
			if s := zero.mustStatus(t); s.Role != console.RoleFollower || s.LEDPattern != step.want {
				t.Errorf("a %s shows %q, want %q", s.Role, s.LEDPattern, step.want)
			}
		}
	})
}

// The history of a leader that let go because its port is dead says so. It does not say that
// nobody led then: this board cannot know.
func TestHistoryOfADeafLeader(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		_, _, three := l.three()
		pass(10 * time.Second)
		three.get(func() { three.deaf = true })
		pass(30 * time.Second)
		l.wantHolders(2)
		const says = "unknown who, term 1: this board let go of the lead, since nothing arrives on its port any more\n"
		if text := three.text(t); !strings.Contains(text, says) {
			t.Errorf("its status does not say %q:\n%s", says, text)
		}
		three.get(func() { three.deaf = false })
		pass(2 * time.Second)
		c := three.mustStatus(t).Changes
		if len(c) != 3 || c[0].Leader != "10.0.0.2" || c[0].OutageMs != nil || c[1].Leader != "" || c[1].Reason != "deaf" {
			t.Errorf("its changes: %+v", c)
		}
	})
}
