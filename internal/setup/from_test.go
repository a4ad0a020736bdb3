package setup

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"topdog/internal/config"
	"topdog/internal/lab/assert"
)

// The example in docs/keepalived.md is what topdog makes of it.
func TestTheExampleOfTheManual(t *testing.T) {
	manual, err := os.ReadFile("../../docs/keepalived.md")
	assert.NoError(t, err)
	blocks := strings.Split(string(manual), "```\n")
	var text, want string
	for i, block := range blocks {
		if strings.Contains(block, "vrrp_instance PIHOLE {") {
			text, want = block, blocks[i+2]
		}
	}
	b := Board{Path: config.DefaultPath, From: "keepalived.conf"}
	assert.NoError(t, b.convertText([]byte(text), func(name string) bool { return name == "pihole-FTL.service" }))
	var out bytes.Buffer
	assert.NoError(t, b.preview(&out))
	assert.Equal(t, want, out.String(), "the example of the manual")
}

// pair is a file whose conversion does not depend on what this machine has.
const pair = `vrrp_instance VI_1 {
	interface eth0
	virtual_router_id 51
	priority 150
	virtual_ipaddress {
		192.168.1.250
	}
	notify DIR/said
	notify_master "DIR/said 'it is' master"
}
vrrp_instance VI_2 {
	virtual_ipaddress { 192.168.1.251 }
}
`

// converting is a board whose keepalived has the pair.
func converting(t *testing.T) Board {
	t.Helper()
	dir := t.TempDir()
	from := filepath.Join(dir, "keepalived.conf")
	assert.NoError(t, os.WriteFile(from, []byte(strings.ReplaceAll(pair, "DIR", dir)), 0o600))
	return Board{Path: filepath.Join(dir, "topdog", configName), From: from, Instance: "VI_1"}
}

func initOutput(t *testing.T, b Board) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := b.Init(t.Context(), strings.NewReader(""), &out)
	return out.String(), err
}

// What is there is kept, the same is no news, and only Force replaces what differs.
func TestInitFrom(t *testing.T) {
	b := converting(t)
	preview := b
	preview.DryRun = true
	if out, err := initOutput(t, preview); err != nil || !strings.Contains(out, "--- "+b.Path+"\n") || names(t, filepath.Dir(b.From))[0] != "keepalived.conf" {
		t.Errorf("with DryRun: %v\n%s", err, out)
	}
	if _, err := os.Stat(filepath.Dir(b.Path)); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("DryRun wrote something: %v", err)
	}

	out, err := initOutput(t, b)
	assert.NoError(t, err)
	hook := b.hookOf()
	says(t, out, "wrote "+hook+"\n", "wrote "+b.Path+"\n", "left out: VI_2 is another group", "disable --now keepalived", "topdog-hooks")
	assert.Is(t, 0o755, mode(t, hook), "the mode of the hook")
	assert.Is(t, 0o600, mode(t, filepath.Join(filepath.Dir(b.Path), keyName)), "the mode of the key")
	c := mustLoad(t, b)
	assert.Equal(t, []string{"interface", "group", "priority", "preempt", "key_file"}, changed(t, c), "what the file changes")
	if c.Group != "vrrp-51" || c.Priority != 150 || !c.Preempt {
		t.Errorf("it has group %s, priority %d, preempt %v", c.Group, c.Priority, c.Preempt)
	}

	out, err = initOutput(t, b)
	assert.NoError(t, err)
	says(t, out, "set up already", "kept  "+hook)
	assert.NoError(t, os.Remove(hook))
	out, err = initOutput(t, b)
	assert.NoError(t, err)
	says(t, out, "wrote "+hook)
	assert.NoError(t, os.WriteFile(hook, []byte("mine"), 0o755))
	if _, err := initOutput(t, b); !errors.Is(err, fs.ErrExist) || read(t, hook) != "mine" {
		t.Errorf("with another hook: %v", err)
	}
	other := b
	other.Group = "other"
	_, err = initOutput(t, other)
	assert.ErrorContains(t, err, `group = "vrrp-51" instead of "other"`, "with another group")
	other.Force = true
	if _, err := initOutput(t, other); err != nil || mustLoad(t, b).Group != "other" || read(t, hook) == "mine" {
		t.Errorf("with Force: %v", err)
	}
}

// hookOf is where the hook is.
// Of checks that look at the same, a message does not say that they are the same.
func TestInitFromWithAnotherCheck(t *testing.T) {
	b := converting(t)
	text := "vrrp_script s {\n script /bin/x\n interval 5\n}\n" + strings.Replace(pair, "notify DIR/said", "track_script {\n s\n}", 1)
	assert.NoError(t, os.WriteFile(b.From, []byte(text), 0o600))
	_, err := initOutput(t, b)
	assert.NoError(t, err)
	written, err := os.ReadFile(b.Path)
	assert.NoError(t, err)
	assert.NoError(t, os.WriteFile(b.Path, bytes.Replace(written, []byte(`every = "5s"`), []byte(`every = "7s"`), 1), 0o644))
	_, err = initOutput(t, b)
	assert.ErrorContains(t, err, "check = command /bin/x instead of the same with other settings", "with another interval")
}

func (b Board) hookOf() string { return filepath.Join(filepath.Dir(b.Path), hookName) }

func TestInitFromHasToChoose(t *testing.T) {
	b := converting(t)
	b.Instance = "VI_3"
	var asked UsageError
	if _, err := initOutput(t, b); !errors.As(err, &asked) || !strings.Contains(err.Error(), "has no vrrp_instance VI_3, but: VI_1, VI_2 (--instance NAME)") {
		t.Errorf("with another name: %v", err)
	}
	b.Instance, b.Group = "", "dns"
	if _, err := initOutput(t, b); !errors.As(err, &asked) || !strings.Contains(err.Error(), "leave out --group") {
		t.Errorf("with a name for two groups: %v", err)
	}
	b.From = filepath.Join(filepath.Dir(b.From), "missing")
	_, err := initOutput(t, b)
	assert.ErrorIs(t, err, fs.ErrNotExist, "without a file")
}

// Without a name, all groups are converted, and converting them again is no news.
func TestInitFromSeveral(t *testing.T) {
	b := converting(t)
	b.Instance, b.Interfaces = "", []string{"eth0"}
	said, err := initOutput(t, b)
	assert.NoError(t, err)
	says(t, said, "Start topdog on the boards that have the addresses now", "disable --now keepalived")
	groups, err := config.LoadGroups(b.Path)
	assert.NoError(t, err)
	assert.Equal(t, []string{"VI_1", "VI_2"}, groups.Names(), "groups")
	assert.Is(t, "150 true eth0, 100 true eth0", fmt.Sprintf("%d %t %s, %d %t %s", groups[0].Priority, groups[0].Preempt, groups[0].Interface,
		groups[1].Priority, groups[1].Preempt, groups[1].Interface), "priorities, preempt and interfaces")
	written, err := os.ReadFile(b.Path)
	assert.NoError(t, err)

	for text, want := range map[string]string{
		string(written): "<nil>",
		strings.Replace(string(written), "VI_2\"", "VI_3\"", 1):                `it has the groups ["VI_1", "VI_3"] instead of ["VI_1", "VI_2"]`,
		strings.Replace(string(written), "#priority = 100", "priority = 7", 1): `priority = 7 instead of the default in the group "VI_2"`,
		string(written[:bytes.LastIndex(written, []byte("[[group]]"))]):        `it has the groups ["VI_1"] instead of ["VI_1", "VI_2"]`,
	} {
		assert.NoError(t, os.WriteFile(b.Path, []byte(text), 0o644))
		out, err := initOutput(t, b)
		says(t, fmt.Sprint(err), want)
		if err == nil {
			says(t, out, "set up already", "192.168.1.250, 192.168.1.251", "kept  "+b.hookOf())
		}
	}
}

// The hook gives keepalived's scripts what keepalived gives them, and in its order.
func TestTheHookCallsTheScripts(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skipf("needs sh: %v", err)
	}
	for instance, group := range map[string]string{"VI_1": "vrrp-51", "": "VI_1"} {
		b := converting(t)
		b.Instance, b.Interfaces = instance, []string{"eth0"}
		assert.WriteFile(t, filepath.Join(filepath.Dir(b.From), "said"), []byte("#!/bin/sh\nprintf '[%s]' \"$@\"; echo\n"), 0o755)
		_, err := initOutput(t, b)
		assert.NoError(t, err)
		for arguments, want := range map[string]string{
			group + " MASTER": "[it is][master]\n[INSTANCE][VI_1][MASTER][150]\n",
			group + " BACKUP": "[INSTANCE][VI_1][BACKUP][150]\n",
			"VI_2 MASTER":     map[string]string{"VI_1": "[it is][master]\n[INSTANCE][VI_1][MASTER][150]\n"}[instance],
		} {
			out, err := exec.Command(b.hookOf(), append(append([]string{"INSTANCE"}, strings.Fields(arguments)...), "150")...).CombinedOutput()
			if err != nil || string(out) != want {
				t.Errorf("%s: %v\n%swant\n%s", arguments, err, out, want)
			}
		}
	}
}

// What is made of files as people have them is a configuration.
func TestConvertedFilesAreConfigurations(t *testing.T) {
	files, err := filepath.Glob("keepalived/testdata/*.conf")
	if err != nil || len(files) < 5 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		b := Board{Path: config.DefaultPath, From: file}
		hasUnit := func(string) bool { return true }
		err := b.convert(hasUnit)
		var asked UsageError
		if errors.As(err, &asked) { // "… choose one of: NAME, OTHER NAME …"
			_, names, _ := strings.Cut(err.Error(), "choose one of: ")
			b.Instance, _, _ = strings.Cut(names, ",")
			err = b.convert(hasUnit)
		}
		if err == nil {
			err = b.check()
		}
		assert.ErrorIs(t, err, nil, "%s", file)
	}
}
