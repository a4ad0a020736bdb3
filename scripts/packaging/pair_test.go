package packaging

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"topdog/internal/lab/netns"
	"topdog/internal/lab/observe"
)

var vip = netip.MustParseAddr("10.77.0.100")

// heartbeat is long, so that a hand-over, which takes milliseconds, cannot be
// mistaken for a takeover by silence, which takes at least that long.
const heartbeat = time.Second

const key = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n"

// pair is a machine, board 1, in which packages come and go, and board 2, on which
// topdog runs as nobody's package when it is told to.
type pair struct {
	*machine
	t       *testing.T
	lan     *netns.LAN
	holders *observe.Holders
	asker   *observe.Asker
	dir     string // of board 2
}

func newPair(t *testing.T, process1 string) *pair {
	t.Helper()
	needs(t, "dpkg", "unshare", "nsenter", "setpriv", "ip")
	if process1 == "systemd" {
		needs(t, "systemctl", "/lib/systemd/systemd", "deb-systemd-invoke")
	}
	if err := netns.Available(); err != nil {
		t.Skip(err)
	}
	shared := t.TempDir()
	must(t, os.WriteFile(filepath.Join(shared, "ready"), nil, 0o644))
	for version, name := range map[string]string{"1.0.0": "old.deb", "1.0.1": "new.deb"} {
		must(t, os.Link(packageOf(t, version, ownArch), filepath.Join(shared, name)))
	}
	lan, err := netns.New(netns.Options{Boards: 2})
	must(t, err)
	t.Cleanup(func() {
		if err := lan.Close(); err != nil {
			t.Error(err)
		}
	})
	p := &pair{t: t, lan: lan}
	p.holders, err = lan.WatchHolders(vip)
	must(t, err)
	p.asker, err = lan.Ask(vip, time.Millisecond)
	must(t, err)
	p.machine = newMachine(t, lan.Board(1), shared, process1)
	return p
}

// config is what both boards have.
func config(extra string) string {
	return fmt.Sprintf("address = %q\nheartbeat = %q\nled = \"none\"\n%s", vip, heartbeat, extra)
}

// configure writes what a user or `topdog init` on another board would copy.
func (p *pair) configure(extra string) {
	p.t.Helper()
	p.write("/etc/topdog/topdog.toml", config("name = \"machine\"\n"+extra), "0644")
	p.write("/etc/topdog/key", key, "0600")
}

// startOther starts topdog on board 2.
func (p *pair) startOther() {
	p.t.Helper()
	dir, err := os.MkdirTemp("", "topdog") // t.TempDir's is too long for a socket
	must(p.t, err)
	p.t.Cleanup(func() { os.RemoveAll(dir) })
	p.dir = dir
	program := filepath.Join(unpack(p.t, packageOf(p.t, "1.0.0", ownArch)), "usr/bin/topdog")
	must(p.t, os.Rename(program, filepath.Join(dir, "topdog")))
	must(p.t, os.WriteFile(filepath.Join(dir, "topdog.toml"),
		[]byte(config(fmt.Sprintf("name = \"other\"\nkey_file = \"key\"\nsocket = %q\n", filepath.Join(dir, "s")))), 0o644))
	must(p.t, os.WriteFile(filepath.Join(dir, "key"), []byte(key), 0o600))
	var said bytes.Buffer
	process, err := p.lan.Board(2).Start(context.Background(), filepath.Join(dir, "topdog"), []string{"run", "--config", filepath.Join(dir, "topdog.toml")},
		netns.Stderr(&said))
	must(p.t, err)
	p.t.Cleanup(func() {
		process.Kill()
		process.Wait() // until all that it said has been read; it was killed
		if p.t.Failed() {
			p.t.Logf("board 2 said:\n%s", said.String())
		}
	})
	eventually(p.t, "board 2 knows its leader", func() error {
		return p.otherKnows(`"leader"`)
	})
}

// otherKnows looks for a text in the status of board 2.
func (p *pair) otherKnows(text string) error {
	out, err := p.other("status", "--json").CombinedOutput()
	if err != nil || !strings.Contains(string(out), text) {
		return fmt.Errorf("board 2 says: %v\n%s", err, out)
	}
	return nil
}

func (p *pair) other(args ...string) *exec.Cmd {
	return exec.Command(filepath.Join(p.dir, "topdog"), append(args, "--config", filepath.Join(p.dir, "topdog.toml"))...)
}

// wantHolders waits until exactly these boards have the address, and an answer
// comes from there.
func (p *pair) wantHolders(when string, want ...int) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := p.holders.WaitFor(ctx, func(boards []int) bool { return slices.Equal(boards, want) }); err != nil {
		p.t.Fatalf("%s: %v, want %v\n%s", when, err, want, p.ask("journalctl", "-u", "topdog", "-n", "20", "-o", "cat"))
	}
	if len(want) == 1 {
		if _, err := p.asker.WaitAnswer(ctx, func(board int) bool { return board == want[0] }); err != nil {
			p.t.Fatalf("%s: %v", when, err)
		}
	}
}

// machineLeads makes the machine the leader, if it is not.
func (p *pair) machineLeads() {
	p.t.Helper()
	if slices.Equal(p.holders.Current(), []int{1}) {
		return
	}
	// It refuses as long as it knows nobody to hand over to.
	eventually(p.t, "board 2 hands over", func() error {
		if slices.Equal(p.holders.Current(), []int{1}) {
			return nil
		}
		if out, err := p.other("resign").CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	p.wantHolders("after RESIGN", 1)
}

// daemons are the processes of the installed program.
func (p *pair) daemons() string {
	return p.ask("sh", "-c", `for p in /proc/[0-9]*; do case "$(readlink "$p/exe")" in /usr/bin/topdog*) echo "${p#/proc/}" ;; esac; done`)
}

// wantBack waits for another daemon than the old one.
func (p *pair) wantBack(when, old string) {
	p.t.Helper()
	eventually(p.t, when+" the daemon comes back", func() error {
		if pid := p.mainPID(); pid == old || pid == "0" || p.unit() != "enabled active" {
			return fmt.Errorf("the unit is %s, its process %s, and was %s", p.unit(), pid, old)
		}
		return nil
	})
}

// wantHandOver holds that the address has moved long before anybody could have
// missed a heartbeat. How fast it is on this machine now is logged, and no more
// than that; the time in which the client itself did not get to ask does not count.
func (p *pair) wantHandOver(what string, since time.Time) {
	p.t.Helper()
	report := p.asker.Report(since)
	outage := report.Longest.Duration()
	p.t.Logf("%s was an outage of %v for a client that asks every millisecond, and paused for up to %v", what, outage, report.Pause)
	if outage-report.Pause > heartbeat/4 {
		p.t.Errorf("%s was an outage of %v, which is no hand-over", what, outage)
	}
}
