package config

import (
	cmpor "cmp"
	"errors"
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
	"topdog/netio"
	"topdog/wire"
)

// compareConfigs compares what a file says, not where it says it.
var compareConfigs = cmp.Options{
	cmpopts.IgnoreUnexported(Config{}, Witness{}),
	cmpopts.EquateComparable(netip.Addr{}, netip.AddrPort{}, gpio.Spec{}, Key{}),
}

func parse(t *testing.T, text string) *Config {
	t.Helper()
	c, err := parseOn(testHost, "/etc/topdog/topdog.toml", []byte(text))
	if err != nil {
		t.Fatalf("refused:\n%s", err)
	}
	return c
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

// oneCheck adds a check; of its numbers, those that are not given are the defaults.
func oneCheck(k check.Check) func(*Config) {
	k.Every, k.Rise, k.Fall = cmpor.Or(k.Every, check.DefaultEvery), cmpor.Or(k.Rise, check.DefaultRise), cmpor.Or(k.Fall, check.DefaultFall)
	k.Timeout = cmpor.Or(k.Timeout, k.Every)
	return func(c *Config) { c.Checks = []check.Check{k} }
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

// Each line is a good file with one more line; the function makes the change
// that is expected to the defaults.
func TestParse(t *testing.T) {
	ip := netip.MustParseAddr
	for _, tc := range []struct {
		line   string
		change func(c *Config)
	}{
		{`interface = "wlan0"`, func(c *Config) { c.Interface = "wlan0" }},
		{`group = "shelf 3"`, func(c *Config) { c.Group = "shelf 3" }},
		{`id = 1`, func(c *Config) { c.ID = 1 }},
		{`id = 0xFF_FF`, func(c *Config) { c.ID = 65535 }},
		{`id = 4294967295`, func(c *Config) { c.ID = 1<<32 - 1 }},
		{`id = "192.168.1.3"`, func(c *Config) { c.ID = 192<<24 | 168<<16 | 1<<8 | 3 }},
		{`id = "auto"`, func(c *Config) {}},
		{`priority = 0`, func(c *Config) { c.Priority = 0 }},
		{`priority = 254`, func(c *Config) { c.Priority = 254 }},
		{`preempt = true`, func(c *Config) { c.Preempt = true }},
		{`heartbeat = "10ms"`, func(c *Config) { c.Interval = 10 * time.Millisecond }},
		{`heartbeat = "10s"`, func(c *Config) { c.Interval = 10 * time.Second }},
		{`heartbeat = '1.5s' # comment`, func(c *Config) { c.Interval = 1500 * time.Millisecond }},
		{`algorithm = "bully"`, func(c *Config) { c.Algorithm = wire.AlgorithmBully }},
		{`detector = "auto"`, func(c *Config) {}},
		{`detector = "ask"`, func(c *Config) { c.Detector = election.DetectorAsk }},
		{`detector = "nfd-e"`, func(c *Config) { c.Detector = election.DetectorNFDE }},
		{`fanout = "unicast"`, func(c *Config) { c.Fanout = election.FanoutUnicast }},
		{`score_from = "priority"`, func(c *Config) {}},
		{"score_from = \"age\"\nalgorithm = \"score\"", func(c *Config) { c.ScoreSource, c.Algorithm = election.ScoreFromAge, wire.AlgorithmScore }},
		{fromCommand + `score_command = "/bin/load"`, func(c *Config) {
			c.Algorithm, c.ScoreSource, c.ScoreCommand = wire.AlgorithmScore, election.ScoreFromCommand, []string{"/bin/load"}
		}},
		{fromCommand + `score_command = ["/bin/load", "-x", "", "two words", "-x"]`, func(c *Config) {
			c.Algorithm, c.ScoreSource, c.ScoreCommand = wire.AlgorithmScore, election.ScoreFromCommand, []string{"/bin/load", "-x", "", "two words", "-x"}
		}},
		{`score_command = []`, func(c *Config) {}},
		{`multicast = "239.1.2.3:5000"`, func(c *Config) { c.Multicast = netip.MustParseAddrPort("239.1.2.3:5000") }},
		{`peers = ["192.168.1.11", "192.168.1.12"]`, func(c *Config) { c.Peers = []netip.Addr{ip("192.168.1.11"), ip("192.168.1.12")} }},
		{`peers = "192.168.1.11"`, func(c *Config) { c.Peers = []netip.Addr{ip("192.168.1.11")} }},
		{`peers = []`, func(c *Config) {}},
		{`witness = "auto"`, func(c *Config) {}},
		{`witness = ["auto"]`, func(c *Config) {}},
		{`witness = "none"`, func(c *Config) { c.Witness = Witness{} }},
		{`witness = "192.168.1.1"`, func(c *Config) { c.Witness = Witness{Addrs: []netip.Addr{ip("192.168.1.1")}} }},
		{`witness = ["192.168.1.1", "192.168.1.2"]`, func(c *Config) {
			c.Witness = Witness{Addrs: []netip.Addr{ip("192.168.1.1"), ip("192.168.1.2")}}
		}},
		{`start_grace = "0s"`, func(c *Config) { c.StartGrace = 0 }},
		{`start_grace = "10m"`, func(c *Config) { c.StartGrace = 10 * time.Minute }},
		{`check = []`, func(c *Config) {}},
		{"[[check]]\nunit = \"a@b.service\"", oneCheck(check.Check{Kind: check.Unit, Target: "a@b.service"})},
		{`check = [{ unit = "a.socket" }]`, oneCheck(check.Check{Kind: check.Unit, Target: "a.socket"})},
		{"[[check]]\nexec = \"/bin/a\"", oneCheck(check.Check{Kind: check.Exec, Target: "/bin/a"})},
		{"[[check]]\nexec = { path = \"/bin/a\", user = \"b\" }", oneCheck(check.Check{Kind: check.Exec, Target: "/bin/a", User: "b"})},
		{"[[check]]\ntcp = \"[::1]:53\"", oneCheck(check.Check{Kind: check.TCP, Target: "[::1]:53"})},
		{"[[check]]\ntcp = \"localhost:65535\"", oneCheck(check.Check{Kind: check.TCP, Target: "localhost:65535"})},
		{"[[check]]\nhttp = \"http://127.0.0.1/\"", oneCheck(check.Check{Kind: check.HTTP, Target: "http://127.0.0.1/"})},
		{"[[check]]\nhttp = { url = \"https://[::1]:8443/a?b=c\", host = \"a.b\", status = [200, 404, 200], contains = \"x y\" }", oneCheck(check.Check{
			Kind: check.HTTP, Target: "https://[::1]:8443/a?b=c", Host: "a.b", Status: []int{200, 404}, Contains: "x y",
		})},
		{"[[check]]\nhttp = { url = \"http://127.0.0.1/\", status = 204 }", oneCheck(check.Check{Kind: check.HTTP, Target: "http://127.0.0.1/", Status: []int{204}})},
		{"[[check]]\ndns = \"pi.hole   @127.0.0.1\"", oneCheck(check.Check{Kind: check.DNS, Target: "pi.hole @127.0.0.1"})},
		{"[[check]]\ndns = \"a. @[::1]:5353\"", oneCheck(check.Check{Kind: check.DNS, Target: "a. @[::1]:5353"})},
		{"[[check]]\ndns = \"a @::1\"", oneCheck(check.Check{Kind: check.DNS, Target: "a @::1"})},
		{"[[check]]\ncommand = \"/bin/a\"", oneCheck(check.Check{Kind: check.Command, Target: "/bin/a"})},
		{"[[check]]\ncommand = [\"/bin/a\", \"\", \"-b c\"]", oneCheck(check.Check{Kind: check.Command, Target: "/bin/a", Arguments: []string{"", "-b c"}})},
		{"[[check]]\ncommand = [\"/bin/sh\", \"-c\", \"a\"]\ntitle = \"the cache\"", oneCheck(check.Check{Kind: check.Command, Target: "/bin/sh", Arguments: []string{"-c", "a"}, Title: "the cache"})},
		{"[[check]]\ngateway = true\nevery = \"50ms\"\ntimeout = \"10ms\"\nrise = 1\nfall = 100", oneCheck(check.Check{
			Kind: check.Gateway, Every: 50 * time.Millisecond, Timeout: 10 * time.Millisecond, Rise: 1, Fall: 100,
		})},
		{"[[check]]\ntcp = \"192.168.1.250:53\"\nwhen = \"leading\"", oneCheck(check.Check{
			Kind: check.TCP, Target: "192.168.1.250:53", When: check.Leading, Grace: 30 * time.Second,
		})},
		{"[[check]]\ngateway = true\nwhen = \"leading\"\ngrace = \"0s\"\nevery = \"1h\"", oneCheck(check.Check{
			Kind: check.Gateway, When: check.Leading, Every: time.Hour,
		})},
		{`key_file = "none"`, func(c *Config) { c.KeyFile = NoKey }},
		{`key_file = "./none"`, func(c *Config) { c.KeyFile = "/etc/topdog/none" }},
		{`key_file = "keys/a"`, func(c *Config) { c.KeyFile = "/etc/topdog/keys/a" }},
		{`key_file = "/root/key"`, func(c *Config) { c.KeyFile = "/root/key" }},
		{`led = "GPIO17"`, func(c *Config) { c.LED = light("GPIO17") }},
		{`name = "Küche"`, func(c *Config) { c.Name = "Küche" }},
		{`socket = "/tmp/t.sock"`, func(c *Config) { c.Socket = "/tmp/t.sock" }},
		{`log_level = "debug"`, func(c *Config) { c.LogLevel = logrus.DebugLevel }},
		{`hold = "tun+lifetime"`, func(c *Config) { c.Hold = netio.HoldTUN }},
		{`hold = "lifetime"`, func(c *Config) { c.Hold = netio.HoldLifetime }},
		{`page_listen = ":9254"`, func(c *Config) {}},
		{`page_listen = ":8080"`, func(c *Config) { c.PageListen = Listen{Port: 8080} }},
		{`page_listen = "192.168.1.11:1"`, func(c *Config) { c.PageListen = Listen{ip("192.168.1.11"), 1} }},
		{`page_listen = "127.0.0.1:65535"`, func(c *Config) { c.PageListen = Listen{ip("127.0.0.1"), 65535} }},
		{`page_listen = "0.0.0.0:9254"`, func(c *Config) { c.PageListen = Listen{ip("0.0.0.0"), 9254} }},
		{`page_listen = "[::]:9254"`, func(c *Config) { c.PageListen = Listen{ip("::"), 9254} }},
		{`page_listen = "[::ffff:192.168.1.11]:9254"`, func(c *Config) { c.PageListen = Listen{ip("192.168.1.11"), 9254} }},
		{`page_hosts = []`, func(c *Config) {}},
		{`page_hosts = "Topdog.LAN"`, func(c *Config) { c.PageHosts = []string{"topdog.lan"} }},
		{`page_hosts = ["topdog", "my_pi", "xn--kche-0ra.example", "a-1.b"]`, func(c *Config) { c.PageHosts = []string{"topdog", "my_pi", "xn--kche-0ra.example", "a-1.b"} }},
	} {
		want := defaultsFor("192.168.1.250")
		tc.change(&want)
		if diff := cmp.Diff(&want, parse(t, good+tc.line+"\n"), compareConfigs, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.line, diff)
		}
	}
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
	} {
		if diff := cmp.Diff(tc.want, parse(t, tc.text).Addresses, compareConfigs); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.text, diff)
		}
	}
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
		assert.Is(t, tc.want, defaults(tc.host).Name, "host %q: name", tc.host)
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
	"address": `"10.9.9.9"`, "interface": `"eth7"`, "group": `"g"`, "id": "7", "priority": "7", "preempt": "true",
	"preempt_delay": `"7s"`, "take_in_use": "true", "heartbeat": `"77ms"`, "patience": `"777ms"`, "algorithm": `"bully"`, "voters": `["10.9.9.1", 2, "3"]`, "detector": `"fixed"`, "fanout": `"unicast"`, "score_from": `"age"`,
	"score_command": `["/7", "7"]`, "start_grace": `"7s"`, "multicast": `"239.0.0.7:7"`, "peers": `["10.9.9.7"]`, "witness": `["10.9.9.8"]`,
	"key_file": `"none"`, "led": `"GPIO7"`, "name": `"seven"`, "socket": `"/7"`, "log_level": `"debug"`, "hold": `"tun+lifetime"`, "page_listen": `":7"`, "page_hosts": `["seven.lan"]`, "check": `[{ unit = "seven.service" }]`,
}

// needed are the lines without which a changed value makes no sense.
var needed = map[string]string{
	"score_from":    "algorithm = \"score\"\n",
	"score_command": fromCommand,
	"voters":        strict + "voters = [4, 5, 6]\n",
}

// configured are the fields that a file sets, those of the election's part among them.
func configured() (all []reflect.StructField) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Config]()) {
		switch {
		case !f.IsExported(), f.Anonymous:
		case f.Name == "Incarnation", f.Name == "Members", f.Name == "Keys": // found out later
		default:
			all = append(all, f)
		}
	}
	return all
}

// Every key sets exactly one field of the struct, every field has a key, and
// Changed sees each change.
func TestEveryKeyHasAFieldAndEveryFieldAKey(t *testing.T) {
	set := map[string]string{} // field of the struct -> key
	for _, key := range Keys() {
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
	if exported != len(Keys()) {
		t.Errorf("%d keys for %d fields", len(Keys()), exported)
	}
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
	if changed := a.Changed(parse(t, good)); changed != nil {
		t.Errorf("the same file differs in %v", changed)
	}
	if Live("no such key") {
		t.Error("an unknown key applies live")
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "topdog.toml")
	_, err := Load(path)
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "topdog init") {
		t.Errorf("a missing file: %v", err)
	}
	assert.NoError(t, os.WriteFile(path, []byte(good+"key_file = \"k\"\n"), 0o644))
	c, err := Load(path)
	assert.NoError(t, err)
	assert.Is(t, filepath.Join(dir, "k"), c.KeyFile, "key file")
	assert.NoError(t, os.WriteFile(path, make([]byte, MaxFileBytes+1), 0o644))
	_, err = Load(path)
	assert.ErrorContains(t, err, "larger", "a file that is too large")
	_, err = Load(dir)
	assert.ErrorContains(t, err, "a directory", "a directory")
	// Nobody writes to this pipe: opening it must not wait.
	pipe := filepath.Join(dir, "pipe")
	assert.NoError(t, syscall.Mkfifo(pipe, 0o644))
	_, err = Load(pipe)
	assert.ErrorContains(t, err, "pipe", "a named pipe")
}

// FuzzParse holds Parse to four promises: it never panics, every error has a
// line and can be shown to a person, what it accepts is TOML to go-toml's own
// decoder as well, and what it accepts it accepts again, written out, with the
// same meaning.
func FuzzParse(f *testing.F) {
	for _, file := range append(badFiles(f), strangeFiles...) {
		f.Add([]byte(file.text))
	}
	f.Add(Reference())
	f.Add([]byte(uncommented()))
	for key, value := range changedValue {
		f.Add([]byte(good + needed[key] + key + " = " + value + "\n"))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		const name = "/etc/topdog/topdog.toml"
		c, err := parseOn(testHost, name, data)
		if err != nil {
			checkProblems(t, err, string(data))
			return
		}
		var generic map[string]any
		if err := toml.Unmarshal(data, &generic); err != nil && !strings.HasPrefix(string(data), "\ufeff") {
			t.Errorf("accepted, but go-toml does not: %v\n%q", err, data)
		}
		again, err := parseOn(testHost, name, c.toml())
		if err != nil {
			t.Fatalf("accepted %q, but not what it means:\n%s\n%s", data, c.toml(), err)
		}
		if diff := cmp.Diff(c, again, compareConfigs, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("the second reading differs (-first +second):\n%s", diff)
		}
	})
}

// toml returns the whole configuration with all defaults filled in, as a file
// that Parse reads back to the same configuration.
func (c *Config) toml() []byte {
	var b []byte
	for _, f := range fields() {
		if value := f.get(c); value != "" {
			b = append(b, f.key+" = "+value+"\n"...)
		}
	}
	return b
}
