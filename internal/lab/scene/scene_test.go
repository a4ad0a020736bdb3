package scene

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"topdog/internal/console"
	"topdog/internal/lab/assert"
)

// steady is a stage on which board 2 of two leads, whatever is done.
type steady struct {
	passed time.Duration
	did    []string
	two    bool
}

func (s *steady) Address(board int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 0, 0, byte(board)})
}

func (s *steady) Start(_ int, config []string) error {
	s.did = append(s.did, config...)
	return nil
}

func (s *steady) Set(int, []string) error { return nil }

func (s *steady) Do(board int, what string) error {
	s.did = append(s.did, Name(board)+" "+what)
	return nil
}

func (s *steady) Topdog(_ int, args []string) (string, error) {
	if args[0] == "resign" {
		return "", errors.New("no other board passes")
	}
	return "handed over to pi1", nil
}

func (s *steady) Status(board int) (console.Status, error) {
	role := map[int]string{1: "heir", 2: "leader"}[board]
	return console.Status{
		Role: role, LeaderName: "pi2", HeldBy: "10.0.0.2", Holding: board == 2, Board: console.Board{ID: fmt.Sprint("10.0.0.", board), Grade: "passing"},
		Boards:   []console.Board{{ID: "10.0.0.2", Name: "pi2"}, {ID: "10.0.0.1", Name: "pi1", Grade: "drained"}},
		Problems: []console.Problem{{Text: "eth0 has no carrier"}}, Changes: []console.Change{{Lead: console.Lead{Reason: "no_leader"}}},
	}, nil
}

func (s *steady) Logged(_ int, text string) bool { return text == "elected" }
func (s *steady) Answers(board int) bool         { return board == 2 }
func (s *steady) Holders() []int                 { return []int{2} }
func (s *steady) Recover(int)                    {}
func (s *steady) Mark()                          {}
func (s *steady) Seen() (int, bool)              { return 0, s.two }
func (s *steady) Pass(d time.Duration)           { s.passed += d }

func (s *steady) Until(limit time.Duration, missing func() string) string {
	s.passed += limit
	return missing()
}

// TestPlay plays one line after the boards have started.
func TestPlay(t *testing.T) {
	for line, want := range map[string]string{
		"pi2 leads":                      "",
		"pi1 leads":                      `pi1 is a heir, follows "pi2", and holds the address: false`,
		"pi2 holds":                      "",
		"within 130ms: pi1 holds":        "boards [2] hold the address",
		"nobody holds":                   "boards [2] hold the address",
		"for 1s: nobody holds":           "after 20ms: boards [2] hold the address",
		"pi1 is heir":                    "",
		"pi1 is passing":                 "",
		"pi1 is barred":                  "it is a heir, passing",
		"pi2 because no_leader":          "",
		"pi2 because handed_over":        "its changes are",
		"pi2 sees pi1 drained":           "",
		"pi2 sees pi1 passing":           "it sees",
		`pi1 shows "eth0" "no carrier"`:  "",
		`pi1 shows "eth0" "carrier on"`:  "it shows",
		"pi1 shows nothing":              "it shows",
		`pi1 logs "elected"`:             "",
		`pi1 logs "deposed"`:             "it has not logged that",
		"moves 0":                        "",
		"moves 1":                        "0 moves",
		`pi2 topdog drain says "pi1"`:    "",
		`pi2 topdog drain says "pi3"`:    `it says "handed over to pi1"`,
		`pi2 topdog drain refuses ""`:    `it says "handed over to pi1"`,
		`pi2 topdog resign refuses "no"`: "",
		`pi2 topdog resign says ""`:      "no other board passes",
		"pi2 topdog drain":               "there is no: says",
		"pi1 jumps":                      "a scene has no such line",
		"board 1 leads":                  `"board" is neither a board`,
		"within soon: pi2 leads":         `invalid duration "soon"`,
		`pi1 logs "elected`:              "invalid syntax",
	} {
		t.Run(line, func(t *testing.T) {
			assert.ErrorContains(t, play(&steady{}, "# Two boards.\nboards 2\n"+line), want, "")
		})
	}
	assert.ErrorContains(t, play(&steady{two: true}, "boards 2"), "line 1: boards 2: two boards have held the address", "")
}

// TestTimes: what does not run, is unplugged or stands still need not follow the leader, and what lasts is looked at all the time.
func TestTimes(t *testing.T) {
	s := &steady{}
	assert.NoError(t, play(s, "boards 2\npi1 kill\npi1 start voters=[\"{pi1}\"]\npi1 pull\nfor 1s: pi2 leads\nwait 5s\nwithin 130ms: pi2 leads"))
	assert.Equal(t, []string{"pi1 kill", `voters=["10.0.0.1"]`, "pi1 pull"}, s.did, "what was done")
	assert.Is(t, 2*settle+time.Second+5*time.Second+130*time.Millisecond, s.passed, "the time that has passed")
	if names := Names(); !slices.Contains(names, "drain") {
		t.Errorf("the scenes are %q", names)
	}
}
