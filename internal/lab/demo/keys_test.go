package demo

import (
	"testing"

	"topdog/internal/lab/assert"
)

func TestKeys(t *testing.T) {
	power := func(n int) command { return command{doPower, n} }
	cable := func(n int) command { return command{doCable, n} }
	for _, test := range []struct {
		name  string
		reads []string // as they arrive
		want  []command
		which bool // the parser waits for the board of a cable
	}{
		{"digits", []string{"15"}, []command{power(1), power(5)}, false},
		{"the tenth board", []string{"0"}, []command{power(10)}, false},
		{"shifted digits", []string{"!%)"}, []command{cable(1), cable(5), cable(10)}, false},
		{"c and a digit", []string{"c3"}, []command{cable(3)}, false},
		{"c and a digit, later", []string{"c", "3", "3"}, []command{cable(3), power(3)}, false},
		{"c alone", []string{"c"}, nil, true},
		{"c and another key", []string{"cr1"}, []command{{verb: doResign}, power(1)}, false},
		{"c and Esc", []string{"c\x1b", "2"}, []command{power(2)}, false},
		{"letters", []string{"rsRS"}, []command{{verb: doResign}, {verb: doStop}, {verb: doResign}, {verb: doStop}}, false},
		{"quit", []string{"q"}, []command{{verb: doQuit}}, false},
		{"Ctrl-C", []string{"\x03"}, []command{{verb: doQuit}}, false},
		{"Ctrl-D", []string{"\x04"}, []command{{verb: doQuit}}, false},
		{"nothing to do", []string{"xyz \r\n"}, nil, false},
		{"arrow keys", []string{"\x1b[A\x1b[B\x1bOC1"}, []command{power(1)}, false},
		{"a sequence with digits", []string{"\x1b[15~2"}, []command{power(2)}, false},
		{"a sequence in two reads", []string{"\x1b", "[", "1;5", "D", "4"}, []command{power(4)}, false},
		{"not ASCII", []string{"ä\xff1"}, []command{power(1)}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			var k keys
			var got []command
			for _, read := range test.reads {
				got = append(got, k.parse([]byte(read))...)
			}
			assert.Equal(t, test.want, got, "")
			assert.Is(t, test.which, k.which, "waits for a board")
		})
	}
}
