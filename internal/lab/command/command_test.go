package command

import (
	"testing"

	"topdog/internal/lab/assert"
)

func TestChoose(t *testing.T) {
	all := []string{"a", "b", "c"}
	for names, want := range map[string]struct {
		chosen []string
		err    string
	}{
		"":     {all[:1], ""},
		"c,a":  {[]string{"a", "c"}, ""},
		"b":    {all[1:2], ""},
		"b,d":  {nil, `--keys: there is no "d"; there are a,b,c`},
		"list": {nil, "--keys can be any of a,b,c"},
	} {
		chosen, err := Choose("--keys", names, all[:1], all)
		assert.Equal(t, want.chosen, chosen, "%q", names)
		assert.ErrorContains(t, err, want.err, "%q", names)
	}
}

func TestParse(t *testing.T) {
	f := Flags("bench")
	runs := f.Int("runs", 0, "")
	assert.ErrorContains(t, Parse(f, []string{"--runs", "3"}), "", "")
	assert.Is(t, 3, *runs, "--runs")
	assert.ErrorContains(t, Parse(f, []string{"3"}), `there is no argument "3"`, "")
}
