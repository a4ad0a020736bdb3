package draw

import (
	"topdog/election"
	"topdog/internal/lab/sim"
	"topdog/internal/lab/svg"
	"topdog/wire"
)

// The colours of lines. Those of words are among them.
var (
	grey    = "#9aa0a6"
	pale    = "#b9bec4"
	orange  = svg.Orange.Dark // a line may be as bright as it likes, also on white
	brown   = svg.Orange.Light
	green   = svg.Green.Light
	blue    = svg.Blue.Light
	purple  = svg.Purple.Light
	red     = svg.Red.Light
	address = "#a6dcc9" // the bar of who holds it
)

// colour tells messages apart by what they do in an election.
func colour(t wire.Type) string {
	switch t {
	case wire.TypeElection, wire.TypeStart, wire.TypeCollect, wire.TypeVote:
		return brown
	case wire.TypeAnswer, wire.TypeOK, wire.TypeAck, wire.TypeReport, wire.TypeSupport, wire.TypeGrant:
		return green
	case wire.TypeCoordinator, wire.TypeLeader:
		return blue
	case wire.TypeResign, wire.TypeHalt:
		return purple
	default:
		return svg.Faint.Light
	}
}

// style gives words a white rim, since they may stand upon lines.
var style = svg.TextStyle(11, `;paint-order:stroke;stroke:#ffffff;stroke-width:3px;stroke-linejoin:round`) +
	`.t{fill:` + svg.Faint.Light + `;text-anchor:end}.h{font-weight:bold;font-size:13px}.n{font-weight:bold;text-anchor:middle}` +
	`.f{fill:` + red + `;font-weight:bold}.a{fill:` + svg.Faint.Light + `;font-style:italic}`

// line draws a line with a pattern of dashes and gaps, or without one.
func (s *sequence) line(x1, y1, x2, y2 float64, stroke string, width float64, dashes string) {
	s.Tag("line", "x1", x1, "y1", y1, "x2", x2, "y2", y2, "stroke", stroke, "stroke-width", width, "stroke-dasharray", dashes)
}

// bar draws a stretch of a board's line: the address as a wide bar behind it, and its
// role as colour and width.
func (s *sequence) bar(x, from, until float64, state sim.State) {
	if state.Holding {
		s.Tag("rect", "x", x-7, "y", from, "width", 14, "height", until-from, "fill", address)
	}
	stroke, width, dashes := grey, 2.0, ""
	switch {
	case !state.Running:
		stroke, width, dashes = pale, 1.5, "1 5"
	case state.Role == election.Leader:
		stroke, width = blue, 5
	case state.Role == election.Candidate:
		stroke, width = orange, 5
	case state.Role == election.Barred:
		stroke, width = red, 2
	case state.Role != election.Follower: // listens, or has no link
		dashes = "6 3"
	}
	if state.Running && (state.Frozen || !state.Plugged || state.Muted) {
		dashes = "2 4"
		if state.Frozen {
			stroke = purple
		}
	}
	s.line(x, from, x, until, stroke, width, dashes)
}

// head draws where an arrow ends, and how.
func (s *sequence) head(from, x, y float64, fill string, fate sim.Fate) {
	back := -9.0 // towards the sender
	if x < from {
		back = 9
	}
	tip := s.Path("M", x, " ", y, "l", back, " -4v8z")
	switch fate {
	case sim.FateArrived:
		s.Tag("path", "d", tip, "fill", fill)
	case sim.FateWaits: // hollow: it has not been received
		s.Tag("path", "d", tip, "fill", svg.Paper.Light, "stroke", fill)
	default:
		stroke := red
		if fate == sim.FateDead {
			stroke = grey
		}
		cross := s.Path("M", x+back/2-4, " ", y-4, "l8 8m0 -8l-8 8")
		s.Tag("path", "d", cross, "stroke", stroke, "stroke-width", 2, "fill", "none")
	}
}
