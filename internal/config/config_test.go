package config

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/pelletier/go-toml/v2"
	"github.com/sirupsen/logrus"

	"topdog/election"
	"topdog/gpio"
	"topdog/internal/check"
	"topdog/internal/lab/assert"
	"topdog/internal/lab/golden"
	"topdog/netio"
	"topdog/wire"
)

// compareConfigs compares what a file says, not where it says it.
var compareConfigs = cmp.Options{
	cmpopts.IgnoreUnexported(Config{}),
	cmpopts.EquateComparable(netip.Addr{}, netip.AddrPort{}, gpio.Spec{}, Key{}),
}

func parse(t *testing.T, text string) *Config {
	t.Helper()
	groups := parseGroups(t, text)
	assert.Is(t, 1, len(groups), "groups")
	return groups.First()
}

func parseGroups(t *testing.T, text string) Groups {
	t.Helper()
	groups, err := ParseGroups("/etc/topdog/topdog.toml", []byte(text))
	if err != nil {
		t.Fatalf("refused:\n%s", err)
	}
	return groups
}

func defaultsFor(address string) Config {
	a, err := ParseAddress(address)
	if err != nil {
		panic(err)
	}
	return Config{
		Config: election.Config{
			Name:      "pi3",
			Priority:  100,
			Interval:  100 * time.Millisecond,
			Algorithm: wire.AlgorithmHeir,
		},
		Addresses:  []Address{a},
		Group:      "topdog",
		Multicast:  netip.MustParseAddrPort("224.0.0.254:9254"),
		Witness:    Witness{Gateway: true},
		KeyFile:    "/etc/topdog/key",
		LED:        light("ACT"),
		Socket:     "/run/topdog/topdog.sock",
		LogLevel:   logrus.InfoLevel,
		StartGrace: 10 * time.Second,
		Hold:       netio.HoldAuto,
		PageListen: Listen{Port: 9254},
	}
}

func light(text string) gpio.Spec {
	spec, err := gpio.ParseSpec(text)
	if err != nil {
		panic(err)
	}
	return spec
}

func TestOnlyAddressIsNeeded(t *testing.T) {
	want := defaultsFor("192.168.1.250")
	if diff := cmp.Diff(&want, parse(t, good), compareConfigs); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
}

// fromCommand are the lines without which there can be no score_command.
const fromCommand = "algorithm = \"score\"\nscore_from = \"command\"\n"

// strict is an algorithm without the list that it needs.
const strict = "algorithm = \"strict\"\n"

// Each section of testdata/lines.golden has lines for a good file between a line === and a line ---, and then the fields that they
// change. New lines are written there, and go test -update adds the fields.
func TestParse(t *testing.T) {
	text, err := os.ReadFile("testdata/lines.golden")
	assert.NoError(t, err)
	before := reflect.ValueOf(*parse(t, good))
	var got strings.Builder
	for section := range strings.SplitSeq(strings.TrimPrefix(string(text), "===\n"), "\n===\n") {
		lines, _, _ := strings.Cut(section, "---\n")
		after := reflect.ValueOf(*parse(t, good+lines))
		fmt.Fprintf(&got, "\n===\n%s---\n", lines)
		for _, f := range configured() {
			former, value := before.FieldByIndex(f.Index).Interface(), after.FieldByIndex(f.Index).Interface()
			if reflect.DeepEqual(former, value) {
				continue
			}
			fmt.Fprintf(&got, "%s: %s\n", f.Name, shown(value))
		}
	}
	golden.Compare(t, "testdata/lines.golden", strings.TrimPrefix(got.String(), "\n"))
}

// shown also tells where the texts of a list end.
func shown(value any) string {
	switch value := value.(type) {
	case []string:
		return fmt.Sprintf("%q", value)
	case []check.Check:
		return fmt.Sprintf("%+v with the arguments %q", value[0], value[0].Arguments)
	}
	return fmt.Sprint(value)
}

func TestParseAddresses(t *testing.T) {
	address := func(text string, bits int) Address { return Address{netip.MustParseAddr(text), bits} }
	for _, tc := range []struct {
		text string
		want []Address
	}{
		{`address = "10.0.0.9"`, []Address{address("10.0.0.9", FromSubnet)}},
		{`address = "10.0.0.9/8"`, []Address{address("10.0.0.9", 8)}},
		{`address = "10.0.0.0/31"`, []Address{address("10.0.0.0", 31)}},
		{`address = "10.0.0.0/32"`, []Address{address("10.0.0.0", 32)}},
		{`address = ["172.16.1.1", "10.0.0.9/24"]`, []Address{address("172.16.1.1", FromSubnet), address("10.0.0.9", 24)}},
		{"\ufeffaddress = \"10.0.0.9\"\r\n", []Address{address("10.0.0.9", FromSubnet)}},
		{`address = ["10.0.0.9", "fd00:1::250"]`, []Address{address("10.0.0.9", FromSubnet), address("fd00:1::250", FromSubnet)}},
		{`address = ["FD00:0001:0:0::0250/64", "10.0.0.9"]`, []Address{address("fd00:1::250", 64), address("10.0.0.9", FromSubnet)}},
		{`address = ["10.0.0.9", "2001:db8::/127", "2a01:4f8::/128", "fc00::ffff/112"]`, []Address{address("10.0.0.9", FromSubnet),
			address("2001:db8::", 127), address("2a01:4f8::", 128), address("fc00::ffff", 112)}},
	} {
		if diff := cmp.Diff(tc.want, parse(t, tc.text).Addresses, compareConfigs); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.text, diff)
		}
	}
}

func TestAddressString(t *testing.T) {
	for text, want := range map[string]string{
		"10.0.0.9": "10.0.0.9", "10.0.0.9/24": "10.0.0.9/24", "FD00:1:0::0250": "fd00:1::250", "fd00:1::250/64": "fd00:1::250/64",
	} {
		a, err := ParseAddress(text)
		assert.NoError(t, err)
		assert.Is(t, want, a.String(), "%s", text)
	}
}

func TestFirstIPv4(t *testing.T) {
	for text, want := range map[string]string{
		`"10.0.0.9"`: "10.0.0.9", `["10.0.0.9", "10.0.0.8"]`: "10.0.0.9", `["fd00:1::250", "10.0.0.9", "fd00:1::251", "10.0.0.8"]`: "10.0.0.9",
	} {
		assert.Is(t, want, parse(t, "address = "+text).FirstIPv4().String(), "%s", text)
	}
}

// A HELLO has to carry all addresses, whatever their family.
func TestAddressesFitTheWire(t *testing.T) {
	assert.Is(t, true, MaxAddresses <= wire.MaxIPv6, "%d addresses fit", MaxAddresses)
}

func TestDefaultName(t *testing.T) {
	for _, tc := range []struct {
		host string
		want string
	}{
		{"pi3", "pi3"},
		{"pi3.local", "pi3"},
		{strings.Repeat("x", 60), strings.Repeat("x", 32)},
		{"pi\x1b 3ü", "pi3"},
		{"", ""},
	} {
		assert.Is(t, tc.want, shortHostname(tc.host), "host %q: name", tc.host)
	}
}

func TestWhere(t *testing.T) {
	c := parse(t, good+"\n  priority  =  7\npeers = [ \"192.168.1.3\" ]\n")
	for key, want := range map[string]string{
		"address":  "/etc/topdog/topdog.toml:1:11",
		"priority": "/etc/topdog/topdog.toml:3:16",
		"peers":    "/etc/topdog/topdog.toml:4:11",
		"group":    "the default",
	} {
		assert.Is(t, want, c.Where(key), "Where(%q)", key)
	}
}

// changedValue gives each key a value that differs from its default.
var changedValue = map[string]string{
	"address": `"10.9.9.9"`, "interface": `["eth7", "wlan7"]`, "group": `"g"`, "id": "7", "priority": "7", "preempt": "true", "prefer": `"seven"`,
	"preempt_delay": `"7s"`, "take_in_use": "true", "heartbeat": `"77ms"`, "patience": `"777ms"`, "watch": `"7ms"`, "algorithm": `"bully"`, "voters": `["10.9.9.1", 2, "3"]`, "detector": `"fixed"`, "fanout": `"unicast"`, "score_from": `"age"`,
	"score_command": `["/7", "7"]`, "start_grace": `"7s"`, "multicast": `"239.0.0.7:7"`, "peers": `["10.9.9.7"]`, "witness": `["10.9.9.8"]`,
	"key_file": `"none"`, "led": `"GPIO7"`, "name": `"seven"`, "socket": `"/7"`, "log_level": `"debug"`, "hold": `"tun+lifetime"`, "page_listen": `":7"`, "page_hosts": `["seven.lan"]`, "check": `[{ unit = "seven.service" }]`,
}

// needed are the lines without which a changed value makes no sense.
var needed = map[string]string{
	"score_from":    "algorithm = \"score\"\n",
	"score_command": fromCommand,
	"voters":        strict + "voters = [4, 5, 6]\n",
}

// alsoSet are the fields that a key sets beside its own one.
var alsoSet = map[string]string{"SecondInterface": "interface"}

// configured are the fields that a file sets, those of the election's part among them.
func configured() (all []reflect.StructField) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Config]()) {
		switch {
		case !f.IsExported(), f.Anonymous:
		case f.Name == "Incarnation", f.Name == "Members", f.Name == "Keys", f.Name == "Several", f.Name == "SecondPath", f.Name == "OtherAddresses": // found out later
		default:
			all = append(all, f)
		}
	}
	return all
}

// Every key sets exactly one field of the struct, but for those of alsoSet. Every field has a key, and Changed sees each change.
func TestEveryKeyHasAFieldAndEveryFieldAKey(t *testing.T) {
	set := map[string]string{} // field of the struct -> key
	for _, key := range keys() {
		value, ok := changedValue[key]
		if !ok {
			t.Errorf("this test needs a value for the new key %s", key)
			continue
		}
		around := good + needed[key]
		text := around + key + " = " + value + "\n"
		switch key {
		case "address":
			text = key + " = " + value + "\n"
		case "score_command": // which cannot be missing before
			around += "score_command = \"/6\"\n"
		case "voters": // which cannot be missing either
			text = good + strict + key + " = " + value + "\n"
		}
		before, after := parse(t, around), parse(t, text)
		assert.Equal(t, []string{key}, before.Changed(after), "Changed after %s", text)
		a, b := reflect.ValueOf(*before), reflect.ValueOf(*after)
		for _, f := range configured() {
			if reflect.DeepEqual(a.FieldByIndex(f.Index).Interface(), b.FieldByIndex(f.Index).Interface()) {
				continue
			}
			if other, taken := set[f.Name]; taken {
				t.Errorf("field %s is set by %s and by %s", f.Name, other, key)
			}
			set[f.Name] = key
		}
		before.ApplyLive(after)
		assert.Equal(t, Live(key) || OfPage(key), before.Changed(after) == nil, "ApplyLive takes over %s", key)
	}
	exported := 0
	for _, f := range configured() {
		exported++
		if set[f.Name] == "" {
			t.Errorf("no key sets field %s", f.Name)
		}
	}
	for field, key := range alsoSet {
		assert.Is(t, key, set[field], "the key that sets field %s", field)
	}
	assert.Is(t, len(keys())+len(alsoSet), exported, "fields")
}

func TestChanged(t *testing.T) {
	a := parse(t, good)
	b := parse(t, good+"hold = \"tun+lifetime\"\npriority = 5\npeers = [\"192.168.1.4\"]\n")
	got := map[string]bool{}
	for _, key := range a.Changed(b) {
		got[key] = Live(key)
	}
	want := map[string]bool{"priority": true, "peers": true, "hold": false}
	assert.Equal(t, want, got, "changed keys, and whether they apply live")
	assert.Equal(t, []string(nil), a.Changed(parse(t, good)), "what the same file changes")
	assert.Is(t, false, Live("no such key"), "an unknown key applies live")
}

// A second path takes a restart to come, to go, or to be on another interface.
func TestChangedPaths(t *testing.T) {
	lines := []string{"", "interface = \"eth0\"\n", "interface = [\"eth0\", \"wlan0\"]\n", "interface = [\"eth0\", \"wlan1\"]\n", "interface = [\"wlan0\", \"eth0\"]\n"}
	for i, from := range lines {
		for j, to := range lines {
			var want []string
			if i != j {
				want = []string{"interface"}
			}
			c, changed := parse(t, good+from), parse(t, good+to)
			assert.Equal(t, want, c.Changed(changed), "what is changed from %q to %q", from, to)
			c.ApplyLive(changed)
			assert.Equal(t, want, c.Changed(changed), "what a reload leaves of that")
		}
	}
	assert.Is(t, false, Live("interface"), "interface is applied on reload")
	assert.Is(t, `"eth0", "wlan0"`, parse(t, good+lines[2]).Value("interface"), "what the file says")
	assert.Equal(t, []string(nil), parse(t, good+lines[1]).Changed(parse(t, good+"interface = [\"eth0\"]\n")), "what a list of one changes")
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "topdog.toml")
	_, err := LoadGroups(path)
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "topdog init") {
		t.Errorf("a missing file: %v", err)
	}
	assert.NoError(t, os.WriteFile(path, []byte(good+"key_file = \"k\"\n"), 0o644))
	c, err := LoadGroups(path)
	assert.NoError(t, err)
	assert.Is(t, filepath.Join(dir, "k"), c.First().KeyFile, "key file")
	assert.NoError(t, os.WriteFile(path, make([]byte, MaxFileBytes+1), 0o644))
	_, err = LoadGroups(path)
	assert.ErrorContains(t, err, "larger", "a file that is too large")
	_, err = LoadGroups(dir)
	assert.ErrorContains(t, err, "a directory", "a directory")
	// Nobody writes to this pipe: opening it must not wait.
	pipe := filepath.Join(dir, "pipe")
	assert.NoError(t, syscall.Mkfifo(pipe, 0o644))
	_, err = LoadGroups(pipe)
	assert.ErrorContains(t, err, "pipe", "a named pipe")
}

// FuzzParse holds Parse to three promises: it never panics, every error has a
// line and can be shown to a person, and what it accepts is TOML to go-toml's own
// decoder as well.
func FuzzParse(f *testing.F) {
	for _, file := range append(badFiles(f), strangeFiles...) {
		f.Add([]byte(file.text))
	}
	f.Add(Reference())
	f.Add([]byte(uncommented()))
	f.Add([]byte(two + "[[group.check]]\nunit = \"b.service\"\n[[check]]\nunit = \"a.service\"\n"))
	f.Add([]byte(`address = ["192.168.1.250/24", "fd00:1::250/64", "2001:db8::1"]`))
	f.Add([]byte(`address = ["fd00:1::250", "192.168.1.250"]` + "\n[[check]]\nhttp = \"http://[fd00:1::251]/\"\n"))
	f.Add([]byte("interface = [\"eth0\", \"wlan0\"]\n" + two + "interface = [\"wlan0\", \"eth0.7\"]\n"))
	f.Add([]byte(good + strict + "voters = [1, 2, 3]\ninterface = [\"eth0\", \"eth0\", \"lo\"]\n"))
	for key, value := range changedValue {
		f.Add([]byte(good + needed[key] + key + " = " + value + "\n"))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		const name = "/etc/topdog/topdog.toml"
		if _, err := ParseGroups(name, data); err != nil {
			checkProblems(t, err, string(data))
			return
		}
		var generic map[string]any
		if err := toml.Unmarshal(data, &generic); err != nil && !strings.HasPrefix(string(data), "\ufeff") {
			t.Errorf("accepted, but go-toml does not: %v\n%q", err, data)
		}
	})
}

// keys are the names of all keys, in the order of the reference.
func keys() []string { return names(settings(new(Config))) }
