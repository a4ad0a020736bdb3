package keepalived

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"topdog/internal/config"
	"topdog/internal/lab/assert"
	"topdog/internal/lab/golden"
)

// hasUnit is what the tests convert with.
func hasUnit(name string) bool { return name == "haproxy.service" || name == "nginx.service" }

// show writes down all that came of a conversion.
func show(g *Converted) string {
	var b strings.Builder
	for _, one := range g.Groups {
		if len(g.Groups) > 1 {
			fmt.Fprintf(&b, "\n%s\n", one.Origin)
		}
		fmt.Fprintf(&b, "addresses: %q\ninterface: %q\ngroup: %q\n%s%s", one.Addresses, one.Interface, one.Name, one.Own, one.Checks)
	}
	b.WriteString(g.Checks)
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
		{"haproxy", ""}, {"pihole", ""}, {"web", "WEB_1"}, {"web", "WEB_2"}, {"lvs", ""}, {"scripts", ""}, {"field", ""},
		{"kubernetes", ""}, {"database", ""}, {"dualstack", ""}, {"families", ""}, {"pairs", ""}, {"pairs", "VI_1"}, {"routers", ""}, {"routers", "VI_1"}, {"several", ""}, {"tutorial", ""}, {"resolvers", ""}, {"twice", ""}, {"swarm", ""}, {"shell", ""}, {"cloud", ""},
	} {
		path := "testdata/" + tt.file
		if tt.name != "" {
			path += "-" + tt.name
		}
		path += ".golden"
		got := ""
		text, err := os.ReadFile("testdata/" + tt.file + ".conf")
		assert.NoError(t, err)
		if g, err := Convert("testdata/"+tt.file+".conf", text, tt.name, hasUnit); err != nil {
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

// convertText converts a file with this text.
func convertText(text, name string) (*Converted, error) {
	return Convert("k.conf", []byte(text), name, hasUnit)
}

// Mistakes have their place, and no file makes the reader go on without an end.
func TestMistakes(t *testing.T) {
	const instance = "vrrp_instance V {\n interface eth0\n virtual_ipaddress {\n 10.0.0.1\n }\n}\n"
	for _, tt := range []struct{ name, text, want string }{
		{"empty", "", "k.conf: there is no vrrp_instance in it"},
		{"open block", "global_defs {\n" + instance, "k.conf:1:13: the block of global_defs never ends"},
		{"one brace too many", instance + " }\n", "k.conf:7:2: this brace closes nothing"},
		{"list in another file", strings.Replace(instance, "10.0.0.1", "include vips.conf", 1),
			"k.conf:4:2: include: the file is not read: write its lines into a copy of this one, and convert that"},
		{"no keyword", "{\n}\n", "k.conf:1:1: this block has no keyword"},
		{"two blocks", "a { } { }\n", "k.conf:1:7: this block has no keyword"},
		{"open quote", "# ok \"\n x \"y # z\n", "k.conf:2:4: this quote is never closed"},
		{"no text", "a\x00b\n", "k.conf:1:1: this is no line of text"},
		{"not UTF-8", "a\xffb\n", "k.conf:1:1: this is no line of text"},
		{"no address", "vrrp_instance V {\n interface eth0\n}\n", "k.conf:1:1: V has no IPv4 address, and by that the boards elect"},
		{"IPv6 only", "vrrp_instance V {\n virtual_ipaddress {\n fd00::1/64\n}\n}\n", "V has no IPv4 address"},
		{"bad address", "vrrp_instance V {\n virtual_ipaddress {\n  10.0.0.256/24\n }\n}\n", `k.conf:3:3: "10.0.0.256"`},
		{"loopback", "vrrp_instance V {\n virtual_ipaddress { 127.0.0.1 }\n}\n", "k.conf:2:22: "},
		{"bad IPv6 address", "vrrp_instance V {\n virtual_ipaddress {\n  10.0.0.1\n  ff02::1\n }\n}\n", `k.conf:4:3: ff02::1 is not a unicast address`},
		{"router's anycast", "vrrp_instance V {\n virtual_ipaddress {\n  10.0.0.1\n  fd00::/64\n }\n}\n", `k.conf:4:3: fd00::/64 is the address that all routers`},
		{"bad address of a partner", instance + "vrrp_instance V6 {\n interface eth0\n virtual_ipaddress {\n fd00::1/129\n }\n}\n", `k.conf:10:2: "/129" is not a prefix length`},
		{"a partner's list in another file", instance + "vrrp_instance V6 {\n interface eth0\n virtual_ipaddress {\n fd00::1\n include vips.conf\n }\n}\n",
			"k.conf:11:2: include: the file is not read"},
		{"a partner elsewhere", instance + "vrrp_instance V6 {\n interface eth0\n virtual_ipaddress {\n fd00::1 dev eth1\n }\n}\n",
			"k.conf:10:2: this address is on eth1, and the one of k.conf:4:2 is on eth0"},
		{"bad peer", "vrrp_instance V {\n unicast_peer {\n pi2\n }\n}\n", `k.conf:3:2: "pi2" is no address`},
		{"bad priority", "vrrp_instance V {\n priority high\n}\n", `k.conf:2:11: "high" is no priority`},
		{"priority 256", "vrrp_instance V {\n priority 256\n}\n", `"256" is no priority`},
		{"no priority", "vrrp_instance V {\n priority\n}\n", `k.conf:2:2: "" is no priority`},
		{"bad interval", tracked("interval soon\nscript /bin/x"), `k.conf:12:10: "soon" is no time`},
		{"negative interval", tracked("interval -1\nscript /bin/x"), `"-1" is no time`},
		{"not a number", tracked("interval NaN\nscript /bin/x"), `"NaN" is no time`},
		{"bad count", tracked("fall many\nscript /bin/x"), `k.conf:12:6: "many" is no number of results`},
		{"bad script", tracked(`script "/bin/x 'y"`), "k.conf:12:8: this is no command"},
		{"two interfaces in one instance", "vrrp_instance V {\n interface eth0\n virtual_ipaddress {\n 10.0.0.1\n 10.0.0.2\n 10.1.0.1 dev eth1\n }\n}\n",
			"k.conf:6:2: this address is on eth1, and the one of k.conf:4:2 is on eth0: a group of topdog has its addresses on one interface\n      = help: take it out of a copy of the file, and convert that"},
		{"too many addresses", "vrrp_instance V {\n virtual_ipaddress {\n" + addresses(17) + " }\n}\n", "k.conf:19:2: this address is one too many: a group of topdog has 16 at most"},
		{"no name", strings.Replace(instance, " V ", " ", 1), "k.conf:1:1: this vrrp_instance has no name"},
		{"no interface", strings.Replace(instance, "eth0", "$LAN", 1), `k.conf:2:12: "$LAN" is no interface`},
		{"a parameter", instance + " $LAN=eth0\n", "k.conf:7:2: keepalived makes other lines of this one"},
		{"a condition", strings.Replace(instance, "interface", "@pi1 interface", 1), "k.conf:2:2: keepalived makes other lines of this one"},
		{"a sequence", "~SEQ(N, 1, 3) virtual_server_${N}\n" + instance, "k.conf:1:1: keepalived makes other lines of this one"},
		{"alias", strings.Replace(instance, "0.0.1", "0.0.1 dev eth0:1", 1), `k.conf:4:15: "eth0:1" is no interface`},
		{"no router ID", strings.Replace(instance, "eth0", "eth0\n virtual_router_id 256", 1), `k.conf:3:20: "256" is no router ID`},
		{"Jinja", strings.Replace(instance, "eth0", "{{ lan }}", 1), "k.conf:2:12: this is a template, or a parameter without a value"},
		{"Jinja condition", "a\n{% if x %}\n" + instance, "k.conf:2:1: this is a template"},
		{"parameter of Docker", strings.Replace(instance, "10.0.0.1", "${IP:-10.0.0.1}/24", 1), "k.conf:4:2: this is a template, or a parameter without a value"},
		{"bad own address", "vrrp_instance V {\n unicast_src_ip pi1\n unicast_peer {\n 10.0.0.2\n }\n}\n", `k.conf:2:17: "pi1" is no address`},
		{"quotes with backslashes", tracked(`script \"/bin/x y\"`), "k.conf:12:8: this is no command\n      = help: write script \"/path/to/program argument\""},
		{"an address of two groups", instances(1) + "vrrp_instance B {\n virtual_ipaddress {\n 10.1.0.1\n  10.0.0.1/24\n }\n}\n",
			"k.conf:9:3: V1 has 10.0.0.1 too, and each group has addresses of its own\n      = help: leave it in one of the two"},
		{"a second group without an address", instances(2) + "vrrp_instance B {\n interface eth0\n}\n", "k.conf:11:1: B has no IPv4 address"},
		{"too many groups", instances(17), "k.conf:41:1: this is group 9 of 17, more than 8"},
		{"missing list", strings.Replace(instance, "virtual_ipaddress {\n 10.0.0.1\n }", "virtual_ipaddress 10.0.0.1", 1), "V has no IPv4 address, and by that the boards elect\n      = help: write an IPv4 address into its virtual_ipaddress { … }"},
	} {
		_, err := convertText(tt.text, "")
		var problems config.Errors
		if !errors.As(err, &problems) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
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
		g, err := convertText(tt.text, "")
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
	g, err := convertText(tracked("script /bin/x\ninterval 0\ntimeout 0.0"), "")
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

// Which instance of IPv6 moves with which one of IPv4. Each letter is an instance: 4 and 6 are its families, then come
// its interface, its state, its router ID and its vrrp_sync_group.
func TestPartners(t *testing.T) {
	for _, tt := range []struct{ name, instances, want string }{
		{"one of each", "a 4 eth0 MASTER 1 -, b 6 eth0 MASTER 2 -", "b with a"},
		{"in the other order", "b 6 eth0 MASTER 2 -, a 4 eth0 MASTER 1 -", "b with a"},
		{"two of IPv6", "a 4 eth0 MASTER 1 -, b 6 eth0 MASTER 2 -, c 6 eth0 MASTER 3 -", "b with a, c with a"},
		{"another interface", "a 4 eth0 MASTER 1 -, b 6 eth1 MASTER 1 -", ""},
		{"another state", "a 4 eth0 MASTER 1 -, b 6 eth0 BACKUP 1 -", ""},
		{"another state in one sync group", "a 4 eth0 MASTER 1 g, b 6 eth0 BACKUP 2 g", "b with a"},
		{"two sync groups", "a 4 eth0 MASTER 1 g, b 6 eth0 MASTER 1 h", ""},
		{"one is in a sync group", "a 4 eth0 MASTER 1 g, b 6 eth0 MASTER 1 -", ""},
		{"two pairs by state", "a 4 eth0 MASTER 1 -, b 4 eth0 BACKUP 2 -, c 6 eth0 MASTER 3 -, d 6 eth0 BACKUP 4 -", "c with a, d with b"},
		{"two pairs by number", "a 4 eth0 BACKUP 1 -, b 4 eth0 BACKUP 2 -, c 6 eth0 BACKUP 2 -, d 6 eth0 BACKUP 1 -", "c with b, d with a"},
		{"two in question", "a 4 eth0 BACKUP 1 -, b 4 eth0 BACKUP 2 -, c 6 eth0 BACKUP 3 -", ""},
		{"two in one sync group", "a 4 eth0 BACKUP 1 g, b 4 eth0 BACKUP 2 g, c 6 eth0 BACKUP 3 g", "c with a"},
		{"both families in one", "a 46 eth0 MASTER 1 -, b 6 eth0 MASTER 2 -", "b with a"},
		{"the same name again", "a 4 eth0 MASTER 1 -, a 6 eth0 MASTER 1 -", ""},
		{"no addresses", "a 4 eth0 MASTER 1 -, b - eth0 MASTER 1 -", ""},
	} {
		var text string
		groups := map[string]string{}
		for line := range strings.SplitSeq(tt.instances, ", ") {
			f := strings.Fields(line)
			text += fmt.Sprintf("vrrp_instance %s {\n interface %s\n state %s\n virtual_router_id %s\n virtual_ipaddress {\n", f[0], f[2], f[3], f[4])
			if strings.Contains(f[1], "4") {
				text += "10.0.0.1\n"
			}
			if strings.Contains(f[1], "6") {
				text += "fe80::1\nfd00::1\n"
			}
			text += "}\n}\n"
			if f[5] != "-" {
				groups[f[5]] += f[0] + "\n"
			}
		}
		for name, members := range groups {
			text += "vrrp_sync_group " + name + " {\n group {\n" + members + "}\n}\n"
		}
		file, err := read("k.conf", []byte(text))
		assert.NoError(t, err)
		var got []string
		for _, s := range file.instances() {
			for _, partner := range file.partners(s) {
				got = append(got, partner.text(1)+" with "+s.text(1))
			}
		}
		slices.Sort(got)
		assert.Is(t, tt.want, strings.Join(got, ", "), "%s", tt.name)
	}
}

// A name that there is not leaves a choice, and instances that move together cannot become two groups.
func TestChoice(t *testing.T) {
	for _, tt := range []struct{ file, name, want string }{
		{"routers", "VI", "has no vrrp_instance VI, but: VI_2, VI_1"},
		{"pairs", "VI", "has no vrrp_instance VI, but: VI_1, VI_2"},
		{"web", "", "k.conf:18:1: WEB_1 and WEB_2 move together, as the addresses of one group of topdog do, and two groups do not; choose one of: WEB_1, WEB_2"},
	} {
		text, err := os.ReadFile("testdata/" + tt.file + ".conf")
		assert.NoError(t, err)
		_, err = convertText(string(text), tt.name)
		var choice *ChoiceError
		if !errors.As(err, &choice) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %q: %v", tt.file, tt.name, err)
		}
	}
	_, err := convertText("", "VI")
	assert.ErrorContains(t, err, "there is no vrrp_instance in it", "nothing to choose from")
}

// instances are a file with as many instances, each with an address of its own.
func instances(n int) (text string) {
	for i := range n {
		text += fmt.Sprintf("vrrp_instance V%d {\n virtual_ipaddress {\n 10.0.0.%d\n }\n}\n", i+1, i+1)
	}
	return text
}
