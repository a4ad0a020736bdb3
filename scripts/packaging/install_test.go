package packaging

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
	"topdog/internal/console"
	"topdog/internal/lab/assert"
	"topdog/internal/lab/cluster"
	"topdog/internal/lab/judge"
)

// Nothing happens before there is a configuration, and nothing is left.
func TestUnconfigured(t *testing.T) { onMachine(t, "systemd", testUnconfigured) }

func testUnconfigured(t *judge.T, p *pair) {
	before := p.written()
	p.run("dpkg", "-i", "/srv/built.deb")
	p.wantUnit("after an installation without a configuration", "disabled inactive")
	if got := p.run("topdog", "version"); !strings.HasPrefix(got, "topdog 1.0.0 ") {
		t.Errorf("topdog version: %s", got)
	}
	assert.Is(t, "topdog gpio", p.run("id", "-nG", "topdog"), "topdog's groups")
	p.run("dpkg", "-i", "/srv/new.deb")
	p.wantUnit("after an upgrade without a configuration", "disabled inactive")

	// Whoever starts it first is told what is missing, and it starts by itself when that is there.
	p.run("systemctl", "enable", "--now", "topdog")
	p.wantUnit("before it is configured", "enabled active")
	for _, verb := range []string{"status", "check"} {
		if out, _ := p.command("topdog", verb).CombinedOutput(); !strings.Contains(string(out), "topdog init ADDRESS") {
			t.Errorf("topdog %s does not say what is missing:\n%s", verb, out)
		}
	}
	p.run("topdog", "init", cluster.Address.String())
	p.wantUnit("when it is configured", "enabled active")
	p.wantHolders("when it is configured", 1)

	// Its holder goes on when it is stopped, and keeps the port, which is nobody else's fault.
	p.run("systemctl", "stop", "topdog")
	p.wantHolders("when it is stopped")
	if out := p.run("topdog", "check"); !strings.Contains(out, "this board is ready") || !strings.Contains(out, "nobody has "+cluster.Address.String()) {
		t.Errorf("topdog check beside the holder:\n%s", out)
	}
	p.run("systemctl", "start", "topdog")
	p.wantHolders("after the check", 1)

	p.run("dpkg", "--purge", "topdog")
	p.wantHolders("after purging")
	assert.Equal(t, before, p.written(), "what purging leaves")
	if got := p.run("find", "/run", "-name", "*topdog*"); got != "" {
		t.Errorf("purging leaves %s", got)
	}
}

// The life of a package on a board of a cluster.
func TestLife(t *testing.T) { onMachine(t, "systemd", testLife) }

func testLife(t *judge.T, p *pair) {
	before := p.written()
	p.configure("")
	p.run("dpkg", "-i", "/srv/old.deb")
	p.wantUnit("after the installation on a board that is configured", "enabled active")
	assert.Is(t, "topdog 600", p.run("stat", "-c", "%U %a", "/etc/topdog/key"), "the key's owner and mode")
	assert.Is(t, "topdog", p.run("stat", "-c", "%U", "/proc/"+p.mainPID()), "who runs the daemon")
	assert.Is(t, "topdog-holder", p.run("stat", "-c", "%U", "/proc/"+p.holderPID()), "who runs the holder")
	p.wantNoRights(p.mainPID())
	const owners = "topdog 755 /run/topdog\ntopdog 750 /var/lib/topdog\nroot 755 /etc/topdog"
	assert.Is(t, owners, p.run("stat", "-c", "%U %a %n", "/run/topdog", "/var/lib/topdog", "/etc/topdog"), "the directories")
	p.wantHolders("alone", 1)
	p.startOther()

	// The upgrade of a leader is a hand-over: the address is at board 2 long before
	// anybody could have missed a heartbeat, and never at both.
	since, old := time.Now(), p.mainPID()
	p.run("dpkg", "-i", "/srv/new.deb")
	p.wantUnit("after the upgrade", "enabled active")
	p.wantHolders("after the upgrade of the leader", 2)
	if pid := p.mainPID(); pid == old || p.run("readlink", "/proc/"+pid+"/exe") != "/usr/bin/topdog" {
		t.Errorf("the daemon is process %s after the upgrade and was %s: the old program runs on", pid, old)
	}
	p.wantHandOver("the leader's upgrade", since)
	if o := p.Holders.Since(since).Overlap(); o > 0 {
		t.Errorf("two boards had the address for %v", o)
	}

	// What the admin stopped, disabled or masked stays so.
	p.run("systemctl", "stop", "topdog")
	p.run("dpkg", "-i", "/srv/old.deb")
	p.wantUnit("after the upgrade of what was stopped", "enabled inactive")
	p.run("systemctl", "disable", "topdog")
	p.run("dpkg", "-i", "/srv/new.deb")
	p.wantUnit("after the upgrade of what was disabled", "disabled inactive")
	p.run("systemctl", "start", "topdog")
	old = p.mainPID()
	p.run("dpkg", "-i", "/srv/old.deb")
	p.wantUnit("after the upgrade of what was disabled and runs", "disabled active")
	if p.mainPID() == old {
		t.Error("the old daemon still runs after an upgrade of a disabled unit")
	}
	p.run("systemctl", "stop", "topdog")
	p.run("systemctl", "mask", "topdog")
	p.run("dpkg", "-i", "/srv/new.deb")
	p.wantUnit("after the upgrade of what was masked", "masked inactive")
	p.run("systemctl", "unmask", "topdog")

	// Removing the leader hands over too. It is enabled still when it comes back.
	p.run("systemctl", "enable", "--now", "topdog")
	p.machineLeads()
	since = time.Now()
	p.run("dpkg", "--remove", "topdog")
	p.wantHolders("after removing the leader", 2)
	p.wantHandOver("the leader's removal", since)
	assert.Is(t, "", p.daemons(), "processes that run")
	p.run("dpkg", "-i", "/srv/new.deb")
	p.wantUnit("after the return of what was removed", "enabled active")

	// Purging, with everything that an admin may have added.
	p.machineLeads()
	p.write("/etc/systemd/system/topdog.service.d/override.conf", "[Service]\nNice=-5\n", 0o644)
	p.run("dpkg", "--purge", "topdog")
	p.wantHolders("after purging the leader", 2)
	assert.Equal(t, before, p.written(), "what purging leaves")

	// Where packages must not start anything, it is enabled and not started.
	p.configure("")
	p.write("/usr/sbin/policy-rc.d", "#!/bin/sh\nexit 101\n", 0o755)
	p.run("dpkg", "-i", "/srv/new.deb")
	p.wantUnit("where policy-rc.d forbids it", "enabled inactive")
}

// What the unit promises: reload, and a daemon that comes back whatever happens to it.
func TestUnit(t *testing.T) { onMachine(t, "systemd", testUnit) }

func testUnit(t *judge.T, p *pair) {
	p.configure("")
	p.run("dpkg", "-i", "/srv/old.deb")
	p.startOther()

	if out := p.ask("topdog", "status"); !strings.Contains(out, ", seccomp") {
		t.Errorf("the unit does not let the daemon refuse itself execve:\n%s", out)
	}
	old := p.mainPID()
	p.configure("priority = 50\n")
	p.run("systemctl", "reload", "topdog")
	eventually(t, "the new priority is known", func() error {
		s, err := p.other.Status()
		if err == nil && !slices.ContainsFunc(s.Boards, func(b console.Board) bool { return b.Priority == 50 }) {
			err = fmt.Errorf("board 2 knows %+v", s.Boards)
		}
		return err
	})
	assert.Is(t, old, p.mainPID(), "the daemon after reloading")

	// Without an interface it is ready, and waits.
	must(t, p.LAN.Board(1).DeleteInterface())
	p.run("systemctl", "restart", "topdog")
	p.wantUnit("without an interface", "enabled active")
	p.wantHolders("without the machine", 2)
	must(t, p.LAN.Board(1).CreateInterface())
	p.machineLeads()

	// The dead man's switch of a killed daemon hands over, out of the unit's sandbox as well.
	since := time.Now()
	old = p.mainPID()
	p.run("kill", "-KILL", old)
	p.wantHolders("after SIGKILL", 2)
	p.wantHandOver("the daemon's death", since)
	p.wantBack("after SIGKILL", old)

	// Without its holder a daemon hands over, and comes back with the next one.
	p.machineLeads()
	since, old = time.Now(), p.mainPID()
	holder := p.holderPID()
	p.run("kill", "-KILL", holder)
	p.wantHolders("after SIGKILL of the holder", 2)
	p.wantHandOver("the holder's death", since)
	p.wantBack("after SIGKILL of the holder", old)
	if p.holderPID() == holder {
		t.Error("the holder that was killed is there still")
	}
	old = p.mainPID()
	p.run("systemctl", "stop", "topdog-holder") // which the daemon has started again
	p.wantBack("after a stop of the holder", old)
	p.machineLeads()

	// If all are killed, what the holder held is removed before the next one comes.
	// The address gets a longer life, or it would end by itself before a slow machine comes to remove it.
	p.configure("hold = \"lifetime\"\n")
	p.run("systemctl", "restart", "topdog")
	p.machineLeads()
	old = p.mainPID()
	p.run("systemctl", "kill", "--signal=STOP", "topdog-holder", "topdog") // every process of the units
	p.run("ip", "address", "change", cluster.Address.String()+"/32", "dev", "eth0", "valid_lft", "60", "preferred_lft", "60")
	p.run("systemctl", "kill", "--signal=KILL", "topdog-holder", "topdog")
	p.wantHolders("after SIGKILL of all", 2)
	p.wantBack("after SIGKILL of all", old)
	if log := p.run("journalctl", "-u", "topdog-holder", "-o", "cat"); !strings.Contains(log, "removed address "+cluster.Address.String()) {
		t.Errorf("topdog cleanup has not removed the address after SIGKILL:\n%s", log)
	}

	// A holder that stands still is started again, by its watchdog; sooner than in earnest.
	p.write("/etc/systemd/system/topdog-holder.service.d/hurry.conf", "[Service]\nWatchdogSec=2s\nTimeoutAbortSec=1s\n", 0o644)
	p.run("systemctl", "daemon-reload")
	p.run("systemctl", "restart", "topdog-holder", "topdog")
	p.machineLeads()
	old, holder = p.mainPID(), p.holderPID()
	p.run("kill", "-STOP", holder)
	p.wantHolders("after SIGSTOP of the holder", 2)
	p.wantBack("after SIGSTOP of the holder", old)
	eventually(t, "the holder is started again", func() error {
		if p.holderPID() == holder {
			return errors.New("it stands still")
		}
		return nil
	})
	p.machineLeads()

	// So is one that stands still, by the watchdog; sooner than in earnest.
	p.write("/etc/systemd/system/topdog.service.d/hurry.conf", "[Service]\nWatchdogSec=1s\nTimeoutAbortSec=1s\n", 0o644)
	p.run("systemctl", "daemon-reload")
	p.run("systemctl", "restart", "topdog")
	old = p.mainPID()
	p.run("kill", "-STOP", old)
	p.wantBack("after SIGSTOP", old)
	if log := p.run("journalctl", "-u", "topdog", "-o", "cat"); !strings.Contains(log, "Watchdog timeout") {
		t.Errorf("it was not the watchdog:\n%s", log)
	}

	// A mistake in the configuration is said once, and not tried again and again.
	p.configure("no_such_key = 1\n")
	if err := p.try("systemctl", "restart", "topdog"); err == nil {
		t.Error("it starts with a key that there is not")
	}
	p.wantUnit("with a mistake in the configuration", "enabled failed")
	assert.Is(t, "NRestarts=0\nExecMainStatus=78", p.ask("systemctl", "show", "-p", "ExecMainStatus", "-p", "NRestarts", "topdog"), "")
}

// Without systemd, as in a chroot or under another supervisor.
func TestWithoutSystemd(t *testing.T) { onMachine(t, "plain", testWithoutSystemd) }

func testWithoutSystemd(t *judge.T, p *pair) {
	before := p.written()
	p.configure("")
	p.run("dpkg", "-i", "/srv/old.deb")
	assert.Is(t, "", p.daemons(), "processes that run")
	if got := p.run("readlink", "/etc/systemd/system/multi-user.target.wants/topdog.service"); got != "/lib/systemd/system/topdog.service" && got != "/usr/lib/systemd/system/topdog.service" {
		t.Errorf("an image that is built with a configuration would not start it: the link is %q", got)
	}

	// Removing ends a daemon that something else has started.
	daemon := p.command("topdog", "run")
	must(t, daemon.Start())
	ended := make(chan error, 1)
	go func() { ended <- daemon.Wait() }()
	p.wantHolders("with a daemon", 1)
	p.run("dpkg", "-i", "/srv/new.deb") // lets it run
	if got := p.Holders.Current(); !slices.Equal(got, []int{1}) {
		t.Errorf("after the upgrade, boards %v have the address", got)
	}
	p.run("dpkg", "--remove", "topdog")
	p.wantHolders("after removing")
	select {
	case <-ended:
	case <-time.After(timeout):
		t.Error("the daemon runs on")
	}

	// What a dead daemon has left goes as well, but not when the package is
	// removed from a directory that is somebody's root: the address is this machine's.
	p.run("dpkg", "-i", "/srv/new.deb")
	must(t, p.LAN.Board(1).AddAddress(netip.PrefixFrom(cluster.Address, 32)))
	p.run("sh", "-ec", `cd /tmp; mkdir upper work root
		mount -t overlay overlay -o lowerdir=/,upperdir=upper,workdir=work root
		mount -t proc proc root/proc; mount --rbind /dev root/dev
		chroot root dpkg --remove topdog
		test ! -e root/usr/bin/topdog`)
	if got := p.Holders.Current(); !slices.Equal(got, []int{1}) {
		t.Errorf("after removing it in a chroot, boards %v have the address", got)
	}
	p.run("dpkg", "--purge", "topdog")
	p.wantHolders("after purging what a dead daemon has left")
	assert.Equal(t, before, p.written(), "what purging leaves")
}
