package simpage

import "testing"

func TestRanges(t *testing.T) {
	for want, boards := range map[string][]string{
		"":                   nil,
		"3":                  {"3"},
		"2 and 3":            {"3", "2"},
		"1 to 3":             {"2", "1", "3"},
		"1 to 3 and 5":       {"5", "2", "1", "3"},
		"1, 3, 5 to 7 and 9": {"9", "7", "6", "5", "3", "1"},
	} {
		if got := ranges(boards); got != want {
			t.Errorf("%v: got %q, want %q", boards, got, want)
		}
	}
}
