package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"topdog/internal/lab/cluster"
)

// BenchmarkFootprint measures what three boards cost that do nothing but their
// duty: memory and processor time of the leader and of a follower, and packets.
func BenchmarkFootprint(b *testing.B) {
	const idle = 60 * time.Second
	c := newClusterOf(b, build(b), 3, settings{"log_level": quote("info")})
	c.start(c.boards...)
	leader := c.agree()
	c.watchFor(32 * heartbeat) // until nobody has anything to say but its duty
	c.asker.Close()            // its questions would cost the boards' kernels time
	follower := c.except(leader)[0]
	for b.Loop() {
		sent := c.sent()
		busyLeader, busyFollower := leader.cpu(), follower.cpu()
		c.watchFor(idle)
		percent := 100 / idle.Seconds()
		b.ReportMetric(percent*(leader.cpu()-busyLeader).Seconds(), "leader-cpu-%")
		b.ReportMetric(percent*(follower.cpu()-busyFollower).Seconds(), "follower-cpu-%")
		b.ReportMetric(float64(c.sent()-sent)/idle.Seconds(), "packets/s")
		b.ReportMetric(memoryOf(b, leader.PID()).rss, "leader-MB")
		b.ReportMetric(memoryOf(b, follower.PID()).rss, "follower-MB")
		b.ReportMetric(memoryOf(b, follower.PID()).anonymous, "follower-anonymous-MB")
		b.ReportMetric(0, "ns/op")
	}
}

// BenchmarkFootprintOfPage measures the memory of the leader of ten boards: of the daemon and of the
// holder with its dead man's switch, and again with its page beside them, at first while nobody looks, and then
// while a browser asks as pages do. Beside them runs a small program that serves HTTP and is asked the same. The board
// has a copy of the program for itself, as in life, since what processes share is divided among them.
func BenchmarkFootprintOfPage(b *testing.B) {
	const boards, asked = 10, 30 * time.Second
	c := newClusterOf(b, build(b), boards, settings{"log_level": quote("info")})
	one := c.board(1)
	one.set(settings{"priority": "200", "preempt": "true", "preempt_delay": quote("10ms")})
	one.Program.Path = filepath.Join(b.TempDir(), "topdog")
	must(b, os.Link(c.program.Path, one.Program.Path))
	must(b, os.Remove(c.program.Path))
	must(b, cluster.Build(b.Context(), c.program.Path))
	answers := filepath.Join(b.TempDir(), "answers")
	if out, err := exec.CommandContext(b.Context(), "go", "build", "-tags", "nethttpomithttp2", "-ldflags", "-s -w", "-o", answers, "./testdata/answers").CombinedOutput(); err != nil {
		b.Fatalf("build the small server: %v\n%s", err, out)
	}
	c.start(c.boards...)
	c.agree()
	c.watchFor(32 * heartbeat)
	c.asker.Close()
	report := func(name string, m memory) {
		b.ReportMetric(m.rss, name+"-MB")
		b.ReportMetric(m.pss, name+"-PSS-MB")
	}
	for b.Loop() {
		c.watchFor(asked)
		report("daemon", memoryOf(b, one.PID()))
		report("switch", memoryOf(b, one.holder()))
		report("starter", memoryOf(b, one.starter()))
		page, err := c.LAN.Board(1).Start(b.Context(), one.Program.Path, []string{"page", "--config", one.ConfigFile()})
		must(b, err)
		server, err := c.LAN.Board(1).Start(b.Context(), answers, []string{":9255"})
		must(b, err)
		c.watchFor(asked)
		report("page-calm", memoryOf(b, page.PID))
		served := c.browse(2, 1, 9254, page.PID, asked)
		report("daemon-beside-page", memoryOf(b, one.PID()))
		report("switch-beside-page", memoryOf(b, one.holder()))
		report("page", served.median())
		report("page-at-most", served.most())
		b.ReportMetric(served.median().private, "page-private-MB")
		page.Kill()
		small := c.browse(2, 1, 9255, server.PID, asked)
		report("small-server", small.median())
		b.ReportMetric(served.median().pss/small.median().pss, "page-PSS/small-server")
		server.Kill()
		b.ReportMetric(0, "ns/op")
	}
}

// browse loads the page of a board from another one, and asks for the status twice a second, as a
// browser in which the page is open. It returns the memory of the server while that goes on.
func (c *testCluster) browse(from, board, port int, server int, d time.Duration) (served memories) {
	c.t.Helper()
	client := http.Client{Timeout: time.Second, Transport: &http.Transport{DialContext: c.LAN.Board(from).Dial}}
	defer client.CloseIdleConnections()
	tag := map[string]string{}
	get := func(path string) {
		request, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, fmt.Sprintf("http://%s:%d%s", c.LAN.Board(board).Addr.Addr(), port, path), nil)
		must(c.t, err)
		request.Header.Set("If-None-Match", tag[path])
		answer, err := client.Do(request)
		must(c.t, err)
		_, err = io.Copy(io.Discard, answer.Body)
		must(c.t, errors.Join(err, answer.Body.Close()))
		if answer.StatusCode != http.StatusOK && answer.StatusCode != http.StatusNotModified {
			c.t.Fatalf("%s: %s", path, answer.Status)
		}
		tag[path] = answer.Header.Get("ETag")
	}
	c.until("the page answers", func() string {
		conn, err := c.LAN.Board(from).Dial(c.t.Context(), "tcp", fmt.Sprintf("%s:%d", c.LAN.Board(board).Addr.Addr(), port))
		if err != nil {
			return err.Error()
		}
		must(c.t, conn.Close())
		return ""
	})
	for _, path := range []string{"/", "/topdog.css", "/topdog.js", "/page.css", "/page.js", "/v1/history"} {
		get(path)
	}
	for ends := time.Now().Add(d); time.Now().Before(ends); c.watchFor(500 * time.Millisecond) {
		get("/v1/status")
		served = append(served, memoryOf(c.t, server))
	}
	return served
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

// memory is what a process has in memory, in MB (10^6 bytes): resident, the same with what
// several processes share divided among them, what no other process shares, and what is in no file.
type memory struct{ rss, pss, private, anonymous float64 }

// memories are those of one process at several times.
type memories []memory

func (m memories) median() memory { return m.sorted()[len(m)/2] }
func (m memories) most() memory   { return m.sorted()[len(m)-1] }

func (m memories) sorted() memories {
	return slices.SortedFunc(slices.Values(m), func(a, b memory) int { return cmp.Compare(a.pss, b.pss) })
}

// memoryOf reads smaps_rollup of proc_pid_smaps(5).
func memoryOf(t testing.TB, pid int) (m memory) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	must(t, err)
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		var into *float64
		switch name {
		case "Rss":
			into = &m.rss
		case "Pss":
			into = &m.pss
		case "Private_Clean", "Private_Dirty":
			into = &m.private
		case "Anonymous":
			into = &m.anonymous
		default:
			continue
		}
		kB, err := strconv.Atoi(strings.Fields(value)[0])
		must(t, err)
		*into += float64(kB) * 1024 / 1e6
	}
	if m.rss == 0 || m.pss == 0 {
		t.Fatalf("no memory of process %d in\n%s", pid, text)
	}
	return m
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

// build builds the program as it is released.
func build(b *testing.B) cluster.Program {
	b.Helper()
	path := filepath.Join(b.TempDir(), "topdog")
	must(b, cluster.Build(b.Context(), path))
	return cluster.Program{Path: path}
}
