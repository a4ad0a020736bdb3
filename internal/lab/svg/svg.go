// Package svg writes pictures in SVG: elements and their attributes, words, axes, and the
// colours and fonts that all pictures of topdog have in common. Its callers decide what is in
// a picture, and where. The same calls give the same bytes, so a picture can be compared with
// an earlier one.
package svg

import (
	"fmt"
	"html"
	"io"
	"strconv"
	"strings"
)

// Exact writes lengths with as many decimals as they have.
const Exact = -1

// Picture collects the elements of a picture. Lengths are in SVG's user units, which are
// pixels unless somebody zooms.
type Picture struct {
	Title         string
	Style         string // CSS
	Width, Height float64
	Decimals      int // of lengths given as float64, or Exact; those given as int have none

	body strings.Builder
}

// Encode writes the picture as a file. All of its fields may be set until then.
func (p *Picture) Encode(w io.Writer) error {
	width, height := number(p.Width, Exact), number(p.Height, Exact)
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" width="%s" height="%s" viewBox="0 0 %s %s" role="img">`+"\n"+
		"<title>%s</title>\n<style>%s</style>\n%s</svg>\n",
		width, height, width, height, escape(p.Title), p.Style, p.body.String())
	return err
}

// Tag draws an element without content. Attributes are pairs of a name and a value, which is
// a string, an int or a float64: p.Tag("circle", "cx", x, "cy", y, "r", 3). One whose value is "" is left out.
func (p *Picture) Tag(name string, attributes ...any) {
	p.open(name, attributes)
	p.body.WriteString("/>\n")
}

// Text draws words.
func (p *Picture) Text(words string, attributes ...any) {
	p.Element("text", "", words, attributes...)
}

// Element draws an element with words in it. A hint shows when the mouse rests on it.
func (p *Picture) Element(name, hint, words string, attributes ...any) {
	p.open(name, attributes)
	p.body.WriteString(">" + title(hint) + escape(words) + "</" + name + ">\n")
}

// Group puts what draw draws into one element, with a hint for all of it, or none.
func (p *Picture) Group(hint string, draw func(), attributes ...any) {
	p.open("g", attributes)
	p.body.WriteString(">" + title(hint) + "\n")
	draw()
	p.body.WriteString("</g>\n")
}

func title(hint string) string {
	if hint == "" {
		return ""
	}
	return "<title>" + escape(hint) + "</title>"
}

// open begins a tag and leaves it open. A mistake in the attributes is one in the program,
// and shows in the picture.
func (p *Picture) open(name string, attributes []any) {
	p.body.WriteString("<" + name)
	for i := 0; i+1 < len(attributes); i += 2 {
		if v := p.value(attributes[i+1]); v != "" {
			fmt.Fprintf(&p.body, ` %v="%s"`, attributes[i], v)
		}
	}
	if len(attributes)%2 != 0 {
		fmt.Fprintf(&p.body, ` missing-value="%s"`, p.value(attributes[len(attributes)-1]))
	}
}

func (p *Picture) value(v any) string {
	switch v := v.(type) {
	case float64:
		return number(v, p.Decimals)
	case string:
		return escape(v)
	default:
		return escape(fmt.Sprint(v))
	}
}

// Path puts together the data of a path: a string stands as it is, and a length as the
// picture writes lengths.
func (p *Picture) Path(parts ...any) string {
	var b strings.Builder
	for _, part := range parts {
		b.WriteString(p.value(part))
	}
	return b.String()
}

func number(v float64, decimals int) string { return strconv.FormatFloat(v, 'f', decimals, 64) }

// escape makes words fit for XML. Characters that XML 1.0 (section 2.2) does not allow become question marks.
func escape(s string) string { return html.EscapeString(strings.Map(allowed, s)) }

func allowed(r rune) rune {
	if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0xfffe || r == 0xffff {
		return '?'
	}
	return r
}
