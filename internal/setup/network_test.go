package setup

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/netns"
)

func TestAsk(t *testing.T) {
	subnet, free := netip.MustParsePrefix("192.168.1.0/24"), netip.MustParseAddr("192.168.1.250")
	for _, tc := range []struct {
		name, input string
		subnet      netip.Prefix
		free        netip.Addr
		want        string // the answer; "" if there is none
		says        []string
	}{
		{"the suggestion", "\n", subnet, free, "192.168.1.250", []string{"This board is in 192.168.1.0/24.", "Nobody answers at 192.168.1.250 just now", "Address [192.168.1.250]: "}},
		{"another", " 192.168.1.99/24 \n", subnet, free, "192.168.1.99/24", nil},
		{"no suggestion", "\n192.168.1.7\n", netip.Prefix{}, netip.Addr{}, "192.168.1.7", []string{"Address: ", "Address: "}},
		{"a mistake first", "192.168.1\n::1\n192.168.1.7\n", subnet, netip.Addr{}, "192.168.1.7", []string{"is not an IPv4 address", "IPv6"}},
		{"another network first", "10.0.0.9\n192.168.1.7\n", subnet, netip.Addr{}, "192.168.1.7", []string{"10.0.0.9 does not suit", "Address: "}},
		{"the suggestion does not suit", "\n192.168.1.7\n", subnet, netip.MustParseAddr("10.0.0.250"), "192.168.1.7", []string{"10.0.0.250 does not suit", "Address [10.0.0.250]: "}},
		{"the end", "nonsense\n", subnet, free, "", nil},
		{"nothing", "", subnet, free, "", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out bytes.Buffer
			got, err := ask(strings.NewReader(tc.input), &out, tc.subnet, tc.free, func(text string) error {
				if strings.HasPrefix(text, "10.") {
					return fmt.Errorf("%s does not suit", text)
				}
				return Board{}.check(text)
			})
			var usage UsageError
			if got != tc.want || (err == nil) != (tc.want != "") || err != nil && !errors.As(err, &usage) {
				t.Errorf("got %q, %v; want %q", got, err, tc.want)
			}
			rest := out.String()
			for _, says := range tc.says {
				before, after, found := strings.Cut(rest, says)
				if !found {
					t.Errorf("%q is not said, or not in order, in:\n%s", says, out.String())
					break
				}
				_, rest = before, after
			}
		})
	}
}

// A suggestion is an address at which nobody answered; where nobody could be
// asked there is none.
func TestSuggest(t *testing.T) {
	for _, tc := range []struct {
		name, own string // "" is a board without a network
		taken     string
		deaf      bool
		want      string // subnet and address
	}{
		{"free", "192.168.1.11/24", "", false, "192.168.1.0/24 192.168.1.250"},
		{"taken", "192.168.1.11/24", "192.168.1.250 192.168.1.249", false, "192.168.1.0/24 192.168.1.248"},
		{"its own", "10.0.0.250/24", "", false, "10.0.0.0/24 10.0.0.249"},
		{"large", "10.1.2.3/8", "", false, "10.0.0.0/8 10.255.255.250"},
		{"small", "10.1.2.3/29", "", false, "invalid Prefix invalid IP"},
		{"all taken", "192.168.1.11/24", "192.168.1.", false, "192.168.1.0/24 invalid IP"},
		{"nobody to ask", "192.168.1.11/24", "", true, "192.168.1.0/24 invalid IP"},
		{"no network", "", "", false, "invalid Prefix invalid IP"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			asked := 0
			n := network{
				main: func() (string, netip.Prefix, bool) {
					own, err := netip.ParsePrefix(tc.own)
					return "eth0", own, err == nil
				},
				owner: func(iface string, a netip.Addr) (string, bool) {
					asked++
					if tc.taken != "" && (strings.HasSuffix(tc.taken, ".") || strings.Contains(tc.taken, a.String())) {
						return "dc:a6:32:00:00:01", true
					}
					return "", !tc.deaf
				},
			}
			subnet, free := n.suggest()
			assert.Is(t, tc.want, subnet.String()+" "+free.String(), "")
			if asked > tries {
				t.Errorf("asked %d times", asked)
			}
		})
	}
}

func TestLastOf(t *testing.T) {
	for subnet, want := range map[string]string{
		"192.168.1.0/24": "192.168.1.255", "10.0.0.0/8": "10.255.255.255", "10.0.0.8/30": "10.0.0.11", "0.0.0.0/0": "255.255.255.255",
	} {
		if got := lastOf(netip.MustParsePrefix(subnet)); got.String() != want {
			t.Errorf("%s: %s, want %s", subnet, got, want)
		}
	}
}

// On a real network, the suggestion with the first choice taken.
func TestSuggestOnANetwork(t *testing.T) {
	netns.Reserve(t)
	lan, err := netns.New(2)
	assert.NoError(t, err)
	defer lan.Close()
	assert.NoError(t, lan.Board(2).AddAddress(netip.MustParsePrefix("10.77.0.250/24")))
	err = lan.Board(1).Do(func() error {
		subnet, free := thisNetwork(t.Context()).suggest()
		assert.Is(t, "10.77.0.0/24 10.77.0.249", subnet.String()+" "+free.String(), "suggested")
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
