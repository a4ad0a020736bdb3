package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"topdog/internal/check"
)

// onceWord on the command line makes the program try checks once, in the sandbox that systemd has made. It is no
// verb for people.
const onceWord = "try-checks"

// daemonUnit is the unit of the daemon, whose sandbox its checks run in.
const daemonUnit = "topdog.service"

// The reasons why the sandbox of the unit cannot be had.
var (
	errNotRoot      = errors.New("only root can do that: sudo topdog check")
	errNoSystemd    = errors.New("systemd does not run here")
	errOtherNetwork = errors.New("systemd is in another network namespace")
	errUnitUnknown  = errors.New("systemd knows no " + daemonUnit)
)

// tryInSandbox tries checks as the daemon does: as its user, and in the sandbox of its unit, with what the owner has
// changed of it. It returns for each why it fails; "" if it passes. The error says why there is no sandbox.
func tryInSandbox(ctx context.Context, o check.Order) ([]string, error) {
	if os.Geteuid() != 0 {
		return nil, errNotRoot
	}
	if _, err := os.Stat("/run/systemd/system"); err != nil { // sd_booted(3)
		return nil, errNoSystemd
	}
	here, err := os.Readlink("/proc/self/ns/net")
	if systemd, errOfIt := os.Readlink("/proc/1/ns/net"); err != nil || errOfIt != nil || here != systemd {
		return nil, errOtherNetwork
	}
	unit, err := exec.CommandContext(ctx, "systemctl", "cat", daemonUnit).Output()
	if err != nil {
		return nil, errUnitUnknown
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	order, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	args := []string{"--quiet", "--pipe", "--wait", "--collect"}
	for _, property := range sandboxOf(string(unit)) {
		args = append(args, "--property="+property)
	}
	ctx, cancel := context.WithTimeout(ctx, sandboxWithin(o))
	defer cancel()
	run := exec.CommandContext(ctx, "systemd-run", append(args, "--", self, onceWord)...)
	var said bytes.Buffer
	run.Stdin, run.Stderr = bytes.NewReader(order), &said
	out, err := run.Output()
	if err != nil {
		return nil, fmt.Errorf("systemd-run: %w: %s", err, strings.TrimSpace(said.String()))
	}
	var reasons []string
	if err := json.Unmarshal(out, &reasons); err != nil || len(reasons) != len(o.Checks) {
		return nil, fmt.Errorf("systemd-run: it printed %.100q", out)
	}
	return reasons, nil
}

// sandboxWithin is how long all of it may take: systemd begins a unit, and a check may use its timeout.
func sandboxWithin(o check.Order) (within time.Duration) {
	for i := range o.Checks {
		within = max(within, o.Checks[i].Timeout)
	}
	return within + 20*time.Second
}

// sandboxOf returns the properties of a unit's processes, as `systemctl cat` shows them, in their order: a later
// line adds to an earlier one, or replaces it. What is about the unit's own processes and directories is left out.
func sandboxOf(unit string) (properties []string) {
	section := ""
	for line := range strings.Lines(strings.ReplaceAll(unit, "\\\n", " ")) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			section = line
			continue
		}
		key, value, isLine := strings.Cut(line, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		switch {
		case section != "[Service]" || !isLine || strings.HasPrefix(line, "#") || strings.HasPrefix(line, ";"):
		case key == "RuntimeDirectory" && value != "":
			properties = append(properties, "ReadWritePaths=-/run/"+value)
		case key == "StateDirectory" && value != "":
			properties = append(properties, "ReadWritePaths=-/var/lib/"+value)
		case slices.ContainsFunc(unitOnly, func(prefix string) bool { return strings.HasPrefix(key, prefix) }):
		default:
			properties = append(properties, key+"="+value)
		}
	}
	return properties
}

// unitOnly are the beginnings of the keys of systemd.service(5), systemd.exec(5) and systemd.kill(5) that say which
// processes a unit has and what becomes of them, or what is removed with the unit: the daemon's directories and
// shared memory must stay.
var unitOnly = []string{
	"Type", "Exec", "NotifyAccess", "Restart", "Watchdog", "Timeout", "RemainAfterExit", "PIDFile", "BusName",
	"RuntimeDirectory", "StateDirectory", "ConfigurationDirectory", "CacheDirectory", "LogsDirectory", "RemoveIPC",
	"Standard", "Sockets", "FileDescriptorStore", "SuccessExitStatus", "Kill", "SendSIG", "FinalKillSignal", "OOMPolicy",
	"RuntimeMaxSec", "NonBlocking", "GuessMainPID", "RootDirectoryStartOnly",
}
