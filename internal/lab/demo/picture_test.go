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

// peace is five boards of which pi5 leads.
func peace() view {
	v := view{
		Algorithm: "heir", Heartbeat: 100 * time.Millisecond, LAN: "real UDP on loopback",
		Address: "127.77.0.100", Answers: "pi5",
	}
	for n := 1; n <= 5; n++ {
		v.Boards = append(v.Boards, boardView{
			Number: n, Name: fmt.Sprintf("pi%d", n), Address: fmt.Sprintf("127.77.0.1%d", n),
			Role: "follower", Follows: "pi5", Term: 1, Running: true, Plugged: true,
		})
	}
	v.Boards[3].Role = "heir"
	v.Boards[4] = boardView{
		Number: 5, Name: "pi5", Address: "127.77.0.15", Role: "leader", Term: 1,
		Lit: true, Leads: true, Holds: true, Running: true, Plugged: true,
	}
	return v
}

// trouble is the moment after the leader's power was cut, when another cable is
// out and one daemon is stopped.
func trouble() view {
	v := peace()
	v.Silent = 84 * time.Millisecond
	v.TwoHolders = 1200 * time.Microsecond
	v.Boards[4] = boardView{Number: 5, Name: "pi5", Address: "127.77.0.15", Role: "no power", Plugged: true}
	v.Boards[3].Role, v.Boards[3].Follows, v.Boards[3].Lit = "candidate", "", true
	v.Boards[2].Plugged, v.Boards[2].Role, v.Boards[2].Follows = false, "isolated", ""
	v.Boards[1] = boardView{Number: 2, Name: "pi2", Address: "127.77.0.12", Role: "stopped", Plugged: true}
	v.Outages = []outageView{
		{Ago: 3 * time.Second, Lasted: 1230 * time.Microsecond, Before: "pi4", After: "pi5", Why: "asked pi4 to resign"},
		{Ago: 70 * time.Second, Lasted: 103 * time.Millisecond, Before: "pi5", After: "pi4", Why: "cut the power of pi5"},
		{Ago: 2 * time.Hour, Lasted: 12 * time.Second, Before: "pi5", After: "pi5", Why: "pulled the cable of pi5"},
	}
	return v
}

// crowd is as many boards as there can be.
func crowd() view {
	v := peace()
	for n := 6; n <= MaxBoards; n++ {
		v.Boards = append(v.Boards, boardView{
			Number: n, Name: fmt.Sprintf("pi%d", n), Address: fmt.Sprintf("127.77.0.%d", 10+n),
			Role: "follower", Follows: "pi5", Term: 1, Running: true, Plugged: n != 12,
		})
	}
	return v
}

func beginning() view {
	v := view{Algorithm: "bully", Heartbeat: 50 * time.Millisecond, LAN: "real veth cables",
		Address: "10.77.0.100", Problem: "nobody leads, so nobody can resign"}
	for n := 1; n <= 3; n++ {
		v.Boards = append(v.Boards, boardView{
			Number: n, Name: fmt.Sprintf("pi%d", n), Address: fmt.Sprintf("10.77.0.%d", n),
			Role: "listener", Lit: n == 2, Running: true, Plugged: true,
		})
	}
	return v
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
