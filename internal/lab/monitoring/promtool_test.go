package monitoring

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// installed finds a program of a package of Debian, or skips the test.
func installed(t testing.TB, program, from string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Skipf("needs %s, of the package %s: %v", program, from, err)
	}
	return path
}

// Prometheus understands the rules, and they fire when they should and not before.
func TestRules(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: promtool computes for seconds")
	}
	t.Parallel()
	promtool := installed(t, "promtool", "prometheus")
	for _, args := range [][]string{
		{"check", "rules", "--lint=all", "--lint-fatal", filepath.Base(rules)},
		{"test", "rules", filepath.Base(ruleTests[0]), filepath.Base(ruleTests[1])},
	} {
		c := exec.Command(promtool, args...)
		c.Dir = filepath.Dir(rules)
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
}
