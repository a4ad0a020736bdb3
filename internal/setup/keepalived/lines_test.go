package keepalived

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"topdog/internal/lab/assert"
)

func TestWithoutComment(t *testing.T) {
	for _, tt := range []struct {
		line, want string
		unclosed   int
	}{
		{"a # b", "a", 0},
		{"a ! b", "a", 0},
		{"! a", "", 0},
		{`a "# !" # b`, `a "# !"`, 0},
		{`a '# b'`, "a '", 0}, // single quotes are for scripts only
		{`a \# b \! c # d`, "a # b ! c", 0},
		{`"a \" # b"`, `"a \" # b"`, 0},
		{`ü "a`, `ü "a`, 3},
		{`a # "`, "a", 0},
		{`a \`, `a \`, 0},
	} {
		if got, unclosed := withoutComment(tt.line); got != tt.want || unclosed != tt.unclosed {
			t.Errorf("%q: %q, %d", tt.line, got, unclosed)
		}
	}
}

func TestPieces(t *testing.T) {
	for _, tt := range []struct {
		line string
		want []piece
	}{
		{"", nil},
		{"a b", []piece{{"a b", 1}}},
		{"\ta{b }", []piece{{"a", 2}, {"{", 3}, {"b", 4}, {"}", 6}}},
		{`a {{ b }} "{{ c }}" {%${`, []piece{{"a", 1}, {"{{", 3}, {"b", 6}, {"}", 8}, {"}", 9}, {`"{{ c }}"`, 11}, {"{%", 21}, {"${", 23}}},
		{`ü "{" {`, []piece{{`ü "{"`, 1}, {"{", 7}}},
		{`a "b \" {" {`, []piece{{`a "b \" {"`, 1}, {"{", 12}}},
	} {
		assert.Equal(t, tt.want, pieces(tt.line), "%q", tt.line)
	}
}

func TestWords(t *testing.T) {
	for _, tt := range []struct {
		text string
		want []word
	}{
		{"a  bc", []word{{"a", 5}, {"bc", 8}}},
		{`ü"b c"d`, []word{{"ü", 5}, {"b c", 6}, {"d", 11}}},
		{`"" 'x y'`, []word{{"", 5}, {"'x", 8}, {"y'", 11}}},
	} {
		assert.Equal(t, tt.want, words(piece{tt.text, 5}), "%q", tt.text)
	}
}

// The examples of keepalived.conf(5), and what lib/parser.c does with a backslash.
func TestSplit(t *testing.T) {
	for _, tt := range []struct {
		text    string
		escapes bool
		want    []string // nil if it is refused
	}{
		{`abcd" efg h jkl "mnop`, false, []string{"abcd efg h jkl mnop"}},
		{`abcd "efg h jkl" mnop`, false, []string{"abcd", "efg h jkl", "mnop"}},
		{`"a 'b c'" d`, false, []string{"a 'b c'", "d"}},
		{`a\ b "\n"`, false, []string{`a\ b`, `\n`}},
		{`a\ b "\n" \x41\102\cA \q`, true, []string{"a b", "\n", "AB\x01", "q"}},
		{`''`, true, []string{""}},
		{`a 'b`, true, nil},
		{`a \`, true, nil},
	} {
		got, ok := split(tt.text, tt.escapes)
		if diff := cmp.Diff(tt.want, got); diff != "" || ok != (tt.want != nil) {
			t.Errorf("%s: %v (-want +got):\n%s", tt.text, ok, diff)
		}
	}
}
