package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A curve shows what speed costs: how long the address does not answer when the leader's cable is pulled, against how
// often it moves for nothing. Its points are settings of one program: those systems that have the name of a curve. Each is
// measured in some groups of its own at once, in which different things happen: peace, bursts, pauses, loss (parts.scene).
// So both figures of a point are of the same group.
const partCurve = "curve"

// curves measures the points: those that take seconds all at once, and of the others as many as the plan says.
func (s *session) curves(ctx context.Context) (errs error) {
	points := without(s.plan.systems, func(sys *system) bool { return sys.curve == "" })
	batches := [][]*system{without(points, func(sys *system) bool { return !sys.slow() })}
	for batch := range slices.Chunk(without(points, (*system).slow), s.plan.abreast) {
		batches = append(batches, batch)
	}
	for _, batch := range slices.DeleteFunc(batches, func(batch []*system) bool { return len(batch) == 0 }) {
		var scenes []*event
		for i, a := range amids {
			pulls := s.plan.runs // in peace, which is the first
			if i > 0 {
				pulls = (pulls + 1) / 2
			}
			e := partNamed(partCurve, "AMID", strings.ReplaceAll(a.lines, "WATCH", s.plan.curveFor.String()),
				"PULLS", strconv.Itoa(pulls))
			e.of = labels{"amid": a.key}
			scenes = append(scenes, e)
		}
		errs = errors.Join(errs, s.watch(ctx, "curve: "+fmt.Sprint(batch), true, batch, scenes...))
	}
	return errs
}

// amidColumn is a column of the table of points: what was measured amid something.
func amidColumn(title, amid, what string) column {
	return column{title, func(r *record, s *series) string {
		if moves := r.point(curve, s.system, amid); what == "moves" && moves != nil {
			return ranked("", "moves/min", 50).cell(r, moves)
		}
		if pulled := r.point(curvePull, s.system, amid); what == "outage" && pulled != nil {
			return ranked("", "outage-ms", 50).cell(r, pulled) + " / " + ranked("", "outage-ms", 95).cell(r, pulled)
		}
		return ""
	}}
}

// point is what was measured of a system amid something, or nil.
func (r *record) point(bench string, sys *system, amid string) *series {
	for _, s := range r.series(bench, labels{"system": sys.key, "amid": amid}) {
		return s
	}
	return nil
}

// curveAlone reports whether nothing else was measured but the size of the program, which each session has. Then there is
// nothing to say about the rest.
func (r *record) curveAlone() bool {
	return !slices.ContainsFunc(r.samples, func(one sample) bool { return !slices.Contains([]string{curve, curvePull, size}, one.bench) })
}
