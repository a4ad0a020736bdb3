package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"topdog/gpio"
	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/internal/lab/assert"
)

// TestReloadTouchesWhatHasChanged: another light is opened if another one is
// configured, and only then; what needs a restart keeps its value and is told of.
func TestReloadTouchesWhatHasChanged(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		opened := 0
		one := l.board(1, func(_ *config.Config, b *fakeBoard) {
			b.openLED = func() (gpio.LED, error) {
				opened++
				return b.led, nil
			}
		})
		pass(2 * time.Second)
		for _, step := range []struct {
			change func(*config.Config)
			opened int
			logs   string // the last line
		}{
			{func(c *config.Config) { c.Priority = 120 }, 1, "info: read the configuration again; changed: [priority]"},
			{func(c *config.Config) {}, 1, "info: read the configuration again; nothing has changed"},
			{func(c *config.Config) {
				var err error
				if c.LED, err = gpio.ParseSpec("GPIO17"); err != nil {
					t.Error(err)
				}
			}, 2, "info: read the configuration again; changed: [led]"},
			{func(c *config.Config) { c.PageHosts = []string{"topdog.lan"} }, 2, "info: the default: page_hosts has changed, which is for the page: systemctl restart topdog-page"},
			{func(c *config.Config) {}, 2, "info: read the configuration again; nothing has changed"},
			{func(c *config.Config) { c.SecondInterface = "wlan0" }, 2, "warning: the default: interface has changed, which needs a restart: systemctl restart topdog"},
			{func(c *config.Config) { c.Group, c.SecondInterface = "another", "" }, 2, "warning: the default: group has changed, which needs a restart: systemctl restart topdog"},
		} {
			one.reload(step.change)
			pass(time.Second)
			one.get(func() { assert.Is(t, step.logs, one.logged[len(one.logged)-1], "logged") })
			assert.Is(t, step.opened, opened, "how often a light was opened, after %q", step.logs)
		}
		if s := one.mustStatus(t); s.Group != "test" || s.Boards[0].Priority != 120 {
			t.Errorf("group %q, priority %d", s.Group, s.Boards[0].Priority)
		}
	})
}

// A file that anybody could have written changes nothing, and a leader goes on.
func TestReloadOfAStrangersFile(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one := l.board(1, nil)
		pass(2 * time.Second)
		path := filepath.Join(t.TempDir(), "topdog.toml")
		file := "address = \"10.0.0.100\"\npriority = 7\nkey_file = \"key\"\n"
		if err := errors.Join(os.WriteFile(path, []byte(file), 0o644), os.Chmod(path, 0o666),
			os.WriteFile(filepath.Join(filepath.Dir(path), "key"), one.cfg.Keys.Encode(), 0o600)); err != nil {
			t.Fatal(err)
		}
		one.board.Reload(path)
		pass(time.Second)
		s := one.mustStatus(t)
		if got := s.Boards[0].Priority; got == 7 || s.Role != console.RoleLeader {
			t.Errorf("it is a %s of priority %d, want the leader of the priority before", s.Role, got)
		}
		told := false
		one.get(func() {
			for _, line := range one.logged {
				told = told || strings.Contains(line, "the new configuration was not applied:\n"+path+": the configuration is not used: everybody may write to ")
			}
		})
		if !told {
			t.Error("nobody is told")
		}
	})
}

// TestReloadOfAFile: a file with a mistake changes nothing.
func TestReloadOfAFile(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one := l.board(1, nil)
		pass(2 * time.Second)
		path := filepath.Join(t.TempDir(), "topdog.toml")
		write := func(line string) {
			t.Helper()
			file := "address = \"10.0.0.100\"\n" + line + "\nkey_file = \"key\"\n"
			assert.NoError(t, errors.Join(os.WriteFile(path, []byte(file), 0o644), os.WriteFile(filepath.Join(filepath.Dir(path), "key"), one.cfg.Keys.Encode(), 0o600)))
			one.board.Reload(path)
			pass(time.Second)
		}
		write("priority = 300")
		write("priority = 7")
		assert.Equal(t, 7, one.mustStatus(t).Boards[0].Priority, "the priority")
		refused := 0
		one.get(func() {
			for _, line := range one.logged {
				if strings.Contains(line, "the new configuration was not applied:\n"+path+":2:12: priority: 300") {
					refused++
				}
			}
		})
		if refused != 1 {
			t.Errorf("the mistake is logged %d times: %q", refused, one.logged)
		}
	})
}
