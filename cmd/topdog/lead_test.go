package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"topdog/internal/config"
	"topdog/internal/lab/assert"
	"topdog/internal/lab/judge"
)

func TestReload(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 2, nil)
		c.start(c.boards...)
		old := c.agree()
		began := time.Now()

		// A broken configuration is refused with its place, and changes nothing.
		good, err := os.ReadFile(old.ConfigFile())
		must(t, err)
		old.writeConfig(string(good) + "priority = 999\n")
		old.signal(syscall.SIGHUP)
		lines := strings.Count(string(good), "\n")
		old.untilLogged(old.ConfigFile()+":"+strconv.Itoa(lines+1)+":12", "priority")
		old.untilLogged("the new configuration was not applied")
		c.agreeOn(old, c.boards...)

		// What cannot be changed while it runs is said to need a restart.
		old.set(settings{"heartbeat": quote((2 * heartbeat).String())})
		old.signal(syscall.SIGHUP)
		pending := func(times int) {
			t.Helper()
			c.until(fmt.Sprintf("%d warnings that it needs a restart", times), func() string {
				if n := old.Log.Count("heartbeat has changed, which needs a restart"); n != times {
					return fmt.Sprintf("there are %d", n)
				}
				return ""
			})
		}
		pending(1)
		// It is still so when the same is read again, and not any more once it is changed back.
		old.signal(syscall.SIGHUP)
		pending(2)
		old.set(settings{"heartbeat": quote(heartbeat.String())})
		old.signal(syscall.SIGHUP)
		old.untilLogged("nothing has changed")
		pending(2)
		c.agreeOn(old, c.boards...)
		c.undisturbed(began, old)

		// Priority 0: never lead. The leader hands over.
		old.set(settings{"priority": "0"})
		reloaded := time.Now()
		old.signal(syscall.SIGHUP)
		c.untilTakenFrom(old)
		leader := c.except(old)[0]
		c.agreeOn(leader, c.boards...)
		c.twoHoldersAtMost(reloaded, 0)
		c.handedOver(leader)

		// Nobody takes over from the last board that may lead, until it may again.
		must(t, leader.Pull())
		c.untilHolders("nobody may lead", func(h []int) bool { return len(h) == 0 })
		c.watchFor(5 * heartbeat)
		if held := c.Holders.Current(); len(held) > 0 {
			t.Errorf("%v has the address with priority 0", held)
		}
		old.set(settings{"priority": "50"})
		old.signal(syscall.SIGHUP)
		c.agreeOn(old, old)
		c.twoHoldersAtMost(began, 0)
	})
}

// What runs as a service says a mistake once it stays; how long that takes, and what is waited for, is
// TestFilesReplacedAtTheStart. A command says it at once.
func TestConfigMistakes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for n, mistake := range []struct{ text, want string }{
		{"adress = \"10.77.0.100\"\n", ":1:1: "},
		{"# a comment\naddress = \"10.77.0.100\"\npriority = 300\n", ":3:12: "},
		{"address = \"10.77.0.100\"\nheartbeat = \"fast\"\n", ":2:13: "},
		{"address = \"10.77.0.100\"\nled = \"GPIO\"\n", ":2:7: "},
		{"address = \"10.77.0.100\"\nalgorithm = \"raft\"\n", ":2:13: "},
		{"address = \n", ":1:"},
		{"", ":1:1: "},
	} {
		path := filepath.Join(dir, "topdog.toml")
		must(t, os.WriteFile(path, []byte(mistake.text), 0o644))
		says := map[string]func(testing.TB, ...string) outcome{"cleanup": executed}
		if n == 0 {
			says["run"] = execHere // for two seconds, which one mistake is enough for
		}
		for verb, exec := range says {
			exec(t, verb, "--config", path).want(t, exitConfig, fmt.Sprintf("%s with %q", verb, mistake.text), path+mistake.want)
		}
	}
	executed(t, "cleanup", "--config", filepath.Join(dir, "nothing.toml")).
		want(t, exitConfig, "no configuration", "nothing.toml", "topdog init")
}

// A key that others may read is refused, and so is none. A key that is not there is waited for.
func TestKeyMistakes(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]struct {
		text []byte
		mode os.FileMode
	}{
		"a key for all to read": {config.Keyring{Signs: config.NewKey()}.Encode(), 0o644},
		"no key in the file":    {[]byte("secret\n"), 0o600},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path, keyPath := filepath.Join(dir, "topdog.toml"), filepath.Join(dir, "key")
			must(t, os.WriteFile(path, []byte("address = \"10.77.0.100\"\nkey_file = \"key\"\n"), 0o644))
			must(t, os.WriteFile(keyPath, key.text, key.mode))
			execHere(t, "run", "--config", path).want(t, exitConfig, name, keyPath)
		})
	}
}

func TestInit(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "etc", "topdog")
	path, keyPath := filepath.Join(dir, "topdog.toml"), filepath.Join(dir, "key")
	run := func(args ...string) outcome {
		// This machine need not be in that network.
		return executed(t, append([]string{"init", "--config", path, "--interface", "eth0"}, args...)...)
	}
	run().want(t, exitUsage, "no address")
	if o := run("10.77.0.300"); o.status == 0 || !strings.Contains(o.stderr, "10.77.0.300") {
		t.Errorf("no such address: %v", o)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Errorf("a mistake left %s behind", dir)
	}

	o := run("10.77.0.100")
	if o.status != 0 || !strings.Contains(o.stdout, path) || !strings.Contains(o.stdout, keyPath) {
		t.Fatalf("init: %v", o)
	}
	for file, mode := range map[string]os.FileMode{path: 0o644, keyPath: 0o600} {
		info, err := os.Stat(file)
		must(t, err)
		assert.Is(t, mode, info.Mode(), "the mode of %s", file)
	}
	config, err := os.ReadFile(path)
	must(t, err)
	key, err := os.ReadFile(keyPath)
	must(t, err)
	if strings.Contains(o.String(), strings.TrimSpace(string(key[len(key)-65:]))) {
		t.Error("init printed the key")
	}

	run("10.77.0.101").want(t, 1, "init was not refused where a configuration exists", path)
	unchanged := func(when, file string, want []byte) {
		t.Helper()
		if now, err := os.ReadFile(file); err != nil || string(now) != string(want) {
			t.Errorf("%s: %s was changed (%v)", when, file, err)
		}
	}
	unchanged("refused", path, config)
	unchanged("refused", keyPath, key)

	// A copied key stays.
	must(t, os.Remove(path))
	run("10.77.0.101").want(t, 0, "init beside a key", "kept")
	unchanged("kept", keyPath, key)
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("%s has %v, %v", dir, entries, err)
	}
}

// What init writes is all that a board needs. Alone, it cannot resign.
func TestInitAndRun(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 1, nil)
		b := c.board(1)
		must(t, os.Remove(b.ConfigFile()))
		must(t, os.Remove(b.KeyFile()))
		if o := execOn(t, c.program, b.Host, []string{"init", vip.String(), "--config", b.ConfigFile()}); o.status != 0 {
			t.Fatalf("init: %v", o)
		}
		written, err := os.ReadFile(b.ConfigFile())
		must(t, err)
		// Nothing but what cannot be shared with other tests on this machine.
		b.writeConfig(string(written) + "socket = " + b.Settings()["socket"] + "\nname = \"pi1\"\n")
		b.topdog("resign").want(t, 1, "resign without a daemon", "does not run")
		b.start()
		c.agreeOn(b, b)
		began := time.Now()
		b.topdog("resign").want(t, 1, "resign of the only board", "nobody to hand over to")
		c.undisturbed(began, b)
	})
}
