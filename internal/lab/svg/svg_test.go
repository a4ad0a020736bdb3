package svg_test

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/svg"
)

func encode(t *testing.T, p *svg.Picture) string {
	t.Helper()
	var b strings.Builder
	assert.NoError(t, p.Encode(&b))
	return b.String()
}

// TestPicture draws one of each element.
func TestPicture(t *testing.T) {
	p := &svg.Picture{Title: "a < b", Style: ".h{x:y}", Width: 600, Height: 82.5, Decimals: 1}
	p.Tag("circle", "cx", 1.25, "cy", 2, "class", `"c"`)
	p.Text("5 > 4", "x", 10.0, "class", "")
	p.Group("all & more", func() {
		p.Element("path", "a hint", "", "d", p.Path("M", 1.0, " ", 2, "l-3 4z"))
	}, "transform", "translate(1,2)")
	p.Group("", func() {})
	p.Tag("rect", "width")
	const want = `<svg xmlns="http://www.w3.org/2000/svg" width="600" height="82.5" viewBox="0 0 600 82.5" role="img">
<title>a &lt; b</title>
<style>.h{x:y}</style>
<circle cx="1.2" cy="2" class="&#34;c&#34;"/>
<text x="10.0">5 &gt; 4</text>
<g transform="translate(1,2)"><title>all &amp; more</title>
<path d="M1.0 2l-3 4z"><title>a hint</title></path>
</g>
<g>
</g>
<rect missing-value="width"/>
</svg>
`
	assert.Equal(t, want, encode(t, p), "")
	exact := &svg.Picture{Decimals: svg.Exact}
	assert.Is(t, "0.3333333333333333 2", exact.Path(1.0/3, " ", 2.0), "exact lengths")
}

// TestHostile writes words that are not allowed in XML.
func TestHostile(t *testing.T) {
	const words = "a\x00\x1b]]>\xff\ufffe<script>"
	p := &svg.Picture{Title: words}
	p.Element("text", words, words, "class", words)
	d := xml.NewDecoder(strings.NewReader(encode(t, p)))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("no XML: %v", err)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "script" {
			t.Error("words became an element")
		}
	}
}

func TestAxis(t *testing.T) {
	linear := svg.Axis{High: 50, From: 100, To: 0}
	for v, want := range map[float64]float64{0: 100, 25: 50, 50: 0, 60: 0, -1: 100} {
		assert.Is(t, want, linear.At(v), "%g", v)
	}
	powers := svg.Axis{Low: 0, High: 2, From: 0, To: 200, Log: true}
	for v, want := range map[float64]float64{1: 0, 10: 100, 100: 200, 0: 0, 1e9: 200} {
		if got := powers.At(v); math.Abs(got-want) > 1e-9 {
			t.Errorf("%g is at %g on a logarithmic axis, want %g", v, got, want)
		}
	}
	one := svg.Axis{Low: 1, High: 1, From: 10, To: 20, Log: true}
	assert.Is(t, 15, one.At(10), "the only value")
	for _, c := range []struct {
		axis svg.Axis
		want []float64
	}{
		{svg.Axis{High: 1}, []float64{0, 0.25, 0.5, 0.75, 1}},
		{svg.Axis{High: 50}, []float64{0, 10, 20, 30, 40, 50}},
		{svg.Axis{High: 700}, []float64{0, 100, 200, 300, 400, 500, 600, 700}},
		{svg.Axis{Low: math.Log10(3), High: math.Log10(250), Log: true}, []float64{5, 10, 20, 50, 100, 200}},
		{svg.Axis{Low: 0, High: 3, Log: true}, []float64{1, 10, 100, 1000}},
	} {
		assert.Equal(t, c.want, c.axis.Ticks(), "ticks of %+v", c.axis)
	}
}
