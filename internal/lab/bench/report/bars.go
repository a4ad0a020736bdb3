package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"topdog/internal/lab/svg"
)

// barWidth is of the diagram of one loss, in pixels.
const barWidth = 230

// bars draws the moves under loss: a diagram per loss, and a bar per system. Where two
// systems were watched for different times, bars are compared per ten minutes.
func (d *drawing) bars() {
	d.head("How often the address moves although nobody failed",
		"Moves in ten minutes, by how many of the packets every board loses; beside the bar, what was counted.")
	shares, systems, most := d.r.watchedUnderLoss()
	if len(systems) == 0 {
		d.empty()
		return
	}
	names, top := edge+d.nameWidth(), 76.0
	from, foot := top+panelHead-4, top+panelHead+float64(len(systems))*rowHeight
	step := roundStep(most)
	axis := svg.Axis{High: math.Max(1, math.Ceil(most/step)) * step}
	column := barWidth + 110.0
	for i, share := range shares {
		axis.From = names + 12 + float64(i)*column
		axis.To = axis.From + barWidth
		d.words("g", axis.From, top+14, percent(share)+" loss")
		for v := 0.0; v <= axis.High+step/2; v += step {
			d.line("l", axis.At(v), from, axis.At(v), foot)
			d.words("s m", axis.At(v), foot+14, fmt.Sprintf("%g", v))
		}
		d.words("s m", axis.From+barWidth/2, foot+29, "moves in ten minutes")
		for n, y := range systems {
			d.bar(y, share, axis, top+panelHead+float64(n)*rowHeight)
		}
	}
	for n, y := range systems {
		d.name(y, names, top+panelHead+(float64(n)+0.5)*rowHeight+2)
	}
	d.Width = max(names+12+float64(len(shares))*column, 700)
	d.Height = foot + panelFoot
}

// watchedUnderLoss returns the losses and the systems of which moves were counted, in order,
// and the most moves in ten minutes.
func (r *Report) watchedUnderLoss() (shares []float64, systems []System, most float64) {
	for _, l := range r.Lossy {
		n, ok := l.inTenMinutes()
		if !ok {
			continue
		}
		most = max(most, n)
		if !slices.Contains(shares, l.Loss) {
			shares = append(shares, l.Loss)
		}
		if y := r.system(l.System); !slices.Contains(systems, y) {
			systems = append(systems, y)
		}
	}
	slices.Sort(shares)
	order := func(y System) int { return slices.Index(r.Systems, y) }
	slices.SortStableFunc(systems, func(a, b System) int { return cmp.Compare(order(a), order(b)) })
	return shares, systems, most
}

func (l Lossy) inTenMinutes() (float64, bool) {
	if l.For <= 0 {
		return 0, false
	}
	return float64(l.Moves) * lossWatch.Seconds() / l.For.Seconds(), true
}

// bar draws what one system did at one loss. None at all is a thin stroke, to be told from not measured.
func (d *drawing) bar(y System, share float64, axis svg.Axis, top float64) {
	var counted []string
	longest := 0.0
	for _, l := range d.r.Lossy {
		if n, ok := l.inTenMinutes(); ok && l.Loss == share && l.System == y.Key {
			longest = max(longest, n)
			counted = append(counted, fmt.Sprintf("%d in %s", l.Moves, span(l.For)))
		}
	}
	if len(counted) == 0 {
		d.words("s", axis.From+6, top+13, "not measured")
		return
	}
	left, long := axis.From, max(axis.At(longest)-axis.From, 2)
	d.Tag("rect", "class", d.colour(y), "x", left, "y", top+2, "width", long, "height", rowHeight-6)
	d.words(d.colour(y), left+long+6, top+13, strings.Join(counted, ", "))
}

// roundStep is a round number of which up to five make the most.
func roundStep(most float64) float64 {
	if most <= 5 {
		return 1
	}
	step := math.Pow(10, math.Floor(math.Log10(most/5)))
	for _, m := range []float64{1, 2, 5, 10} {
		if m*step >= most/5 {
			return m * step
		}
	}
	return 10 * step
}
