package hooks

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"topdog/internal/lab/assert"
)

// needsRoot skips a test of files that must belong to root.
func needsRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can make files that belong to root")
	}
}

// directory makes one for hooks, which belongs to root and nobody else may write to.
func directory(t *testing.T) string {
	t.Helper()
	needsRoot(t)
	dir := filepath.Join(t.TempDir(), "hooks.d")
	assert.NoError(t, os.Mkdir(dir, 0o755))
	assert.NoError(t, os.Chmod(dir, 0o755))
	return dir
}

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	assert.WriteFile(t, path, []byte(text), mode)
	assert.NoError(t, os.Chmod(path, mode))
}

func TestScripts(t *testing.T) {
	dir := directory(t)
	elsewhere := t.TempDir()
	assert.NoError(t, os.Chmod(elsewhere, 0o777))
	for name, mode := range map[string]os.FileMode{
		"20-second": 0o755, "10-first": 0o700, "30-text.txt": 0o644, ".hidden": 0o755, "10-first~": 0o755,
		"10-first.dpkg-old": 0o755, "10-first.dpkg-dist": 0o755, "40-group": 0o775, "50-others": 0o757, "60-foreign": 0o755, ".70.swp": 0o755,
	} {
		write(t, filepath.Join(dir, name), "#!/bin/sh\n", mode)
	}
	assert.NoError(t, os.Chown(filepath.Join(dir, "60-foreign"), 65533, -1))
	write(t, filepath.Join(elsewhere, "mine"), "#!/bin/sh\n", 0o755)
	for name, target := range map[string]string{
		"70-link": filepath.Join(dir, "20-second"), "71-dangling": "/nowhere", "72-foreign": filepath.Join(dir, "60-foreign"),
		"73-elsewhere": filepath.Join(elsewhere, "mine"),
	} {
		assert.NoError(t, os.Symlink(target, filepath.Join(dir, name)))
	}
	assert.NoError(t, os.Mkdir(filepath.Join(dir, "80-directory"), 0o755))
	assert.NoError(t, os.Mkdir(filepath.Join(dir, leaderDirectory), 0o755))
	write(t, filepath.Join(dir, leaderDirectory, "00-replica"), "#!/bin/sh\n", 0o755)

	found, remarks := scripts(dir)
	var runs []string
	for _, s := range found {
		runs = append(runs, strings.TrimPrefix(s.path, dir+"/"))
		assert.Is(t, strings.Contains(s.path, leaderDirectory), s.eachLeader, "%s runs for each leader", s.path)
	}
	assert.Equal(t, []string{"10-first", "20-second", "70-link", "leader.d/00-replica"}, runs, "what runs")
	got := map[string]string{}
	for _, m := range remarks {
		name := strings.TrimPrefix(m.path, dir+"/")
		if m.bad {
			name = "! " + name
		}
		got[name] = strings.ReplaceAll(m.text, dir, "DIR")
	}
	want := map[string]string{
		".hidden": "is hidden, and ignored", ".70.swp": "is hidden, and ignored",
		"10-first~":          "is left over from an editor or from dpkg, and ignored",
		"10-first.dpkg-old":  "is left over from an editor or from dpkg, and ignored",
		"10-first.dpkg-dist": "is left over from an editor or from dpkg, and ignored",
		"30-text.txt":        "is not executable, and ignored (if it is a hook: sudo chmod +x DIR/30-text.txt)",
		"! 40-group":         "does not run: DIR/40-group may be written to by others than root: sudo chmod go-w DIR/40-group",
		"! 50-others":        "does not run: DIR/50-others may be written to by others than root: sudo chmod go-w DIR/50-others",
		"! 60-foreign":       "does not run: DIR/60-foreign must belong to root: sudo chown root: DIR/60-foreign",
		"! 71-dangling":      "does not run: lstat /nowhere: no such file or directory",
		"! 72-foreign":       "does not run: DIR/60-foreign must belong to root: sudo chown root: DIR/60-foreign",
		"! 73-elsewhere":     "does not run: " + elsewhere + " may be written to by others than root: sudo chmod go-w " + elsewhere,
		"80-directory":       "is no file, and ignored",
	}
	assert.Equal(t, want, got, "what does not run")

	// A directory that others may change is not looked into.
	assert.NoError(t, os.Chmod(dir, 0o775))
	found, remarks = scripts(dir)
	if len(found) != 0 || len(remarks) != 1 || !remarks[0].bad || !strings.Contains(remarks[0].text, "no hook in it runs: "+dir+" may be written to") {
		t.Errorf("in a directory that others may change: %v, %v", found, remarks)
	}
	assert.NoError(t, os.Chmod(dir, 0o755))
	assert.NoError(t, os.Chown(dir, 65533, -1))
	if _, remarks = scripts(dir); len(remarks) != 1 || !strings.Contains(remarks[0].text, "must belong to root: sudo chown root: "+dir) {
		t.Errorf("in a directory of somebody else: %v", remarks)
	}
	if found, remarks = scripts(filepath.Join(dir, "missing")); len(found)+len(remarks) > 0 {
		t.Errorf("without a directory: %v, %v", found, remarks)
	}
}
