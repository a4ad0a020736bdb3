package demo

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/golden"
)

// boardsAt makes a view of boards, whose addresses begin so.
func boardsAt(v view, boards int, prefix string, first int, is func(n int) pageBoard) view {
	for n := len(v.Boards) + 1; n <= boards; n++ {
		v.Boards = append(v.Boards, pageName{n, fmt.Sprintf("pi%d", n), fmt.Sprintf("%s%d", prefix, first+n)})
		b := is(n)
		b.Number, b.Power, b.Daemon = n, true, daemonRuns
		v.Stands = append(v.Stands, b)
	}
	return v
}

// peace is five boards of which pi5 leads.
func peace() view {
	v := boardsAt(view{
		pageAbout: pageAbout{Algorithm: "heir", HeartbeatNs: int64(100 * time.Millisecond), LANText: "real UDP on loopback", Address: "127.77.0.100"},
		Answers:   "pi5",
	}, 5, "127.77.0.", 10, func(int) pageBoard { return pageBoard{Role: "follower", Follows: 5, Term: 1, Cable: true} })
	v.Stands[3].Heir = true
	v.Stands[4].Role, v.Stands[4].Light.Lit, v.Stands[4].Holds = "leader", true, true
	return v
}

// trouble is the moment after the leader's power was cut, when another cable is
// out and one daemon is stopped.
func trouble() view {
	v := peace()
	v.Silent = 84 * time.Millisecond
	v.TwoHolders = 1200 * time.Microsecond
	v.Stands[4] = pageBoard{Number: 5, Daemon: daemonOff, Cable: true}
	v.Stands[3] = pageBoard{Number: 4, Power: true, Daemon: daemonRuns, Role: "candidate", Light: pageLight{Lit: true}, Term: 1, Cable: true}
	v.Stands[2].Cable, v.Stands[2].Role, v.Stands[2].Follows = false, "isolated", 0
	v.Stands[1] = pageBoard{Number: 2, Power: true, Daemon: daemonStopped, Cable: true}
	v.Outages = []outageView{
		{Ago: 3 * time.Second, Lasted: 1230 * time.Microsecond, Before: "pi4", After: "pi5", Why: "asked pi4 to resign"},
		{Ago: 70 * time.Second, Lasted: 103 * time.Millisecond, Before: "pi5", After: "pi4", Why: "cut the power of pi5"},
		{Ago: 2 * time.Hour, Lasted: 12 * time.Second, Before: "pi5", After: "pi5", Why: "pulled the cable of pi5"},
	}
	return v
}

// crowd is as many boards as there can be.
func crowd() view {
	return boardsAt(peace(), MaxBoards, "127.77.0.", 10, func(n int) pageBoard {
		return pageBoard{Role: "follower", Follows: 5, Term: 1, Cable: n != 12}
	})
}

func beginning() view {
	return boardsAt(view{
		pageAbout: pageAbout{Algorithm: "bully", HeartbeatNs: int64(50 * time.Millisecond), LANText: "real veth cables", Address: "10.77.0.100"},
		Problem:   "nobody leads, so nobody can resign",
	}, 3, "10.77.0.", 0, func(n int) pageBoard {
		return pageBoard{Role: "listener", Light: pageLight{Lit: n == 2}, Cable: true}
	})
}

func asked() view {
	v := peace()
	v.Which = true
	return v
}

func TestPicture(t *testing.T) {
	for _, test := range []struct {
		name          string
		view          view
		width, height int
		palette       palette
	}{
		{"peace", peace(), 80, 24, noEscapes},
		{"trouble", trouble(), 80, 24, noEscapes},
		{"beginning", beginning(), 80, 24, noEscapes},
		{"which-cable", asked(), 80, 24, noEscapes},
		{"crowd", crowd(), 80, 34, noEscapes},
		{"narrow", trouble(), 60, 20, noEscapes},
		{"low", trouble(), 80, 12, noEscapes},
		{"tiny", trouble(), 30, 5, noEscapes},
		{"colours", trouble(), 80, 24, colours},
		{"mono", trouble(), 80, 24, mono},
	} {
		t.Run(test.name, func(t *testing.T) {
			var b strings.Builder
			for _, r := range paint(test.view, test.width, test.height) {
				b.WriteString(strings.TrimRight(strings.ReplaceAll(r.render(test.palette), "\x1b", "␛"), " ") + "\n")
			}
			golden.Compare(t, filepath.Join("testdata", test.name+".golden"), b.String())
		})
	}
}

// TestPictureFits: whatever the size of the screen, the picture is no larger,
// and the last line says how to get out if there is any line.
func TestPictureFits(t *testing.T) {
	for _, v := range []view{peace(), trouble(), crowd(), beginning(), {}} {
		for width := 1; width <= 120; width += 7 {
			for height := 1; height <= 40; height++ {
				rows := paint(v, width, height)
				if len(rows) != height {
					t.Fatalf("%dx%d: %d rows", width, height, len(rows))
				}
				for i, r := range rows {
					if r.width() > width {
						t.Fatalf("%dx%d: row %d has %d characters: %q", width, height, i, r.width(), r.render(noEscapes))
					}
				}
				if last := rows[height-1].render(noEscapes); width > 90 && !strings.Contains(last, "q quit") {
					t.Fatalf("%dx%d: the last line is %q", width, height, last)
				}
			}
		}
	}
}

func TestBar(t *testing.T) {
	for _, test := range []struct {
		value float64
		want  string
	}{
		{0, ""}, {0.01, "▏"}, {10, "█"}, {15, "█▌"}, {40, "████"}, {41, "███▶"}, {1e6, "███▶"},
	} {
		assert.Is(t, test.want, bar(test.value, 10, 4), "%v", test.value)
	}
}

func TestDuration(t *testing.T) {
	for _, test := range []struct {
		ms   float64
		want string
	}{
		{0, "0 ms"}, {0.04, "0.0 ms"}, {1.26, "1.3 ms"}, {9.94, "9.9 ms"}, {9.96, "10 ms"}, {103.4, "103 ms"}, {9999.6, "10 s"},
	} {
		assert.Is(t, test.want, duration(test.ms), "%v", test.ms)
	}
}
