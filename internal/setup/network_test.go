package setup

import (
	"net/netip"
	"strings"
	"testing"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/netns"
)

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
				owner: func(iface string, a netip.Addr) (string, bool) {
					asked++
					if tc.taken != "" && (strings.HasSuffix(tc.taken, ".") || strings.Contains(tc.taken, a.String())) {
						return "dc:a6:32:00:00:01", true
					}
					return "", !tc.deaf
				},
			}
			if own, err := netip.ParsePrefix(tc.own); err == nil {
				n.own = []ownAddress{{"eth0", own}}
			}
			subnet, free := n.suggest()
			assert.Is(t, tc.want, subnet.String()+" "+free.String(), "")
			if asked > tries {
				t.Errorf("asked %d times", asked)
			}
		})
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
	assert.ErrorIs(t, err, nil, "on the board")
}
