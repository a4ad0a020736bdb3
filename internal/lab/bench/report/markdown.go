package report

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
)

// What stands between these two lines is made from a report, and is made anew from the next.
const (
	blockBegin = "<!-- bench report: begin; made from the figures of scripts/bench, so change those -->"
	blockEnd   = "<!-- bench report: end -->"
)

// writeMarkdown writes the report for a page of docs/, between two comments by which
// Insert finds it again.
func writeMarkdown(w io.Writer, r *Report) error {
	var b strings.Builder
	b.WriteString(blockBegin + "\n\n")
	for _, s := range r.sections() {
		s.markdown(&b)
	}
	b.WriteString(blockEnd + "\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// Insert returns the page with the report in it, in the place of the one that Markdown
// has written before. What stands around it stays as it is.
func Insert(page []byte, r *Report) ([]byte, error) {
	if n := bytes.Count(page, []byte(blockBegin)); n != 1 {
		return nil, fmt.Errorf("putting a report into a page: the line %q is there %d times; it must be there once", blockBegin, n)
	}
	from := bytes.Index(page, []byte(blockBegin))
	length := bytes.LastIndex(page[from:], []byte(blockEnd))
	if length < 0 {
		return nil, errors.New("putting a report into a page: the line " + blockEnd + " does not follow where the report begins")
	}
	after := page[from+length+len(blockEnd):]
	var b bytes.Buffer
	b.Write(page[:from])
	if err := writeMarkdown(&b, r); err != nil {
		return nil, err
	}
	b.Write(bytes.TrimPrefix(after, []byte("\n")))
	return b.Bytes(), nil
}

func (s section) markdown(b *strings.Builder) {
	fmt.Fprintf(b, "%s %s\n\n", strings.Repeat("#", 1+s.level), mark(s.title))
	if s.intro != "" {
		b.WriteString(mark(s.intro) + "\n\n")
	}
	if s.table != nil && len(s.table.rows) > 0 {
		s.table.markdown(b)
		b.WriteString("\n")
	}
	for _, n := range s.notes {
		b.WriteString("- " + mark(n) + "\n")
	}
	if len(s.notes) > 0 {
		b.WriteString("\n")
	}
	for _, y := range s.config {
		if y.Config != "" {
			fmt.Fprintf(b, "<details><summary>%s: the configuration of the first board</summary>\n\n", mark(y.name()))
			fence := fence(y.Config)
			fmt.Fprintf(b, "%s\n%s\n%s\n\n</details>\n\n", fence, strings.TrimRight(y.Config, "\n"), fence)
		}
	}
}

// fence is longer than any row of backticks in the text, so that the text cannot end it.
func fence(text string) string {
	longest, row := 2, 0
	for _, c := range text {
		if c != '`' {
			row = 0
			continue
		}
		row++
		longest = max(longest, row)
	}
	return strings.Repeat("`", longest+1)
}
