package manual

import (
	"fmt"
	"strings"
)

// foot is what stands at the bottom of a page.
type foot struct{ version, date string }

// page is a manual page in the making, in the macros of man(7).
type page struct{ strings.Builder }

func newPage(f foot, name, section, title string) *page {
	p := &page{}
	fmt.Fprintf(p, ".TH %s %s \"%s\" \"topdog %s\" \"%s\"\n", escape(strings.ToUpper(name)), section, escape(f.date), escape(f.version), title)
	return p
}

func (p *page) section(title string)    { fmt.Fprintf(p, ".SH %s\n", escape(title)) }
func (p *page) subsection(title string) { fmt.Fprintf(p, ".SS %s\n", escape(title)) }

// item is a term, bold, and what it means.
func (p *page) item(term, meaning string) {
	fmt.Fprintf(p, ".TP\n.B %s\n", escape(term))
	p.paragraphs(meaning, ".sp\n.RS 11\n", ".IP\n")
}

// reference names another page.
func (p *page) reference(name, section string) {
	fmt.Fprintf(p, ".BR %s (%s)\n", escape(name), section)
}

// text writes paragraphs, which an empty line separates. Lines that are indented
// stay as they are: they are commands, or drawn.
func (p *page) text(text string) { p.paragraphs(text, ".PP\n.RS 4\n", ".PP\n") }

// paragraphs writes a text; indent is the macro before lines that are drawn, and paragraph the one
// between two paragraphs.
func (p *page) paragraphs(text, indent, paragraph string) {
	drawn, empty, margin := false, false, 0
	for line := range strings.Lines(strings.Trim(text, "\n")) {
		line = strings.TrimRight(line, "\n ")
		if line == "" {
			empty = true
			continue
		}
		spaces := len(line) - len(strings.TrimLeft(line, " "))
		if indented := spaces >= 2; indented != drawn {
			if indented {
				p.WriteString(indent + ".nf\n")
				margin = spaces
			} else {
				p.WriteString(".fi\n.RE\n" + paragraph)
			}
			drawn, empty = indented, false
		}
		if empty {
			if !drawn {
				p.WriteString(strings.TrimSuffix(paragraph, "\n"))
			}
			p.WriteString("\n")
			empty = false
		}
		if !drawn {
			margin = spaces
		}
		p.line(line[min(spaces, margin):])
		if !drawn && strings.Contains(line, "   ") { // columns, by way of spaces
			p.WriteString(".br\n")
		}
	}
	if drawn {
		p.WriteString(".fi\n.RE\n")
	}
}

// line writes one line of text that cannot be mistaken for a macro.
func (p *page) line(text string) {
	text = escape(text)
	if text != "" && (text[0] == '.' || text[0] == '\'') {
		text = `\&` + text
	}
	p.WriteString(text + "\n")
}

// escape takes their meaning from the characters that have one in roff. A minus
// is one that can be copied into a shell, not a hyphen; so are the quotes. An
// ellipsis is in no terminal's font that is not one for UTF-8.
var escape = strings.NewReplacer(
	`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`, `"`, `\(dq`, "…", "...",
).Replace
