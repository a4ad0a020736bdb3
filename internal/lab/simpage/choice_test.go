package simpage

import (
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"topdog/internal/lab/assert"
	"topdog/internal/web"
)

// query writes a choice as a browser does.
func (c choice) query() string {
	return url.Values{
		"algorithm": {c.Algorithm}, "boards": {strconv.Itoa(c.Boards)}, "failure": {c.Failure},
		"notice": {strconv.Itoa(c.Notice)}, "loss_percent": {strconv.Itoa(c.LossPercent)}, "seed": {strconv.Itoa(c.Seed)},
	}.Encode()
}

func TestReadChoice(t *testing.T) {
	for raw, want := range map[string]choice{
		"": standard,
		"algorithm=minid&boards=20&failure=crash_leader_and_next&notice=3&loss_percent=40&seed=1000000000": {"minid", 20, "crash_leader_and_next", 3, 40, 1e9},
		"boards=2":             {"bully", 2, "crash_leader", 0, 0, 1},
		standard.query():       standard,
		"failure=partition":    {"bully", 4, "partition", 0, 0, 1},
		"notice=0&seed=0":      {"bully", 4, "crash_leader", 0, 0, 0},
		"algorithm=%73%63ore":  {"score", 4, "crash_leader", 0, 0, 1},
		"loss_percent=1&seed=": {},
	} {
		got, err := readChoice(raw)
		if refused := want == (choice{}); refused != (err != nil) {
			t.Errorf("%s: %v", raw, err)
		} else if diff := cmp.Diff(want, got); diff != "" && !refused {
			t.Errorf("%s (-want +got):\n%s", raw, diff)
		}
	}
}

// TestBadChoice holds that whoever chooses what cannot be is told what can.
func TestBadChoice(t *testing.T) {
	for raw, want := range map[string]string{
		"algorithm=raft":                         `algorithm: there is no "raft"; there are: heir, bully`,
		"algorithm=":                             `algorithm: there is no ""`,
		"failure=":                               `failure: there is no ""; there are: crash_leader`,
		"failure=flood":                          `failure: there is no "flood"`,
		"boards=1":                               `boards: "1" is no such number; use a number from 2 to 20`,
		"boards=21":                              `boards: "21" is no such number`,
		"boards=05":                              `boards: "05" is no such number`,
		"boards=+5":                              `boards: " 5" is no such number`,
		"boards=5e0":                             `boards: "5e0" is no such number`,
		"boards=9999999999999999999999":          `is no such number`,
		"notice=-1":                              `notice: "-1" is no such number`,
		"notice=6":                               `notice: there is no board 6; use a number from 1 to 4, or 0 for all`,
		"loss_percent=41":                        `loss_percent: "41" is no such number; use a number from 0 to 40`,
		"loss_percent=5%25":                      `loss_percent: "5%" is no such number`,
		"seed=1000000001":                        `seed: "1000000001" is no such number`,
		"seed=1&seed=2":                          `seed is given 2 times`,
		"nodes=5":                                `there is nothing to choose that is called "nodes"; there are: algorithm, boards`,
		"boards=%zz":                             `the query cannot be read`,
		"boards=3;seed=1":                        `the query cannot be read`,
		"boards=2&failure=one_way":               `one_way needs more than 2 boards; use 3 boards or more`,
		"boards=2&failure=crash_leader_and_next": `crash_leader_and_next needs more than 2 boards`,
		"boards=5&failure=partition&notice=1":    `with partition no single board can notice first; use notice=0`,
	} {
		_, err := readChoice(raw)
		checkRefusal(t, raw, err, want)
	}
}

// TestNoticedByTheDead holds that a board that fails notices nothing.
func TestNoticedByTheDead(t *testing.T) {
	for raw, want := range map[string]string{
		"boards=5&notice=5":           "notice: board 5 is one of those that fail; choose another board, or 0 for all",
		"algorithm=minid&notice=1":    "notice: board 1 is one of those that fail",
		"failure=crash_half&notice=3": "notice: board 3 is one of those that fail",
	} {
		c, err := readChoice(raw)
		assert.NoError(t, err)
		_, err = show(t.Context(), c)
		checkRefusal(t, raw, err, want)
	}
}

func TestBadComparison(t *testing.T) {
	for raw, want := range map[string]string{
		"algorithm=strict": `algorithm: there is no "strict"`,
		"boards=4":         "boards: groups of 4 are not compared; there are: [3 5 10",
		"boards=251":       `boards: "251" is no such number; use a number from 2 to 250`,
		"seed=1":           `there is nothing to choose that is called "seed"`,
	} {
		_, err := readComparison(raw)
		checkRefusal(t, raw, err, want)
	}
}

func checkRefusal(t *testing.T, raw string, err error, want string) {
	t.Helper()
	refusal, ok := err.(*web.Error)
	if !ok || refusal.Code != 400 || !strings.Contains(refusal.Message+"; "+refusal.Hint, want) {
		t.Errorf("%s: got %#v, want 400 %s", raw, err, want)
	}
}

// FuzzQuery holds that no query makes the server panic, and that what is accepted means one thing.
func FuzzQuery(f *testing.F) {
	for _, raw := range []string{"", standard.query(), "boards=3&failure=one_way", "boards=%35", "a=b&c", "notice=2;seed=1", "seed=00"} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		if _, err := readComparison(raw); err != nil {
			checkRefusal(t, raw, err, "")
		}
		c, err := readChoice(raw)
		if err != nil {
			checkRefusal(t, raw, err, "")
			return
		}
		if c.Boards < minBoards || c.Boards > maxBoards || c.Notice > c.Boards || c.LossPercent > maxLoss || c.Seed > maxSeed {
			t.Errorf("%q is accepted as %+v", raw, c)
		}
		if again, err := readChoice(c.query()); err != nil || again != c {
			t.Errorf("%q is %+v, which is %+v, %v when it is read again", raw, c, again, err)
		}
	})
}
