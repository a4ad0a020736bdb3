package keepalived

import (
	"fmt"
	"strings"
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

func TestWords(t *testing.T) {
	for _, tt := range []struct{ line, want string }{
		{"", ""},
		{"a  bc", "1:a 4:bc"},
		{"\ta{b }", "2:a 3:[{] 4:b 6:[}]"},
		{`a {{ b }} "{{ c }}" {%${`, "1:a 3:[{{] 6:b 8:[}] 9:[}] 11:{{ c }} 21:[{%] 23:[${]"},
		{`ü "{" {`, "1:ü 3:{ 7:[{]"},
		{`a "b \" {" {`, `1:a 3:b \" { 12:[{]`},
		{`ü"b c"d`, "1:ü 2:b c 7:d"},
		{`"" 'x y'`, "1: 4:'x 7:y'"},
		{`a${b`, "1:a 2:[${] 4:b"},
	} {
		var got []string
		for _, w := range words(tt.line) {
			if w.brace {
				w.text = "[" + w.text + "]"
			}
			got = append(got, fmt.Sprintf("%d:%s", w.column, w.text))
		}
		assert.Is(t, tt.want, strings.Join(got, " "), "%q", tt.line)
	}
}

// The examples of keepalived.conf(5), and a backslash.
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
		{`a\ b "\"" \q`, true, []string{"a b", `"`, "q"}},
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
