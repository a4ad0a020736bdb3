package bench

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/golden"
)

func wellFormed(t *testing.T, text []byte) {
	t.Helper()
	for d := xml.NewDecoder(bytes.NewReader(text)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Errorf("it is not XML: %v", err)
			return
		}
	}
}

// A record that has everything in every form: for a terminal, for a page, and as pictures.
func TestReport(t *testing.T) {
	r := recordOf(t, someLines)
	for file, page := range map[string]bool{"report.txt": false, "report.md": true} {
		var b bytes.Buffer
		assert.NoError(t, r.report(&b, page))
		golden.Compare(t, "testdata/"+file, b.String())
	}
	for _, c := range charts {
		var b bytes.Buffer
		assert.NoError(t, c.draw(&b, r))
		wellFormed(t, b.Bytes())
		if strings.Contains(b.String(), "NaN") || strings.Contains(b.String(), "Inf") {
			t.Errorf("%s has a place that is no number", c.name)
		}
		golden.Compare(t, "testdata/"+c.name+".svg", b.String())
		b.Reset()
		assert.NoError(t, c.draw(&b, &record{}))
		if !strings.Contains(b.String(), "Not measured.") {
			t.Errorf("%s of nothing: %s", c.name, b.String())
		}
	}
}

// Names that try to be more than names.
func TestHostile(t *testing.T) {
	const name = "a\x1b[31m|b`<script>\xff&\u0000]]>x"
	lines := strings.NewReplacer("2.2.7", name, "keepalived-100ms", strings.ReplaceAll(name, "/", ""), "Debian", name)
	r := recordOf(t, lines.Replace(someLines))
	for _, page := range []bool{false, true} {
		var b bytes.Buffer
		assert.NoError(t, r.report(&b, page))
		if bytes.ContainsAny(b.Bytes(), "\x1b\x00") || page && strings.Contains(b.String(), "<script>") {
			t.Errorf("what was a name is more, on a page: %v", page)
		}
	}
	for _, c := range charts {
		var b bytes.Buffer
		assert.NoError(t, c.draw(&b, r))
		wellFormed(t, b.Bytes())
	}
}

// A page is made anew, and what people wrote on it stays.
func TestInsert(t *testing.T) {
	r := recordOf(t, someLines)
	var block bytes.Buffer
	assert.NoError(t, r.report(&block, true))
	want := "# Figures\n\nby hand\n\n" + blockBegin + "\n\n" + block.String() + blockEnd + "\n\nmore by hand\n"
	page := []byte("# Figures\n\nby hand\n\n" + blockBegin + "\nold figures\n" + blockEnd + "\n\nmore by hand\n")
	for range 2 {
		got, err := r.insert(page)
		assert.NoError(t, err)
		assert.Equal(t, want, string(got), "the page")
		page = got
	}
	for page, words := range map[string]string{
		"":                           "0 times; it must be there once",
		blockBegin + blockBegin:      "2 times; it must be there once",
		blockEnd + "\n" + blockBegin: "does not follow where the report begins",
	} {
		_, err := r.insert([]byte(page))
		assert.ErrorContains(t, err, words, "page %q", page)
	}
}
