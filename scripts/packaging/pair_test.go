package packaging

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/cluster"
	"topdog/internal/lab/judge"
	"topdog/internal/lab/netns"
	"topdog/internal/lab/observe"
)

// heartbeat is long, so that a hand-over, which takes milliseconds, cannot be
// mistaken for a takeover by silence, which takes at least that long.
const heartbeat = time.Second

const key = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n"

// pair is a machine, board 1, in which packages come and go, and board 2, on which
// topdog runs as nobody's package when it is told to.
type pair struct {
	*machine
	*cluster.Cluster
	t     *judge.T
	asker *observe.Asker
	other *cluster.Topdog
}

// onMachine runs a test in a machine whose process 1 is "systemd", or is not ("plain").
func onMachine(t *testing.T, process1 string, test func(*judge.T, *pair)) {
	t.Helper()
	needs(t, "dpkg", "unshare", "nsenter", "setpriv", "ip")
	if process1 == "systemd" {
		needs(t, "systemctl", "/lib/systemd/systemd", "deb-systemd-invoke")
	}
	if err := netns.Available(); err != nil {
		t.Skip(err)
	}
	ownPackage(t) // is built while no test needs the machine's time
	judge.Run(t, func(t *judge.T) { test(t, newPair(t, process1)) })
}

func newPair(t *judge.T, process1 string) *pair {
	t.Helper()
	must(t, forMachines())
	built, err := cluster.New(2)
	must(t, err)
	t.Cleanup(func() { assert.ErrorIs(t, built.Close(), nil, "") })
	p := &pair{Cluster: built, t: t}
	p.asker, err = p.LAN.Ask(cluster.Address, 5*time.Millisecond)
	must(t, err)
	p.machine = newMachine(t, p.LAN.Board(1), shared(), process1)
	return p
}

// configure writes what a user or `topdog init` on another board would copy.
func (p *pair) configure(extra string) {
	p.t.Helper()
	config := fmt.Sprintf("name = \"machine\"\naddress = %q\nheartbeat = %q\nled = \"none\"\n%s", cluster.Address, heartbeat, extra)
	p.write("/etc/topdog/topdog.toml", config, 0o644)
	p.write("/etc/topdog/key", key, 0o600)
}

// startOther starts topdog on board 2.
func (p *pair) startOther() {
	p.t.Helper()
	path := filepath.Join(filesOf(p.t, ownArch), "usr/bin/topdog")
	var err error
	p.other, err = p.NewTopdog(cluster.Program{Path: path}, 2, cluster.Settings{"heartbeat": cluster.Quote(heartbeat.String())})
	must(p.t, err)
	must(p.t, os.WriteFile(p.other.KeyFile(), []byte(key), 0o600))
	must(p.t, p.other.Run())
	p.t.Cleanup(func() {
		if p.t.Failed() {
			p.t.Logf("board 2 said:\n%s", p.other.Log)
		}
	})
	eventually(p.t, "board 2 knows its leader", func() error {
		s, err := p.other.Status()
		if err == nil && s.Leader == "" {
			err = errors.New("it knows none")
		}
		return err
	})
}

// wantHolders waits until exactly these boards have the address, and an answer
// comes from there.
func (p *pair) wantHolders(when string, want ...int) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if err := p.Holders.WaitFor(ctx, func(boards []int) bool { return slices.Equal(boards, want) }); err != nil {
		p.t.Fatalf("%s: %v, want %v", when, err, want)
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
	if slices.Equal(p.Holders.Current(), []int{1}) {
		return
	}
	// It refuses as long as it knows nobody to hand over to.
	eventually(p.t, "board 2 hands over", func() error {
		if slices.Equal(p.Holders.Current(), []int{1}) {
			return nil
		}
		_, err := p.other.Client().Resign(p.t.Context())
		return err
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
		if pid := p.mainPID(); pid == old || pid == "0" {
			return fmt.Errorf("its process is %s, and was %s", pid, old)
		}
		if unit := p.unit(); unit != "enabled active" {
			return errors.New("the unit is " + unit)
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
	p.t.Logf("%s was an outage of %v for a client that asks every 5 ms, and paused for up to %v", what, outage, report.Pause)
	if outage-report.Pause > heartbeat/4 {
		p.t.Errorf("%s was an outage of %v, which is no hand-over", what, outage)
	}
}
