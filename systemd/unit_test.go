package systemd

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"topdog/internal/lab/assert"
)

// unit is a unit file: every value of "Section.Key", in order.
type unit map[string][]string

func parseUnit(t *testing.T, path string) unit {
	t.Helper()
	f, err := os.Open(path)
	assert.NoError(t, err)
	defer f.Close()
	u, section := unit{}, ""
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		key, value, isSetting := strings.Cut(line, "=")
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '[' && strings.HasSuffix(line, "]"):
			section = line[1 : len(line)-1]
		case isSetting && section != "" && key == strings.TrimSpace(key):
			u[section+"."+key] = append(u[section+"."+key], value)
		default:
			t.Errorf("%s:%d: %q is neither a setting nor a section nor a comment", path, n, line)
		}
	}
	assert.NoError(t, lines.Err())
	return u
}

// TestPromises holds what testdata/promises.txt says of the units.
func TestPromises(t *testing.T) {
	var name string
	var u unit
	for line := range strings.Lines(read(t, "testdata/promises.txt")) {
		line = strings.TrimSpace(line)
		key, want, isSetting := strings.Cut(line, "=")
		absent, isAbsent := strings.CutPrefix(line, "no ")
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '[':
			name = strings.Trim(line, "[]")
			u = parseUnit(t, name)
		case isAbsent:
			for _, key := range strings.Fields(absent) {
				assert.Is(t, "", strings.Join(u[key], ", "), "%s: %s", name, key)
			}
		case isSetting:
			got, there := u[key]
			assert.Is(t, true, there, "%s: %s is there", name, key)
			assert.Is(t, want, strings.Join(got, ", "), "%s: %s", name, key)
		default:
			t.Errorf("testdata/promises.txt: %q", line)
		}
	}
}

// systemd's own opinion: no setting it does not know, and an exposure of at
// most 1.5 out of 10, of what needs rights of 2.5. What hooks themselves may do is for
// their owner to decide.
func TestUnitBySystemd(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	for name, threshold := range map[string]int{
		"topdog.service": 15, "topdog-holder.service": 25, "topdog-witness.service": 15, "topdog-leave.service": 15, "topdog-leader.service": 25,
		"topdog-page.service": 11, "topdog-leader.target": 0, "topdog-hooks.service": 100,
	} {
		t.Run(name, func(t *testing.T) { analyzeUnit(t, analyze, name, threshold) })
	}
}

func analyzeUnit(t *testing.T, analyze, name string, threshold int) {
	// verify wants the programs to exist, and the units that others name.
	dir := t.TempDir()
	units, err := filepath.Glob("topdog*.*")
	assert.NoError(t, err)
	for _, unit := range units {
		installed := strings.ReplaceAll(read(t, unit), "/usr/bin/topdog", "/bin/true")
		assert.NoError(t, os.WriteFile(filepath.Join(dir, unit), []byte(installed), 0o600))
	}
	copied := filepath.Join(dir, name)
	out, err := exec.Command(analyze, "verify", "--man=no", copied).CombinedOutput()
	for line := range strings.Lines(string(out)) {
		// It reports on other units of the machine too.
		if strings.Contains(line, "topdog") {
			t.Errorf("systemd-analyze verify: %v: %s", err, line)
		}
	}
	if !strings.HasSuffix(name, ".service") {
		return
	}
	out, err = exec.Command(analyze, "security", "--offline=yes", fmt.Sprintf("--threshold=%d", threshold), copied).CombinedOutput()
	if err != nil {
		t.Errorf("systemd-analyze security: %v\n%s", err, out)
	}
}

// The unit names a user and a group, and is refused if one does not exist; the
// rules hand things to that group.
func TestInstalledFilesAgree(t *testing.T) {
	service, page, holder := parseUnit(t, "topdog.service"), parseUnit(t, "topdog-page.service"), parseUnit(t, "topdog-holder.service")
	user, group := service["Service.User"][0], service["Service.SupplementaryGroups"][0]
	made := map[string]bool{}
	for line := range strings.Lines(read(t, "topdog.sysusers")) {
		if fields := strings.Fields(line); len(fields) > 2 && !strings.HasPrefix(fields[0], "#") {
			made[fields[0]+" "+fields[1]] = true
		}
	}
	want := map[string]bool{"u " + user: true, "g " + group: true, "m " + user: true, "u " + page["Service.User"][0]: true, "u " + holder["Service.User"][0]: true}
	assert.Equal(t, want, made, "topdog.sysusers")
	rules := read(t, "71-topdog.rules")
	for _, want := range []string{`KERNEL=="gpiochip*", GROUP="` + group + `"`, "chgrp " + group + " /sys%p/brightness /sys%p/trigger"} {
		if !strings.Contains(rules, want) {
			t.Errorf("71-topdog.rules: no %s", want)
		}
	}
}

func TestNetworkdFiles(t *testing.T) {
	got := map[string]unit{}
	for _, path := range []string{"topdog.network", "networkd-keep-address.conf"} {
		got[path] = parseUnit(t, path)
	}
	want := map[string]unit{
		"topdog.network":             {"Match.Name": {"topdog*"}, "Link.Unmanaged": {"yes"}},
		"networkd-keep-address.conf": {"Network.KeepConfiguration": {"yes"}},
	}
	assert.Equal(t, want, got, "")
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	assert.NoError(t, err)
	return string(text)
}
