package cluster

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/internal/lab/netns"
)

// ServiceNice is Nice= of systemd/topdog.service. Without it, whatever keeps all processors of
// this machine busy would make leaders late.
const ServiceNice = -10

// RaisePriority gives this program, and what it starts from now on, the priority of topdog's unit. Linux gives a priority to
// threads. One that another has started meanwhile gets it the second time.
func RaisePriority() error {
	for range 2 {
		err := netns.EachThread(os.Getpid(), func(id int) error { return unix.Setpriority(unix.PRIO_PROCESS, id, ServiceNice) })
		if err != nil {
			return fmt.Errorf("raise the priority to that of topdog's unit (%d): %w", ServiceNice, err)
		}
	}
	return nil
}

// Program is a program that is topdog, given its command line.
type Program struct {
	Path string
	Env  []string // added to the environment, as "NAME=value"
	Args []string // added to the arguments of its daemon
}

// Build builds topdog as it is released. It must be called in topdog's repository.
func Build(ctx context.Context, path string, env ...string) error {
	// The module of the browser tests has the repository in another directory than its own.
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "topdog").Output()
	if err != nil {
		return fmt.Errorf("build topdog: find its repository: %w", err)
	}
	c := exec.CommandContext(ctx, filepath.Join(strings.TrimSpace(string(root)), "scripts", "release-build"), path)
	c.Env = append(os.Environ(), env...)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("build topdog (run this in its repository): %w\n%s", err, out)
	}
	return nil
}

// Settings are keys of a configuration with their values as TOML has them; an empty value stands
// for a key that is not set.
type Settings map[string]string

// Quote writes a text as TOML has it.
func Quote(text string) string { return strconv.Quote(text) }

// Topdog is a daemon that is topdog, with a configuration and a control socket of its own.
type Topdog struct {
	*Daemon
	Program  Program
	settings Settings
	inTwo    bool // the board is in a second group too
}

// addressSetting is the value of the key address: one address, or the list of all.
func (c *Cluster) addressSetting() string {
	var quoted []string
	for _, a := range c.Addresses() {
		quoted = append(quoted, Quote(a.String()))
	}
	if len(quoted) == 1 {
		return quoted[0]
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// NewTopdog configures topdog on a board, with changes to what every test wants: the floating
// addresses, the name pi<board>, no LED, and the socket in the daemon's directory. It does not run
// yet, and has no key.
func (c *Cluster) NewTopdog(p Program, board int, changes Settings) (*Topdog, error) {
	d, err := c.NewDaemon(board)
	if err != nil {
		return nil, err
	}
	t := &Topdog{Daemon: d, Program: p, settings: Settings{
		"address":  c.addressSetting(),
		"name":     Quote(fmt.Sprintf("pi%d", board)),
		"key_file": Quote("key"),
		"led":      Quote("none"),
		"socket":   Quote(filepath.Join(d.Dir, "s")),
	}}
	return t, t.Set(changes)
}

// String is what the board is called in the configuration.
func (t *Topdog) String() string { return t.text("name") }

// text is the value of a key that is a text.
func (t *Topdog) text(key string) string {
	text, err := strconv.Unquote(t.settings[key])
	if err != nil {
		return ""
	}
	return text
}

// ConfigFile is the path of the configuration.
func (t *Topdog) ConfigFile() string { return filepath.Join(t.Dir, "topdog.toml") }

// KeyFile is the path of the key.
func (t *Topdog) KeyFile() string { return filepath.Join(t.Dir, "key") }

// Settings returns a copy of the settings.
func (t *Topdog) Settings() Settings { return maps.Clone(t.settings) }

// mainGroup is the group of a board that is in two of which everything that is said of the board is true. Its name is that of
// a board in one group.
const mainGroup = "topdog"

// JoinSecond puts the board into a second group, which has the address Second. The other settings hold for both groups.
func (t *Topdog) JoinSecond() error {
	t.inTwo = true
	return t.Set(nil)
}

// Set changes settings. The daemon learns of it when it starts, or by SIGHUP.
func (t *Topdog) Set(changes Settings) error {
	maps.Copy(t.settings, changes)
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(t.settings)) {
		if value := t.settings[key]; value != "" && !(t.inTwo && key == "address") {
			fmt.Fprintf(&text, "%s = %s\n", key, value)
		}
	}
	if t.inTwo {
		fmt.Fprintf(&text, "[[group]]\nname = %q\naddress = %s\n[[group]]\nname = \"second\"\naddress = %q\n", mainGroup, t.settings["address"], Second)
	}
	return os.WriteFile(t.ConfigFile(), []byte(text.String()), 0o644)
}

// SetKey writes the key of the group.
func (t *Topdog) SetKey(key config.Key) error {
	return os.WriteFile(t.KeyFile(), config.Keyring{Signs: key}.Encode(), 0o600)
}

// Run starts the daemon with the priority that its service has.
func (t *Topdog) Run() error {
	t.Log.Note("start")
	args := append([]string{"run", "--config", t.ConfigFile()}, t.Program.Args...)
	return t.Launch(t.Program.Path, args, netns.Env(t.Program.Env...), netns.Nice(ServiceNice))
}

// Client speaks to the daemon's control socket.
func (t *Topdog) Client() *console.Client {
	client := console.Dial(t.text("socket"))
	if t.inTwo {
		return client.Of(mainGroup)
	}
	return client
}

// Status asks the daemon for its view of the group.
func (t *Topdog) Status() (console.Status, error) {
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	return t.Client().Status(ctx)
}
