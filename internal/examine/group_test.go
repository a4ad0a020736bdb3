package examine

import (
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
