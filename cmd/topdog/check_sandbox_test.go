package main

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSandboxOf: what systemctl shows of a unit, with what its owner has changed.
func TestSandboxOf(t *testing.T) {
	const unit = `# /usr/lib/systemd/system/topdog.service
[Unit]
Description=topdog
After=network.target
[Service]
Type=notify
ExecStart=/usr/bin/topdog run
Restart=always
# A comment.
; Another one.
User=topdog
RuntimeDirectory=topdog
RuntimeDirectoryMode=0755
StateDirectory=topdog
ProtectProc=invisible
RemoveIPC=yes
SystemCallFilter=@system-service
SystemCallFilter=~@privileged \
	@resources

[Install]
WantedBy=multi-user.target

# /etc/systemd/system/topdog.service.d/override.conf
[Service]
 ProtectProc = default
SystemCallFilter=
TimeoutStartSec=5s
`
	want := []string{
		"User=topdog", "ReadWritePaths=-/run/topdog", "ReadWritePaths=-/var/lib/topdog", "ProtectProc=invisible",
		"SystemCallFilter=@system-service", "SystemCallFilter=~@privileged  @resources", "ProtectProc=default", "SystemCallFilter=",
	}
	if diff := cmp.Diff(want, squeezed(sandboxOf(unit))); diff != "" {
		t.Errorf("the properties (-want +got):\n%s", diff)
	}
}

// squeezed has no tabs.
func squeezed(lines []string) (all []string) {
	for _, line := range lines {
		all = append(all, strings.ReplaceAll(line, "\t", ""))
	}
	return all
}

// TestSandboxOfTheDaemon: all that confines the daemon confines what topdog check tries.
func TestSandboxOfTheDaemon(t *testing.T) {
	unit, err := os.ReadFile("../../systemd/" + daemonUnit)
	if err != nil {
		t.Fatal(err)
	}
	properties := sandboxOf(string(unit))
	for _, want := range []string{"User=topdog", "NoNewPrivileges=yes", "ProtectSystem=strict", "ProtectProc=invisible", "PrivateTmp=yes", "SystemCallFilter=@system-service"} {
		if !containsAll(strings.Join(properties, "\n"), []string{want}) {
			t.Errorf("%s is missing: %q", want, properties)
		}
	}
}
