package page

import (
	"context"
	"net"
	"path/filepath"
	"testing"

	"topdog/internal/lab/cluster"
	"topdog/internal/lab/netns"
)

// stage is what all tests share: a LAN of three boards, and a browser on its client.
type stage struct {
	*cluster.Cluster
	browser context.Context
	dir     string          // for the time of the tests
	program cluster.Program // topdog; see build
	lab     string          // topdog with the demonstration and the simulator; see buildLab
}

// boards is how many the LAN has.
const boards = 3

// pageTest is a test of TestPages.
type pageTest struct {
	name string
	run  func(*testing.T, *stage)
}

// TestPages has one browser for all, because its start costs more than a test.
func TestPages(t *testing.T) {
	netns.Reserve(t)
	c, err := cluster.New(boards)
	must(t, err)
	t.Cleanup(func() { must(t, c.Close()) })
	if *pictures != "" {
		*pictures, err = filepath.Abs(*pictures)
		must(t, err)
	}
	s := &stage{Cluster: c, dir: t.TempDir(), browser: startChromium(t, c.LAN.Client()).browserContext(t)}
	tests := []pageTest{
		{"the rules can fail", testRulesCanFail},
		{"the keyboard rules can fail", testKeyboardRulesCanFail},
		{"tabs can fail", testTabsCanFail},
		{"looks", testLooks},
		{"states", testStates},
		{"no daemon", testNoDaemon},
		{"groups", testGroups},
		{"garbled answer", testGarbledAnswer},
		{"hidden", testHidden},
		{"takeover", testTakeover},
		{"daemon killed", testDaemonKilled},
		{"demo", testDemo},
		{"demo netns", testDemoNetns},
		{"demo return", testDemoReturn},
		{"demo actions", testDemoActions},
		{"demo marks", testDemoMarks},
		{"demo spectator", testDemoSpectator},
		{"sim", testSim},
		{"sim address", testSimAddress},
	}
	if *pictures != "" {
		tests = append(tests, pageTest{"pictures", testPictures})
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { test.run(t, s) })
	}
}

// listen opens a port on the client, where the browser reaches it as localhost.
func (s *stage) listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := netns.Within(s.LAN.Client(), func() (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") })
	must(t, err)
	t.Cleanup(func() { l.Close() })
	return l
}
