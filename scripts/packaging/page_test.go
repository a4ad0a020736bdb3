package packaging

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/cluster"
	"topdog/internal/lab/judge"
)

// browser is on board 2, and asks for what the machine's page has.
type browser struct {
	p      *pair
	client http.Client
}

func newBrowser(p *pair) *browser {
	return &browser{p, http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DialContext: p.LAN.Board(2).Dial, DisableKeepAlives: true}}}
}

// get returns the answer to a request.
func (b *browser) get(url string) (status int, body string, err error) {
	answer, err := b.client.Get(url)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(content), err
}

// want waits for an answer with this status, and with a text in it.
func (b *browser) want(when, url string, status int, text string) {
	b.p.t.Helper()
	eventually(b.p.t, when, func() error {
		got, body, err := b.get(url)
		if err == nil && (got != status || !strings.Contains(body, text)) {
			err = fmt.Errorf("status %d, want %d, and %q in\n%s", got, status, text, body)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", url, err)
		}
		return nil
	})
}

// pagePID is the process of the page.
func (m *machine) pagePID() string {
	return m.ask("systemctl", "show", "-p", "MainPID", "--value", "topdog-page")
}

func (m *machine) pageUnit() string {
	return m.state("topdog-page")
}

func (m *machine) wantPageUnit(when, want string) {
	m.t.Helper()
	if got := m.pageUnit(); got != want {
		m.t.Errorf("%s topdog-page is %s, want %s", when, got, want)
	}
}

const (
	ownPage    = "http://10.77.0.1:9254"
	ownStatus  = ownPage + "/v1/status"
	machineRow = `"name":"machine"`
)

// The page runs if somebody wants it, answers at the board's own address and at the floating one, and
// goes its own way: whatever happens to the daemon happens to the daemon alone, and the other way around.
func TestPage(t *testing.T) { onMachine(t, "systemd", testPage) }

func testPage(t *judge.T, p *pair) {
	before := p.written()
	p.configure("")
	p.run("dpkg", "-i", "/srv/old.deb")
	p.wantPageUnit("after the installation", "disabled inactive")
	p.run("systemctl", "enable", "--now", "topdog-page")
	p.wantHolders("alone", 1)
	b := newBrowser(p)
	b.want("the page", ownPage+"/", http.StatusOK, "<!doctype html>")
	b.want("the group", ownStatus, http.StatusOK, machineRow)
	b.want("the group at the floating address", fmt.Sprintf("http://%s:9254/v1/status", cluster.Address), http.StatusOK, machineRow)
	b.want("the leader", ownPage+"/leader", http.StatusOK, "")

	// The daemon comes and goes, and its page stays.
	page := p.pagePID()
	p.run("systemctl", "restart", "topdog")
	b.want("after the daemon's restart", ownStatus, http.StatusOK, machineRow)
	p.run("systemctl", "stop", "topdog")
	b.want("without a daemon", ownStatus, http.StatusServiceUnavailable, `"hint"`)
	b.want("life without a daemon", ownPage+"/healthz", http.StatusOK, "")
	p.run("systemctl", "start", "topdog")
	b.want("with a daemon again", ownStatus, http.StatusOK, machineRow)
	assert.Is(t, page, p.pagePID(), "the page, after the daemon was restarted")

	// The page goes and comes, and its daemon stays.
	daemon := p.mainPID()
	p.run("kill", "-KILL", page)
	eventually(t, "the page is back", func() error {
		if got := p.pagePID(); got == page || got == "0" {
			return fmt.Errorf("its process is %s, and was %s", got, page)
		}
		return nil
	})
	b.want("after SIGKILL", ownStatus, http.StatusOK, machineRow)
	p.run("systemctl", "stop", "topdog-page")
	p.run("systemctl", "start", "topdog-page")
	assert.Is(t, daemon, p.mainPID(), "the daemon, after the page was restarted")

	// An upgrade restarts the one that runs, and not the one that somebody has stopped.
	page = p.pagePID()
	p.run("dpkg", "-i", "/srv/new.deb")
	p.wantPageUnit("after the upgrade", "enabled active")
	if got := p.pagePID(); got == page {
		t.Error("the old page runs on after an upgrade")
	}
	b.want("after the upgrade", ownStatus, http.StatusOK, machineRow)
	p.run("systemctl", "stop", "topdog-page")
	p.run("dpkg", "-i", "/srv/old.deb")
	p.wantPageUnit("after the upgrade of what was stopped", "enabled inactive")

	// What was removed comes back as it was, and so does what was not removed after all.
	p.run("systemctl", "start", "topdog-page")
	p.run("dpkg", "--remove", "topdog")
	p.run("dpkg", "-i", "/srv/new.deb")
	p.wantPageUnit("after the return of what was removed", "enabled active")
	b.want("after the return", ownStatus, http.StatusOK, machineRow)
	p.run("/var/lib/dpkg/info/topdog.prerm", "remove")
	p.run("/var/lib/dpkg/info/topdog.postinst", "abort-remove")
	p.wantPageUnit("after a removal that was given up", "enabled active")
	p.run("systemctl", "disable", "topdog-page")
	p.run("dpkg", "--remove", "topdog")
	p.run("dpkg", "-i", "/srv/new.deb")
	p.wantPageUnit("after the return of what was disabled", "disabled inactive")

	p.run("systemctl", "start", "topdog-page")
	p.run("dpkg", "--purge", "topdog")
	assert.Is(t, "", p.daemons(), "processes that run after purging")
	assert.Equal(t, before, p.written(), "what purging leaves")
}

// What the page's process may do: nothing but what everybody may.
func TestPageHasNoRights(t *testing.T) { onMachine(t, "systemd", testPageHasNoRights) }

func testPageHasNoRights(t *judge.T, p *pair) {
	p.configure("")
	p.run("dpkg", "-i", "/srv/old.deb")
	p.run("systemctl", "enable", "--now", "topdog-page")
	b := newBrowser(p)
	b.want("the group", ownStatus, http.StatusOK, machineRow)

	process := "/proc/" + p.pagePID()
	for _, tc := range []struct{ what, command, want string }{
		{"its user, group, and no other groups", "stat -c '%U %G' $1; for g in $(sed -n 's/^Groups://p' $1/status); do getent group $g; done | cut -d: -f1", "topdog-page topdog-page\ntopdog-page"},
		{"its capabilities", "sed -n 's/^Cap\\(Inh\\|Prm\\|Eff\\|Bnd\\|Amb\\):[[:space:]]*0*$/\\1/p' $1/status", "Inh\nPrm\nEff\nBnd\nAmb"},
		{"no new ones, and a filter of system calls", "grep -E '^(NoNewPrivs|Seccomp):' $1/status | tr -d '\\t'", "NoNewPrivs:1\nSeccomp:2"},
		{"its priority, and who is killed first", "ps -o nice= -p ${1#/proc/} | tr -d ' '; cat $1/oom_score_adj", "0\n500"},
		{"the socket on which it asks, and the public one", "setpriv --reuid=topdog-page --regid=topdog-page --clear-groups sh -c 'for s in /run/topdog/topdog.sock*; do test -w $s && echo $s; done'", "/run/topdog/topdog.sock.page\n/run/topdog/topdog.sock.public"},
		{"the key", "cat $1/root/etc/topdog/key", ""},
		{"what the daemon keeps", "ls -A $1/root/var/lib/topdog", ""},
		{"what it can write", "for f in /etc/topdog/x /run/topdog/x /usr/x /var/lib/x; do nsenter --mount=$1/ns/mnt touch $f 2>&1; done | sed 's/.*: //' | sort -u", "Read-only file system"},
	} {
		assert.Is(t, tc.want, strings.TrimSpace(p.ask("sh", "-c", tc.command, "sh", process)), "%s", tc.what)
	}
	// Everybody may ask how things are, and nobody in particular may hand over.
	if got := p.ask("setpriv", "--reuid=topdog-page", "--regid=topdog-page", "--clear-groups", "sh", "-c", "topdog status >/dev/null; topdog resign 2>&1"); !strings.Contains(got, "may look, but not give this board commands") {
		t.Errorf("as the page's user, `topdog resign` says %q", got)
	}
}

// The page listens where the configuration has it, and says once what is wrong with that.
func TestPageListens(t *testing.T) { onMachine(t, "systemd", testPageListens) }

func testPageListens(t *judge.T, p *pair) {
	p.configure("page_listen = \"10.77.0.1:8080\"\npage_hosts = \"topdog.test\"\n")
	p.run("dpkg", "-i", "/srv/old.deb")
	p.run("systemctl", "enable", "--now", "topdog-page")
	b := newBrowser(p)
	b.want("the group", "http://10.77.0.1:8080/v1/status", http.StatusOK, machineRow)
	for host, want := range map[string]int{"machine": 200, "machine.local:8080": 200, "topdog.test": 200, "elsewhere.test": 421} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://10.77.0.1:8080/v1/status", nil)
		must(t, err)
		request.Host = host
		answer, err := b.client.Do(request)
		must(t, err)
		answer.Body.Close()
		assert.Is(t, want, answer.StatusCode, "what the host %s gets", host)
	}
	if _, _, err := b.get(ownStatus); err == nil {
		t.Error("it listens on port 9254 as well")
	}
	p.configure("page_listen = \"10.77.0.1:0\"\n")
	_ = p.try("systemctl", "restart", "topdog-page")
	eventually(t, "it ends", func() error {
		if got := p.ask("systemctl", "show", "-p", "ExecMainStatus", "-p", "NRestarts", "topdog-page"); got != "NRestarts=0\nExecMainStatus=78" || p.pageUnit() != "enabled failed" {
			return errors.New(got + ", " + p.pageUnit())
		}
		return nil
	})
	if log := p.ask("journalctl", "-u", "topdog-page", "-o", "cat"); !strings.Contains(log, `topdog.toml:5:15: page_listen: "0" is not a port`) {
		t.Errorf("it says\n%s", log)
	}

	// On a port below 1024, as docs/install.md has it.
	p.configure("page_listen = \":80\"\n")
	p.write("/etc/systemd/system/topdog-page.service.d/override.conf",
		"[Service]\nPrivateUsers=no\nCapabilityBoundingSet=CAP_NET_BIND_SERVICE\nAmbientCapabilities=CAP_NET_BIND_SERVICE\n", 0o644)
	p.run("systemctl", "daemon-reload")
	p.run("systemctl", "restart", "topdog-page")
	b.want("on port 80", "http://10.77.0.1/v1/status", http.StatusOK, machineRow)

	// For some machines only, as it has it too.
	for allowed, want := range map[string]bool{"10.77.0.0/24": true, "10.77.0.3": false} {
		p.write("/etc/systemd/system/topdog-page.service.d/addresses.conf", "[Service]\nIPAddressDeny=any\nIPAddressAllow=localhost "+allowed+"\n", 0o644)
		p.run("systemctl", "daemon-reload")
		p.run("systemctl", "restart", "topdog-page")
		eventually(t, "it answers its own board", func() error { return p.try("bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/80") })
		if status, _, err := b.get("http://10.77.0.1/v1/status"); (err == nil) != want {
			t.Errorf("%s is allowed, and board 2 gets %d, %v", allowed, status, err)
		}
	}
}
