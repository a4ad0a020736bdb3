package scenario

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/scene"
	"topdog/wire"
)

// TestSceneOfFaults reads faults as they are in flags.
func TestSceneOfFaults(t *testing.T) {
	for flags, want := range map[string]string{
		"kill 5@2s":              "at 2s: pi5 kill\n",
		"pull 4,5@1500ms":        "at 1.5s: pi4,pi5 pull\n",
		"freeze 3@2s+500ms":      "at 2s: pi3 freeze\nat 2.5s: pi3 thaw\n",
		"kill 5@2s;start 5@4s":   "at 2s: pi5 kill\nat 4s: pi5 start\n",
		"split 1,2/3,4@2s+1s":    "at 2s: split pi1,pi2 / pi3,pi4\nat 3s: join\n",
		"split 1/2/3@0s;join 6s": "at 0s: split pi1 / pi2 / pi3\nat 6s: join\n",
		"join @6s":               "at 6s: join\n",
		"one-way 1/2@1s":         "at 1s: one-way pi1 / pi2\n",
		"halt 1s+2s":             "at 1s: halt\nat 3s: resume\n",
		"lose 20%@1s+2s":         "at 1s: lose 20%\nat 3s: lose 0%\n",
		"notice 2@2.1s":          "at 2.1s: pi2 notices\n",
		"notice 2;pull 1@1s;kill 5,4@1s;cut 3@2s": "at 1s: pi5,pi4,pi1 heartbeat\nat 1s: pi5,pi4 kill\nat 1s: pi1 pull\npi2 notices\nat 2s: pi3 cut\n",
	} {
		r := request(t, 5, flags)
		got, _, err := r.sceneOfFaults()
		assert.NoError(t, err)
		assert.Is(t, "boards 5 run\n"+want, got, "%s", flags)
		_, err = scene.Parse("flags", got)
		assert.NoError(t, err)
	}
}

func TestSceneOfFaultsErrors(t *testing.T) {
	for flag, want := range map[string]string{
		"kill":                "no board",
		"kill 5":              "does not say when",
		"kill 5@":             "no time",
		"kill 5@-1s":          "no time",
		"kill 5@2":            "no time",
		"kill 5@20s":          "20s is after the end at 10s; see --for",
		"kill 0@2s":           "numbered from 1",
		"kill x@2s":           "no board",
		"kill 6@2s":           "there is no board 6, only 1 to 5",
		"kill 5,5@2s":         "twice",
		"kill 5/4@2s":         "without a /",
		"resign 5@2s+1s":      "no duration; write it like 5@2s",
		"freeze 5@2s+0s":      "some time; write it like 5@2s or 4,5@2s+500ms",
		"split 1,2@2s":        "two groups",
		"split 1,2/2@2s":      "twice",
		"one-way 1/2/3@2s":    "two groups",
		"join":                "no time",
		"join 1@2s":           "no single board",
		"lose much@2s":        "no probability",
		"notice 1;start 5@1s": "nothing to notice",
	} {
		_, _, err := request(t, 5, flag).sceneOfFaults()
		name, _, _ := strings.Cut(flag, " ")
		assert.ErrorContains(t, err, want, "%s", flag)
		assert.ErrorContains(t, err, "--"+name, "%s", flag)
	}
}

// request has flags, separated by semicolons.
func request(t *testing.T, nodes int, flags string) *Request {
	t.Helper()
	r := NewRequest()
	r.Scenario.Nodes = nodes
	for flag := range strings.SplitSeq(flags, ";") {
		name, value, _ := strings.Cut(flag, " ")
		if r.Faults[name] == nil {
			t.Fatalf("there is no --%s", name)
		}
		*r.Faults[name] = append(*r.Faults[name], value)
	}
	return r
}

func TestParseNumbers(t *testing.T) {
	for text, want := range map[string]float64{"5%": 0.05, "0.05": 0.05, "0": 0, "100%": 1, "12.5%": 0.125} {
		got, err := scene.ReadShare(text)
		assert.NoError(t, err)
		assert.Is(t, want, got, "%s", text)
	}
	chance, by, err := parseReorder("10%:5ms")
	assert.NoError(t, err)
	assert.Is(t, 0.1, chance, "--reorder")
	assert.Is(t, 5*time.Millisecond, by, "--reorder")
	d, err := parseDrift("1=+200ppm,3=-50")
	assert.NoError(t, err)
	assert.Equal(t, map[wire.ID]int{1: 200, 3: -50}, d.boards, "--drift")
	assert.Is(t, 0, d.within, "--drift of all")
	s := Scenario{Priorities: map[wire.ID]uint8{}}
	assert.NoError(t, s.setPriority("1,2=0"))
	assert.Equal(t, map[wire.ID]uint8{1: 0, 2: 0}, s.Priorities, "--priority")
}

func TestParseNumbersErrors(t *testing.T) {
	for name, test := range map[string]struct {
		parse func(string) error
		texts []string
	}{
		"chance": {func(s string) error { _, err := scene.ReadShare(s); return err },
			[]string{"", "%", "101%", "-1%", "2", "NaN", "five"}},
		"--reorder": {func(s string) error { _, _, err := parseReorder(s); return err },
			[]string{"", "10%", "10%:", "x:5ms", "10%:5"}},
		"--drift": {func(s string) error { _, err := parseDrift(s); return err },
			[]string{"", "x", "1ppb", "200000ppm", "1=", "=5", "1=5ppm,2", "0=5ppm", "1,2=5ppm", "1=5ppm,1=9ppm"}},
		"--priority": {(&Scenario{Priorities: map[wire.ID]uint8{}}).setPriority, []string{"", "3", "3=", "3=255", "0=1", "=1"}},
	} {
		for _, text := range test.texts {
			if test.parse(text) == nil {
				t.Errorf("%s %q was accepted", name, text)
			}
		}
	}
}

// plan returns a scenario with these faults, written as they are in flags.
func plan(t *testing.T, nodes int, algorithm wire.Algorithm, faults ...string) *Scenario {
	t.Helper()
	r := NewRequest()
	if faults != nil {
		r = request(t, nodes, strings.Join(faults, ";"))
	}
	r.Scenario.Nodes, r.Scenario.For, r.Algorithm = nodes, 8*time.Second, algorithm.String()
	assert.NoError(t, r.Read())
	return &r.Scenario
}

func run(t *testing.T, s *Scenario) (*Play, Report) {
	t.Helper()
	assert.NoError(t, s.Check())
	p, err := s.Run(context.Background(), Options{Record: true})
	assert.NoError(t, err)
	return p, p.Report()
}

// TestReport plays figure 2 of Kuang and others: of ten processes, 0…9, number 9 is
// gone and number 5 notices: 24 messages, and the one that tells the dead process
// who won is not one of them.
func TestReport(t *testing.T) {
	_, r := run(t, plan(t, 10, wire.AlgorithmBully, "kill 10@2s", "notice 6"))
	var got []Messages
	for _, m := range r.Messages {
		if !m.Routine {
			got = append(got, m)
		}
	}
	want := []Messages{
		{Name: "ELECTION", Kind: "ELECTION", Packets: 4, Live: 6, Dead: 4},
		{Name: "ANSWER", Kind: "ANSWER", Packets: 6, Live: 6},
		{Name: "COORDINATOR", Kind: "COORDINATOR", Packets: 1, Live: 8, Dead: 1},
	}
	assert.Equal(t, want, got, "")
	if len(r.Leaders) != 2 || r.Leaders[0].Board != "10" || r.Leaders[1].Board != "9" || r.Leaders[1].UntilMs != nil {
		t.Errorf("the leaders are %+v", r.Leaders)
	}
	if len(r.Faults) != 1 {
		t.Fatalf("the faults are %+v", r.Faults)
	}
	f := r.Faults[0]
	assert.Equal(t, []string{"pi10 kill", "pi6 notices"}, f.What, "")
	if f.Before != "10" || f.Leader != "9" || f.AcquiredMs == nil || f.AgreedMs == nil || *f.AgreedMs < *f.AcquiredMs || *f.AcquiredMs != r.NoHolderMs {
		t.Errorf("coping: %+v; vacant for %v", f, r.NoHolderMs)
	}
	var text bytes.Buffer
	assert.NoError(t, r.Text(&text))
	for _, want := range []string{
		"bully, 10 boards", "ELECTION        4        10", "without routine       11        25",
		"board 9 acquired the address", "off: 10", "leader: 9", "it moved once",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the text does not say %q:\n%s", want, &text)
		}
	}
}

// TestNoticeAlone holds that with --notice nobody else notices by itself.
func TestNoticeAlone(t *testing.T) {
	p, _ := run(t, plan(t, 5, wire.AlgorithmHeir, "kill 5@2.03s", "notice 4"))
	first := ""
	for _, l := range p.Recording.Events() {
		if l.Message == "ELECTION" && l.Board != "4" {
			t.Errorf("board %s holds an election as well", l.Board)
		}
		if first == "" && l.Message == "COORDINATOR" {
			first = l.Board
		}
	}
	assert.Is(t, "4", first, "who proclaimed itself first")
}

func TestFaults(t *testing.T) {
	for _, tc := range []struct {
		name      string
		nodes     int
		faults    []string
		holders   []string // one after the other
		doubled   bool
		following string // the leader in the end
	}{
		{"kill and restart", 3, []string{"kill 3@2s", "start 3@4s"}, []string{"3", "2"}, false, "2"},
		{"two at once", 4, []string{"kill 3@2s", "kill 4@2s"}, []string{"4", "2"}, false, "2"},
		{"cable", 3, []string{"pull 3@2s", "plug 3@4s"}, []string{"3", "2"}, false, "2"},
		{"pause", 3, []string{"freeze 3@2s+1s"}, []string{"3", "2"}, false, "2"}, // the fence
		{"stop", 3, []string{"stop 3@2s"}, []string{"3", "2"}, false, "2"},
		{"resign", 3, []string{"resign 3@2s"}, []string{"3", "2"}, false, "2"},
		{"partition", 4, []string{"split 1,2/3,4@2s", "join 4s"}, []string{"4", "2"}, true, "2"}, // as many have followed each
		{"one way", 3, []string{"one-way 3/1,2@2s"}, []string{"3", "2"}, true, "2"},
		{"mute", 3, []string{"cut 3@2s", "heal 3@4s"}, []string{"3", "2"}, true, "2"},
		{"a follower", 3, []string{"kill 1@2s"}, []string{"3"}, false, "3"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, r := run(t, plan(t, tc.nodes, wire.AlgorithmHeir, tc.faults...))
			var holders []string
			for _, l := range r.Leaders {
				holders = append(holders, l.Board)
			}
			assert.Equal(t, tc.holders, holders, "holders")
			if doubled := r.TwoHoldersMs > 0; doubled != tc.doubled {
				t.Errorf("two boards held the address for %v ms", r.TwoHoldersMs)
			}
			for _, b := range r.Boards {
				if b.Running && b.Leader != tc.following && tc.name != "one way" {
					t.Errorf("board %s follows %q in the end, want %s", b.ID, b.Leader, tc.following)
				}
			}
			if len(r.Faults) == 0 || r.FromMs != 2000 {
				t.Errorf("counting began at %v ms, with %+v", r.FromMs, r.Faults)
			}
		})
	}
}

// TestDriftIsHarmless plays the same scenario with right and wrong clocks.
func TestDriftIsHarmless(t *testing.T) {
	s := plan(t, 5, wire.AlgorithmHeir, "kill 5@2s", "start 5@5s")
	_, right := run(t, s)
	var err error
	s.Drift, err = parseDrift("200ppm")
	assert.NoError(t, err)
	_, wrong := run(t, s)
	assert.Equal(t, right.Boards, wrong.Boards, "with right clocks, and with wrong ones")
	if cmp.Equal(right, wrong) {
		t.Error("wrong clocks change nothing at all")
	}
	_, again := run(t, s)
	if diff := cmp.Diff(wrong, again, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the same seed, -, +:\n%s", diff)
	}
}

func TestFrom(t *testing.T) {
	s := plan(t, 3, wire.AlgorithmHeir, "kill 3@2s")
	s.From = 0
	_, r := run(t, s)
	if len(r.Faults) != 2 || r.Faults[0].What[0] != "start" || r.Faults[0].AgreedMs == nil {
		t.Errorf("from 0: %+v", r.Faults)
	}
	assert.Is(t, 0, r.FromMs, "when counting began")
	s.From = 5 * time.Second
	_, r = run(t, s)
	if len(r.Faults) != 0 || r.NoHolderMs != 0 {
		t.Errorf("from 5 s: %+v, vacant for %v ms", r.Faults, r.NoHolderMs)
	}
}

func TestCheck(t *testing.T) {
	for want, spoil := range map[string]func(*Scenario){
		"--nodes":      func(s *Scenario) { s.Nodes = 256 },
		"--for":        func(s *Scenario) { s.For = -1 },
		"--heartbeat":  func(s *Scenario) { s.Board.Interval = time.Microsecond },
		"--trace-from": func(s *Scenario) { s.From = time.Hour },
		"--priority":   func(s *Scenario) { s.Priorities = map[wire.ID]uint8{9: 1} },
	} {
		s := plan(t, 3, wire.AlgorithmHeir, "kill 3@2s")
		assert.NoError(t, s.Check())
		spoil(s)
		if err := s.Check(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("the error is %v, want one about %s", err, want)
		}
	}
}

// TestTooEarly holds that a report says so if there was no leader yet to crash.
func TestTooEarly(t *testing.T) {
	_, r := run(t, plan(t, 3, wire.AlgorithmHeir, "kill 3@0.1s"))
	var text bytes.Buffer
	assert.NoError(t, r.Text(&text))
	if want := "nobody held the address when it happened"; !strings.Contains(text.String(), want) {
		t.Errorf("the report does not say %q:\n%s", want, &text)
	}
}

func TestRanges(t *testing.T) {
	for want, ids := range map[string]string{"": "", "5": "5", "1, 2": "1 2", "1–3": "1 2 3", "1–4, 7, 9, 10": "1 2 3 4 7 9 10"} {
		assert.Is(t, want, ranges(strings.Fields(ids)), "%s", ids)
	}
}

func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := plan(t, 3, wire.AlgorithmHeir).Run(ctx, Options{}); err == nil {
		t.Error("a scenario that was interrupted went on")
	}
}

// TestScenes plays the scenes of package scene that need no daemon. Those with a command, or with a score, are for other stages.
func TestScenes(t *testing.T) {
	for _, name := range []string{"cable", "cut", "freeze", "halt", "late-resign", "loss", "multicast", "split", "voters"} {
		t.Run(name, func(t *testing.T) {
			r := NewRequest()
			r.SceneFile, r.Scenario.For = "../scene/testdata/"+name+".scene", time.Hour
			assert.NoError(t, r.Read())
			_, err := r.Scenario.Run(context.Background(), Options{})
			assert.NoError(t, err)
		})
	}
}
