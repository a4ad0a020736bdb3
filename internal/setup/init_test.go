package setup

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"topdog/internal/config"
	"topdog/internal/lab/assert"
	"topdog/internal/lab/golden"
	"topdog/netio"
)

// What topdog init prints, and the lines of the configuration that is there then, is in testdata/init.golden. A board with
// the name of another one has its directory.
func TestInit(t *testing.T) {
	plain := Board{Addresses: []string{"10.0.0.9"}, Interfaces: []string{"eth0"}}
	page, strict := plain, plain
	page.Page = true
	strict.Strict, strict.Voters = true, []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}
	otherVoters := strict
	otherVoters.Voters = []string{"10.0.0.1", "10.0.0.2", "10.0.0.4"}
	families, another := plain, plain
	paths := plain
	paths.Interfaces = []string{"eth0", "wlan0"}
	families.Addresses = []string{"fd00:1::9/64", "10.0.0.9"}
	another.Addresses = []string{"10.0.0.9", "fd00:1::8"}
	parent := t.TempDir()
	var got strings.Builder
	for _, test := range []struct {
		name, directory string
		board           Board
	}{
		{"a board", "plain", plain},
		{"voters afterwards, which are not given to a board in passing", "plain", strict},
		{"with the page", "page", page},
		{"voters", "strict", strict},
		{"the same again", "strict", strict},
		{"other voters", "strict", otherVoters},
		{"two paths", "paths", paths},
		{"the same again", "paths", paths},
		{"one path", "paths", plain},
		{"both families", "families", families},
		{"one of them again", "families", plain},
		{"another one of them", "families", another},
	} {
		path := filepath.Join(parent, test.directory, configName)
		test.board.Path = path
		var out bytes.Buffer
		err := test.board.initIn(networkOf("10.0.0.1"), strings.NewReader(""), &out)
		fmt.Fprintf(&got, "=== %s\n%s", test.name, strings.ReplaceAll(out.String(), filepath.Dir(path), "/etc/topdog"))
		if err != nil {
			fmt.Fprintf(&got, "--> error: %s\n", strings.ReplaceAll(err.Error(), filepath.Dir(path), "/etc/topdog"))
		}
		text, err := os.ReadFile(path)
		if !errors.Is(err, fs.ErrNotExist) {
			assert.NoError(t, err)
		}
		for line := range strings.Lines(string(text)) {
			if !strings.HasPrefix(line, "#") && line != "\n" {
				got.WriteString("--> " + line)
			}
		}
		got.WriteString("\n")
	}
	golden.Compare(t, "testdata/init.golden", got.String())
}

// A configuration mentions a second path where this board may have one.
func TestSecondPathIsMentioned(t *testing.T) {
	const sentence = "the boards hear each other by %s too, in case eth0 fails; the address stays on eth0.\n#interface = [\"eth0\", \"%s\"]\n"
	alone, instead := "# With this line, "+sentence, "interface = \"eth0\"\n# With this line instead, "+sentence
	for _, test := range []struct {
		name, named string // the interfaces that are named
		own         []string
		want        string // the lines about interfaces
	}{
		{"one interface", "", []string{"10.0.0.1"}, ""},
		{"two addresses of one", "", []string{"10.0.0.1", "10.0.0.2"}, ""},
		{"Wi-Fi", "", []string{"10.0.0.1", "wlan0 10.0.0.2"}, fmt.Sprintf(alone, "wlan0", "wlan0")},
		{"Wi-Fi in another network, listed first", "", []string{"wlan0 10.1.0.1", "10.0.0.1"}, fmt.Sprintf(alone, "wlan0", "wlan0")},
		{"Wi-Fi with IPv6 alone", "", []string{"10.0.0.1", "wlan0 fd00:2::1"}, ""},
		{"the bridge of containers", "", []string{"10.0.0.1", "docker0 172.17.0.1"}, ""},
		{"more than one", "", []string{"10.0.0.1", "docker0 172.17.0.1", "eth1 10.1.0.1", "wlan0 10.0.0.2"}, fmt.Sprintf(alone, "eth1", "eth1")},
		{"a named interface", "eth0", []string{"10.0.0.1", "wlan0 10.0.0.2"}, fmt.Sprintf(instead, "wlan0", "wlan0")},
		{"two named interfaces", "eth0 eth1", []string{"10.0.0.1", "wlan0 10.0.0.2"}, "interface = [\"eth0\", \"eth1\"]\n"},
	} {
		b := Board{Path: filepath.Join(t.TempDir(), configName), Addresses: []string{"10.0.0.9"}, Interfaces: strings.Fields(test.named)}
		assert.NoError(t, b.initIn(networkOf(test.own...), strings.NewReader(""), new(bytes.Buffer)))
		text := read(t, b.Path)
		_, lines, _ := strings.Cut(text, "address = \"10.0.0.9\"\n\n")
		lines, _, _ = strings.Cut(lines, "# Relative to")
		assert.Is(t, test.want, lines, "%s: the configuration", test.name)
		if commented := "#interface = "; strings.Contains(text, commented) {
			text = strings.ReplaceAll(strings.Replace(text, "interface = \"eth0\"\n", "", 1), commented, "interface = ")
			groups, err := config.ParseGroups(configName, []byte(text))
			assert.NoError(t, err)
			assert.Is(t, true, groups.First().SecondPath, "%s: with the line there is a second path", test.name)
		}
	}
}

// networkOf is a network in which the board has these addresses, on eth0 unless another interface stands in front.
func networkOf(own ...string) network {
	n := network{
		find: func(netip.Addr) (netio.Choice, error) {
			return netio.Choice{Name: "eth0", Prefix: netip.MustParsePrefix("10.0.0.1/24")}, nil
		},
		owner:    func(string, netip.Addr) (string, bool) { return "", true },
		isDevice: func(iface string) bool { return iface != "docker0" },
	}
	n.own = []ownAddress{{"eth0", netip.MustParsePrefix("fd00:1::1/64")}} // which is nobody's id
	for _, a := range own {
		iface, address, named := strings.Cut(a, " ")
		if !named {
			iface, address = "eth0", a
		}
		n.own = append(n.own, ownAddress{iface, netip.MustParsePrefix(address + "/24")})
	}
	return n
}

// A list of voters without this board is refused, if that can be known.
func TestInitStrictWithoutThisBoard(t *testing.T) {
	const refused = "this board is not among the voters 10.0.0.1, 10.0.0.2, 10.0.0.3, so it would neither vote nor lead: its own address on eth0 is 10.0.0.4. Put that into the list"
	for _, tc := range []struct {
		name, iface string
		own, voters []string
		want        string
	}{
		{"it is one", "", []string{"10.0.0.2"}, []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}, ""},
		{"by its second address", "", []string{"10.0.0.4", "10.0.0.2"}, []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}, ""},
		{"it is none", "", []string{"10.0.0.4"}, []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}, refused},
		{"it is none, on a named interface", "eth0", []string{"10.0.0.4"}, []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}, refused},
		{"it is none, on the first path", "eth0 wlan0", []string{"10.0.0.4"}, []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}, refused},
		{"it is none, though it has a voter's address on the second path", "eth0 wlan0", []string{"10.0.0.4", "wlan0 10.0.0.2"}, []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}, refused},
		{"on an interface that is not there yet", "eth7", []string{"10.0.0.4"}, []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}, ""},
		{"the ids are numbers", "", []string{"10.0.0.4"}, []string{"1", "2", "3"}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := Board{
				Path: filepath.Join(t.TempDir(), configName), Addresses: []string{"10.0.0.9"}, Interfaces: strings.Fields(tc.iface), Strict: true, Voters: tc.voters,
			}
			err := b.initIn(networkOf(tc.own...), strings.NewReader(""), new(bytes.Buffer))
			var wrong UsageError
			_, missing := os.Stat(b.Path)
			if tc.want == "" && err != nil || tc.want != "" && (!errors.As(err, &wrong) || !strings.HasPrefix(err.Error(), tc.want) || missing == nil) {
				t.Errorf("got %v, the file: %v; want %q", err, missing, tc.want)
			}
		})
	}
}

// The page is where page_listen has it.
func TestPageURL(t *testing.T) {
	for line, want := range map[string]string{
		"":                                  "http://192.168.1.250:9254/",
		`page_listen = ":8080"`:             "http://192.168.1.250:8080/",
		`page_listen = "[::]:8080"`:         "http://192.168.1.250:8080/",
		`page_listen = "0.0.0.0:8080"`:      "http://192.168.1.250:8080/",
		`page_listen = "192.168.1.11:9254"`: "http://192.168.1.11:9254/",
		`page_listen = "[fd00::11]:9254"`:   "http://[fd00::11]:9254/",
		`page_listen = "127.0.0.1:9254"`:    "http://127.0.0.1:9254/",
		`page_hosts = "topdog.lan"`:         "http://192.168.1.250:9254/",
	} {
		cfg, err := config.ParseGroups(configName, []byte("address = [\"fd00:1::250\", \"192.168.1.250/24\", \"10.0.0.1\"]\n"+line))
		assert.NoError(t, err)
		assert.Is(t, want, pageURL(cfg.First()), "%s", line)
	}
}
