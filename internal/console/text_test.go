package console

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/golden"
	"topdog/internal/web"
)

const (
	minuteMs = 60_000.0
	hourMs   = 60 * minuteMs
	dayMs    = 24 * hourMs
)

//go:embed testdata/healthy.json
var healthyJSON []byte

// healthy is a group of three, as pi1 sees it: pi3 leads, pi2 is next.
func healthy() Status { return decoded[Status](healthyJSON) }

// decoded reads a file of the tests, whose fields all have to be known.
func decoded[T any](text []byte) (v T) {
	read := json.NewDecoder(bytes.NewReader(text))
	read.DisallowUnknownFields()
	if err := read.Decode(&v); err != nil {
		panic(err)
	}
	return v
}

type situation struct {
	name    string
	status  Status
	options Options
	exit    int
}

// situations are those of testdata/situations.txt, and one that no JSON can tell.
func situations(t testing.TB) (all []situation) {
	t.Helper()
	file, err := os.ReadFile("testdata/situations.txt")
	assert.NoError(t, err)
	known := map[string]Status{"healthy": healthy(), "nothing": {}}
	for i, section := range strings.Split(string(file), "\n=== ") {
		if i == 0 {
			continue // what explains the others
		}
		lines := strings.Split(strings.TrimSpace(section), "\n")
		words := strings.Fields(lines[0])
		like, found := known[words[1]]
		columns, err := strconv.Atoi(words[2])
		if !found || err != nil {
			t.Fatalf("what is %s? %v", lines[0], err)
		}
		s := situation{name: strings.TrimSuffix(words[0], ":"), exit: exitHeld}
		s.status = changed(t, like, lines[1:])
		s.options = Options{Width: columns, Color: slices.Contains(words, "color")}
		switch {
		case slices.Contains(words, "not-held"):
			s.exit = exitNotHeld
		case slices.Contains(words, "unguarded"):
			s.exit = exitUnguarded
		}
		known[s.name] = s.status
		all = append(all, s)
	}
	hostile := healthy()
	hostile.Boards[0].Name, hostile.LeaderName = "\x1b[2J\a\u202epi3\n", "\x1b]0;owned\a"
	hostile.Boards[1].Name = strings.Repeat("long-name-", 9)
	hostile.ReasonText = "a\r\nb\x00\xff"
	hostile.Problems = []Problem{{Text: "\x1b[31mred\x9b31m"}}
	return append(all, situation{"hostile", hostile, Options{Width: 80}, exitHeld})
}

// changed is a copy of a status with the changes of a situation.
func changed(t testing.TB, s Status, lines []string) Status {
	t.Helper()
	text, err := json.Marshal(s)
	assert.NoError(t, err)
	var whole map[string]any
	assert.NoError(t, json.Unmarshal(text, &whole))
	for _, line := range lines {
		place := whole
		name, fields, ofPart := strings.Cut(line, " {")
		switch list, at, inList := strings.Cut(name, "."); {
		case line[0] == '{':
			name, fields, ofPart = "", line[1:], true
		case inList:
			n, err := strconv.Atoi(at)
			assert.NoError(t, err)
			if n == len(whole[list].([]any)) {
				whole[list] = append(whole[list].([]any), map[string]any{})
			}
			place = whole[list].([]any)[n].(map[string]any)
		default:
			place = whole[name].(map[string]any)
		}
		assert.Is(t, true, ofPart, "%s has fields", line)
		assert.NoError(t, json.Unmarshal([]byte("{"+fields), &place))
	}
	text, err = json.Marshal(whole)
	assert.NoError(t, err)
	return decoded[Status](text)
}

func text(t testing.TB, s Status, o Options) string {
	t.Helper()
	var b bytes.Buffer
	assert.NoError(t, WriteStatus(&b, s, o))
	return b.String()
}

func TestText(t *testing.T) {
	for _, test := range situations(t) {
		t.Run(test.name, func(t *testing.T) {
			got := text(t, test.status, test.options)
			golden.Compare(t, filepath.Join("testdata", test.name+".txt"), got)
			assert.Is(t, test.exit, ExitStatus(test.status, nil), "exit status")
		})
	}
}

// TestRoleOfAResignedLeader shows a board between its RESIGN and the next COORDINATOR: it has told of no
// other leader than itself yet.
func TestRoleOfAResignedLeader(t *testing.T) {
	s := healthy()
	s.Leader, s.LeaderName, s.HeldBy = "", "", ""
	b := &s.Boards[0]
	b.Role, b.Following = RoleHeir, b.ID
	assert.Is(t, RoleHeir, roleCell(&s, b), "%s", b.Name)
}

// TestTextFits holds for every situation in every terminal.
func TestTextFits(t *testing.T) {
	for _, test := range situations(t) {
		for columns := minWidth; columns <= 130; columns += 3 {
			checkText(t, text(t, test.status, Options{Width: columns}), columns)
		}
	}
}

// checkText fails when text would do something else to a terminal than fill its lines.
func checkText(t *testing.T, text string, columns int) {
	t.Helper()
	if !utf8.ValidString(text) {
		t.Errorf("no UTF-8: %q", text)
	}
	for line := range strings.Lines(text) {
		line, complete := strings.CutSuffix(line, "\n")
		if !complete {
			t.Errorf("the last line has no end: %q", line)
		}
		if width(line) > columns {
			t.Errorf("%d columns in a terminal of %d: %q", width(line), columns, line)
		}
		if i := strings.IndexFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 {
			t.Errorf("byte %d cannot be printed: %q", i, line)
		}
	}
}

func TestWriteReportsTheWriter(t *testing.T) {
	full := errors.New("no space left on device")
	assert.ErrorIs(t, WriteStatus(failing{full}, healthy(), Options{}), full, "")
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestSpan(t *testing.T) {
	for _, test := range []struct {
		ms   float64
		want string
	}{
		{0, "0 ms"}, {0.04, "0 ms"}, {0.05, "0.1 ms"}, {2.5, "2.5 ms"}, {9.94, "9.9 ms"}, {9.96, "10 ms"},
		{130.4, "130 ms"}, {999.4, "999 ms"}, {999.6, "1 s"}, {1250, "1.3 s"}, {9999, "10 s"}, {12_900, "12 s"},
		{59_999, "59 s"}, {60_000, "1 min"}, {250_000, "4 min 10 s"}, {3_599_999, "59 min 59 s"},
		{hourMs, "1 h"}, {3*hourMs + 20*minuteMs, "3 h 20 min"}, {dayMs, "1 d"}, {3*dayMs + 4*hourMs + 59*minuteMs, "3 d 4 h"},
		{4000 * dayMs, "4000 d"}, {-1, "unknown"}, {math.NaN(), "unknown"}, {math.Inf(1), "unknown"},
	} {
		assert.Is(t, test.want, duration(test.ms), "duration(%v)", test.ms)
	}
}

func TestPercent(t *testing.T) {
	for _, test := range []struct {
		percent float64
		want    string
	}{
		{0, "0 %"}, {0.01, "less than 0.1 %"}, {0.26, "0.3 %"}, {38.46, "38.5 %"}, {100, "100 %"}, {-1, "unknown"}, {math.NaN(), "unknown"},
	} {
		assert.Is(t, joined(test.want), percent(test.percent), "percent(%v)", test.percent)
	}
}

func TestWrap(t *testing.T) {
	for _, test := range []struct {
		text string
		room int
		want []string
	}{
		{"", 10, []string{""}},
		{"one two three", 7, []string{"one two", "three"}},
		{"one two three", 3, []string{"one", "two", "thr", "ee"}},
		{"a abcdefghij k", 4, []string{"a", "abcd", "efgh", "ij k"}},
		{"台所台所", 4, []string{"台所", "台所"}},
		{"台所", 1, []string{"台", "所"}},
		{"ab", 0, []string{"a", "b"}},
	} {
		assert.Equal(t, test.want, wrap(test.text, test.room), "wrap(%q, %d)", test.text, test.room)
	}
}

// TestJSON holds the names of the interface: what scripts read must not change
// by the renaming of a field.
func TestJSON(t *testing.T) {
	var got bytes.Buffer
	encoder := json.NewEncoder(&got)
	encoder.SetIndent("", "  ")
	assert.NoError(t, encoder.Encode(healthy()))
	file := filepath.Join("testdata", "healthy.json")
	golden.Compare(t, file, got.String())
	doc, err := os.ReadFile("../../docs/status.md")
	assert.NoError(t, err)
	if !bytes.Contains(doc, got.Bytes()) {
		t.Errorf("docs/status.md does not show %s as it is", file)
	}
	if !bytes.Contains(doc, []byte(text(t, healthy(), Options{Width: 80}))) {
		t.Error("docs/status.md does not show testdata/healthy.txt as it is")
	}
}

// The README shows the first line and the table of a group that is well.
func TestReadmeShowsAStatus(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	assert.NoError(t, err)
	status := text(t, healthy(), Options{Width: 80})
	first, rest, _ := strings.Cut(status, "\n")
	table, _, found := strings.Cut(rest[strings.Index(rest, "   BOARD"):], "\n\n")
	if want := "```\n" + first + "\n\n" + table + "\n```\n"; !found || !bytes.Contains(readme, []byte(want)) {
		t.Errorf("README.md does not show this of testdata/healthy.txt:\n%s", want)
	}
}

func TestExitStatus(t *testing.T) {
	for _, test := range []struct {
		err  error
		want int
	}{
		{nil, exitHeld},
		{&web.Error{Message: "no socket", Err: ErrNotRunning}, exitNotRunning},
		{fmt.Errorf("while watching: %w", ErrNotRunning), exitNotRunning},
		{&web.Error{Message: "no permission", Err: fs.ErrPermission}, exitNoAnswer},
		{errors.New("something else"), exitNoAnswer},
	} {
		assert.Is(t, test.want, ExitStatus(healthy(), test.err), "ExitStatus(%v)", test.err)
	}
}

// FuzzText feeds what a daemon could send: the client decodes it, and the text is
// fit for a terminal of any width.
func FuzzText(f *testing.F) {
	for _, s := range situations(f) {
		body, err := json.Marshal(s.status)
		assert.NoError(f, err)
		f.Add(body, s.options.Width)
	}
	f.Add([]byte(`{"boards":[null,{"self":true,"heard_ms":-1e308}],"changes":[{"ago_ms":1e300}]}`), 1)
	// A board is heard by a second path that is not there.
	f.Add([]byte(`{"role":"follower","held_by":"2","boards":[{"id":"2","stale":true,"heard_by_second_path_ms":1}]}`), 80)
	f.Fuzz(func(t *testing.T, body []byte, columns int) {
		var s Status
		if json.Unmarshal(body, &s) != nil {
			return
		}
		columns = columns & 0xff
		got := text(t, s, Options{Width: columns})
		if columns == 0 {
			columns = math.MaxInt
		}
		checkText(t, got, max(columns, minWidth))
	})
}
