package bench

import (
	"os"
	"testing"
)

// This process has used the processor and has memory.
func TestUsageOfThisProcess(t *testing.T) {
	u, err := usageOf([]int{os.Getpid()})
	if err != nil || u.busy <= 0 || u.rss < u.pss || u.pss == 0 {
		t.Errorf("%+v, %v", u, err)
	}
	if u, err := usageOf([]int{1 << 22}); err != nil || u != (usage{}) {
		t.Errorf("a process that has ended: %+v, %v", u, err)
	}
	if processorModel() == "" {
		t.Error("the processor has no name")
	}
}
