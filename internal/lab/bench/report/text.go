package report

import (
	"io"
	"strings"
)

// Text writes the report for people at a terminal.
func Text(w io.Writer, r *Report) error {
	var b strings.Builder
	for i, s := range r.sections() {
		if i > 0 {
			b.WriteString("\n")
		}
		s.text(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (s section) text(b *strings.Builder) {
	if s.level == 1 {
		b.WriteString(s.title + "\n" + strings.Repeat("=", letters(s.title)) + "\n")
	} else {
		b.WriteString("* " + s.title + "\n")
	}
	if s.intro != "" {
		paragraph(b, "", s.intro)
		if s.table != nil {
			b.WriteString("\n")
		}
	}
	t := s.table
	if s.plain != nil {
		t = s.plain
	}
	if t != nil && len(t.rows) > 0 {
		t.write(b)
	}
	for _, n := range s.notes {
		paragraph(b, "- ", n)
	}
}

func paragraph(b *strings.Builder, first, words string) {
	for i, line := range fold(words, width-letters(first)) {
		switch {
		case i == 0:
			line = first + line
		case first == "":
			line = strings.TrimSpace(line)
		}
		b.WriteString(line + "\n")
	}
}
