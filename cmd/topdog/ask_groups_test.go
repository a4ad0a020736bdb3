package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"topdog/internal/console"
	"topdog/internal/lab/assert"
	"topdog/internal/lab/cluster"
)

// fakeGroup is what a daemon says of one group.
type fakeGroup struct {
	console.Backend // what no verb here asks for
	status          console.Status
	refusal         error // of whatever it is told to do
}

func (f *fakeGroup) Status(context.Context) (console.Status, error) { return f.status, nil }
func (f *fakeGroup) Alive(context.Context) error                    { return nil }
func (f *fakeGroup) Trace(context.Context) (console.Trace, error) {
	return console.Trace{Board: "10.0.0.11", Name: f.status.Group + "-board", Clock: console.ClockBoottime}, nil
}
func (f *fakeGroup) Scene(context.Context) (console.Scene, error) {
	return console.Scene{Text: "scene of " + f.status.Group + "\n"}, nil
}
func (f *fakeGroup) Resign(context.Context) (console.Handover, error) {
	return console.Handover{Text: "handed over to pi2"}, f.refusal
}
func (f *fakeGroup) Drain(context.Context, console.DrainRequest) (console.Handover, error) {
	return console.Handover{Text: "drained"}, f.refusal
}
func (f *fakeGroup) Undrain(context.Context) (console.Done, error) {
	return console.Done{Text: "not drained any more"}, f.refusal
}
func (f *fakeGroup) Pause(context.Context, console.PauseRequest) (console.Done, error) {
	return console.Done{Text: "paused"}, f.refusal
}
func (f *fakeGroup) Unpause(context.Context) (console.Done, error) {
	return console.Done{Text: "not paused any more"}, f.refusal
}

// twoGroups is a daemon that leads dns1, and not dns2. It listens at that socket.
func twoGroups(t *testing.T) (socket string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "topdog") // short, since the path of a socket has a limit
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	server := console.NewServer(path)
	server.Add("dns1", &fakeGroup{status: console.Status{
		Group: "dns1", Role: console.RoleLeader, Holding: true, Leader: "10.0.0.11", LeaderName: "pi1",
		Board: console.Board{ID: "10.0.0.11", Name: "pi1"}, Addresses: []string{"10.0.0.250/24"},
		HeldBy: "10.0.0.11", LeaseEndsInNs: console.NoLeaseEnd, Spares: new(1), Version: "1", Algorithm: "heir", LEDText: "no LED", HeartbeatMs: 100,
	}})
	server.Add("dns2", &fakeGroup{
		status: console.Status{
			Group: "dns2", Role: console.RoleFollower, Leader: "10.0.0.12", LeaderName: "pi2",
			Board: console.Board{ID: "10.0.0.11", Name: "pi1"}, Addresses: []string{"10.0.0.251/24"},
			HeldBy: "10.0.0.12", Spares: new(0), Version: "1", Algorithm: "heir", LEDText: "no LED", HeartbeatMs: 100,
		},
		refusal: console.Refuse(http.StatusConflict, "there is no other board", "start one"),
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	t.Cleanup(func() { cancel(); assert.NoError(t, <-ended) })
	for end := time.Now().Add(cluster.Timeout); ; {
		if _, err := console.Dial(path).Groups(t.Context()); err == nil {
			break
		} else if time.Now().After(end) || !errors.Is(err, console.ErrNotRunning) {
			t.Fatal(err)
		}
	}
	return path
}

// What the verbs say of a board with two groups.
func TestAskSeveralGroups(t *testing.T) {
	socket := twoGroups(t)
	const (
		which  = "topdog: this board has several groups: say which one with --group: dns1, dns2\n"
		noDNS3 = "topdog: this board has no group dns3: it has dns1, dns2\n"
		failed = "topdog: dns2: there is no other board: start one\n"
		quiet  = "No change of leader yet, as far as this board knows: it keeps them only until its daemon ends.\n"
	)
	for _, tt := range []struct {
		line string
		want outcome
	}{
		{"status", outcome{`dns1
10.0.0.250 is held by this board, pi1 (10.0.0.11), term 0

this board  pi1 (10.0.0.11): leader
holding     unknown
LED         no LED
heartbeats  this board sends one every 100 ms
group       dns1, algorithm heir, topdog 1

dns2
10.0.0.251 was last held by pi2 (10.0.0.12), of which nothing more is known

this board  pi1 (10.0.0.11): follower
LED         no LED
heartbeats  every 100 ms, none at the moment
group       dns2, algorithm heir, topdog 1
`, "", 1}},
		{"trace", outcome{"dns1\n" + quiet + "\ndns2\n" + quiet, "", 0}},
		{"trace --group dns2", outcome{quiet, "", 0}},
		{"trace --scene", outcome{"", which, exitUsage}},
		{"trace --scene --group dns2", outcome{"scene of dns2\n", "", 0}},
		{"is-leader", outcome{"", which, exitUsage}},
		{"is-leader --group dns1", outcome{}},
		{"is-leader --group dns2", outcome{status: exitFailure}},
		{"is-leader --group dns3", outcome{"", noDNS3, exitUsage}},
		{"status --group dns3", outcome{"", noDNS3, exitUsage}},
		{"target", outcome{"", which, exitUsage}},
		{"target --group dns3", outcome{"", noDNS3, exitUsage}},
		{"lead true", outcome{"", which, exitUsage}},
		{"resign", outcome{"dns1: handed over to pi2\ndns2: this board does not lead\n", "", 0}},
		{"resign --group dns1", outcome{"handed over to pi2\n", "", 0}},
		{"drain", outcome{"dns1: drained\n", failed, exitFailure}},
		{"drain --group dns1", outcome{"drained\n", "", 0}},
		{"undrain", outcome{"dns1: not drained any more\n", failed, exitFailure}},
		{"pause", outcome{"dns1: paused\n", failed, exitFailure}},
		{"unpause --group dns1", outcome{"not paused any more\n", "", 0}},
		{cobra.ShellCompRequestCmd + " status --group=", outcome{"dns1\ndns2\n:4\n", "Completion ended with directive: ShellCompDirectiveNoFileComp\n", 0}},
	} {
		got := executed(t, withSocketAfterVerb(tt.line, socket)...)
		if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(outcome{})); diff != "" {
			t.Errorf("topdog %s (-want +got):\n%s", tt.line, diff)
		}
	}
}

// withSocketAfterVerb returns a command line that asks the daemon of a socket.
func withSocketAfterVerb(line, socket string) []string {
	words := strings.Fields(line)
	verb := 1
	if words[0] == cobra.ShellCompRequestCmd {
		verb = 2
	}
	return slices.Insert(words, verb, "--socket", socket)
}

// JSON has the groups in their order, and that of one group is as it is where there is no other.
func TestStatusOfSeveralGroupsAsJSON(t *testing.T) {
	socket := twoGroups(t)
	var all struct{ Groups []console.Status }
	must(t, json.Unmarshal([]byte(executed(t, "status", "--json", "--socket", socket).stdout), &all))
	var one console.Status
	must(t, json.Unmarshal([]byte(executed(t, "status", "--json", "--group", "dns2", "--socket", socket).stdout), &one))
	if len(all.Groups) != 2 || all.Groups[0].Group != "dns1" || !cmp.Equal(one, all.Groups[1]) {
		t.Errorf("all groups: %+v\none: %+v", all, one)
	}
}

// Lines of all groups come as they happen, and say which they are of.
func TestWatchSeveralGroups(t *testing.T) {
	socket := twoGroups(t)
	for _, tt := range []struct {
		args []string
		want []string // the lines begin so, in any order
	}{
		{[]string{"watch"}, []string{"dns1:    0  snapshot", "dns2:    0  snapshot"}},
		{[]string{"watch", "--group", "dns2"}, []string{"   0  snapshot"}},
	} {
		out, err := os.Create(filepath.Join(t.TempDir(), "out"))
		must(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan int, 1)
		go func() { ended <- execute(ctx, append(tt.args, "--socket", socket), out, out) }()
		var lines []string
		for end := time.Now().Add(cluster.Timeout); len(lines) < len(tt.want) && time.Now().Before(end); {
			text, err := os.ReadFile(out.Name())
			must(t, err)
			lines = slices.Sorted(strings.Lines(string(text)))
		}
		cancel()
		assert.Is(t, 0, <-ended, "the exit status of %v", tt.args)
		must(t, out.Close())
		if !slices.EqualFunc(lines, tt.want, strings.HasPrefix) {
			t.Errorf("%v: %q, which should begin with %q", tt.args, lines, tt.want)
		}
	}
}
