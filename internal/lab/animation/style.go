package animation

import "topdog/internal/lab/svg"

// Tints of what is green or red, behind words.
var (
	leads = svg.Colour{Light: "#e8f6f1", Dark: "#12302a"}
	alarm = svg.Colour{Light: "#c03a00", Dark: "#ff8a5c"}
	lit   = svg.Colour{Light: "#00b37e", Dark: "#3df0b4"}
	card  = svg.Colour{Light: "#fafbfc", Dark: "#1b2026"}
	pill  = svg.Colour{Light: "#0072b2", Dark: "#1d6fa5"}
)

// shade is a colour on the ground of this picture.
func (f *film) shade(c svg.Colour) string {
	if f.dark {
		return c.Dark
	}
	return c.Light
}

// style is the CSS of what does not move.
func (f *film) style() string {
	ink, faint, grid, paper := f.shade(svg.Ink), f.shade(svg.Faint), f.shade(svg.Grid), f.shade(svg.Paper)
	green, orange, red := f.shade(svg.Green), f.shade(svg.Orange), f.shade(alarm)
	return `text{font:18px -apple-system,"Segoe UI","DejaVu Sans",Verdana,Helvetica,Arial,sans-serif;fill:` + ink + `}` +
		".m{text-anchor:middle}.e{text-anchor:end}" +
		".paper{fill:" + paper + "}.frame{fill:none;stroke:" + grid + "}" +
		"text.caption{font-size:23px;font-weight:600}text.name{font-size:25px;font-weight:600}text.role{font-size:19px}" +
		"text.number{font-size:16px;font-weight:600;fill:#fff}text.speed{font-weight:600;fill:" + paper + "}.slow{fill:" + orange + "}" +
		"text.faint{fill:" + faint + "}text.green{fill:" + green + ";font-weight:600}text.orange{fill:" + orange + "}text.alarm{fill:" + red + "}" +
		".card{fill:" + f.shade(card) + ";stroke:" + grid + ";stroke-width:1.5}" +
		".leads{fill:" + f.shade(leads) + ";stroke:" + green + ";stroke-width:2.5}" +
		".off{fill:" + paper + ";fill-opacity:.55}" +
		".pins{stroke:" + faint + ";stroke-opacity:.5;stroke-width:4;stroke-dasharray:4 4.3}" +
		".dark{fill:" + paper + ";stroke:" + grid + ";stroke-width:2}.lit{fill:" + f.shade(lit) + "}.glow{fill:" + f.shade(lit) + ";fill-opacity:.22}" +
		".lan{fill:" + faint + ";fill-opacity:.45}.cable{fill:none;stroke:" + faint + ";stroke-width:4;stroke-opacity:.6;stroke-linecap:round}" +
		".out{stroke:" + red + ";stroke-opacity:1}" +
		".address{fill:" + f.shade(pill) + "}.gone{fill:none;stroke:" + red + ";stroke-width:2;stroke-dasharray:5 4}" +
		".answers{fill:" + green + ";fill-opacity:.8}.gap{fill:" + red + ";fill-opacity:.22}" +
		"text.who{fill:" + paper + ";font-size:20px;font-weight:600}text.count{fill:" + red + ";font-size:24px;font-weight:700}" +
		"text.silence{fill:" + red + ";font-size:17px;font-weight:600}" +
		".now{stroke:" + ink + ";stroke-width:2}.tick{stroke:" + faint + ";fill:none}.run{animation-timing-function:linear}"
}
