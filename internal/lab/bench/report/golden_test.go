package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/golden"
)

type render struct {
	file  string
	write func(io.Writer, *Report) error
}

func chart(name string) func(io.Writer, *Report) error {
	return func(w io.Writer, r *Report) error { return SVG(w, r, name) }
}

// renders are all forms in which a report is written.
func renders() []render {
	list := []render{{"report.json", JSON}, {"report.txt", Text}, {"report.md", writeMarkdown}}
	for _, c := range Charts() {
		list = append(list, render{c + ".svg", chart(c)})
	}
	return list
}

// TestGolden writes a report that has everything, and one that has nothing, in every form.
func TestGolden(t *testing.T) {
	nothing := &Report{Made: "2026-05-04T13:00:00Z", Form: "quick"}
	for _, c := range []struct {
		folder string
		report *Report
	}{{"everything", sample()}, {"nothing", nothing}} {
		for _, w := range renders() {
			t.Run(c.folder+"/"+w.file, func(t *testing.T) {
				var b bytes.Buffer
				assert.NoError(t, w.write(&b, c.report))
				golden.Compare(t, filepath.Join("testdata", c.folder, w.file), b.String())
				if strings.HasSuffix(w.file, ".svg") {
					wellFormed(t, w.file, b.Bytes())
					if strings.Contains(b.String(), "NaN") || strings.Contains(b.String(), "Inf") {
						t.Error("it has a place that is no number")
					}
				}
			})
		}
	}
}

// TestText holds that a terminal of 100 columns is wide enough, and plain.
func TestText(t *testing.T) {
	var b bytes.Buffer
	assert.NoError(t, Text(&b, sample()))
	for i, line := range strings.Split(b.String(), "\n") {
		if len(line) > width {
			t.Errorf("line %d has %d columns: %s", i+1, len(line), line)
		}
		assert.Is(t, strings.TrimRight(line, " "), line, "line %d", i+1)
		if strings.ContainsFunc(line, func(r rune) bool { return r > '~' || r < ' ' }) {
			t.Errorf("line %d is not plain ASCII: %q", i+1, line)
		}
	}
}

// TestHostile writes names that try to be more than names.
func TestHostile(t *testing.T) {
	const name = "a\x1b[31m|b`<script>\xff&\u0000]]>\n# x"
	r := sample()
	for i := range r.Systems {
		r.Systems[i].Setting = name
	}
	r.Machine.Model, r.Missing, r.Events[0].Title = name, []string{name}, name
	r.Failures[len(r.Failures)-1].Unable, r.Failures[len(r.Failures)-1].Runs = name, nil
	for _, w := range renders()[1:] {
		var b bytes.Buffer
		assert.ErrorIs(t, w.write(&b, r), nil, "%s", w.file)
		if bytes.ContainsAny(b.Bytes(), "\x1b\x00") {
			t.Errorf("%s has characters that steer a terminal", w.file)
		}
		if !strings.HasSuffix(w.file, ".txt") && strings.Contains(b.String(), "<script>") {
			t.Errorf("%s has markup that was a name", w.file)
		}
		if strings.HasSuffix(w.file, ".svg") {
			wellFormed(t, w.file, b.Bytes())
		}
	}
}

func TestNoSuchChart(t *testing.T) {
	err := SVG(io.Discard, sample(), "pie")
	assert.ErrorContains(t, err, `no chart "pie"; there are outage, two-holders, loss`, "")
}

func wellFormed(t *testing.T, name string, text []byte) {
	t.Helper()
	for d := xml.NewDecoder(bytes.NewReader(text)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Errorf("%s is not XML: %v", name, err)
			return
		}
	}
}

// TestInsert makes a page anew, and leaves what people wrote on it.
func TestInsert(t *testing.T) {
	var block bytes.Buffer
	assert.NoError(t, writeMarkdown(&block, sample()))
	want := "# Figures\n\nby hand\n\n" + block.String() + "\nmore by hand\n"
	old := "# Figures\n\nby hand\n\n" + blockBegin + "\nold figures\n" + blockEnd + "\n\nmore by hand\n"
	for range 2 {
		got, err := Insert([]byte(old), sample())
		assert.NoError(t, err)
		assert.Equal(t, want, string(got), "the page")
		old = string(got)
	}
	for page, words := range map[string]string{
		"":                           "0 times; it must be there once",
		blockBegin + blockBegin:      "2 times; it must be there once",
		blockEnd + "\n" + blockBegin: "does not follow where the report begins",
	} {
		_, err := Insert([]byte(page), sample())
		assert.ErrorContains(t, err, words, "page %q", page)
	}
}
