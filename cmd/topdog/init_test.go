package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/netns"
)

// The command line, step by step on one directory: what is made, what is kept,
// what is refused, and with which status.
func TestInitCommandLine(t *testing.T) {
	if testing.Short() {
		t.Skip("starts the program twenty times")
	}
	dir := filepath.Join(t.TempDir(), "topdog")
	path := filepath.Join(dir, "topdog.toml")
	var key string
	for _, step := range []struct {
		args   []string
		status int
		want   string
	}{
		{nil, 2, "which address shall the boards keep? For example: topdog init 192.168.1.250"},
		{[]string{"10.0.0.9", "--address", "10.0.0.8"}, 2, "two places"},
		{append(slices.Repeat([]string{"10.0.0.9"}, 17), "--interface", "eth0"), 2, "topdog init --help"},
		{[]string{"10.0.0.9", "fd00:1::9", "--address", "10.0.0.9"}, 2, "10.0.0.9 fd00:1::9, and --address 10.0.0.9"},
		{[]string{"10.0.0.9", "10.0.0.9", "--interface", "eth0"}, 2, "10.0.0.9 is listed twice"},
		{[]string{"10.0.0.9", "extra"}, 2, `"extra" is not an IPv4 address`},
		{[]string{"fd00:1::9", "--interface", "eth0"}, 2, "an IPv4 address is missing"},
		{[]string{"--address", "10.0.0.9,ff02::1", "--interface", "eth0"}, 2, "ff02::1 is not a unicast address"},
		{[]string{"localhost", "--interface", "eth0"}, 2, "not an IPv4 address"},
		{[]string{"nonsense"}, 2, "not an IPv4 address"},
		{[]string{"0.0.0.0"}, 2, "names no host"},
		{[]string{"fe80::1"}, 2, "is a link-local address"},
		{[]string{"10.0.0.0/24"}, 2, "the address of the network itself"},
		{[]string{"10.0.0.9", "--interface", "eth0", "--led", "gpio17"}, 2, `a line is written "GPIO17"`},
		{[]string{"--led", "gpio17"}, 2, `a line is written "GPIO17"`},
		{[]string{"10.0.0.9", "--interface", "a b"}, 2, "interface"},
		{[]string{"10.0.0.9", "--interface", "eth0,wlan0", "--interface", "wwan0"}, 2, "this is number 3 of 3, more than 2"},
		{[]string{"10.0.0.9", "--interface", "eth0", "--strict"}, 2, "which boards vote?"},
		{[]string{"10.0.0.9", "--interface", "eth0", "--voters", "10.0.0.1,10.0.0.2,10.0.0.3"}, 2, "only with --strict"},
		{[]string{"10.0.0.9", "--interface", "eth0", "--strict", "--voters", "10.0.0.1,10.0.0.2"}, 2, "fewer than 3 voters"},
		{[]string{"10.0.0.9", "--interface", "eth0", "--strict", "--voters", "10.0.0.1,10.0.0.9,10.0.0.2"}, 2, "is the floating address"},
		{[]string{"--export", "--strict"}, 2, "leave out the address"},
		{[]string{"--import", "--page"}, 2, "leave out the address"},
		{[]string{"--export"}, 78, "cannot read the configuration"},
		{[]string{"--export", "--import"}, 2, "--export is for the board that has the key"},
		{[]string{"--import", "10.0.0.9"}, 2, "leave out the address"},
		{[]string{"--export", "--force"}, 2, "--force belongs to --import"},
		{[]string{"--import"}, 1, "nothing came on standard input"},
		{[]string{"--from", "x", "10.0.0.9"}, 2, "with --from the addresses are those of the file"},
		{[]string{"--from", "x", "--export"}, 2, "--from is for the first board"},
		{[]string{"--instance", "VI_1", "10.0.0.9"}, 2, "--instance is of use only with --from"},
		{[]string{"--dry-run", "10.0.0.9"}, 2, "--dry-run is of use only with --from"},
		{[]string{"--from", "missing.conf"}, 1, "read keepalived's configuration: open missing.conf: no such file"},
		{[]string{"--from", "init_test.go"}, 78, "init_test.go:"},
		{[]string{"10.0.0.9", "--interface", "eth0", "--led", "GPIO17:low"}, 0, "wrote " + path},
		{nil, 0, "this board is set up already (" + path + ", 10.0.0.9); nothing was changed"},
		{[]string{"10.0.0.9", "--led", "line:GPIO17:low"}, 0, "nothing was changed"},
		{nil, 0, "To show the group in a browser, at http://10.0.0.9:9254/, each board"},
		{[]string{"--page"}, 0, "    sudo systemctl enable --now topdog topdog-page\n"},
		{[]string{"10.0.0.9,fd00:1::9"}, 1, `but it has address = "10.0.0.9" instead of "10.0.0.9", "fd00:1::9"; change it there`},
		{[]string{"10.0.0.9/24"}, 1, `but it has address = "10.0.0.9" instead of "10.0.0.9/24"; change it there`},
		{[]string{"nonsense"}, 2, "not an IPv4 address"},
		{[]string{"--address", "10.0.0.8"}, 1, `but it has address = "10.0.0.9" instead of "10.0.0.8"; change it there`},
		{[]string{"--led", "ACT"}, 1, `led = "GPIO17:low" instead of "ACT"`},
		{[]string{"--interface", "eth0", "--interface", "wlan0"}, 1, `interface = "eth0" instead of "eth0", "wlan0"`},
		{[]string{"--group", "x"}, 1, `group = the default instead of "x"`},
	} {
		got := executed(t, append([]string{"init", "--config", path}, step.args...)...)
		got.want(t, step.status, fmt.Sprintf("%q", step.args), step.want)
		text, err := os.ReadFile(filepath.Join(dir, "key"))
		switch {
		case err != nil && key != "":
			t.Fatal(err)
		case err == nil && key == "":
			key = string(text)
		case err == nil && key != string(text):
			t.Fatalf("%q changed the key", step.args)
		}
		secret := secretOf(key)
		if secret != "" && strings.Contains(got.stdout+got.stderr, secret) {
			t.Errorf("%q shows the key", step.args)
		}
	}
	if secretOf(key) == "" {
		t.Fatal("no key was made")
	}
}

// TestInitStrictAgain: on a board that is set up already, --strict needs no voters to print the lines for the others again.
func TestInitStrictAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "topdog.toml")
	for _, args := range [][]string{
		{"10.0.0.9", "--interface", "absent0", "--strict", "--voters", "10.0.0.1,10.0.0.2,10.0.0.3"}, {"10.0.0.9", "--strict"},
	} {
		got := executed(t, append([]string{"init", "--config", path}, args...)...)
		got.want(t, 0, fmt.Sprintf("%q", args), "A witness, which votes")
	}
}

// A prefix length that is asked for is the one that is there, or it is an error.
func TestInitComparesPrefixLengths(t *testing.T) {
	path := filepath.Join(t.TempDir(), "topdog.toml")
	for _, step := range []struct {
		address string
		status  int
		want    string
	}{
		{"10.0.0.9/24", 0, "wrote " + path},
		{"10.0.0.9/24", 0, "(" + path + ", 10.0.0.9/24); nothing was changed"},
		{"10.0.0.9", 0, "nothing was changed"},
		{"10.0.0.9/25", 1, `it has address = "10.0.0.9/24" instead of "10.0.0.9/25"`},
	} {
		// The interface, because this machine need not be in that network.
		executed(t, "init", step.address, "--interface", "eth0", "--config", path).want(t, step.status, step.address, step.want)
	}
}

// secretOf returns the line of a key file that matters.
func secretOf(key string) string {
	for line := range strings.Lines(key) {
		if line[0] != '#' {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// The line that init prints is run here, with sudo, ssh and systemctl replaced by
// shell functions, and the directory moved aside at the pipe: what arrives must
// be the same board again, and what is shown must not have the key in it.
func TestTheLineSetsUpAnotherBoard(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skipf("needs sh: %v", err)
	}
	dir := filepath.Join(t.TempDir(), "it's here")
	path := filepath.Join(dir, "topdog.toml")
	made := execHere(t, "init", "10.0.0.9", "--interface", "eth0", "--config", path)
	var line string
	for l := range strings.Lines(made.stdout) {
		if strings.Contains(l, "--export") {
			line = l
		}
	}
	if made.status != 0 || line == "" {
		t.Fatalf("no line in %v", made)
	}
	before := contents(t, dir)
	self, err := os.Executable()
	assert.NoError(t, err)
	script := `sudo() { "$@"; }
systemctl() { echo "systemctl $*"; }
topdog() { ` + beTopdog + `=1 "$SELF" "$@"; }
ssh() { test "$1" = USER@BOARD; cat >"$DIR.pipe"; mv "$DIR" "$DIR.first"; eval "$2" <"$DIR.pipe"; }
` + line
	run := func() string {
		t.Helper()
		cmd := exec.Command("sh", "-ec", script)
		cmd.Env = append(os.Environ(), "DIR="+dir, "SELF="+self)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s\n%v\n%s", line, err, out)
		}
		return string(out)
	}
	out := run()
	if !strings.Contains(out, "wrote "+path) || !strings.HasSuffix(out, "systemctl enable --now topdog\n") {
		t.Errorf("it says:\n%s", out)
	}
	if diff := cmp.Diff(before, contents(t, dir)); diff != "" {
		t.Error("the second board differs from the first") // not how: the key would be in it
	}
	if strings.Contains(out, secretOf(before["key -rw-------"])) {
		t.Error("the key is shown")
	}

	// Once more: nothing changes, and it says so.
	script = strings.Replace(script, `mv "$DIR" "$DIR.first"; `, "", 1)
	if out := run(); !strings.Contains(out, "this board is set up already; nothing was changed") {
		t.Errorf("the second time it says:\n%s", out)
	}
}

// contents reads a directory's files; their names have the mode behind them.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	assert.NoError(t, err)
	all := map[string]string{}
	for _, e := range entries {
		info, err := e.Info()
		assert.NoError(t, err)
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		assert.NoError(t, err)
		all[e.Name()+" "+info.Mode().String()] = string(text)
	}
	return all
}

// On a real network: the interface is found, and so is whoever has the address.
func TestInitLooksAtTheNetwork(t *testing.T) {
	netns.Reserve(t)
	lan, err := netns.New(2)
	must(t, err)
	t.Cleanup(func() { must(t, lan.Close()) })
	for _, tc := range []struct {
		address string
		status  int
		want    string
	}{
		{"10.77.0.100", 0, "10.77.0.100 is in the network of eth0 (10.77.0.0/24)\nnobody has it at the moment\n"},
		{"10.77.0.2", 0, "has it at the moment. If that is not a board of this group, choose another"},
		{"10.77.0.1", 1, "10.77.0.1 is this board's own address"},
		{"10.77.0.255", 1, "is the first or the last of eth0's network 10.77.0.0/24"},
		{"10.78.0.1", 1, "there are eth0 (10.77.0.1/24); choose an address in one of these"},
	} {
		path := filepath.Join(t.TempDir(), "topdog.toml")
		execOn(t, itself(), lan.Board(1), []string{"init", tc.address, "--config", path}).want(t, tc.status, tc.address, tc.want)
		if _, err := os.Stat(path); (err == nil) != (tc.status == 0) {
			t.Errorf("%s: the configuration: %v", tc.address, err)
		}
	}

	// Its own address stays its own where another interface is in the same network.
	must(t, lan.Board(1).Do(func() error {
		second := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "eth1"}, PeerName: "peer1"}
		if err := netlink.LinkAdd(second); err != nil {
			return err
		}
		own, err := netlink.ParseAddr("10.77.0.201/24")
		if err != nil {
			return err
		}
		return errors.Join(netlink.AddrAdd(second, own), netlink.LinkSetUp(second))
	}))
	for _, own := range []string{"10.77.0.1", "10.77.0.201"} {
		got := execOn(t, itself(), lan.Board(1), []string{"init", own, "--config", filepath.Join(t.TempDir(), "topdog.toml")})
		got.want(t, 1, own, own+" is this board's own address")
	}
	must(t, lan.Board(1).Do(func() error {
		second, err := netlink.LinkByName("eth1")
		if err != nil {
			return err
		}
		return netlink.LinkDel(second)
	}))
}
