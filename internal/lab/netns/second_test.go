package netns

import (
	"testing"

	"topdog/internal/lab/assert"
)

// A second path with a switch of its own carries frames whatever is filtered on the first one.
func TestSecondPathIsLetAlone(t *testing.T) {
	l := newLAN(t, 2)
	one, two := l.Board(1), l.Board(2)
	must(t, l.AddSecondPath(false))
	ear := listen(t, two)
	for name, filters := range map[string][]Filter{"halted": {{}}, "cut": Cut(two.Port()), "deaf": {{To: Ports(two)}}} {
		must(t, l.Filter(filters...))
		say(t, one, two.Addr.Addr(), name+", by the first path")
		say(t, one, nthAddress(SecondSubnet, two.number).Addr(), name)
		got, _ := hear(t, ear)
		assert.Is(t, name, got, "heard")
	}
}
