package installcluster

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Of several packages in --packages the newest is installed, as Debian compares
// versions, and so it is on a machine that has no dpkg.
func TestNewestPackage(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, older, newer string }{
		{"release", "1.9.0", "1.10.0"},
		{"after a release", "1.2.3", "1.2.3+4.gabcdef0"},
		{"changed after a release", "1.2.3", "1.2.3.dirty"},
		{"more commits", "1.2.3+9.gfedcba9", "1.2.3+10.gabcdef0"},
		{"changed", "1.2.3+4.gabcdef0", "1.2.3+4.gabcdef0.dirty"},
		{"candidate", "1.3.0~rc1", "1.3.0"},
		{"before the first release", "0.1.0~git20260102030405.abcdef0", "0.1.0"},
	} {
		for _, dpkg := range []bool{true, false} {
			name := tc.name + ", with dpkg"
			if !dpkg {
				name = tc.name + ", without dpkg"
			}
			t.Run(name, func(t *testing.T) {
				if _, err := exec.LookPath("dpkg"); dpkg && err != nil {
					t.Skipf("needs dpkg: %v", err)
				}
				s := siteToLookAt(t, "b1")
				if !dpkg {
					s.write("here/dpkg", "#!/bin/sh\nexit 127\n", 0o755)
				}
				for _, v := range []string{tc.older, tc.newer} {
					s.write("debs/topdog_"+v+"_arm64.deb", v+" arm64\n", 0o644)
				}
				out := s.install(0, "--dry-run", "pi@b1", "--address", first, "--packages", filepath.Join(s.dir, "debs"))
				s.says(out, "[pi@b1] would install topdog "+tc.newer+"\n")
			})
		}
	}
}

// A board that there is no package for fails alone, and one that is not done
// anyway needs none.
func TestPackageMissing(t *testing.T) {
	s := newSite(t, "b1", "b3")
	s.board("b0", "amd64")
	s.board("b2", "armhf")
	s.is("b2", "no-sudo")
	s.write("debs/topdog_1_arm64.deb", "1 arm64\n", 0o644)
	out := s.install(1, "pi@b0", "pi@b1", "pi@b2", "pi@b3", "--address", first, "--packages", filepath.Join(s.dir, "debs"))
	s.says(out,
		"[pi@b2] FAILED: the user may not use sudo",
		"[pi@b0] FAILED: there is no topdog_VERSION_amd64.deb in ", "scripts/package -o DIR amd64 builds one",
		"[pi@b1] wrote ", "[pi@b3] wrote ",
		"One leader: b3 (id-of-b3). All boards that are well follow it.",
		"2 of 4 boards failed")
	if strings.Contains(out, "armhf.deb") {
		t.Errorf("a package is missed for a board that is not done:\n%s", out)
	}
	if s.key("b1") == "" || s.key("b1") != s.key("b3") {
		t.Error("the other boards were not set up")
	}
}

// Without 4.4, the script says so, and not that a variable is unset.
func TestBashVersion(t *testing.T) {
	t.Parallel()
	for version, old := range map[string]bool{"3 2": true, "4 3": true, "4 4": false, "5 0": false} {
		t.Run(version, func(t *testing.T) {
			s := siteToLookAt(t, "b1")
			text, err := os.ReadFile(s.script)
			must(t, err)
			// BASH_VERSINFO itself cannot be set.
			pretended := "#!/usr/bin/env bash\npretended=(" + version + ")\n" + strings.ReplaceAll(string(text), "BASH_VERSINFO[", "pretended[")
			s.write("scripts/install-cluster", pretended, 0o755)
			if out := s.install(2); strings.Contains(out, "too old, 4.4 is needed") != old {
				t.Errorf("it says\n%s", out)
			}
		})
	}
}

// A board whose daemon waits for its configuration is no cluster that an upgrade must not disturb: it gets one.
func TestUpgradeOfABoardThatWaits(t *testing.T) {
	s := newSite(t, "b1", "b2")
	for _, b := range []string{"b1", "b2"} {
		s.write("boards/"+b+"/version", "1.0.0\n", 0o644)
		s.write("boards/"+b+"/cut-off", "", 0o644) // it follows nobody
		s.is(b, "runs")
	}
	out := s.install(1, "pi@b1", "pi@b2", "--address", first)
	if s.says(out, "[pi@b2] installs topdog 1.2.0", "[pi@b2]"); s.key("b1") == "" || s.key("b1") != s.key("b2") {
		t.Errorf("the boards have no key in common:\n%s", out)
	}
}
