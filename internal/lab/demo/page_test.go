package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"topdog/internal/console"
	"topdog/internal/lab/assert"
	"topdog/internal/lab/demopage"
	"topdog/internal/lab/documented"
	judged "topdog/internal/lab/judge"
	"topdog/internal/lab/scene"
	"topdog/internal/lab/webpage"
)

// TestSplit: each part has a leader, the client is answered on its own part, and one is left when
// the LAN is one again.
func TestSplit(t *testing.T) {
	parts := map[string]func(*judged.T){}
	for _, with := range []bool{true, false} {
		parts[fmt.Sprintf("the leader is with the client: %t", with)] = func(t *judged.T) {
			g, leader := newTestGroup(t, 5)
			var apart, rest []int
			for _, b := range g.boards {
				if b != leader && len(apart) < 2 {
					apart = append(apart, b.number)
				}
			}
			if !with {
				apart[0] = leader.number
			}
			for _, b := range g.boards {
				if !slices.Contains(apart, b.number) {
					rest = append(rest, b.number)
				}
			}
			act(t, g, demopage.Action{Verb: demopage.Split, Apart: apart})
			both := func(holders []int) bool {
				return len(holders) == 2 && slices.Contains(apart, holders[0]) != slices.Contains(apart, holders[1])
			}
			assert.NoError(t, g.lan.holders().WaitFor(testContext(t), both))
			n, err := g.client.WaitAnswer(testContext(t), func(n int) bool { return slices.Contains(rest, n) })
			if err != nil || with && n != leader.number {
				t.Errorf("%d answers on the client's part %v: %v", n, rest, err)
			}
			act(t, g, demopage.Action{Verb: demopage.Heal})
			awaitLeader(t, g, anyBoard)
			assert.ErrorIs(t, g.lan.holders().WaitFor(testContext(t), func(holders []int) bool { return len(holders) == 1 }), nil, "")
		}
	}
	judged.RunOnLoopback(t, func(t *judged.T) { t.Together(parts) })
}

// TestLoss: the share that is lost is the one that was asked for.
func TestLoss(t *testing.T) {
	var f filters
	count := func() (n int) {
		for range 100_000 {
			if f.draw() {
				n++
			}
		}
		return n
	}
	for _, share := range []float64{0, 0.25, 0.9} {
		f.set([]scene.Filter{{Share: share, Election: true}}[:min(1, int(share*100))])
		if got := float64(count()) / 100_000; got < share-0.01 || got > share+0.01 || share == 0 && got != 0 {
			t.Errorf("lost %v, want %v", got, share)
		}
	}
}

// TestLossOfAll: boards that lose packets say how many, and a healed LAN loses none.
func TestLossOfAll(t *testing.T) {
	judged.RunOnLoopback(t, func(t *judged.T) {
		g, _ := newTestGroup(t, 2)
		percent := 40
		act(t, g, demopage.Action{Verb: demopage.Loss, Percent: &percent})
		assert.Is(t, percent, newPageSource(g).document().LossPercent, "")
		assert.Equal(t, []scene.Filter{{Share: 0.4, Election: true}}, *g.lan.(*loopback).filters.shares.Load(), "")
		act(t, g, demopage.Action{Verb: demopage.Heal})
		assert.Is(t, 0, newPageSource(g).document().LossPercent, "healed")
		assert.Is(t, 0, len(*g.lan.(*loopback).filters.shares.Load()), "healed")
	})
}

// TestLacks: what cannot be done to a board is said in words.
func TestLacks(t *testing.T) {
	runs := pageBoard{Power: true, Daemon: daemonRuns, Cable: true}
	for _, test := range []struct {
		name  string
		state pageBoard
		can   []demopage.Verb
	}{
		{"running", runs, []demopage.Verb{demopage.PowerOff, demopage.CableOut, demopage.Kill, demopage.Stop, demopage.Freeze, demopage.MuteOn, demopage.DeafOn}},
		{"off", pageBoard{Daemon: daemonOff, Cable: true}, []demopage.Verb{demopage.PowerOn, demopage.CableOut, demopage.MuteOn, demopage.DeafOn}},
		{"stopped", pageBoard{Power: true, Daemon: daemonStopped, Cable: true}, []demopage.Verb{demopage.PowerOff, demopage.CableOut, demopage.Start, demopage.MuteOn, demopage.DeafOn}},
		{"killed", pageBoard{Power: true, Daemon: daemonKilled, Cable: true}, []demopage.Verb{demopage.PowerOff, demopage.CableOut, demopage.Start, demopage.MuteOn, demopage.DeafOn}},
		{"ended", pageBoard{Power: true, Daemon: daemonEnded, Cable: true}, []demopage.Verb{demopage.PowerOff, demopage.CableOut, demopage.Start, demopage.MuteOn, demopage.DeafOn}},
		{"frozen", pageBoard{Power: true, Daemon: daemonFrozen}, []demopage.Verb{demopage.PowerOff, demopage.CableIn, demopage.Kill, demopage.Thaw, demopage.MuteOn, demopage.DeafOn}},
		{"deaf and mute", pageBoard{Power: true, Daemon: daemonRuns, Cable: true, Deaf: true, Mute: true}, []demopage.Verb{demopage.PowerOff, demopage.CableOut, demopage.Kill, demopage.Stop, demopage.Freeze, demopage.MuteOff, demopage.DeafOff}},
	} {
		var can []demopage.Verb
		for _, verb := range demopage.Verbs() {
			if one := verb != demopage.Loss && verb != demopage.Split && verb != demopage.Heal && verb != demopage.AllOn; one && test.state.lacks(verb) == "" {
				can = append(can, verb)
			}
		}
		assert.Equal(t, test.can, can, "%s: what can be done", test.name)
	}
}

// TestQueue: so many actions wait, and no more. One that nobody waits for any more is not done.
func TestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &pageSource{jobs: make(chan pageJob, queueLength)}
		kill := demopage.Action{Verb: demopage.Kill, Board: 1}
		waits, giveUp := context.WithCancel(t.Context())
		for range queueLength {
			go func() { _ = s.Act(waits, kill) }()
		}
		synctest.Wait()
		if refused, ok := s.Act(t.Context(), kill).(*demopage.Refusal); !ok || !refused.Busy {
			t.Errorf("one more: %v", refused)
		}
		giveUp()
		go s.work(t.Context()) // it has no boards, and would panic
		synctest.Wait()
		if n := len(s.jobs); n > 0 {
			t.Errorf("%d actions wait", n)
		}
	})
}

// TestTakeover: the messages of a takeover are there from all boards that are left, in order.
func TestTakeover(t *testing.T) {
	judged.RunOnLoopback(t, func(t *judged.T) {
		g, old := newTestGroup(t, 4)
		s := newPageSource(g)
		s.watch.lookForTakeover(testContext(t))
		first := s.watch.lastTakeover()
		if first.Leader != old.number || first.OldLeader != 0 {
			t.Errorf("the first leader is %d, and the document says %d after %d", old.number, first.Leader, first.OldLeader)
		}
		began := s.at(time.Now())
		act(t, g, demopage.Action{Verb: demopage.PowerOff, Board: old.number})
		ended := s.at(time.Now())
		leader := awaitLeader(t, g, func(b *board) bool { return b != old })
		s.watch.lookForTakeover(testContext(t))
		got := s.watch.lastTakeover()
		if got.Leader != leader.number || got.OldLeader != old.number || got.Reason != "nobody_answered" || got.Number <= first.Number {
			t.Errorf("%s leads after %s, and the document says %d after %d (%s)", leader.name, old.name, got.Leader, got.OldLeader, got.Reason)
		}
		if got.Action != demopage.PowerOff || got.Board != old.number || got.ActedNs == nil || len(got.SilentNs) != 2 {
			t.Fatalf("the cause is %s of %d, the silence %v", got.Action, got.Board, got.SilentNs)
		}
		// A board that is being switched off may still say a heartbeat, so the last one may be later than the action.
		if *got.ActedNs < began || *got.ActedNs > ended || got.SilentNs[1] > got.ToNs+int64(time.Second) || got.SilentNs[0] > got.SilentNs[1] {
			t.Errorf("from %d to %d, acted at %d, which lasted from %d to %d, silent %v", got.FromNs, got.ToNs, *got.ActedNs, began, ended, got.SilentNs)
		}
		boards := map[int]bool{}
		leads, acquired := false, false
		last := got.FromNs - int64(besides)
		for _, step := range got.Steps {
			if step.AtNs < last {
				t.Errorf("%+v is before the step before", step)
			}
			last = step.AtNs
			boards[step.Board] = true
			if step.Board == leader.number && step.Role == console.RoleLeader {
				leads = true
				if got.FromNs > step.AtNs {
					t.Errorf("the last heartbeat was at %d, after %s rose at %d", got.FromNs, leader.name, step.AtNs)
				}
			}
			acquired = acquired || step.Board == leader.number && step.Step == console.StepAcquireEnded
		}
		if len(boards) != 3 || boards[old.number] || !leads || !acquired {
			t.Errorf("the boards of the steps are %v; leads %t, acquired %t", boards, leads, acquired)
		}
		// The outage belongs to what was done last before it.
		act(t, g, demopage.Action{Verb: demopage.PowerOn, Board: old.number})
		state := s.document()
		var verbs []demopage.Verb
		for _, a := range state.Actions {
			verbs = append(verbs, a.Action)
			moved := a.Action == demopage.PowerOff
			if a.Moves > 0 != moved || moved && (a.OutageNs == 0 || a.Before != old.number || a.After == old.number || a.Board != old.number) {
				t.Errorf("%+v", a)
			}
		}
		assert.Equal(t, []demopage.Verb{demopage.PowerOn, demopage.PowerOff, demopage.AllOn}, verbs, "what was done")
		if n := len(state.Answers); n < 2 || state.Answers[n-1].ToNs != nil && state.Answers[n-1].Board == old.number {
			t.Errorf("the answers are %+v", state.Answers)
		}
	})
}

// TestPage uses the demonstration as a browser does.
func TestPage(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, text := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := Page(ctx, heirs(2), webpage.DefaultListen, nil, text)
		text.Close()
		ended <- err
	}()
	printed := make([]byte, 4096)
	var said strings.Builder
	for !strings.Contains(said.String(), "#token=") || !strings.HasSuffix(said.String(), "ends it.\n") {
		n, err := out.Read(printed)
		said.Write(printed[:n])
		if err != nil {
			t.Fatalf("%v, %v: %s", err, <-ended, said.String())
		}
	}
	go io.Copy(io.Discard, out)
	url := regexp.MustCompile(`(http://127\.0\.0\.1:\d+)/#token=(\S+)`).FindStringSubmatch(said.String())
	if url == nil {
		t.Fatalf("it says %s", said.String())
	}
	b := browser{t, url[1], url[2]}
	for {
		var state pageState
		b.get("/v1/demo", &state)
		if i := slices.IndexFunc(state.Boards, func(b pageBoard) bool { return b.Sees == nil }); i >= 0 {
			t.Fatalf("the page goes through what board %d sees, and it is null", i+1)
		}
		if slices.ContainsFunc(state.Boards, func(b pageBoard) bool { return b.Holds && len(b.Sees) == 1 }) {
			break
		}
	}
	for _, want := range []int{200, 409} { // it has no power to lose the second time
		assert.Is(t, want, b.post(`{"action":"power_off","board":1}`), "power off")
	}
	var about pageAbout
	b.get("/v1/demo/about", &about)
	if len(about.Boards) != 2 || len(about.Actions) != len(demopage.Verbs()) || about.Address != loopbackFloating.String() {
		t.Errorf("about: %+v", about)
	}
	cancel()
	assert.ErrorIs(t, <-ended, nil, "")
}

// browser asks a page.
type browser struct {
	t           *testing.T
	url, secret string
}

func (b *browser) get(path string, v any) {
	b.t.Helper()
	answer, err := http.Get(b.url + path)
	assert.NoError(b.t, err)
	defer answer.Body.Close()
	decoder := json.NewDecoder(answer.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(v); err != nil {
		b.t.Fatalf("%s: %v", path, err)
	}
}

func (b *browser) post(action string) int {
	b.t.Helper()
	r, err := http.NewRequest("POST", b.url+"/v1/demo/act", bytes.NewReader([]byte(action)))
	assert.NoError(b.t, err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Origin", b.url)
	r.Header.Set("Topdog-Token", b.secret)
	answer, err := http.DefaultClient.Do(r)
	assert.NoError(b.t, err)
	answer.Body.Close()
	return answer.StatusCode
}

// TestMayInherit holds who may be called the heir: only one whom the others hear.
func TestMayInherit(t *testing.T) {
	for _, test := range []struct {
		name  string
		board pageBoard
		want  bool
	}{
		{"a follower", pageBoard{Number: 1, Follows: 2}, true},
		{"the leader", pageBoard{Number: 2, Follows: 2}, false},
		{"one that has no leader", pageBoard{Number: 1}, false},
		{"a mute follower", pageBoard{Number: 1, Follows: 2, Mute: true}, false},
	} {
		assert.Is(t, test.want, test.board.mayInherit(), "%s: may inherit", test.name)
	}
}

// TestFaultsNamespaces does to real links what TestFaults does on loopback.
func TestFaultsNamespaces(t *testing.T) {
	judged.Run(t, func(t *judged.T) {
		o := heirs(3)
		o.Namespaces = true
		g := offGroup(t, o)
		leader := allOn(t, g)
		for _, verb := range []demopage.Verb{demopage.CableOut, demopage.MuteOn, demopage.DeafOn} {
			old := leader
			act(t, g, demopage.Action{Verb: verb, Board: old.number})
			_, err := g.client.WaitAnswer(testContext(t), func(n int) bool { return n != old.number })
			assert.NoError(t, err)
			leader = allOn(t, g)
		}
		act(t, g, demopage.Action{Verb: demopage.Split, Apart: []int{leader.number}})
		assert.ErrorIs(t, g.lan.holders().WaitFor(testContext(t), func(holders []int) bool { return len(holders) == 2 }), nil, "")
		act(t, g, demopage.Action{Verb: demopage.Heal})
		awaitLeader(t, g, anyBoard)
		var impossible []demopage.Verb
		for _, a := range newPageSource(g).about().Actions {
			if a.ImpossibleText != "" {
				impossible = append(impossible, a.Action)
				if _, ok := g.perform(demopage.Action{Verb: a.Action, Board: 1}).(*demopage.Refusal); !ok {
					t.Errorf("%s cannot be done, and was done", a.Action)
				}
			}
		}
		assert.Equal(t, []demopage.Verb{demopage.Kill, demopage.Freeze, demopage.Thaw}, impossible, "what cannot be done")
	})
}

// TestEveryNameOfThePageIsDocumented holds that docs/demo.md has every key and every identifier of the page's
// JSON, and none that does not exist.
func TestEveryNameOfThePageIsDocumented(t *testing.T) {
	var verbs []string
	for _, v := range demopage.Verbs() {
		verbs = append(verbs, string(v))
	}
	documented.Compare(t, "../../../docs/demo.md", "The page's JSON", map[string][]string{
		"State": documented.Keys[pageState](), "Board": documented.Keys[pageBoard](), "View": documented.Keys[pageView](), "Light": documented.Keys[pageLight](),
		"Answer": documented.Keys[pageRun](), "What was done": documented.Keys[pageAction](), "About": documented.Keys[pageAbout](), "Name": documented.Keys[pageName](),
		"Possible action": documented.Keys[pagePossible](), "Measured elsewhere": documented.Keys[measuredFigure](),
		"Takeover": documented.Keys[pageTakeover](), "Step": documented.Keys[pageStep](), "Request": documented.Keys[demopage.Action](),
		"Daemon":  {daemonRuns, daemonFrozen, daemonStopped, daemonKilled, daemonEnded, daemonOff},
		"Views":   {seenSilent, seenGone, seenUnknown},
		"Actions": verbs,
	})
}
