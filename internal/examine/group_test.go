package examine

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"topdog/election"
	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/internal/daemon"
	"topdog/internal/lab/assert"
	"topdog/netio"
	"topdog/wire"
)

// TestOtherBoards has one other board, heard or known to the daemon, and says what is said of it.
func TestOtherBoards(t *testing.T) {
	cfg := &config.Config{Config: election.Config{Interval: 100 * time.Millisecond, Algorithm: wire.AlgorithmHeir}, Addresses: []config.Address{{IP: netip.MustParseAddr("10.0.0.100")}}, Group: "test"}
	b := &Board{Config: cfg, Version: "1.4.0"}
	n := daemon.Network{Interface: "eth0", Local: netip.MustParsePrefix("10.0.0.1/24")}
	ours := daemon.SettingsOf(cfg)
	other := func(change func(*peer)) *peer {
		p := &peer{from: netip.MustParseAddr("10.0.0.2"), name: "pi2", id: 2, algorithm: wire.AlgorithmHeir, settings: ours, program: "1.4.0", accepted: 3, multicast: 3}
		change(p)
		return p
	}
	for _, test := range []struct {
		peer  *peer
		state console.State
		want  string
	}{
		{other(func(*peer) {}), console.StateRight, "pi2 (10.0.0.2) is heard"},
		{other(func(p *peer) { p.leads = true }), console.StateRight, "pi2 (10.0.0.2) leads"},
		{other(func(p *peer) { p.program = "" }), console.StateRight, "pi2 (10.0.0.2) is heard"}, // it is older, and does not tell
		{other(func(p *peer) { p.program = "1.3.0" }), console.StateLook, "pi2 (10.0.0.2) runs topdog 1.3.0, and this board has 1.4.0"},
		{other(func(p *peer) { p.program, p.leads = "1.4.0-rc1", true }), console.StateLook, "pi2 (10.0.0.2) runs topdog 1.4.0-rc1, and this board has 1.4.0"},
		{other(func(p *peer) { p.algorithm = wire.AlgorithmBully }), console.StateWrong, "pi2 (10.0.0.2) runs the algorithm bully, and this board heir, so this board would stay out"},
		{other(func(p *peer) { p.multicast = 0 }), console.StateLook, "pi2 (10.0.0.2) is heard, and its multicast does not arrive"},
	} {
		var r console.Report
		b.boards(section{report: &r}, n, []*peer{test.peer}, true)
		assert.Equal(t, []console.Finding{{Topic: console.TopicOtherBoard, State: test.state, Text: test.want}}, withoutRemedies(r), "of %+v", test.peer)
	}

	b.Daemon = &console.Status{Version: "1.4.0", Role: console.RoleFollower, Leader: "10.0.0.2", LeaderName: "pi2", Boards: []console.Board{
		{ID: "10.0.0.1", Self: true, Version: "1.4.0"}, {ID: "10.0.0.2", Name: "pi2", Address: "10.0.0.2", Version: "1.3.0"}, {ID: "10.0.0.3", Name: "pi3", Address: "10.0.0.3"},
	}}
	b.Config.Prefer = []string{"PI3", "pi4"}
	var r console.Report
	b.daemonFound(section{report: &r})
	var said []string
	for _, f := range withoutRemedies(r) {
		said = append(said, f.Text)
	}
	assert.Equal(t, []string{"runs and follows pi2", "pi2 (10.0.0.2) runs topdog 1.3.0, and this board has 1.4.0", "pi3 (10.0.0.3) is heard", "pi4, which prefer names, is not heard: it is off, or has another name"}, said, "with a daemon")
}

// Nobody follows a board whose own address is written here as the floating one.
func TestLeader(t *testing.T) {
	b := &Board{Config: &config.Config{Config: election.Config{Algorithm: wire.AlgorithmHeir}, Addresses: []config.Address{{IP: netip.MustParseAddr("10.0.0.100")}}}}
	p := &peer{from: netip.MustParseAddr("10.0.0.2"), algorithm: wire.AlgorithmHeir, accepted: 3, leads: true}
	assert.Is(t, p, b.leader([]*peer{p}), "the leader")
	p.from = b.Config.Addresses[0].IP
	assert.Is(t, (*peer)(nil), b.leader([]*peer{p}), "a leader at the floating address")
}

// A file that was edited, and a daemon that was not restarted since.
func TestAddressesOfTheDaemon(t *testing.T) {
	for _, test := range []struct {
		started []string
		want    string
	}{
		{nil, "runs and leads"}, // it is older, and does not tell
		{[]string{"10.0.0.100", "fd00:1::250"}, "runs and leads"},
		{[]string{"10.0.0.100"}, "it was started with the addresses [10.0.0.100], and the configuration has [10.0.0.100 fd00:1::250]"},
	} {
		b := &Board{
			Config: &config.Config{Addresses: []config.Address{{IP: netip.MustParseAddr("fd00:1::250")}, {IP: netip.MustParseAddr("10.0.0.100")}}},
			Daemon: &console.Status{Role: console.RoleLeader, Holding: true, Board: console.Board{Floating: test.started}},
		}
		var r console.Report
		b.daemonFound(section{report: &r})
		findings := withoutRemedies(r)
		assert.Is(t, test.want, findings[len(findings)-1].Text, "of a daemon that was started with %v", test.started)
	}
}

// A second path that does not work is something to look at, and what the daemon that uses it says comes first.
func TestSecondPath(t *testing.T) {
	const alone = "; until then, this board is heard by the first path alone"
	snapshot := func(up bool, addresses ...string) netio.Snapshot {
		s := netio.Snapshot{Present: true, Link: netio.Link{Name: "wlan0", Index: 3, HardwareAddr: net.HardwareAddr{2, 0, 0, 0, 0, 3}, Up: up}}
		for _, a := range addresses {
			p := netip.MustParsePrefix(a)
			s.Link.Addrs = append(s.Link.Addrs, p)
			s.Local = append(s.Local, netio.LocalAddr{Prefix: p, Index: 3, Device: "wlan0"})
		}
		s.Local = append(s.Local, netio.LocalAddr{Prefix: netip.MustParsePrefix("10.0.0.1/24"), Index: 2, Device: "eth0"})
		s.Interfaces = []int{2, 3}
		return s
	}
	uses := func(state, text string) *console.Status {
		return &console.Status{SecondPath: &console.SecondPath{Interface: "wlan0", Address: "10.1.0.7", State: state, Text: text}}
	}
	tunnel := snapshot(true, "10.1.0.1/24")
	tunnel.Link.HardwareAddr = nil
	for _, test := range []struct {
		name   string
		seen   netio.Snapshot
		daemon *console.Status
		state  console.State
		want   string
	}{
		{"in another network", snapshot(true, "10.1.0.1/24"), nil, console.StateRight, "wlan0, where this board is 10.1.0.1"},
		{"in the same network", snapshot(true, "10.0.0.51/24"), nil, console.StateRight, "wlan0, where this board is 10.0.0.51"},
		{"the first that is its own", snapshot(true, "10.0.0.100/32", "10.0.0.200/24", "10.1.0.2/24", "10.0.0.51/24", "fd00:1::1/64"), nil, console.StateRight, "wlan0, where this board is 10.1.0.2"},
		{"a tunnel, of which nothing is asked", tunnel, nil, console.StateRight, "wlan0, where this board is 10.1.0.1"},
		{"missing", netio.Snapshot{}, nil, console.StateLook, "the interface wlan0 does not exist (yet)" + alone},
		{"without an address", snapshot(true), nil, console.StateLook, "the interface wlan0 has no IPv4 address (yet)" + alone},
		{"with IPv6 alone", snapshot(true, "fd00:1::1/64"), nil, console.StateLook, "the interface wlan0 has no IPv4 address (yet)" + alone},
		{"with floating addresses alone", snapshot(true, "10.0.0.100/24", "10.0.0.200/32"), nil, console.StateLook, "the interface wlan0 has no IPv4 address (yet)" + alone},
		{"without a carrier", snapshot(false, "10.1.0.1/24"), nil, console.StateLook, "wlan0 has no carrier: check the cable" + alone},
		{"the daemon uses it", snapshot(true, "10.1.0.1/24", "10.1.0.7/24"), uses(console.SecondPathWorks, ""), console.StateRight, "wlan0, where this board is 10.1.0.7"},
		{"the daemon hears nobody by it", snapshot(true, "10.1.0.7/24"), uses(console.SecondPathSilent, "nobody is heard"), console.StateLook, "nobody is heard"},
		{"the daemon has another one", snapshot(true, "10.1.0.1/24"), &console.Status{SecondPath: &console.SecondPath{Interface: "wlan1", Text: "no carrier"}}, console.StateRight, "wlan0, where this board is 10.1.0.1"},
		{"the daemon has none", snapshot(false, "10.1.0.1/24"), &console.Status{}, console.StateLook, "wlan0 has no carrier: check the cable" + alone},
	} {
		b := &Board{Daemon: test.daemon, Config: &config.Config{
			Paths: config.Paths{Interface: "eth0", SecondInterface: "wlan0"}, Addresses: []config.Address{{IP: netip.MustParseAddr("10.0.0.100"), Bits: 24}},
			OtherAddresses: []netip.Addr{netip.MustParseAddr("10.0.0.200")},
		}}
		var r console.Report
		b.judgeSecondPath(section{report: &r}, test.seen)
		assert.Equal(t, []console.Finding{{Topic: console.TopicSecondPath, State: test.state, Text: test.want}}, withoutRemedies(r), "%s", test.name)
		silent := test.daemon != nil && test.daemon.SecondPath != nil && test.daemon.SecondPath.State == console.SecondPathSilent
		assert.Is(t, silent, r.Sections[0].Findings[0].Remedy != "", "%s: whether it says what to do", test.name)
	}
	var r console.Report
	(&Board{Config: &config.Config{}}).secondPath(section{report: &r})
	assert.Is(t, 0, len(r.Sections), "sections about a second path that there is not")
}

// A daemon that was started with other paths than the file has, and what it says of the paths.
func TestSecondPathOfTheDaemon(t *testing.T) {
	for _, test := range []struct {
		configured, started string
		want                []string
	}{
		{"", "", []string{"wlan0: no carrier"}}, // which no daemon says
		{"wlan0", "wlan0", nil},                 // the network says so above
		{"wlan0", "", []string{"it was started with no second path, and the configuration has the second path wlan0", "wlan0: no carrier"}},
		{"", "wlan0", []string{"it was started with the second path wlan0, and the configuration has no second path", "wlan0: no carrier"}},
		{"wlan1", "wlan0", []string{"it was started with the second path wlan0, and the configuration has the second path wlan1", "wlan0: no carrier"}},
	} {
		b := &Board{
			Config: &config.Config{Paths: config.Paths{Interface: "eth0", SecondInterface: test.configured}},
			Daemon: &console.Status{Role: console.RoleLeader, Holding: true, Problems: []console.Problem{
				{Kind: console.ProblemSecondPath, Text: "wlan0: no carrier"},
				{Kind: console.ProblemFirstPathMissing, Board: "2", Text: "pi2 is heard by wlan0 alone"},
			}, Boards: []console.Board{{ID: "2", Name: "pi2"}}},
		}
		if test.started != "" {
			b.Daemon.SecondPath = &console.SecondPath{Interface: test.started}
		}
		var r console.Report
		b.daemonFound(section{report: &r})
		var said []string
		for _, f := range withoutRemedies(r) {
			said = append(said, f.Text)
		}
		assert.Equal(t, slices.Concat([]string{"runs and leads"}, test.want, []string{"pi2 is heard by wlan0 alone"}), said, "configured %q, started with %q", test.configured, test.started)
	}
}

// Two boards that tell of different addresses, of either family.
func TestOtherAddresses(t *testing.T) {
	addresses := func(texts ...string) (all []config.Address) {
		for _, text := range texts {
			all = append(all, config.Address{IP: netip.MustParseAddr(text)})
		}
		return all
	}
	cfg := &config.Config{Config: election.Config{Interval: 100 * time.Millisecond, Algorithm: wire.AlgorithmHeir}, Group: "test"}
	b := &Board{Config: cfg, Version: "1.4.0"}
	for _, test := range []struct {
		ours, theirs []config.Address
		want         string
	}{
		{addresses("10.0.0.100", "fd00:1::250"), addresses("fd00:1::250", "10.0.0.100"), "is heard"},
		{addresses("10.0.0.100", "fd00:1::250"), addresses("10.0.0.100", "fd00:1::251"),
			"has heartbeats every 100ms and the addresses [10.0.0.100 fd00:1::251], and this board every 100ms and [10.0.0.100 fd00:1::250]"},
		{addresses("10.0.0.100", "fd00:1::250"), addresses("10.0.0.100"),
			"has heartbeats every 100ms and the addresses [10.0.0.100], and this board every 100ms and [10.0.0.100 fd00:1::250]"},
	} {
		cfg.Addresses = test.theirs
		p := &peer{from: netip.MustParseAddr("10.0.0.2"), id: 2, algorithm: wire.AlgorithmHeir, settings: daemon.SettingsOf(cfg), accepted: 3, multicast: 3}
		cfg.Addresses = test.ours
		_, text, _ := b.judge(p, daemon.Network{Local: netip.MustParsePrefix("10.0.0.1/24")}, false)
		assert.Is(t, test.want, text, "of %v beside %v", test.theirs, test.ours)
	}
}

// A board that has IPv6 switched off is told which of its addresses it cannot hold.
func TestSwitchedOff(t *testing.T) {
	b := &Board{Config: &config.Config{Addresses: []config.Address{{IP: netip.MustParseAddr("10.0.0.100")}, {IP: netip.MustParseAddr("fd00:1::250")}}}}
	for _, test := range []struct{ name, iface, others, want string }{
		{"on", "0", "0", ""},
		{"off on the interface", "1", "0", "IPv6 is switched off (net/ipv6/conf/eth0/disable_ipv6), so this board cannot hold fd00:1::250; it holds the IPv4 addresses all the same"},
		{"off on new devices", "0", "1", "IPv6 is switched off (net/ipv6/conf/default/disable_ipv6), so this board cannot hold fd00:1::250; it holds the IPv4 addresses all the same"},
		{"a kernel without it", "", "", "this kernel has no IPv6, so this board cannot hold fd00:1::250; it holds the IPv4 addresses all the same"},
	} {
		settings := t.TempDir()
		for of, value := range map[string]string{"eth0": test.iface, "default": test.others} {
			if value != "" {
				assert.NoError(t, os.Mkdir(filepath.Join(settings, of), 0o755))
				assert.NoError(t, os.WriteFile(filepath.Join(settings, of, "disable_ipv6"), []byte(value+"\n"), 0o644))
			}
		}
		said := func(b *Board) (text string) {
			var r console.Report
			b.switchedOff(section{report: &r, name: console.SectionNetwork}, "eth0", settings)
			for _, s := range r.Sections {
				text += s.Findings[0].Text
			}
			return text
		}
		assert.Is(t, test.want, said(b), "%s", test.name)
		assert.Is(t, "", said(&Board{Config: &config.Config{Addresses: b.Config.Addresses[:1]}}), "%s, with IPv4 alone", test.name)
	}
}

// withoutRemedies are the findings of a report that has one section.
func withoutRemedies(r console.Report) []console.Finding {
	findings := slices.Clone(r.Sections[0].Findings)
	for i := range findings {
		findings[i].Remedy = ""
	}
	return findings
}
