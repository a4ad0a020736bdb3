package draw_test

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"topdog/election"
	"topdog/election/literature"
	"topdog/internal/lab/assert"
	"topdog/internal/lab/draw"
	"topdog/internal/lab/golden"
	"topdog/internal/lab/scene"
	"topdog/internal/lab/sim"
	"topdog/wire"
)

// lan returns boards that have elected a leader, and a recording from now on.
func lan(boards int, algorithm wire.Algorithm, fanout election.Fanout, w sim.Wire, all bool) (*sim.Sim, *draw.Recording) {
	s := sim.New(1, w)
	for id := range wire.ID(boards) {
		s.Add(election.Config{
			ID: id + 1, Priority: 100, Interval: 100 * time.Millisecond, Algorithm: algorithm, Fanout: fanout,
		}).Start()
	}
	s.Run(3 * time.Second)
	return s, draw.Record(s, draw.Options{From: s.Now(), All: all})
}

var quick = sim.Wire{Delay: sim.Constant(200 * time.Microsecond)}

// The stories that are drawn.
var stories = map[string]func() *draw.Recording{
	// The first example of Kuang and others: of five processes number 5 has
	// failed, and number 2 notices.
	"takeover": func() *draw.Recording {
		s, r := lan(5, wire.AlgorithmBully, election.FanoutMulticast, quick, false)
		s.Board("5").AfterHeartbeat(func() {
			s.Board("5").Crash()
			s.Board("2").Suspect()
		})
		s.Run(2 * time.Second)
		return r
	},
	"partition": func() *draw.Recording {
		s, r := lan(4, wire.AlgorithmHeir, election.FanoutMulticast, quick, false)
		s.Filter([]scene.Filter{{From: []int{1, 2}, To: []int{3, 4}}, {From: []int{3, 4}, To: []int{1, 2}}}, "partition 1, 2 / 3, 4")
		s.Run(time.Second)
		s.Filter(nil, "partition healed")
		s.Run(time.Second)
		s.Board("4").Freeze()
		s.Run(300 * time.Millisecond)
		s.Board("4").Thaw()
		s.Run(time.Second)
		return r
	},
}

// To write the pictures anew: go test ./internal/lab/draw -update; then look at them.
func TestGolden(t *testing.T) {
	for name, play := range stories {
		r := play()
		for ending, draw := range map[string]func(io.Writer) error{
			"txt": r.Text, "mmd": r.Mermaid, "svg": func(w io.Writer) error { return r.SVG(w, name+" <golden>") },
		} {
			var got bytes.Buffer
			assert.NoError(t, draw(&got))
			golden.Compare(t, filepath.Join("testdata", name+"."+ending), got.String())
		}
	}
}

// box is what a text in a picture covers, if its letters are as wide as those of
// the widest common font.
type box struct {
	text                     string
	left, right, top, bottom float64
}

// texts reads a picture, which must be well-formed XML, and returns its texts.
func texts(t *testing.T, svg []byte) (boxes []box, width, height float64) {
	t.Helper()
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return boxes, width, height
		}
		assert.NoError(t, err)
		start, ok := token.(xml.StartElement)
		if ok && start.Name.Local == "svg" {
			for _, a := range start.Attr {
				n, _ := strconv.ParseFloat(a.Value, 64)
				switch a.Name.Local {
				case "width":
					width = n
				case "height":
					height = n
				}
			}
		}
		if !ok || start.Name.Local != "text" {
			continue
		}
		var e struct {
			X      float64 `xml:"x,attr"`
			Y      float64 `xml:"y,attr"`
			Class  string  `xml:"class,attr"`
			Anchor string  `xml:"text-anchor,attr"`
			Text   string  `xml:",chardata"` // without that of its title
		}
		assert.NoError(t, d.DecodeElement(&e, &start))
		w := 6.6 * float64(utf8.RuneCountInString(e.Text))
		b := box{e.Text, e.X, e.X + w, e.Y - 9, e.Y + 2}
		switch cmp.Or(e.Anchor, map[string]string{"t": "end", "n": "middle"}[e.Class]) {
		case "end":
			b.left, b.right = e.X-w, e.X
		case "middle":
			b.left, b.right = e.X-w/2, e.X+w/2
		}
		boxes = append(boxes, b)
	}
}

// TestLabels draws many stories with 4 to 10 boards, good and bad ones, and looks
// whether one label covers another one or leaves the picture.
func TestLabels(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 9))
		algorithms := literature.Algorithms()
		algorithm, _ := literature.AlgorithmNamed(algorithms[rng.IntN(len(algorithms))])
		w := sim.Wire{
			Delay: sim.Exponential(100*time.Microsecond, time.Duration(1+rng.IntN(5))*time.Millisecond),
			Loss:  0.3 * rng.Float64(), Duplicate: 0.1, Reorder: 0.1, HoldBack: 30 * time.Millisecond,
		}
		if rng.IntN(2) == 0 {
			w = quick
		}
		boards := 4 + rng.IntN(7)
		s, r := lan(boards, algorithm, election.Fanout(rng.IntN(2)), w, rng.IntN(8) == 0)
		for range 8 {
			b := s.Boards()[rng.IntN(boards)]
			n := []int{slices.Index(s.Boards(), b) + 1}
			mute := func() { s.Filter(append(s.Filters(), scene.Filter{From: n}, scene.Filter{To: n}), "muted") }
			unmute := func() { s.Filter(nil, "unmuted") }
			[]func(){b.Crash, b.Crash, b.Start, b.Start, b.Pull, b.Plug, b.Freeze, b.Thaw, b.Stop, mute, unmute}[rng.IntN(11)]()
			s.Run(time.Duration(rng.Int64N(int64(600 * time.Millisecond))))
		}
		var out bytes.Buffer
		assert.NoError(t, r.SVG(&out, fmt.Sprintf("%v, %d boards", algorithm, boards)))
		boxes, width, height := texts(t, out.Bytes())
		if len(boxes) < 2*boards {
			t.Fatalf("seed %d: only %d texts", seed, len(boxes))
		}
		for i, a := range boxes {
			if a.left < 0 || a.right > width || a.top < 0 || a.bottom > height {
				t.Errorf("seed %d: %q leaves the picture", seed, a.text)
			}
			for _, b := range boxes[:i] {
				if a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom {
					t.Errorf("seed %d: %q covers %q", seed, a.text, b.text)
				}
			}
		}
	}
}

// mermaidLine is what the lines of a Mermaid sequence diagram look like here.
var mermaidLine = regexp.MustCompile(`^    (participant B\d+ as [^;<>]+|(activate|deactivate) B\d+|` +
	`Note over B\d+(,B\d+)?: ([^;#<>]|#\w+;)+|B\d+(->>|-x)B\d+: ([^;#<>]|#\w+;)+)$`)

// TestMermaid checks the language, and that what begins ends: Mermaid refuses the
// whole picture otherwise.
func TestMermaid(t *testing.T) {
	for name, play := range stories {
		var out bytes.Buffer
		assert.NoError(t, play().Mermaid(&out))
		active := make(map[string]bool)
		first, rest, _ := strings.Cut(out.String(), "\n")
		assert.Is(t, "sequenceDiagram", first, "%s begins", name)
		for line := range strings.Lines(rest) {
			line = strings.TrimSuffix(line, "\n")
			if !mermaidLine.MatchString(line) {
				t.Errorf("%s: what is %q?", name, line)
			}
			if words := strings.Fields(line); words[0] == "activate" || words[0] == "deactivate" {
				on := words[0] == "activate"
				if active[words[1]] == on {
					t.Errorf("%s: %q comes twice", name, line)
				}
				active[words[1]] = on
			}
		}
		for b, on := range active {
			if on {
				t.Errorf("%s: the bar of %s does not end", name, b)
			}
		}
	}
}

// TestFold compares what is shown with what is folded away: nothing may be lost.
func TestFold(t *testing.T) {
	count := func(all bool) map[string]int {
		s, r := lan(4, wire.AlgorithmHeir, election.FanoutMulticast, quick, all)
		s.Board("4").Crash()
		s.Run(2 * time.Second)
		var out bytes.Buffer
		assert.NoError(t, r.Text(&out))
		n := make(map[string]int)
		folded := regexp.MustCompile(`(\d+) (HEARTBEAT|HELLO|QUERY|RIVAL)`)
		for line := range strings.Lines(out.String()) {
			if before, message, ok := strings.Cut(line, ": "); ok && strings.Contains(before, "   > ") {
				n[strings.Fields(message)[0]]++
			} else if strings.Contains(line, "…") {
				for _, m := range folded.FindAllStringSubmatch(line, -1) {
					k, _ := strconv.Atoi(m[1])
					n[m[2]] += k
				}
			}
		}
		return n
	}
	shown, folded := count(true), count(false)
	assert.Equal(t, shown, folded, "shown with all, and without")
	if shown["HEARTBEAT"] < 10 || shown["ELECTION"] == 0 {
		t.Errorf("the story is too short: %v", shown)
	}
}

// TestFrom begins a recording later than the simulation.
func TestFrom(t *testing.T) {
	s := sim.New(1, quick)
	for id := range wire.ID(2) {
		s.Add(election.Config{ID: id + 1, Priority: 100, Interval: 100 * time.Millisecond, Algorithm: wire.AlgorithmHeir})
	}
	r := draw.Record(s, draw.Options{From: 2 * time.Second})
	for _, b := range s.Boards() {
		b.Start()
	}
	s.Run(2500 * time.Millisecond)
	s.Board("2").Crash()
	s.Run(time.Second)
	lines := r.Events()
	if len(lines) == 0 || lines[0].AtMs != 2500 || lines[0].What != "crashes" {
		t.Errorf("the first event is not the crash: %+v", lines)
	}
	var out bytes.Buffer
	assert.NoError(t, r.Mermaid(&out))
	// That board 2 has the address at the beginning comes from before it.
	if begin := "participant B1 as board 2\n    activate B1\n"; !strings.Contains(out.String(), begin) {
		t.Errorf("the picture does not begin with %q:\n%s", begin, out.String())
	}
	lost := false
	for _, l := range lines {
		if l.Message == "ELECTION" {
			lost = slices.Equal(l.To, []string{"2"}) && slices.Equal(l.Lost, []string{"2"})
		}
	}
	if !lost {
		t.Errorf("no ELECTION says that it did not reach board 2: %+v", lines)
	}
}

// TestLate holds that a message that was held back is not drawn as if it had arrived at once.
func TestLate(t *testing.T) {
	picture := func(holdBack time.Duration) string {
		w := quick
		s, r := lan(4, wire.AlgorithmHeir, election.FanoutMulticast, w, false)
		w.Reorder, w.HoldBack = 0.3, holdBack
		s.Wire = w
		s.Board("4").Crash()
		s.Run(time.Second)
		var out bytes.Buffer
		assert.NoError(t, r.SVG(&out, "late"))
		return out.String()
	}
	const bent = `stroke-dasharray="5 3"`
	if n := strings.Count(picture(20*time.Millisecond), bent); n == 0 {
		t.Error("no arrow is bent although messages are held back")
	}
	assert.Is(t, 0, strings.Count(picture(0), bent), "arrows that are bent although nothing is held back")
}
