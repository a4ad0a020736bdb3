package compare_test

import (
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"topdog/election/literature"
	"topdog/internal/lab/assert"
	"topdog/internal/lab/compare"
)

func request(boards ...int) *compare.Request {
	r := compare.NewRequest()
	r.Boards, r.Failures = boards, 3
	return r
}

// TestRun lets every algorithm replace a leader, twice with the same seed.
func TestRun(t *testing.T) {
	rows, err := request(3, 10).Run(t.Context())
	assert.NoError(t, err)
	if want := 2 * len(literature.Algorithms()); len(rows) != want {
		t.Fatalf("%d rows, want %d", len(rows), want)
	}
	for _, r := range rows {
		if r.Messages < r.Packets || r.Packets < 1 || r.Time <= 0 || r.Longest < r.Time || r.Agreed < r.Time {
			t.Errorf("this cannot be: %+v", r)
		}
	}
	again, err := request(3, 10).Run(t.Context())
	assert.NoError(t, err)
	assert.Equal(t, rows, again, "the same seed again")
}

// TestHeirIsBest holds what topdog promises of its own algorithm: nobody is
// faster, and it takes the same few packets however many boards there are: six
// questions, since one or three could all be lost on a wire that has just become bad,
// and the claim. Those that take fewer are the two that depose a leader without asking
// for it and, as long as there are hardly any boards, those that ask each of them once.
func TestHeirIsBest(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this computes for seconds")
	}
	r := request(3, 20)
	r.Failures = 20
	rows, err := r.Run(t.Context())
	assert.NoError(t, err)
	for _, r := range rows {
		if r.Name == "heir" && r.Packets != 7 {
			t.Errorf("heir takes %d packets with %d boards, want 7", r.Packets, r.Boards)
		}
	}
	unasked := regexp.MustCompile(`^(\d+ boards: (candidates|minid)|3 boards: (bully|modified|score|agents)) takes \d+ packets,`)
	for _, line := range compare.Beaten(rows, "heir") {
		if !unasked.MatchString(line) {
			t.Error(line)
		}
	}
}

func TestBeaten(t *testing.T) {
	row := func(name string, boards, packets int, took time.Duration) compare.Row {
		return compare.Row{Name: name, Boards: boards, Packets: packets, Time: took}
	}
	got := compare.Beaten([]compare.Row{
		row("heir", 3, 4, 5), row("bully", 3, 4, 5), // equal is not beaten
		row("heir", 5, 4, 5), row("bully", 5, 3, 6),
		row("heir", 9, 4, 5), row("bully", 9, 5, 4),
	}, "heir")
	want := []string{"5 boards: bully takes 3 packets, heir 4", "9 boards: bully takes 4ns, heir 5ns"}
	assert.Equal(t, want, got, "")
}

// TestPlot checks that a browser could read the picture, and that it shows everybody.
func TestPlot(t *testing.T) {
	for _, boards := range [][]int{{3, 10}, {10}} {
		rows, err := request(boards...).Run(t.Context())
		assert.NoError(t, err)
		var b strings.Builder
		assert.NoError(t, compare.Plot(&b, rows))
		for d := xml.NewDecoder(strings.NewReader(b.String())); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%v boards: no XML: %v", boards, err)
			}
		}
		for _, name := range append(literature.Algorithms(), "figure 11", "packets", "ms") {
			if !strings.Contains(b.String(), name) {
				t.Errorf("%v boards: the picture does not show %q", boards, name)
			}
		}
		if strings.Contains(b.String(), "NaN") || strings.Contains(b.String(), "Inf") {
			t.Errorf("%v boards: the picture has a point nowhere", boards)
		}
	}
}
