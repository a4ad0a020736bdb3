package netns

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"topdog/internal/lab/assert"
)

// What was late before a moment is no evidence, and of much the first few are told.
func TestLate(t *testing.T) {
	began := time.Now()
	m := &Machine{late: []observation{{began.Add(-time.Second), "before"}}}
	assert.Is(t, "", m.Late(began), "nothing was late")
	for n := range 7 {
		m.late = append(m.late, observation{began.Add(time.Duration(n+1) * time.Second), fmt.Sprint(n)})
	}
	const want = "after 1.0 s 0; after 2.0 s 1; after 3.0 s 2; after 4.0 s 3; after 5.0 s 4; 2 more"
	assert.Is(t, want, m.Late(began), "")
	for range keep {
		m.note("again")
	}
	if len(m.late) > keep {
		t.Errorf("%d observations are kept", len(m.late))
	}
}

func TestBusy(t *testing.T) {
	began := time.Now()
	m := &Machine{usages: []usage{{began.Add(-time.Second), 0, 0}, {began, 200, 0}, {began.Add(time.Second), 400, 100}, {began.Add(2 * time.Second), 600, 300}}}
	for _, test := range []struct {
		since time.Time
		want  float64
	}{{began.Add(-time.Minute), 0.5}, {began, 0.25}, {began.Add(time.Second), 0}, {began.Add(2 * time.Second), 0}, {began.Add(time.Hour), 0}} {
		assert.Is(t, test.want, m.Busy(test.since), "busy since %v", test.since.Sub(began))
	}
	u := usageOf(began, procfs.CPUStat{
		User: 1, Nice: 20, System: 300, Idle: 4000, Iowait: 50000, IRQ: 600000, SoftIRQ: 7000000, Steal: 80000000, Guest: 11, GuestNice: 22,
	})
	assert.Equal(t, usage{began, 87654321, 54020}, u, "time of the processors, and that without work")
	m.measureUsage()
	if u := m.usages[len(m.usages)-1]; u.spare <= 0 || u.spare >= u.all {
		t.Errorf("the processors had nothing to do for %v of %v s", u.spare, u.all)
	}
}

// TestFamily looks several times: who comes is found, and who goes is forgotten.
func TestFamily(t *testing.T) {
	wantFamily := func(want ...int) {
		t.Helper()
		assert.Equal(t, want, family(os.Getpid()), "the family of this process")
	}
	wantFamily(os.Getpid())
	child := exec.Command("cat")
	end, err := child.StdinPipe()
	assert.NoError(t, err)
	assert.NoError(t, child.Start())
	for range 2 {
		wantFamily(os.Getpid(), child.Process.Pid)
	}
	end.Close()
	assert.NoError(t, child.Wait())
	wantFamily(os.Getpid())
}
