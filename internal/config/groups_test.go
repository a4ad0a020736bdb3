package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"topdog/internal/lab/assert"
)

const two = "[[group]]\nname = \"dns1\"\naddress = \"192.168.1.250\"\nprefer = \"PI3\"\n" +
	"[[group]]\nname = \"dns2\"\naddress = \"192.168.1.251\"\nprefer = [\"pi4\", \"pi3\"]\n"

// What stands above the tables holds for all groups, and what a table says for one.
func TestGroups(t *testing.T) {
	groups := parseGroups(t, "heartbeat = \"50ms\"\nname = \"pi3\"\nwitness = \"192.168.1.1\"\n"+
		two+"heartbeat = \"70ms\"\nwitness = \"none\"\n[[group.check]]\nunit = \"b.service\"\n[[check]]\nunit = \"a.service\"\n")
	assert.Equal(t, []string{"dns1", "dns2"}, groups.Names(), "names")
	var got []string
	for _, c := range groups {
		got = append(got, fmt.Sprintf("%v: %v %v %v %s %d %t %v %v", c.Several, c.Addresses, c.Interval, c.Witness, c.Name, c.Priority, c.Preempt, c.LED, c.Checks[0].Target))
	}
	assert.Equal(t, []string{
		"true: [192.168.1.250] 50ms {false [192.168.1.1]} pi3 150 true led:ACT a.service",
		"true: [192.168.1.251] 70ms {false []} pi3 149 true none b.service",
	}, got, "the groups")
	assert.Is(t, "/etc/topdog/topdog.toml:9:8", groups[1].Where("group"), "where the name of the second is")
	assert.Is(t, groups[1], groups.Named("dns2"), "the group of a name")
	assert.Is(t, (*Config)(nil), groups.Named("dns3"), "a group that there is not")
}

// Each group may have paths of its own, in place of those above the tables.
func TestPathsOfGroups(t *testing.T) {
	var got []string
	for _, c := range parseGroups(t, "interface = [\"eth0\", \"wlan0\"]\n"+two+"interface = [\"wlan0\", \"eth0\"]\n"+
		"[[group]]\nname = \"dns3\"\naddress = \"192.168.1.252\"\ninterface = \"eth1\"\nalgorithm = \"bully\"\n") {
		got = append(got, fmt.Sprintf("%s: %+v %t", c.Group, c.Paths, c.SecondPath))
	}
	assert.Equal(t, []string{
		"dns1: {Interface:eth0 SecondInterface:wlan0} true",
		"dns2: {Interface:wlan0 SecondInterface:eth0} true",
		"dns3: {Interface:eth1 SecondInterface:} false",
	}, got, "the paths")
}

// A file with one group is the same with a table and without one.
func TestOneTable(t *testing.T) {
	table, plain := parse(t, "[[group]]\nname = \"dns\"\naddress = \"192.168.1.250\"\n"), parse(t, good+"group = \"dns\"\n")
	assert.Equal(t, []string(nil), plain.Changed(table), "what differs")
	assert.Is(t, false, table.Several, "there are several")
	assert.Is(t, "topdog", parse(t, "[[group]]\n"+good).Group, "the name of a group without one")
}

// A key of the whole board is refused in a [[group]], and every other one is not.
func TestOfBoard(t *testing.T) {
	var ofBoard []string
	for _, key := range keys() {
		if OfBoard(key) {
			ofBoard = append(ofBoard, key)
		}
		if key == groupKey || key == nameKey { // name is that of the group there
			continue
		}
		inTable := "[[group]]\n" + good + needed[key] + key + " = " + changedValue[key] + "\n"
		if _, err := ParseGroups("topdog.toml", []byte(inTable)); OfBoard(key) != (err != nil && strings.Contains(err.Error(), "above the first [[group]]")) {
			t.Errorf("OfBoard(%q) is %t, and in a table it has: %v", key, OfBoard(key), err)
		}
	}
	assert.Equal(t, []string{"id", "key_file", "name", "socket", "log_level", "page_listen", "page_hosts"}, ofBoard, "keys of the whole board")
	assert.Is(t, false, OfBoard("no such key"), "an unknown key is of the whole board")
}

// Who is not preferred has the defaults.
func TestPrefer(t *testing.T) {
	for value, want := range map[string]string{`"pi3"`: "150 true", `["pi1", "Pi3"]`: "149 true", `"pi4"`: "100 false", `[]`: "100 false"} {
		c := parse(t, good+"prefer = "+value+"\n")
		assert.Is(t, want, fmt.Sprint(c.Priority, c.Preempt), "prefer = %s", value)
	}
	a, b := parse(t, good), parse(t, good+"prefer = \"pi3\"\n")
	assert.Equal(t, []string{"priority", "preempt", "prefer"}, a.Changed(b), "what prefer changes")
	a.ApplyLive(b)
	assert.Equal(t, []string(nil), a.Changed(b), "what is left to change after a reload")
}

// The floating address of one group is refused everywhere in another one, with its place.
func TestAddressOfAnotherGroup(t *testing.T) {
	const first, second = "[[group]]\nname = \"dns1\"\naddress = [\"192.168.1.250/24\", \"fd00:1::250\"]\n", "[[group]]\nname = \"dns2\"\naddress = \"192.168.1.251\"\n"
	const leading = "when = \"leading\"\n"
	for _, tc := range []struct{ text, place string }{
		{"id = \"192.168.1.251\"\n" + first + second, "1:6: id: 192.168.1.251"},
		{"page_listen = \"192.168.1.251:80\"\n" + first + second, "1:15: page_listen: 192.168.1.251"},
		{"page_listen = \"[fd00:1::250]:80\"\n" + first + second, "1:15: page_listen: fd00:1::250"},
		{"peers = [\"192.168.1.11\", \"192.168.1.251\"]\n" + first + second, "1:26: peers: 192.168.1.251"},
		{first + "peers = \"192.168.1.251\"\n" + second, "4:9: peers: 192.168.1.251"},
		{first + second + "witness = [\"192.168.1.1\", \"192.168.1.250\"]\n", "7:27: witness: 192.168.1.250"},
		{first + second + strict + "voters = [\"192.168.1.11\", \"192.168.1.12\", \"192.168.1.250\"]\n", "8:43: voters: 192.168.1.250"},
		{first + second + "[[group.check]]\ntcp = \"192.168.1.250:53\"\n", "8:7: check: tcp: 192.168.1.250"},
		{first + second + "[[group.check]]\ntcp = \"192.168.1.250:53\"\n" + leading, "8:7: check: tcp: 192.168.1.250"},
		{first + second + "[[group.check]]\ntcp = \"[fd00:1::250]:53\"\n", "8:7: check: tcp: fd00:1::250"},
		{first + second + "[[group.check]]\ntcp = \"[::ffff:192.168.1.250]:53\"\n", "8:7: check: tcp: ::ffff:192.168.1.250"},
		{first + second + "[[group.check]]\nhttp = \"http://192.168.1.250/\"\n", "8:8: check: http: 192.168.1.250"},
		{first + second + "[[group.check]]\nhttp = { url = \"https://[fd00:1::250]:8443/\", host = \"x\" }\n", "8:8: check: http: fd00:1::250"},
		{first + second + "[[group.check]]\ndns = \"pi.hole @192.168.1.250\"\n", "8:7: check: dns: 192.168.1.250"},
		{first + second + "[[group.check]]\ndns = \"pi.hole @[fd00:1::250]:53\"\n", "8:7: check: dns: fd00:1::250"},
		{first + "check = [{ tcp = \"192.168.1.251:53\" }]\n" + second, "4:18: check: tcp: 192.168.1.251"},
		{first + second + "[[check]]\ntcp = \"192.168.1.250:53\"\n", "8:7: check: tcp: 192.168.1.250"},
		{first + second + "[[check]]\ntcp = \"192.168.1.251:53\"\n" + leading, "8:7: check: tcp: 192.168.1.251"},
	} {
		group := "dns1"
		if strings.HasSuffix(tc.place, "251") {
			group = "dns2"
		}
		_, err := ParseGroups("topdog.toml", []byte(tc.text))
		var problems Errors
		if want := "topdog.toml:" + tc.place + " is the floating address of the group \"" + group + "\", "; !errors.As(err, &problems) ||
			len(problems) != 1 || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s\ngot %v\nwant %s", tc.text, err, want)
		}
	}
	parseGroups(t, first+second+"[[group.check]]\ntcp = \"192.168.1.251:53\"\n"+leading) // the own address, on the leader
}

func TestReadKeysOfGroups(t *testing.T) {
	path := filepath.Join(t.TempDir(), "topdog.toml")
	assert.NoError(t, os.WriteFile(path, []byte("key_file = \"key\"\n"+two), 0o644))
	groups, err := LoadGroups(path)
	assert.NoError(t, err)
	assert.ErrorContains(t, groups.ReadKeys(), "there is no key file", "no key")
	assert.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), "key"), []byte(strings.Repeat("ab", 32)), 0o600))
	assert.NoError(t, groups.ReadKeys())
	assert.Is(t, groups[0].Keys, groups[1].Keys, "the keys of both")
	assert.Is(t, false, groups[1].Keys.Signs.IsZero(), "there is none")
}

// A witness takes part in the groups that vote.
func TestGroupsWithVoters(t *testing.T) {
	text := two + "algorithm = \"strict\"\nvoters = [\"192.168.1.11\", \"192.168.1.12\", \"192.168.1.13\"]\n"
	groups, err := ParseGroups("topdog.toml", []byte(text))
	assert.NoError(t, err)
	assert.Equal(t, []string{"dns2"}, groups.WithVoters().Names(), "the groups of a witness")
	assert.Equal(t, []string{"dns1", "dns2"}, groups.Names(), "all groups")
}
