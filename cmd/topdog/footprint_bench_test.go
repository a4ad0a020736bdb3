package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// BenchmarkFootprint measures what three boards cost that do nothing but their
// duty: memory and processor time of the leader and of a follower, and packets.
func BenchmarkFootprint(b *testing.B) {
	const idle = 60 * time.Second
	c := newClusterOf(b, build(b), 3, settings{"log_level": quote("info")})
	c.start(c.boards...)
	leader, _ := c.calm()
	c.asker.Close() // its questions would cost the boards' kernels time
	follower := c.except(leader)[0]
	for b.Loop() {
		sent := c.sent()
		busyLeader, busyFollower := leader.cpu(), follower.cpu()
		c.watchFor(idle)
		percent := 100 / idle.Seconds()
		b.ReportMetric(percent*(leader.cpu()-busyLeader).Seconds(), "leader-cpu-%")
		b.ReportMetric(percent*(follower.cpu()-busyFollower).Seconds(), "follower-cpu-%")
		b.ReportMetric(float64(c.sent()-sent)/idle.Seconds(), "packets/s")
		b.ReportMetric(leader.rss(), "leader-MB")
		b.ReportMetric(follower.rss(), "follower-MB")
		b.ReportMetric(0, "ns/op")
	}
}

// sent adds up the packets that all boards have sent.
func (c *testCluster) sent() (n uint64) {
	c.t.Helper()
	for _, b := range c.boards {
		s, err := b.Status()
		must(c.t, err)
		n += s.Counters.PacketsSent
	}
	return n
}

// cpu returns the processor time that the daemon has used (utime and stime of
// proc_pid_stat(5), in ticks of USER_HZ, which is 100 on all of Linux's platforms).
func (b *board) cpu() time.Duration {
	b.c.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", b.PID()))
	must(b.c.t, err)
	_, after, _ := strings.Cut(string(text), ") ") // the name may have spaces
	fields := strings.Fields(after)
	var ticks int
	for _, field := range fields[11:13] {
		n, err := strconv.Atoi(field)
		must(b.c.t, err)
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// rss returns the memory of the daemon that is in use, in MB (10^6 bytes).
func (b *board) rss() float64 {
	b.c.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", b.PID()))
	must(b.c.t, err)
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kB, err := strconv.Atoi(strings.Fields(value)[0])
			must(b.c.t, err)
			return float64(kB) * 1024 / 1e6
		}
	}
	b.c.t.Fatal("no VmRSS")
	return 0
}

// BenchmarkSize measures the programs for the boards as they are released.
func BenchmarkSize(b *testing.B) {
	dir := b.TempDir()
	if out, err := exec.Command("../../scripts/cross-build", dir).CombinedOutput(); err != nil {
		b.Fatalf("scripts/cross-build: %v\n%s", err, out)
	}
	for _, name := range []string{"arm64", "armv6"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				info, err := os.Stat(filepath.Join(dir, "topdog-"+name))
				must(b, err)
				b.ReportMetric(float64(info.Size())/1e6, "MB")
				b.ReportMetric(0, "ns/op")
			}
		})
	}
}
