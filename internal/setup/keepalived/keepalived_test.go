package keepalived

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"topdog/internal/config"
	"topdog/internal/lab/golden"
)

// board is what the tests convert on.
var board = Machine{
	Name: "pi1",
	ReadFile: func(path string, _ int64) ([]byte, error) {
		if path == "/etc/keepalived/check_nginx.sh" {
			return []byte("#!/bin/sh\npidof nginx || systemctl stop keepalived\n"), nil
		}
		return os.ReadFile(path)
	},
	Glob:    filepath.Glob,
	HasUnit: func(name string) bool { return slices.Contains([]string{"haproxy.service", "nginx.service"}, name) },
	Program: func(name string) string {
		if name == "someprogram" || name == "php-fpm8.2" || name == "ping" {
			return "/usr/sbin/" + name
		}
		return ""
	},
}

// show writes down all that came of a conversion.
func show(g *Converted) string {
	var b strings.Builder
	fmt.Fprintf(&b, "addresses: %q\ninterface: %q\ngroup: %q\n%s%s", g.Addresses, g.Interface, g.Group, g.Own, g.Checks)
	if g.Hook != nil {
		b.WriteString("\nhook:\n" + string(g.Hook))
	}
	for _, act := range []bool{true, false} {
		fmt.Fprintf(&b, "\nnotes, act %v:\n", act)
		for _, n := range g.Notes {
			if n.Act == act {
				fmt.Fprintf(&b, "%v: %s: %s\n", n.Place, n.Keyword, n.Text)
			}
		}
	}
	return b.String()
}

// What becomes of files as people have them. The notes are to be read as a whole: they are the work.
func TestConvert(t *testing.T) {
	for _, tt := range []struct{ file, name string }{
		{"haproxy", ""}, {"pihole", ""}, {"web", ""}, {"web", "WEB_2"}, {"params", "VI_1"}, {"params", "VI_2"}, {"lvs", ""}, {"scripts", ""}, {"field", ""},
		{"kubernetes", ""}, {"database", ""}, {"dualstack", ""}, {"routers", "VI_1"}, {"tutorial", ""}, {"resolvers", ""}, {"twice", ""}, {"swarm", ""}, {"shell", ""}, {"cloud", ""},
	} {
		path := "testdata/" + tt.file
		if tt.name != "" {
			path += "-" + tt.name
		}
		path += ".golden"
		got := ""
		if g, err := Convert("testdata/"+tt.file+".conf", tt.name, board); err != nil {
			t.Errorf("%s %s: %v", tt.file, tt.name, err)
			continue
		} else {
			got = show(g)
		}
		golden.Compare(t, path, got)
		if strings.Contains(got, "secret07") || strings.Contains(got, "1111") {
			t.Errorf("%s shows a password", path)
		}
	}
}

// on is a machine whose only files are these.
func on(files map[string]string) Machine {
	m := board
	m.ReadFile = func(path string, _ int64) ([]byte, error) {
		text, ok := files[path]
		if !ok {
			return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
		}
		return []byte(text), nil
	}
	m.Glob = func(pattern string) (found []string, err error) {
		for path := range files {
			if ok, err := filepath.Match(pattern, path); ok && err == nil {
				found = append(found, path)
			}
		}
		slices.Sort(found)
		return found, nil
	}
	return m
}

// Mistakes have their place, and no file makes the reader go on without an end.
func TestMistakes(t *testing.T) {
	const instance = "vrrp_instance V {\n interface eth0\n virtual_ipaddress {\n 10.0.0.1\n }\n}\n"
	for _, tt := range []struct{ name, text, want string }{
		{"empty", "", "k.conf: there is no vrrp_instance in it"},
		{"open block", "global_defs {\n" + instance, "k.conf:1:13: the block of global_defs never ends"},
		{"open include", "include open\n" + instance, "open:1:4: the block of a never ends"},
		{"one brace too many", instance + " }\n", "k.conf:7:2: this brace closes nothing"},
		{"no keyword", "{\n}\n", "k.conf:1:1: this block has no keyword"},
		{"two blocks", "a { } { }\n", "k.conf:1:7: this block has no keyword"},
		{"open quote", "# ok \"\n x \"y # z\n", "k.conf:2:4: this quote is never closed"},
		{"deep", strings.Repeat("a {\n", 40), "k.conf:17:3: blocks are more than 16 deep"},
		{"includes itself", "include k.conf\n", "k.conf:1:1: files are included more than 16 deep"},
		{"no text", "a\x00b\n", "k.conf:1:1: this is no line of text"},
		{"not UTF-8", "a\xffb\n", "k.conf:1:1: this is no line of text"},
		{"huge", strings.Repeat("#\n", maxBytes/2+1), "more than 1048576 bytes"},
		{"endless parameter", "$A=${A}x\nb ${A}\n", "k.conf:2:1: the parameters of this line make it endless"},
		{"growing parameters", "$A=${B}${B}\n$B=${C}${C}\n$C=" + strings.Repeat("x", 30000) + "\n${A}\n", "make it endless"},
		{"many grown lines", "$A=" + strings.Repeat("x", 60000) + "\n" + strings.Repeat("${A}\n", 20), "with its parameters the file has more"},
		{"no address", "vrrp_instance V {\n interface eth0\n}\n", "k.conf:1:1: V has no address that topdog could keep"},
		{"IPv6 only", "vrrp_instance V {\n virtual_ipaddress {\n fd00::1/64\n}\n}\n", "V has no address"},
		{"bad address", "vrrp_instance V {\n virtual_ipaddress {\n  10.0.0.256/24\n }\n}\n", `k.conf:3:3: "10.0.0.256"`},
		{"loopback", "vrrp_instance V {\n virtual_ipaddress { 127.0.0.1 }\n}\n", "k.conf:2:22: "},
		{"bad peer", "vrrp_instance V {\n unicast_peer {\n pi2\n }\n}\n", `k.conf:3:2: "pi2" is no address`},
		{"bad priority", "vrrp_instance V {\n priority high\n}\n", `k.conf:2:11: "high" is no priority`},
		{"priority 256", "vrrp_instance V {\n priority 256\n}\n", `"256" is no priority`},
		{"no priority", "vrrp_instance V {\n priority\n}\n", `k.conf:2:2: "" is no priority`},
		{"bad interval", tracked("interval soon\nscript /bin/x"), `k.conf:12:10: "soon" is no time`},
		{"negative interval", tracked("interval -1\nscript /bin/x"), `"-1" is no time`},
		{"not a number", tracked("interval NaN\nscript /bin/x"), `"NaN" is no time`},
		{"bad count", tracked("fall many\nscript /bin/x"), `k.conf:12:6: "many" is no number of results`},
		{"bad script", tracked(`script "/bin/x 'y"`), "k.conf:12:8: this is no command"},
		{"two interfaces", "vrrp_sync_group G {\n group {\n A\n B\n }\n}\n" + strings.ReplaceAll(instance, " V ", " A ") + strings.NewReplacer(" V ", " B ", "eth0", "eth1", "0.0.1", "0.0.2").Replace(instance),
			"k.conf:16:2: this address is on eth1, and the one of k.conf:10:2 is on eth0: a group of topdog has its addresses on one interface\n      = help: convert one vrrp_instance by its name, or take it out of a copy of the file"},
		{"two interfaces in one instance", "vrrp_instance V {\n interface eth0\n virtual_ipaddress {\n 10.0.0.1\n 10.0.0.2\n 10.1.0.1 dev eth1\n }\n}\n",
			"k.conf:6:2: this address is on eth1, and the one of k.conf:4:2 is on eth0: a group of topdog has its addresses on one interface\n      = help: convert one vrrp_instance by its name, or take it out of a copy of the file, and convert that"},
		{"two interfaces in one instance of two", "vrrp_sync_group G {\n group {\n A\n B\n }\n}\n" + strings.ReplaceAll(instance, " V ", " A ") + "vrrp_instance B {\n interface eth1\n virtual_ipaddress {\n 10.1.0.1\n 10.2.0.1 dev eth2\n }\n}\n",
			"k.conf:16:2: this address is on eth1, and the one of k.conf:10:2 is on eth0: a group of topdog has its addresses on one interface"},
		{"too many addresses", "vrrp_instance V {\n virtual_ipaddress {\n" + addresses(17) + " }\n}\n", "k.conf:19:2: this address is one too many: a group of topdog has 16 at most"},
		{"no name", strings.Replace(instance, " V ", " ", 1), "k.conf:1:1: this vrrp_instance has no name"},
		{"no interface", strings.Replace(instance, "eth0", "$LAN", 1), `k.conf:2:12: "$LAN" is no interface`},
		{"alias", strings.Replace(instance, "0.0.1", "0.0.1 dev eth0:1", 1), `k.conf:4:15: "eth0:1" is no interface`},
		{"no router ID", strings.Replace(instance, "eth0", "eth0\n virtual_router_id 256", 1), `k.conf:3:20: "256" is no router ID`},
		{"Jinja", strings.Replace(instance, "eth0", "{{ lan }}", 1), "k.conf:2:12: this is a template, or a parameter without a value"},
		{"Jinja condition", "a\n{% if x %}\n" + instance, "k.conf:2:1: this is a template"},
		{"parameter of Docker", strings.Replace(instance, "10.0.0.1", "${IP:-10.0.0.1}/24", 1), "k.conf:4:2: this is a template, or a parameter without a value"},
		{"bad own address", "vrrp_instance V {\n unicast_src_ip pi1\n unicast_peer {\n 10.0.0.2\n }\n}\n", `k.conf:2:17: "pi1" is no address`},
		{"quotes with backslashes", tracked(`script \"/bin/x y\"`), "k.conf:12:8: this is no command\n      = help: write script \"/path/to/program argument\""},
		{"missing list", strings.Replace(instance, "virtual_ipaddress {\n 10.0.0.1\n }", "virtual_ipaddress 10.0.0.1", 1), "V has no address that topdog could keep\n      = help: write an IPv4 address into its virtual_ipaddress { … }"},
	} {
		m := on(map[string]string{"k.conf": tt.text, "open": " a { \n"})
		_, err := Convert("k.conf", "", m)
		var problems config.Errors
		if !errors.As(err, &problems) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
	if _, err := Convert("none", "", on(nil)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
}

// A keyword of another block is not passed over in silence. Behind a brace too many that may be a second address.
func TestMisplaced(t *testing.T) {
	for _, tt := range []struct{ text, keyword string }{
		{tracked("script /bin/x\nnotify /bin/y"), "notify"},
		{tracked("script /bin/x") + "priority 150\n", "priority"},
		{tracked("script /bin/x") + "virtual_ipaddress {\n 10.0.0.2\n}\n", "virtual_ipaddress"},
		{"global_defs {\nnopreempt\n}\n" + tracked("script /bin/x"), "nopreempt"},
		{strings.Replace(tracked("script /bin/x"), "interface", "interval 5\ninterface", 1), "interval"},
	} {
		g, err := Convert("k.conf", "", on(map[string]string{"k.conf": tt.text}))
		noted := func(n Note) bool {
			return n.Act && n.Keyword == tt.keyword && strings.Contains(n.Text, "does not belong here")
		}
		if err != nil || !slices.ContainsFunc(g.Notes, noted) {
			t.Errorf("%s: got %v, %v", tt.keyword, g, err)
		}
	}
}

// Times of 0 say nothing, as with keepalived.
func TestNoTimes(t *testing.T) {
	g, err := Convert("k.conf", "", on(map[string]string{"k.conf": tracked("script /bin/x\ninterval 0\ntimeout 0.0")}))
	if want := "[[check]]\ncommand = [\"/bin/x\"]\n"; err != nil || !strings.HasSuffix(g.Checks, want) {
		t.Errorf("got %v, %v", g, err)
	}
}

// addresses are lines with as many addresses.
func addresses(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, " 10.0.1.%d\n", i+1)
	}
	return b.String()
}

// tracked is a file with a script that has one line.
func tracked(line string) string {
	return "vrrp_instance V {\n interface eth0\n virtual_ipaddress {\n 10.0.0.1\n }\n track_script {\n  s\n }\n}\n\nvrrp_script s {\n" + line + "\n}\n"
}

// One of several groups has to be chosen.
func TestChoice(t *testing.T) {
	for name, want := range map[string]string{
		"":   "several groups of addresses, which may be on different boards, and each is a daemon of topdog's own; choose one of: VI_2, VI_1",
		"VI": "has no vrrp_instance VI, but: VI_2, VI_1",
	} {
		_, err := Convert("testdata/params.conf", name, board)
		var choice *ChoiceError
		if !errors.As(err, &choice) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", name, err)
		}
	}
}
