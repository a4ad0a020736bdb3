package packaging

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/internal/lab/judge"
)

// The checks run in the sandbox of the unit, as its user, and ask the real systemd over the real bus. When the service of
// the leader dies, its address goes to a board whose service lives.
func TestChecksOfAUnit(t *testing.T) { onMachine(t, "systemd", testChecksOfAUnit) }

func testChecksOfAUnit(t *judge.T, p *pair) {
	needs(t, "dbus-daemon")
	const service = "[Service]\nExecStart=sleep infinity\nUser=nobody\nRestart=always\nRestartSec=300ms\n"
	p.write("/etc/systemd/system/answers.service", service, 0o644)
	p.run("systemctl", "daemon-reload")
	p.run("systemctl", "start", "dbus.socket", "dbus.service", "answers")
	p.configure("preempt = true\n[[check]]\nunit = \"answers.service\"\n")
	p.run("dpkg", "-i", "/srv/old.deb")
	p.startOther()
	p.machineLeads()
	p.wantGrade("passing")

	for round := range 5 {
		killed := time.Now()
		p.run("systemctl", "kill", "--signal=KILL", "answers")
		p.wantHolders("when its service is dead", 2)
		for _, span := range p.Holders.Since(killed).Spans {
			if span.Board == 2 {
				t.Logf("round %d: the address moved %v after systemctl was asked to kill the service", round, span.From.Sub(killed))
				break
			}
		}
		p.wantHandOver("the death of its service", killed)
		p.wantGrade("probation")
		p.run("systemctl", "restart", "topdog") // which forgets the relapse
		p.machineLeads()
	}

	// systemd starts anew, and goes on to tell of changes.
	p.run("systemctl", "daemon-reexec")
	p.wantGrade("passing")
	stopped := time.Now()
	p.run("systemctl", "stop", "answers")
	p.wantHolders("when its service was stopped", 2)
	p.wantHandOver("the stop of its service", stopped)
	p.wantGrade("failing")
	p.wantTried("check: unit answers.service fails: systemd says that it is inactive", "daemon: unit answers.service is failing")
	p.run("systemctl", "start", "answers")
	p.wantGrade("probation")
}

// wantTried wants topdog check to say something, and that the daemon has tried the checks.
func (p *pair) wantTried(want ...string) {
	p.t.Helper()
	out := p.ask("topdog", "check")
	for _, text := range append(want, "tried: by the daemon, as it runs its own") {
		if !strings.Contains(out, text) {
			p.t.Errorf("topdog check does not say %q:\n%s", text, out)
		}
	}
}

// A check of a process needs to see it, and says so.
func TestChecksOfAProcess(t *testing.T) { onMachine(t, "systemd", testChecksOfAProcess) }

func testChecksOfAProcess(t *judge.T, p *pair) {
	p.write("/etc/systemd/system/answers.service", "[Service]\nExecStart=/usr/bin/sleep infinity\nUser=nobody\n", 0o644)
	p.run("systemctl", "daemon-reload")
	p.run("systemctl", "start", "answers")
	p.configure("preempt = true\n[[check]]\nexec = { path = \"/usr/bin/sleep\", user = \"nobody\" }\n")
	p.run("dpkg", "-i", "/srv/old.deb")
	p.startOther()
	p.wantGrade("failing")
	if out := p.ask("topdog", "status"); !strings.Contains(strings.Join(strings.Fields(out), " "), "add the lines [Service] and ProtectProc=default") {
		t.Errorf("topdog status does not say what to do:\n%s", out)
	}
	p.wantTried("check: exec /usr/bin/sleep of user nobody fails: the unit of topdog hides the processes of other users")
	p.write("/etc/systemd/system/topdog.service.d/override.conf", "[Service]\nProtectProc=default\n", 0o644)
	p.run("systemctl", "daemon-reload")
	p.run("systemctl", "restart", "topdog")
	p.wantGrade("passing")
	p.wantTried("check: exec /usr/bin/sleep of user nobody passes")
	p.machineLeads()
	killed := time.Now()
	p.run("systemctl", "kill", "--signal=KILL", "answers")
	p.wantHolders("when the process is dead", 2)
	p.wantHandOver("the death of the process", killed)
}

// The gateway is asked by ARP, from a process that has no capability.
func TestCheckOfTheGateway(t *testing.T) { onMachine(t, "systemd", testCheckOfTheGateway) }

func testCheckOfTheGateway(t *judge.T, p *pair) {
	p.configure("[[check]]\ngateway = true\nevery = \"100ms\"\n")
	p.run("ip", "route", "add", "default", "via", p.LAN.Board(2).Addr.Addr().String())
	p.run("dpkg", "-i", "/srv/old.deb")
	p.wantGrade("passing")
	p.wantTried("check: gateway passes")
	p.run("ip", "route", "replace", "default", "via", "10.77.0.77")
	p.wantGrade("failing")
	if out := p.ask("topdog", "status"); !strings.Contains(out, "the gateway 10.77.0.77 does not answer") && !strings.Contains(out, "no answer within 100ms") {
		t.Errorf("topdog status does not say why:\n%s", out)
	}
}

// wantGrade waits for a grade of the machine.
func (p *pair) wantGrade(want string) {
	p.t.Helper()
	eventually(p.t, "the machine is "+want, func() error {
		s, err := console.Dial(p.path(config.DefaultSocket)).Status(p.t.Context())
		if err == nil && (s.Starting || s.Grade != want) {
			err = fmt.Errorf("it is %s, starting %t: %s", s.Grade, s.Starting, s.GradeText)
		}
		return err
	})
}
