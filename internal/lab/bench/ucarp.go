package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"topdog/internal/lab/bench/report"
	"topdog/internal/lab/netns"
)

// ucarp speaks CARP.
type ucarp struct {
	key, setting string
	base         int // --advbase, seconds
	skew         int // --advskew, 1/256 s, added to base
	ratio        int // --deadratio; 0 is the default, 3
	stagger      int // more skew for each board of lower rank
}

func (s *ucarp) String() string { return s.key }

func (s *ucarp) info() report.System {
	return report.System{Key: s.key, Program: "ucarp", Version: packageVersion("ucarp"), Setting: s.setting, Interval: s.interval()}
}

func (s *ucarp) interval() time.Duration {
	return time.Duration(s.base)*time.Second + time.Duration(s.skew)*time.Second/256
}

func (s *ucarp) missing() error { return installed("ucarp", "ucarp") }

// The scripts are those of its README, with iproute2.
const (
	ucarpUp   = "#!/bin/sh\nexec ip address add \"$2/32\" dev \"$1\"\n"
	ucarpDown = "#!/bin/sh\nexec ip address del \"$2/32\" dev \"$1\"\n"
)

// flags are the command line without what is this bench's business.
func (s *ucarp) flags(b *board, v variant) []string {
	list := []string{
		"--interface=eth0", "--srcip=" + b.Addr.Addr().String(), "--vhid=51", "--pass=secret", "--addr=" + vip.String(),
		"--upscript=" + filepath.Join(b.Dir, "up"), "--downscript=" + filepath.Join(b.Dir, "down"),
		"--shutdown", // leave in good order
		"--neutral",  // there is nothing to take down at the start
	}
	skew := s.skew + s.stagger*(b.of-b.Number)
	if s.base != 1 {
		list = append(list, fmt.Sprintf("--advbase=%d", s.base))
	}
	if v.preempt {
		// A board preempts one that advertises less often than itself.
		if s.stagger == 0 {
			skew += 10 * (b.of - b.Number)
		}
		list = append(list, "--preempt")
	}
	if skew > 0 {
		list = append(list, fmt.Sprintf("--advskew=%d", min(skew, 254)))
	}
	if s.ratio > 0 {
		list = append(list, fmt.Sprintf("--deadratio=%d", s.ratio))
	}
	return list
}

func (s *ucarp) text(b *board, v variant) string {
	here := strings.NewReplacer(b.Dir+"/", "")
	return "ucarp " + here.Replace(strings.Join(s.flags(b, v), " ")) +
		"\nup:\n" + ucarpUp + "down:\n" + ucarpDown
}

func (s *ucarp) configure(b *board, v variant) ([]string, error) {
	for name, text := range map[string]string{"up": ucarpUp, "down": ucarpDown} {
		if err := os.WriteFile(filepath.Join(b.Dir, name), []byte(text), 0o755); err != nil {
			return nil, err
		}
	}
	return append([]string{pathOf("ucarp"), "--facility=none"}, s.flags(b, v)...), nil
}

// daemon is the process that was started; there are others only while a script runs.
func (s *ucarp) daemon(b *board, all []int) []int {
	return append([]int{b.PID()}, without(all, b.PID())...)
}

// resign is SIGUSR2: the leader becomes a backup, and takes part again after 3 s.
func (s *ucarp) resign(b *board) (do, undo func(context.Context) error) {
	return func(context.Context) error { return b.Signal(syscall.SIGUSR2) }, nil
}

func (s *ucarp) quorum(int) int { return 1 }

func (s *ucarp) ready(context.Context, *rig) error { return nil }

// stableFor covers the time that a backup takes to find out about its leader, and
// the 3 s for which a board that was told to demote itself does nothing.
func (s *ucarp) stableFor() time.Duration { return max(5*s.interval(), 4*time.Second) }

func (s *ucarp) traffic() netns.Traffic { return netns.Traffic{Protocol: protocolVRRP} }

// without returns a list without one number.
func without(list []int, one int) (rest []int) {
	for _, n := range list {
		if n != one {
			rest = append(rest, n)
		}
	}
	return rest
}
