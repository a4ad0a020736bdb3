package bench

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/golden"
)

// curveLines are those of three points: one that never moves, one that moves in peace, and one of another build at its place.
func curveLines() string {
	var b strings.Builder
	b.WriteString("# version topdog-100ms: 1.2.0\n# version keepalived-100ms-hasty: 1:2.2.7-1+b2\n# version other-keepalived-100ms-hasty: 2.3.4\n")
	b.WriteString("BenchmarkSize/system=topdog-100ms 1 9.4 MB\n") // which each session has
	for _, a := range amids {
		for system, figures := range map[string]string{
			"topdog-100ms": "0 69", "keepalived-100ms-hasty": "42 90", "other-keepalived-100ms-hasty": "40 90",
		} {
			var moves, outage float64
			fmt.Sscan(figures, &moves, &outage)
			of := fmt.Sprintf("/system=%s/amid=%s", system, a.key)
			fmt.Fprintf(&b, "BenchmarkCurve%s 1 60 watched-s %g moves/min\n", of, moves)
			for i := range 3 {
				fmt.Fprintf(&b, "BenchmarkCurvePulled%s 1 %g outage-ms\n", of, outage+float64(i-1)*20)
			}
		}
	}
	return b.String()
}

func TestCurve(t *testing.T) {
	r := recordOf(t, curveLines())
	for _, c := range curveCharts {
		var b bytes.Buffer
		assert.NoError(t, c.draw(&b, r))
		wellFormed(t, b.Bytes())
		golden.Compare(t, "testdata/"+c.name+".svg", b.String())
		b.Reset()
		assert.NoError(t, c.draw(&b, &record{}))
		if !strings.Contains(b.String(), "Not measured.") {
			t.Errorf("%s of nothing: %s", c.name, b.String())
		}
	}
	var b bytes.Buffer
	assert.NoError(t, r.report(&b, true))
	for _, want := range []string{
		"| topdog default | 1 min | 0 | 69.0 / 89.0 | 0 | 69.0 / 89.0 | 0 | 69.0 / 89.0 | 0 | 69.0 / 89.0 | 3 |\n",
		"| other keepalived 100 ms, one missed advert | 1 min | 40 | 90.0 / 110 |",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
	// A session of the curve alone says nothing of what it was not about.
	if strings.Contains(b.String(), "Not measured") || strings.Contains(b.String(), "Goals") {
		t.Errorf("it speaks of other parts:\n%s", b.String())
	}
}

// Without another choice, the curve has its points and nothing else, and the long form has none of those that are points only.
func TestCurvePlan(t *testing.T) {
	o, err := parse([]string{"--long", "--parts", partCurve})
	assert.NoError(t, err)
	for _, s := range o.plan.systems {
		if s.curve == "" || s.point == "" {
			t.Errorf("%s is no point", s)
		}
	}
	if n := len(o.plan.systems); n != 18 {
		t.Errorf("%d points", n)
	}
	o, err = parse([]string{"--long"})
	assert.NoError(t, err)
	for _, s := range o.plan.systems {
		if s.onlyCurve {
			t.Errorf("the long form has %s", s)
		}
	}
}
