package installcluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"topdog/internal/lab/assert"
)

// Of several packages in --packages the newest is installed, as Debian compares
// versions, and so it is on a machine that has no dpkg. The script's own function is asked, once for all of them.
func TestNewestPackage(t *testing.T) {
	t.Parallel()
	rows := []struct{ name, older, newer string }{
		{"release", "1.9.0", "1.10.0"},
		{"after a release", "1.2.3", "1.2.3+4.gabcdef0"},
		{"changed after a release", "1.2.3", "1.2.3.dirty"},
		{"more commits", "1.2.3+9.gfedcba9", "1.2.3+10.gabcdef0"},
		{"changed", "1.2.3+4.gabcdef0", "1.2.3+4.gabcdef0.dirty"},
		{"candidate", "1.3.0~rc1", "1.3.0"},
		{"before the first release", "0.1.0~git20260102030405.abcdef0", "0.1.0"},
	}
	for _, dpkg := range []bool{true, false} {
		t.Run(fmt.Sprintf("with dpkg: %t", dpkg), func(t *testing.T) {
			if _, err := exec.LookPath("dpkg"); dpkg && err != nil {
				t.Skipf("needs dpkg: %v", err)
			}
			s := newSite(t, "")
			if !dpkg {
				s.write("here/dpkg", "#!/bin/sh\nexit 127\n", 0o755)
			}
			var want []string
			for i, row := range rows {
				for _, v := range []string{row.older, row.newer} {
					s.write(fmt.Sprintf("debs/%d/topdog_%s_arm64.deb", i, v), "", 0o644)
				}
				want = append(want, fmt.Sprintf("%s: topdog_%s_arm64.deb", row.name, row.newer))
			}
			ask := exec.Command("bash", "-euc", `eval "$(sed -n '/^newer()/,/^# name_package/p' "$0")"
for packages; do newest arm64; done`, s.script)
			for i := range rows {
				ask.Args = append(ask.Args, filepath.Join(s.dir, "debs", fmt.Sprint(i)))
			}
			ask.Env = s.env
			out, err := ask.CombinedOutput()
			assert.NoError(t, err)
			var got []string
			for i, path := range strings.Fields(string(out)) {
				got = append(got, rows[i].name+": "+filepath.Base(path))
			}
			assert.Equal(t, want, got, "")
		})
	}
}

// Without 4.4, the script says so, and not that a variable is unset.
func TestBashVersion(t *testing.T) {
	t.Parallel()
	s := newSite(t, "")
	text, err := os.ReadFile(s.script)
	assert.NoError(t, err)
	for version, old := range map[string]bool{"3 2": true, "4 3": true, "4 4": false, "5 0": false} {
		// BASH_VERSINFO itself cannot be set.
		pretended := "#!/usr/bin/env bash\npretended=(" + version + ")\n" + strings.ReplaceAll(string(text), "BASH_VERSINFO[", "pretended[")
		s.write("scripts/install-cluster", pretended, 0o755)
		out, status := s.install()
		assert.Is(t, 2, status, "with %s: the status", version)
		assert.Is(t, old, strings.Contains(out, "too old, 4.4 is needed"), "with %s: %s", version, out)
	}
}
