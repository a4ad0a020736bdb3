package systemd

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"topdog/internal/lab/assert"
)

// unit is a unit file: every value of "Section.Key", in order.
type unit map[string][]string

func parseUnit(t *testing.T, path string) unit {
	t.Helper()
	f, err := os.Open(path)
	assert.NoError(t, err)
	defer f.Close()
	u, section := unit{}, ""
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		key, value, isSetting := strings.Cut(line, "=")
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '[' && strings.HasSuffix(line, "]"):
			section = line[1 : len(line)-1]
		case isSetting && section != "" && key == strings.TrimSpace(key):
			u[section+"."+key] = append(u[section+"."+key], value)
		default:
			t.Errorf("%s:%d: %q is neither a setting nor a section nor a comment", path, n, line)
		}
	}
	assert.NoError(t, lines.Err())
	return u
}

// says checks settings of a unit. "" stands for one that is empty or not there, and "empty" for one that must be there.
func says(t *testing.T, u unit, settings map[string]string) {
	t.Helper()
	for key, want := range settings {
		if want == "empty" {
			assert.Equal(t, []string{""}, u[key], "%s", key)
			continue
		}
		assert.Is(t, want, strings.Join(u[key], ", "), "%s", key)
	}
}

// What the daemon and the design rely on. A change here is a change of what
// topdog promises, so it has to be made twice.
func TestUnit(t *testing.T) {
	says(t, parseUnit(t, "topdog.service"), map[string]string{
		"Unit.After":                 "network-pre.target, topdog-holder.service",
		"Unit.Wants":                 "topdog-leave.service, topdog-holder.service",
		"Unit.StartLimitIntervalSec": "0",

		"Service.Type":         "notify",
		"Service.NotifyAccess": "main",
		"Service.ExecStart":    "/usr/bin/topdog run --holder /run/topdog-holder/socket",
		"Service.ExecReload":   "kill -HUP $MAINPID",
		"Service.ExecStopPost": "/usr/bin/topdog cleanup --light",

		"Service.Restart":                  "always",
		"Service.RestartSec":               "200ms",
		"Service.RestartPreventExitStatus": "78",
		"Service.WatchdogSec":              "5s",

		"Service.User":                  "topdog",
		"Service.SupplementaryGroups":   "gpio",
		"Service.AmbientCapabilities":   "",
		"Service.CapabilityBoundingSet": "",
		"Service.SystemCallFilter":      "@system-service, ~@privileged @resources, seccomp",
		"Service.NoNewPrivileges":       "yes",

		"Service.RuntimeDirectory":        "topdog",
		"Service.RuntimeDirectoryMode":    "0755",
		"Service.StateDirectory":          "topdog",
		"Service.ConfigurationDirectory":  "topdog",
		"Service.DevicePolicy":            "closed",
		"Service.DeviceAllow":             "char-gpiochip rw",
		"Service.RestrictAddressFamilies": "AF_INET AF_INET6 AF_NETLINK AF_UNIX",
		"Service.ReadWritePaths":          "/sys/devices",
		"Service.LimitCORE":               "0",

		"Install.WantedBy": "multi-user.target",

		// These must not be there: the first ones make it wait for the
		// network, or end it with the holder, before it has handed over. The rest takes away what it works with.
		"Unit.Requires": "", "Unit.BindsTo": "", "Unit.PartOf": "", "Unit.Before": "",
		"Service.PrivateNetwork": "", "Service.PrivateUsers": "", "Service.PrivateDevices": "",
		"Service.DynamicUser": "", "Service.ProcSubset": "",
	})
}

// The holder has what the daemon has not.
func TestHolderUnit(t *testing.T) {
	says(t, parseUnit(t, "topdog-holder.service"), map[string]string{
		"Unit.After":                       "network-pre.target",
		"Unit.StartLimitIntervalSec":       "0",
		"Service.Type":                     "notify",
		"Service.ExecStart":                "/usr/bin/topdog holder",
		"Service.ExecStopPost":             "/usr/bin/topdog cleanup --address",
		"Service.Restart":                  "always",
		"Service.RestartSec":               "200ms",
		"Service.WatchdogSec":              "10s",
		"Service.User":                     "topdog-holder",
		"Service.Group":                    "topdog", // which may connect to its socket
		"Service.AmbientCapabilities":      "CAP_NET_ADMIN CAP_NET_RAW CAP_BPF",
		"Service.CapabilityBoundingSet":    "CAP_NET_ADMIN CAP_NET_RAW CAP_BPF",
		"Service.SystemCallFilter":         "@system-service, ~@privileged @resources, bpf",
		"Service.NoNewPrivileges":          "yes",
		"Service.RuntimeDirectory":         "topdog-holder",
		"Service.RuntimeDirectoryMode":     "0755",
		"Service.RuntimeDirectoryPreserve": "restart",
		"Service.DevicePolicy":             "closed",
		"Service.DeviceAllow":              "/dev/net/tun rw",
		"Service.RestrictAddressFamilies":  "AF_INET AF_INET6 AF_NETLINK AF_PACKET AF_UNIX",
		"Service.InaccessiblePaths":        "-/etc/topdog/key -/var/lib/topdog",
		"Service.LimitCORE":                "0",

		// Nothing but the daemon's wish starts it, and it ends after the daemon.
		"Install.WantedBy": "", "Unit.PartOf": "", "Unit.StopWhenUnneeded": "", "Unit.Requires": "", "Unit.BindsTo": "",
		"Service.PrivateNetwork": "", "Service.PrivateUsers": "", "Service.PrivateDevices": "", "Service.ProcSubset": "",
	})
}

// A witness has no right at all, and the user who may read the key.
func TestWitnessUnit(t *testing.T) {
	says(t, parseUnit(t, "topdog-witness.service"), map[string]string{
		"Service.ExecStart":                "/usr/bin/topdog witness",
		"Service.Type":                     "notify",
		"Service.Restart":                  "always",
		"Service.RestartPreventExitStatus": "78",
		"Service.WatchdogSec":              "5s",
		"Service.User":                     "topdog",
		"Service.AmbientCapabilities":      "",
		"Service.CapabilityBoundingSet":    "empty",
		"Service.NoNewPrivileges":          "yes",
		"Service.PrivateDevices":           "yes",
		"Service.RestrictAddressFamilies":  "AF_INET AF_NETLINK AF_UNIX",
		"Install.WantedBy":                 "multi-user.target",

		// Nothing to clean up, nobody to wait for, and no way to stop a board by mistake.
		"Service.ExecStopPost": "", "Service.SupplementaryGroups": "", "Service.DeviceAllow": "",
		"Service.PrivateNetwork": "", "Service.PrivateUsers": "", "Unit.Requires": "", "Unit.Conflicts": "",
	})
}

// The page talks to everybody, so it may do nothing but that: it has a user of its own, comes
// after everybody else, and starts and stops nothing.
func TestPageUnit(t *testing.T) {
	says(t, parseUnit(t, "topdog-page.service"), map[string]string{
		"Service.ExecStart":                "/usr/bin/topdog page",
		"Service.Restart":                  "always",
		"Service.RestartPreventExitStatus": "78",
		"Service.User":                     "topdog-page",
		"Service.Group":                    "topdog-page",
		"Service.AmbientCapabilities":      "",
		"Service.CapabilityBoundingSet":    "empty",
		"Service.NoNewPrivileges":          "yes",
		"Service.PrivateUsers":             "yes",
		"Service.PrivateDevices":           "yes",
		"Service.InaccessiblePaths":        "-/etc/topdog/key -/var/lib/topdog",
		"Service.RestrictAddressFamilies":  "AF_INET AF_INET6 AF_UNIX",
		"Service.LimitCORE":                "0",
		"Service.Nice":                     "0",
		"Service.CPUWeight":                "20",
		"Service.OOMScoreAdjust":           "500",
		"Service.MemoryMax":                "64M",
		"Install.WantedBy":                 "multi-user.target",

		// Neither may hold the other up, or take it along.
		"Unit.After": "", "Unit.Before": "", "Unit.Wants": "", "Unit.Requires": "", "Unit.BindsTo": "", "Unit.PartOf": "",
		// The directories belong to the daemon.
		"Service.RuntimeDirectory": "", "Service.StateDirectory": "", "Service.ConfigurationDirectory": "", "Service.ReadWritePaths": "",
		"Service.PrivateNetwork": "", "Service.SupplementaryGroups": "", "Service.DeviceAllow": "",
	})
}

// What hooks, targets and the end of a board rely on.
func TestUnitsOfHooks(t *testing.T) {
	says(t, parseUnit(t, "topdog-hooks.service"), map[string]string{
		"Unit.Before":               "topdog.service", // so it is stopped after that
		"Service.ExecStart":         "/usr/bin/topdog hooks",
		"Service.Restart":           "always",
		"Service.KillMode":          "mixed",
		"Service.User":              "topdog",
		"Service.InaccessiblePaths": "-/etc/topdog/key",
		"Install.WantedBy":          "multi-user.target",
		"Service.NoNewPrivileges":   "",
	})
	says(t, parseUnit(t, "topdog-leader.service"), map[string]string{
		"Service.ExecStart":               "/usr/bin/topdog target",
		"Service.KillMode":                "mixed",
		"Service.ExecStopPost":            "systemctl --no-block stop topdog-leader.target",
		"Service.Restart":                 "always",
		"Service.User":                    "",
		"Service.Group":                   "topdog", // of the control socket
		"Service.RestrictAddressFamilies": "AF_UNIX",
		"Install.WantedBy":                "multi-user.target",
	})
	says(t, parseUnit(t, "topdog-leader.target"), map[string]string{
		"Unit.BindsTo": "topdog-leader.service",
		"Unit.After":   "topdog-leader.service",
	})
	says(t, parseUnit(t, "topdog-leave.service"), map[string]string{
		"Unit.After": "multi-user.target network.target topdog.service, topdog-leader.target topdog-leader.service topdog-hooks.service",

		"Service.Type":            "oneshot",
		"Service.RemainAfterExit": "yes",
		"Service.ExecStop":        "-/usr/bin/topdog leave",
		"Service.User":            "topdog",
		"Install.WantedBy":        "",
	})
}

// systemd's own opinion: no setting it does not know, and an exposure of at
// most 1.5 out of 10, of what needs rights of 2.5. What hooks themselves may do is for
// their owner to decide.
func TestUnitBySystemd(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	for name, threshold := range map[string]int{
		"topdog.service": 15, "topdog-holder.service": 25, "topdog-witness.service": 15, "topdog-leave.service": 15, "topdog-leader.service": 25,
		"topdog-page.service": 11, "topdog-leader.target": 0, "topdog-hooks.service": 100,
	} {
		t.Run(name, func(t *testing.T) { analyzeUnit(t, analyze, name, threshold) })
	}
}

func analyzeUnit(t *testing.T, analyze, name string, threshold int) {
	// verify wants the programs to exist, and the units that others name.
	dir := t.TempDir()
	units, err := filepath.Glob("topdog*.*")
	assert.NoError(t, err)
	for _, unit := range units {
		installed := strings.ReplaceAll(read(t, unit), "/usr/bin/topdog", "/bin/true")
		assert.NoError(t, os.WriteFile(filepath.Join(dir, unit), []byte(installed), 0o600))
	}
	copied := filepath.Join(dir, name)
	out, err := exec.Command(analyze, "verify", "--man=no", copied).CombinedOutput()
	for line := range strings.Lines(string(out)) {
		// It reports on other units of the machine too.
		if strings.Contains(line, "topdog") {
			t.Errorf("systemd-analyze verify: %v: %s", err, line)
		}
	}
	if !strings.HasSuffix(name, ".service") {
		return
	}
	out, err = exec.Command(analyze, "security", "--offline=yes", fmt.Sprintf("--threshold=%d", threshold), copied).CombinedOutput()
	if err != nil {
		t.Errorf("systemd-analyze security: %v\n%s", err, out)
	}
}

// The unit names a user and a group, and is refused if one does not exist; the
// rules hand things to that group.
func TestInstalledFilesAgree(t *testing.T) {
	service, page, holder := parseUnit(t, "topdog.service"), parseUnit(t, "topdog-page.service"), parseUnit(t, "topdog-holder.service")
	user, group := service["Service.User"][0], service["Service.SupplementaryGroups"][0]
	made := map[string]bool{}
	for line := range strings.Lines(read(t, "topdog.sysusers")) {
		if fields := strings.Fields(line); len(fields) > 2 && !strings.HasPrefix(fields[0], "#") {
			made[fields[0]+" "+fields[1]] = true
		}
	}
	want := map[string]bool{"u " + user: true, "g " + group: true, "m " + user: true, "u " + page["Service.User"][0]: true, "u " + holder["Service.User"][0]: true}
	assert.Equal(t, want, made, "topdog.sysusers")
	rules := read(t, "71-topdog.rules")
	for _, want := range []string{`KERNEL=="gpiochip*", GROUP="` + group + `"`, "chgrp " + group + " /sys%p/brightness /sys%p/trigger"} {
		if !strings.Contains(rules, want) {
			t.Errorf("71-topdog.rules: no %s", want)
		}
	}
}

func TestNetworkdFiles(t *testing.T) {
	got := map[string]unit{}
	for _, path := range []string{"topdog.network", "networkd-keep-address.conf"} {
		got[path] = parseUnit(t, path)
	}
	want := map[string]unit{
		"topdog.network":             {"Match.Name": {"topdog*"}, "Link.Unmanaged": {"yes"}},
		"networkd-keep-address.conf": {"Network.KeepConfiguration": {"yes"}},
	}
	assert.Equal(t, want, got, "")
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	assert.NoError(t, err)
	return string(text)
}
