package examine

import (
	"net/netip"
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
	var r console.Report
	b.daemonFound(section{report: &r})
	var said []string
	for _, f := range withoutRemedies(r) {
		said = append(said, f.Text)
	}
	assert.Equal(t, []string{"runs and follows pi2", "pi2 (10.0.0.2) runs topdog 1.3.0, and this board has 1.4.0", "pi3 (10.0.0.3) is heard"}, said, "with a daemon")
}

// withoutRemedies are the findings of a report that has one section.
func withoutRemedies(r console.Report) []console.Finding {
	findings := slices.Clone(r.Sections[0].Findings)
	for i := range findings {
		findings[i].Remedy = ""
	}
	return findings
}
