package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"topdog/internal/lab/bench/report"
	"topdog/internal/lab/netns/loss"
)

// protocolVRRP is that of IP (RFC 9568); CARP uses it as well.
const protocolVRRP = 112

// keepalived speaks VRRP.
type keepalived struct {
	key, setting string
	advert       time.Duration
	adverts      int // missed ones before the leader counts as dead; 0 is the default, 3
}

func (s *keepalived) String() string { return s.key }

func (s *keepalived) info() report.System {
	return report.System{Key: s.key, Program: "keepalived", Version: keepalivedVersion(), Setting: s.setting, Interval: s.advert}
}

func (s *keepalived) missing() error { return installed("keepalived", "keepalived") }

// keepalivedVersion reads "Keepalived v2.2.7 (01/16,2022)".
func keepalivedVersion() string {
	out, err := exec.Command(pathOf("keepalived"), "--version").CombinedOutput()
	fields := strings.Fields(string(out))
	if err != nil || len(fields) < 2 {
		return "unknown"
	}
	return strings.TrimPrefix(fields[1], "v")
}

// text is what keepalived.conf(5) recommends, and no more: priorities 50 apart
// where there are so many, a board that returns does not preempt (which needs
// BACKUP as the first state of all), and version 3 where the interval needs it.
// The shorter the skew of VRRP, the sooner the next board takes over, so the
// highest priority is high: 200 of 254.
func (s *keepalived) text(b *board, v variant) string {
	var t strings.Builder
	t.WriteString("global_defs {\n    router_id pi" + strconv.Itoa(b.Number) + "\n")
	if s.advert < time.Second {
		t.WriteString("    vrrp_version 3\n")
	}
	if s.adverts > 0 {
		fmt.Fprintf(&t, "    vrrp_down_timer_adverts %d\n", s.adverts)
	}
	t.WriteString("}\n")
	// Writing a 1 into this file is the way to hand over that the manual offers.
	fmt.Fprintf(&t, "track_file drain {\n    file %q\n    weight 0\n    init_file 0 overwrite\n}\n", s.drain(b))
	t.WriteString("vrrp_instance vip {\n    state BACKUP\n    interface eth0\n    virtual_router_id 51\n")
	fmt.Fprintf(&t, "    priority %d\n", priority(b.Number, b.of))
	if s.advert != time.Second {
		fmt.Fprintf(&t, "    advert_int %v\n", s.advert.Seconds())
	}
	if !v.preempt {
		t.WriteString("    nopreempt\n")
	}
	fmt.Fprintf(&t, "    virtual_ipaddress {\n        %s/32\n    }\n    track_file {\n        drain\n    }\n}\n", vip)
	return t.String()
}

// priority spreads n boards below 200, at most 50 apart; the last is the highest.
func priority(number, of int) int {
	step := min(50, 150/of)
	return 200 - step*(of-number)
}

func (s *keepalived) drain(b *board) string { return filepath.Join(b.Dir, "drain") }

func (s *keepalived) configure(b *board, v variant) ([]string, error) {
	config := filepath.Join(b.Dir, "keepalived.conf")
	if err := os.WriteFile(config, []byte(s.text(b, v)), 0o600); err != nil {
		return nil, err
	}
	return []string{
		pathOf("keepalived"), "--use-file", config, "--vrrp", "--dont-fork", "--log-console", "--no-syslog",
		"--pid", filepath.Join(b.Dir, "pid"), "--vrrp_pid", filepath.Join(b.Dir, "vrrp.pid"),
		"--checkers_pid", filepath.Join(b.Dir, "checkers.pid"), "--bfd_pid", filepath.Join(b.Dir, "bfd.pid"),
	}, nil
}

// daemon is all of keepalived: the parent, and the child that speaks VRRP. A crash
// is the end of both. The child comes first, since it would leave in good order if
// it saw its parent die.
func (s *keepalived) daemon(b *board, all []int) []int {
	list := make([]int, 0, len(all)+1)
	for _, pid := range all {
		if pid != b.PID() {
			list = append(list, pid)
		}
	}
	return append(list, b.PID())
}

func (s *keepalived) resign(b *board) (do, undo func(context.Context) error) {
	write := func(text string) func(context.Context) error {
		return func(context.Context) error { return os.WriteFile(s.drain(b), []byte(text), 0o600) }
	}
	return write("1\n"), write("0\n")
}

func (s *keepalived) quorum(int) int { return 1 }

func (s *keepalived) ready(context.Context, *rig) error { return nil }

// stableFor covers the time that a backup takes to find out about its leader.
func (s *keepalived) stableFor() time.Duration { return max(5*s.advert, 2*time.Second) }

func (s *keepalived) traffic() loss.Traffic { return loss.Traffic{Protocol: protocolVRRP} }
