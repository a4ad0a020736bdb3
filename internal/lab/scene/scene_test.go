package scene

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"topdog/internal/lab/assert"
)

// steady is a stage on which board 2 of two leads, whatever is done.
type steady struct {
	passed time.Duration
	did    []string
	two    bool
}

func (s *steady) note(format string, args ...any) error {
	s.did = append(s.did, fmt.Sprintf(format, args...))
	return nil
}

func (s *steady) Machines() []int { return []int{Machine1, Client, 1, 2} }

func (s *steady) Address(board int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 0, 0, byte(board)})
}

func (s *steady) Start(board int, config []string) error { return s.note("start %d %q", board, config) }
func (s *steady) Set(board int, config []string) error   { return s.note("set %d %q", board, config) }
func (s *steady) Cable(board int, in bool) error         { return s.note("cable %d %t", board, in) }
func (s *steady) Filter(filters []Filter) error          { return s.note("filter %v", filters) }

func (s *steady) Signal(board int, to Processes, sig Signal) error {
	return s.note("signal %d %d %d", board, to, sig)
}

func (s *steady) Measure(name, title string) error { return s.note("measure %s: %s", name, title) }
func (s *steady) Measured() error                  { return s.note("measured") }

func (s *steady) Topdog(_ int, args []string) (string, error) {
	if args[0] == "resign" {
		return "", errors.New("no other board passes")
	}
	return "handed over to pi1", nil
}

func (s *steady) State(board int) (State, error) {
	return State{
		Role: map[int]string{1: "heir", 2: "leader"}[board], Leader: "pi2", Holding: board == 2, Grade: "passing",
		Sees: map[string]string{"pi1": "drained"}, Problems: []string{"eth0 has no carrier"}, Reason: "no_leader",
	}, nil
}

func (s *steady) Logged(_ int, text string) bool { return text == "elected" }
func (s *steady) Answers(board int) bool         { return board == 2 }
func (s *steady) Holders() []int                 { return []int{2} }
func (s *steady) Mark()                          {}
func (s *steady) Seen() (int, bool)              { return 0, s.two }
func (s *steady) Pass(d time.Duration)           { s.passed += d }
func (s *steady) Now() time.Duration             { return s.passed }

func (s *steady) Until(limit time.Duration, missing func() string) string {
	s.passed += limit
	return missing()
}

func play(s Stage, text string) error {
	scene, err := Parse("x", text)
	if err != nil {
		return err
	}
	return scene.Play(s, 1)
}

// TestLines plays one line after the boards have started.
func TestLines(t *testing.T) {
	for line, want := range map[string]string{
		"pi2 leads":                      "",
		"leader leads":                   "",
		"pi1 leads":                      `pi1 is a heir, follows "pi2", and holds the address: false`,
		"another leads":                  `pi1 is a heir, follows "pi2", and holds the address: false`,
		"agreed":                         "",
		"agreed anew":                    "boards [2] hold the address",
		"agreed again":                   "write: agreed, or: agreed anew",
		"pi2 holds":                      "",
		"within 130ms: pi1 holds":        "boards [2] hold the address",
		"nobody holds":                   "boards [2] hold the address",
		"for 1s: nobody holds":           "after 20ms: boards [2] hold the address",
		"pi1 is heir":                    "",
		"all is passing":                 "",
		"pi1 is barred":                  "it is a heir, passing",
		"pi2 because no_leader":          "",
		"pi2 because handed_over":        `its last change was because "no_leader"`,
		"pi2 sees pi1 drained":           "",
		"pi2 sees pi1 passing":           "it sees",
		`pi1 shows "eth0" "no carrier"`:  "",
		`pi1 shows "eth0" "carrier on"`:  "it shows",
		"pi1 shows nothing":              "it shows",
		`pi1 logs "elected"`:             "",
		"pi1 logs `elected`":             "",
		`pi1 logs "deposed"`:             "it has not logged that",
		"moves 0":                        "",
		"moves 1":                        "0 moves",
		`pi2 topdog drain says "pi1"`:    "",
		`pi2 topdog drain says "pi3"`:    `it says "handed over to pi1"`,
		`pi2 topdog drain refuses ""`:    `it says "handed over to pi1"`,
		`pi2 topdog resign refuses "no"`: "",
		`pi2 topdog resign says ""`:      "no other board passes",
		"pi2 topdog drain":               "there is no: says",
		"pi1 jumps":                      "x:3: pi1 jumps: a scene has no such line",
		"pi9 kill":                       "x:3: pi9 kill: there is no pi9",
		"split pi1 / pi9":                "there is no pi9",
		"board 1 leads":                  `"board" is neither a board`,
		"within soon: pi2 leads":         `x:3: within soon: pi2 leads: "soon" is no time`,
		"wait 5s..2s":                    `"5s..2s" ends before it begins`,
		"wait 25h":                       `"25h" is more than 24h0m0s`,
		"within 1s pi2 leads":            "write, such as: within 1s: pi1 leads",
		"at 1s:":                         "write, such as: at 1s: pi1 leads",
		`pi1 logs "elected`:              "a quote does not end",
		"boards":                         "write, such as: boards 3",
		"moves":                          "write, such as: moves 0",
		"repeat never\nend":              "write, such as: repeat 3",
		"end":                            "nothing is repeated here",
		"repeat 3\nwait 1s":              "x:3: repeat 3: there is no end",
		"repeat for 3s\npi1 pull\nend":   "what is repeated takes no time",
		"lose 5":                         `"5" is no probability`,
		"pi1 heal":                       "nothing of the kind has begun",
		"one-way pi1":                    "it needs two groups",
		"measure it":                     `write: measure NAME "what it is"`,
	} {
		t.Run(line, func(t *testing.T) {
			assert.ErrorContains(t, play(&steady{}, "# Two boards.\nboards 2\n"+line), want, "")
		})
	}
	assert.ErrorContains(t, play(&steady{two: true}, "boards 2"), "x:1: boards 2: two boards have held the address", "")
}

// TestImprovise plays lines one by one, and each has the error of the stage alone.
func TestImprovise(t *testing.T) {
	s := &steady{}
	play := Improvise(s)
	assert.NoError(t, play("boards 2"))
	assert.NoError(t, play("pi1 mute"))
	assert.ErrorContains(t, play("at once: halt"), `"once" is no time`, "")
	err := play(`pi2 topdog resign says ""`)
	assert.Is(t, "no other board passes", fmt.Sprint(err), "what a board refuses")
	assert.NoError(t, play("pi1 speak"))
	assert.Equal(t, []string{"filter [{[1] [] false false 0}]", "filter []"}, s.did[2:], "what was done")
}

// TestFilterFails: what the switch did not do is not in force.
func TestFilterFails(t *testing.T) {
	s := &failing{}
	play := Improvise(s)
	assert.NoError(t, play("boards 2"))
	s.fails = true
	assert.ErrorContains(t, play("pi1 mute"), "no switch", "")
	s.fails = false
	assert.ErrorContains(t, play("pi1 speak"), "nothing of the kind has begun", "")
}

// failing is a stage of which the switch may fail.
type failing struct {
	steady
	fails bool
}

func (s *failing) Filter([]Filter) error {
	if s.fails {
		return errors.New("no switch")
	}
	return nil
}

// TestFaults plays faults, each after the boards have started, and looks at what the stage is to do.
func TestFaults(t *testing.T) {
	for lines, want := range map[string][]string{
		"pi1 kill\npi1 start": {"signal 1 3 0", "start 1 []"},
		`pi1 kill-daemon` + "\n" + `pi1 start voters=["{pi1}"]`: {"signal 1 1 0", `start 1 ["voters=[\"10.0.0.1\"]"]`},
		"leader restart":                             {"signal 2 1 1", "signal 2 3 3", "start 2 []"},
		"all freeze\nall thaw":                       {"signal 1 3 2", "signal 2 3 2", "signal 1 3 3", "signal 2 3 3"},
		"others pull\npi1 plug":                      {"cable 1 false", "cable 1 true"},
		"pi1 power-off\npi1 power-on":                {"signal 1 3 0", "start 1 []"},
		"pi1 cut\npi1 cut\npi1 heal\npi1 heal":       {"filter [{[1] [] false false 0} {[] [1] false false 0}]", "filter [{[1] [] false false 0} {[] [1] false false 0} {[1] [] false false 0} {[] [1] false false 0}]", "filter [{[1] [] false false 0} {[] [1] false false 0}]", "filter []"},
		"pi1 mute\npi2 deafen\npi1 speak":            {"filter [{[1] [] false false 0}]", "filter [{[1] [] false false 0} {[] [2] false false 0}]", "filter [{[] [2] false false 0}]"},
		"pi1 lose-multicast":                         {"filter [{[] [1] true false 0}]"},
		"halt\nlose 20%\nresume\nlose 5%\nlose 0%":   {"filter [{[] [] false false 0}]", "filter [{[] [] false false 0} {[] [] false true 0.2}]", "filter [{[] [] false true 0.2}]", "filter [{[] [] false true 0.05}]", "filter []"},
		"split pi1,client / machine1\njoin":          {"filter [{[1 0] [-1] false false 0} {[1 0] [2] false false 0} {[-1] [1 0] false false 0} {[-1] [2] false false 0} {[2] [1 0] false false 0} {[2] [-1] false false 0}]", "filter []"},
		"one-way pi1 / pi2\njoin":                    {"filter [{[1] [2] false false 0}]", "filter []"},
		`measure cut "it is cut off"` + "\nmeasured": {"measure cut: it is cut off", "measured"},
		`pi1 set a=1 b=2`:                            {`set 1 ["a=1" "b=2"]`},
		"repeat 2\nresume\nend":                      nil,
	} {
		t.Run(lines, func(t *testing.T) {
			s := &steady{}
			err := play(s, "boards 2\n"+lines)
			if want == nil {
				assert.ErrorContains(t, err, "x:3: resume: nothing of the kind has begun", "")
				return
			}
			assert.NoError(t, err)
			assert.Equal(t, want, s.did[2:], "what was done")
		})
	}
}

// TestEveryFault begins and ends every fault: who adds one to the table can play it everywhere.
func TestEveryFault(t *testing.T) {
	named := map[string]bool{"wait": true, "mark": true, "agreed": true, "boards": true, "measure": true, "repeat": true, "start": true, "set": true}
	for _, f := range Faults {
		if named[f.Name] || f.do == nil && f.loses == nil || f.End != "" && f.undo == nil && f.loses == nil {
			t.Fatalf("%s: the name is used already, it does nothing, or nothing ends it", f.Name)
		}
		named[f.Name] = true
		subject := map[Form]string{OfBoards: "pi1 " + f.Name, OfLAN: f.Name, OfGroups: f.Name + " pi1 / pi2", OfTwoGroups: f.Name + " pi1 / pi2", OfShare: f.Name + " 5%"}[f.Of]
		end := map[bool]string{true: "pi1 " + f.End, false: f.End}[f.Of == OfBoards]
		if f.End == "" {
			end = "wait 1s"
		}
		s := &steady{}
		assert.NoError(t, play(s, "boards 2\n"+subject+"\nwait 1s\n"+end))
		if f.Title == "" || (f.Ended == "") != (f.End == "") || f.Name == "resign" != (len(s.did) == 2) {
			t.Errorf("%s: its end is %q (%q), and it does %v", f.Name, f.End, f.Ended, s.did[2:])
		}
	}
}

// equipped is a stage whose boards can jump.
type equipped struct{ steady }

func (s *equipped) Do(boards []int, within time.Duration, words, quoted []string) (known bool, err error) {
	return words[0] == "jump", s.note("%v within %v %q %q", boards, within, words, quoted)
}

// TestEquipped plays a line that only one stage has. The boards' other lines stay what they are.
func TestEquipped(t *testing.T) {
	s := &equipped{}
	assert.NoError(t, play(s, "boards 2\nwithin 2s: leader,pi1 jump high \"!\"\npi2 leads"))
	assert.Equal(t, []string{`[2 1] within 2s ["jump" "high"] ["!"]`, `[2] within 0s ["leads"] []`}, s.did[2:], "what was done")
}

// TestTimes: what does not run, is unplugged or stands still need not follow the leader, and what lasts is looked at all the time.
func TestTimes(t *testing.T) {
	s := &steady{}
	assert.NoError(t, play(s, `boards 2
		pi1 kill
		pi1 pull
		for 1s: pi2 leads
		wait 5s
		within 130ms: pi2 leads
		repeat 3
			wait 100ms
		end
		repeat for 1s
			wait 400ms
		end`))
	assert.Is(t, 2*settle+time.Second+5*time.Second+130*time.Millisecond+300*time.Millisecond+1200*time.Millisecond, s.passed, "the time that has passed")
	assert.NoError(t, play(s, "at 20s: wait 1s..2s"))
	if names := Names(); !slices.Contains(names, "drain") {
		t.Errorf("the scenes are %q", names)
	}
}

// TestDraw draws the same lines from the same seed.
func TestDraw(t *testing.T) {
	scene, err := Parse("x", "repeat for 500ms\npi1 pull\nwait 20ms..300ms\npi1 plug\nwait 150ms\nend\nat 3s: halt\nwait 1s")
	assert.NoError(t, err)
	draw := func() string {
		lines, end := scene.Draw(rand.New(rand.NewPCG(7, 0)))
		var text strings.Builder
		for _, l := range lines {
			fmt.Fprintf(&text, "at %v: %s\n", l.At, l.Text)
		}
		return fmt.Sprint(text.String(), end)
	}
	first := draw()
	assert.Is(t, draw(), first, "the same seed")
	if !strings.HasPrefix(first, "at 0s: pi1 pull\nat ") || !strings.HasSuffix(first, "at 3s: halt\n4s") {
		t.Errorf("it draws\n%s", first)
	}
}

// TestDocument: docs/lab.md has every fault.
func TestDocument(t *testing.T) {
	text, err := os.ReadFile("../../../docs/lab.md")
	assert.NoError(t, err)
	for _, f := range Faults {
		for _, name := range []string{f.Name, f.End} {
			if name != "" && !strings.Contains(string(text), "`"+name) {
				t.Errorf("docs/lab.md does not have %s", name)
			}
		}
	}
}
