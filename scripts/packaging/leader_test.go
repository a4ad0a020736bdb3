package packaging

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/internal/lab/judge"
)

// hook writes down what it is told. It runs as root, as an owner may choose.
const hook = "#!/bin/sh\necho \"$2 $3 $(id -un)\" >>/run/told\n"

// asRoot is what `systemctl edit topdog-hooks` would write.
const asRoot = "[Service]\nUser=root\nGroup=root\n"

// wantFile waits until a file in the machine has these lines.
func (m *machine) wantFile(when, path string, want ...string) {
	m.t.Helper()
	eventually(m.t, when, func() error {
		text, err := os.ReadFile(m.path(path))
		if err != nil {
			return err
		}
		got := strings.TrimSpace(string(text))
		if !slices.Equal(strings.Split(got, "\n"), want) {
			return fmt.Errorf("%s says %q, want %q", path, got, want)
		}
		return nil
	})
}

func (m *machine) wantActive(when, unit, want string) {
	m.t.Helper()
	eventually(m.t, when, func() error {
		if got := m.ask("systemctl", "is-active", unit); got != want {
			return fmt.Errorf("%s is %s, want %s", unit, got, want)
		}
		return nil
	})
}

// A service that is wanted by topdog-leader.target and part of it runs on the leader only,
// whatever dies; and hooks are told.
func TestLeaderTarget(t *testing.T) { onMachine(t, "systemd", testLeaderTarget) }

func testLeaderTarget(t *judge.T, p *pair) {
	p.configure("")
	p.run("dpkg", "-i", "/srv/old.deb")
	p.wantHolders("alone", 1) // so that the lead stays here for as long as all this takes

	// As docs/hooks.md has it.
	p.write("/etc/systemd/system/scheduler.service", `[Service]
ExecStartPre=sh -c 'echo start >>/run/scheduler'
ExecStart=sleep infinity
ExecStopPost=sh -c 'echo stop >>/run/scheduler'
[Install]
WantedBy=multi-user.target
`, 0o644)
	p.run("systemctl", "enable", "--now", "scheduler")
	p.run("systemctl", "disable", "--now", "scheduler")
	p.run("systemctl", "add-wants", "topdog-leader.target", "scheduler")
	p.write("/etc/systemd/system/scheduler.service.d/override.conf", "[Unit]\nPartOf=topdog-leader.target\n", 0o644)
	p.run("systemctl", "daemon-reload")
	p.run("systemctl", "enable", "topdog-leader")
	p.run("systemctl", "restart", "topdog-leader")
	p.run("rm", "-f", "/run/scheduler")
	p.run("install", "-d", "/etc/topdog/hooks.d")
	p.write("/etc/topdog/hooks.d/50-notify", hook, 0o755)
	p.write("/etc/systemd/system/topdog-hooks.service.d/override.conf", asRoot, 0o644)
	p.run("systemctl", "daemon-reload")
	p.run("systemctl", "enable", "--now", "topdog-hooks")
	p.wantActive("the board leads", "scheduler", "active")
	p.wantFile("the hooks begin", "/run/told", "topdog MASTER root")
	p.startOther()
	p.machineLeads()
	p.run("rm", "-f", "/run/scheduler", "/run/told")

	p.run("topdog", "resign")
	p.wantActive("the board follows", "scheduler", "inactive")
	p.machineLeads()
	p.wantActive("the board leads again", "scheduler", "active")
	p.wantFile("each change is one", "/run/scheduler", "stop", "start")
	p.wantFile("the hooks are told", "/run/told", "topdog BACKUP root", "topdog MASTER root")

	// What starts and stops it dies: it does not run on without, and is back with it. It asks the daemon on the control socket,
	// and needs no other, where ordinary users could be in its way.
	p.run("rm", "-f", "/run/scheduler", "/run/told")
	p.run("mv", console.PublicPath(config.DefaultSocket), "/run/topdog/elsewhere")
	p.run("systemctl", "kill", "--signal=KILL", "topdog-leader")
	p.wantFile("topdog-leader.service was killed", "/run/scheduler", "stop", "start")
	p.wantActive("it is back", "topdog-leader.target", "active")
	p.run("mv", "/run/topdog/elsewhere", console.PublicPath(config.DefaultSocket))

	// The daemon dies. The other board leads then.
	p.run("kill", "-KILL", p.mainPID())
	p.wantHolders("after SIGKILL", 2)
	p.wantActive("the daemon was killed", "scheduler", "inactive")
	p.wantFile("the hooks are told of that", "/run/told", "topdog STOP root", "topdog BACKUP root")
	p.wantActive("the daemon is back", "topdog", "active")
	p.machineLeads()
	p.wantActive("the board leads after that", "scheduler", "active")

	p.run("systemctl", "stop", "topdog-leader")
	p.wantActive("topdog-leader.service was stopped", "scheduler", "inactive")
	p.wantActive("the daemon runs on", "topdog", "active")

	// An upgrade restarts what runs, and nothing else.
	p.run("rm", "-f", "/run/told")
	old := p.ask("systemctl", "show", "-p", "MainPID", "--value", "topdog-hooks")
	p.run("dpkg", "-i", "/srv/new.deb")
	if pid := p.ask("systemctl", "show", "-p", "MainPID", "--value", "topdog-hooks"); pid == old || pid == "0" {
		t.Errorf("topdog-hooks is process %s after the upgrade and was %s", pid, old)
	}
	p.wantActive("after the upgrade", "topdog-leader", "inactive")
}

// A board that shuts down hands over before its services are told to stop, and its hooks are told.
func TestShutdown(t *testing.T) { onMachine(t, "systemd", testShutdown) }

func testShutdown(t *judge.T, p *pair) {
	p.configure("preempt = true\n")
	p.write("/etc/systemd/system/answers.service", `[Service]
ExecStart=sleep infinity
ExecStop=sh -c 'ip -4 -o address show to 10.77.0.100 >/run/at-stop; echo stopped >>/run/at-stop; sleep 1'
[Install]
WantedBy=multi-user.target
`, 0o644)
	p.write("/etc/systemd/system/down.target", "[Unit]\nDefaultDependencies=no\nRequires=shutdown.target\n", 0o644)
	p.run("systemctl", "enable", "--now", "answers")
	p.run("dpkg", "-i", "/srv/old.deb")
	p.write("/etc/topdog/hooks.d/50-notify", hook, 0o755)
	p.write("/etc/systemd/system/topdog-hooks.service.d/override.conf", asRoot, 0o644)
	p.run("systemctl", "daemon-reload")
	p.run("systemctl", "enable", "--now", "topdog-hooks")
	p.run("systemctl", "start", "multi-user.target")
	p.startOther()
	p.machineLeads()
	p.wantActive("the daemon wants it", "topdog-leave", "active")
	p.wantFile("the hooks are told", "/run/told", "topdog BACKUP root", "topdog MASTER root")

	// All that ends at a shutdown ends, and the machine stays, to be looked at.
	since := time.Now()
	p.run("systemctl", "--no-block", "start", "down.target")
	p.wantActive("the daemon ends", "topdog", "inactive")
	p.wantActive("the service ends", "answers", "inactive")
	p.wantHolders("after the shutdown", 2)
	p.wantHandOver("the shutdown", since)
	if at := p.ask("cat", "/run/at-stop"); at == "" || strings.Contains(at, "10.77.0.100") {
		t.Errorf("when its service was told to stop, the board had the address: %q", at)
	}
	p.wantFile("the hooks are told of the shutdown", "/run/told", "topdog BACKUP root", "topdog MASTER root", "topdog STOP root")
	p.wantActive("the hooks end", "topdog-hooks", "inactive")
	if log := p.ask("journalctl", "-u", "topdog-leave", "-o", "cat"); !strings.Contains(log, "handed over to ") {
		t.Errorf("topdog-leave has said:\n%s", log)
	}
}
