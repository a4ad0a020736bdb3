package setup

import (
	"bytes"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"topdog/netio"
)

// networkOf is a network in which the board has these addresses on its only interface.
func networkOf(own ...string) network {
	n := network{
		find: func(netip.Addr) (netio.Choice, error) {
			return netio.Choice{Name: "eth0", Prefix: netip.MustParsePrefix("10.0.0.1/24")}, nil
		},
		owner: func(string, netip.Addr) (string, bool) { return "", true },
	}
	for _, a := range own {
		n.own = append(n.own, ownAddress{"eth0", netip.MustParsePrefix(a + "/24")})
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
		{"on an interface that is not there yet", "eth7", []string{"10.0.0.4"}, []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}, ""},
		{"the ids are numbers", "", []string{"10.0.0.4"}, []string{"1", "2", "3"}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := Board{
				Path: filepath.Join(t.TempDir(), configName), Address: "10.0.0.9", Interface: tc.iface, Strict: true, Voters: tc.voters,
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
