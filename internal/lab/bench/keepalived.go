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
	"topdog/internal/lab/netns"
)

// protocolVRRP is that of IP (RFC 9568); CARP uses it as well.
const protocolVRRP = 112

// keepalived speaks VRRP.
type keepalived struct {
	key, setting string
	advert       time.Duration
	adverts      int // missed ones before the leader counts as dead; 0 is the default, 3
	track        tracking
}

// tracking is how it looks at the service of its board.
type tracking uint8

const (
	trackNothing tracking = iota
	// trackProcess stands for track_process. The kernel tells of processes in the first network
	// namespace only (errno 111 in any other), so the bench tells keepalived when the service dies and starts: by a
	// track_file, of which inotify tells it at once. It is no slower than track_process can be.
	trackProcess
	trackScript
)

func (s *keepalived) String() string { return s.key }

func (s *keepalived) info() report.System {
	return report.System{Key: s.key, Program: "keepalived", Version: keepalivedVersion(), Setting: s.setting, Interval: s.advert}
}

func (s *keepalived) missing() error {
	err := installed("keepalived", "keepalived")
	if err == nil && s.track != trackNothing {
		err = installed("dnsmasq", "dnsmasq-base")
	}
	if err == nil && s.track == trackScript {
		err = installed("dig", "bind9-dnsutils")
	}
	return err
}

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
	if s.track != trackNothing {
		t.WriteString("    script_user root\n    enable_script_security\n")
	}
	t.WriteString("}\n")
	// Writing a 1 into this file is the way to hand over that the manual offers.
	fmt.Fprintf(&t, "track_file drain {\n    file %q\n    weight 0\n    init_file 0 overwrite\n}\n", s.drain(b))
	scripts := s.scripts(v)
	for _, name := range scripts {
		// keepalived ends a script after its interval, by SIGTERM, and dig takes that for a good end.
		fmt.Fprintf(&t, "vrrp_script %s {\n    script \"%s -s KILL 0.5 %s +short +time=1 +tries=1 @127.0.0.1 %s\"\n    interval 1\n}\n",
			name, pathOf("timeout"), pathOf("dig"), serviceName)
	}
	if s.track == trackProcess {
		fmt.Fprintf(&t, "track_file service {\n    file %q\n    weight 0\n}\n", s.lost(b))
	}
	t.WriteString("vrrp_instance vip {\n    state BACKUP\n    interface eth0\n    virtual_router_id 51\n")
	fmt.Fprintf(&t, "    priority %d\n", priority(b.Number, b.of))
	if s.advert != time.Second {
		fmt.Fprintf(&t, "    advert_int %v\n", s.advert.Seconds())
	}
	if !v.preempt {
		t.WriteString("    nopreempt\n")
	}
	files := []string{"drain"}
	if s.track == trackProcess {
		files = append(files, "service")
	}
	fmt.Fprintf(&t, "    virtual_ipaddress {\n        %s/32\n    }\n    track_file {\n        %s\n    }\n", vip, strings.Join(files, "\n        "))
	if len(scripts) > 0 {
		fmt.Fprintf(&t, "    track_script {\n        %s\n    }\n", strings.Join(scripts, "\n        "))
	}
	if v.hooked {
		fmt.Fprintf(&t, "    notify %q\n", b.hookPath())
	}
	t.WriteString("}\n")
	return t.String()
}

// scripts are the names of those that look at the service.
func (s *keepalived) scripts(v variant) (names []string) {
	if s.track != trackScript {
		return nil
	}
	if !v.five {
		return []string{"answers"}
	}
	for n := range checksASecond {
		names = append(names, fmt.Sprintf("answers%d", n+1))
	}
	return names
}

// lost is the file that says whether the service is lost.
func (s *keepalived) lost(b *board) string { return filepath.Join(b.Dir, "lost") }

// tellService tells keepalived whether the service of its board lives.
func (s *keepalived) tellService(b *board, lives bool) error {
	text := "1\n"
	if lives {
		text = "0\n"
	}
	return os.WriteFile(s.lost(b), []byte(text), 0o600)
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
	for _, pid := range b.withoutService(all) {
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

func (s *keepalived) traffic() netns.Traffic { return netns.Traffic{Protocol: protocolVRRP} }
