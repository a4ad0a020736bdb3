package bench

import (
	"os"
	"strings"
	"testing"
	"time"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/bench/report"
)

func TestParseRollup(t *testing.T) {
	const text = "55d1-7ffc ---p 00000000 00:00 0 [rollup]\nRss:               11536 kB\nPss:                7204 kB\nPss_Dirty:          3000 kB\nSwapPss:               0 kB\n"
	rss, pss, err := parseRollup(text)
	if err != nil || rss != 11536*1024 || pss != 7204*1024 {
		t.Errorf("%d and %d, %v", rss, pss, err)
	}
	for _, text := range []string{"", "Rss: 1 kB\n", "Rss: 1 kB\nPss: x kB\n", "Rss: 1 MB\nPss: 1 MB\n"} {
		if rss, pss, err := parseRollup(text); err == nil {
			t.Errorf("%q was taken for %d and %d", text, rss, pss)
		}
	}
}

func TestParseChildren(t *testing.T) {
	const stat = "7 (a ) b) S 1 7 7 0 -1 4194560 1 2 3 4 11 12 13 14 20 0 1 0 99 1 1"
	if got, err := parseChildren(stat); err != nil || got != 270*time.Millisecond {
		t.Errorf("%v, %v", got, err)
	}
	for _, text := range []string{"", "7 (a) S 1 2 3", strings.Replace(stat, "13", "x", 1)} {
		if got, err := parseChildren(text); err == nil {
			t.Errorf("%q was taken for %v", text, got)
		}
	}
}

func TestParseModel(t *testing.T) {
	for text, want := range map[string]string{
		"processor\t: 0\nmodel name\t: Some(R) CPU @ 2 GHz\n\nprocessor\t: 1\nmodel name\t: Some(R) CPU @ 2 GHz\n": "Some(R) CPU @ 2 GHz",
		"processor\t: 0\nmodel name\t: ARMv7\nRevision\t: a02082\nModel\t\t: Raspberry Pi 3 Model B Rev 1.2\n":     "Raspberry Pi 3 Model B Rev 1.2",
		"": "unknown",
	} {
		assert.Is(t, want, parseModel(text), "")
	}
}

// This process has used the processor and has memory.
func TestUsageOfThisProcess(t *testing.T) {
	u, err := usageOf([]int{os.Getpid()})
	if err != nil || u.processes != 1 || u.busy <= 0 || u.rss < u.pss || u.pss == 0 {
		t.Errorf("%+v, %v", u, err)
	}
	if u, err := usageOf([]int{1 << 30}); err != nil || u != (usage{}) {
		t.Errorf("a process that has ended: %+v, %v", u, err)
	}
}

func TestMean(t *testing.T) {
	got := mean([]report.Cost{{Processor: 0.01, RSS: 10, PSS: 4, Processes: 2}, {Processor: 0.03, RSS: 20, PSS: 6, Processes: 2}})
	assert.Equal(t, report.Cost{Processor: 0.02, RSS: 15, PSS: 5, Processes: 2}, got, "")
	assert.Is(t, report.Cost{}, mean(nil), "what nobody costs")
}
