package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"topdog/internal/boottime"
	"topdog/internal/lab/cluster"
	"topdog/internal/lab/judge"
	"topdog/internal/lab/netns"
)

// servedPage is `topdog page` on a board.
type servedPage struct {
	*board
	*cluster.Daemon
}

// pages starts the page of each board.
func (c *testCluster) pages() (all []*servedPage) {
	c.t.Helper()
	for _, b := range c.boards {
		d, err := c.NewDaemon(b.Number)
		must(c.t, err)
		must(c.t, d.Launch(c.program.Path, []string{"page", "--config", b.ConfigFile()}, netns.Env(c.program.Env...)))
		p := &servedPage{b, d}
		c.until(b.String()+" has a page", func() string {
			if code, text := p.get("/healthz"); code != http.StatusOK {
				return text
			}
			return ""
		})
		all = append(all, p)
	}
	return all
}

// get asks the page on its own board, since another one may not reach it.
func (p *servedPage) get(path string) (code int, text string) {
	conn, err := netns.Within(p.board.Host, func() (net.Conn, error) { return net.DialTimeout("tcp", "127.0.0.1:9254", time.Second) })
	if err != nil {
		return 0, err.Error()
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(2 * time.Second))
	fmt.Fprintf(conn, "GET %s HTTP/1.0\r\n\r\n", path)
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, err.Error()
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, strings.TrimSpace(string(body))
}

// leaders are the boards whose page says that they lead.
func leaders(pages []*servedPage) (all []*board, told string) {
	for _, p := range pages {
		code, text := p.get("/leader")
		if told += text + "\n"; code == http.StatusOK {
			all = append(all, p.board)
		}
	}
	return all, told
}

// leaseLeft is how long the lease of a leader lasts that answers so.
func leaseLeft(t testing.TB, text string) time.Duration {
	t.Helper()
	_, left, _ := strings.Cut(text, "its lease lasts for another ")
	d, err := time.ParseDuration(left)
	if err != nil {
		t.Fatalf("%q does not say how long the lease lasts", text)
	}
	return d
}

// Exactly one page says that its board leads, and it is the right one, also when the leader changes. A leader whose daemon stands
// still ceases to lead by its page when its lease is over, though nobody tells the page.
func TestPageOfTheLeader(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 3, nil)
		c.start(c.boards...)
		pages := c.pages()
		leader := c.agree()
		for range 50 {
			if all, told := leaders(pages); len(all) != 1 || all[0] != leader {
				t.Fatalf("%v lead, %s should:\n%s", all, leader, told)
			}
		}
		// Page and daemon count by one clock, which began with the machine: long before either, and longer ago than any lease lasts.
		const longest = 2 * heartbeat
		if up := boottime.Now().Sub(0); up < longest {
			t.Fatalf("this machine is up for %v: try again later", up)
		}
		if code, text := pages[leader.Number-1].get("/leader"); code != http.StatusOK || leaseLeft(t, text) > longest {
			t.Errorf("%d %s", code, text)
		}
		for _, p := range pages {
			if code, text := p.get("/follower"); (code == http.StatusOK) == (p.board == leader) {
				t.Errorf("%s, is the leader %v, /follower: %d %s", p.board, p.board == leader, code, text)
			}
			if code, text := p.get("/fit"); code != http.StatusOK {
				t.Errorf("%s, /fit: %d %s", p.board, code, text)
			}
		}
		pulled := time.Now()
		must(t, leader.Pull())
		c.until("another page says that its board leads", func() string {
			all, told := leaders(pages)
			if len(all) == 1 && all[0] != leader {
				return ""
			}
			return told
		})
		took := time.Since(pulled)
		t.Logf("after %v", took)
		if took > time.Second {
			t.Errorf("it took %v until the pages agreed", took)
		}
		must(t, leader.Plug())
		c.freezeLeaderOf(pages)
	})
}

// freezeLeaderOf has the daemon of the leader stand still: its page says that it leads for as long as its lease lasts, and no
// other page does so before that.
func (c *testCluster) freezeLeaderOf(pages []*servedPage) {
	c.t.Helper()
	leader := c.agree()
	p := pages[leader.Number-1]
	if code, text := p.get("/leader"); code != http.StatusOK {
		c.t.Fatal(code, text)
	}
	leader.signal(syscall.SIGSTOP)
	defer leader.signal(syscall.SIGCONT)
	frozen := time.Now()
	var last, next time.Time // when it last said that its board leads, and when another page had said so
	for time.Since(frozen) < 10*heartbeat || next.IsZero() && time.Since(frozen) < cluster.Timeout {
		for _, other := range pages {
			asked := time.Now()
			switch code, _ := other.get("/leader"); {
			case code != http.StatusOK:
			case other == p:
				last = asked
			case next.IsZero():
				next = time.Now()
			}
		}
	}
	c.t.Logf("it said so for %v, another one said so after %v", last.Sub(frozen), next.Sub(frozen))
	if next.IsZero() || last.After(next) {
		c.t.Errorf("two pages said at once that their boards lead, or none did")
	}
	if last.Sub(frozen) > 2*heartbeat {
		c.t.Errorf("%v after its daemon was frozen, the page said that it leads", last.Sub(frozen))
	}
}

// Strangers keep a thousand connections to the pages open and ask as fast as they can, while the leader's cable is
// pulled. Nothing moves before that, and the heir takes over after it.
func TestFloodedPages(t *testing.T) {
	judge.RunAlone(t, func(t *judge.T) {
		const silent, busy = 1000, 50
		c := newCluster(t, 3, nil)
		c.start(c.boards...)
		pages := c.pages()
		old := c.agree()
		began := time.Now()
		f := flood{client: c.LAN.Client(), stopped: make(chan struct{})}
		t.Cleanup(f.stop)
		for n := range busy {
			f.ask(c.boards[n%3], n)
		}
		for n := range silent {
			f.connect(c.boards[n%3])
		}
		c.watchFor(10 * heartbeat)
		c.undisturbed(began, old)
		for _, p := range pages {
			if code, text := p.get("/healthz"); code != http.StatusOK {
				t.Errorf("%s, flooded: %d %s", p.board, code, text)
			}
		}
		pulled := time.Now()
		must(t, old.Pull())
		c.untilTakenFrom(old)
		t.Logf("%d requests were answered; taken over after %v", f.answers.Load(), time.Since(pulled))
		f.stop()
		c.agree(c.except(old)...)
		c.twoHoldersAtMost(began, 0)
		if f.answers.Load() < busy {
			t.Errorf("%d requests were answered: that is no flood", f.answers.Load())
		}
	})
}

// flood is what strangers do to pages, from a host of the LAN.
type flood struct {
	client  *netns.Host
	stopped chan struct{}
	once    sync.Once
	running sync.WaitGroup
	answers atomic.Int64

	mu   sync.Mutex
	open []net.Conn
}

// dial connects to the page of a board.
func (f *flood) dial(b *board) (net.Conn, error) {
	conn, err := netns.Within(f.client, func() (net.Conn, error) {
		return net.DialTimeout("tcp", net.JoinHostPort(b.Addr.Addr().String(), "9254"), time.Second)
	})
	if err == nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.open = append(f.open, conn)
	}
	return conn, err
}

// connect opens a connection and says nothing. The page may close it.
func (f *flood) connect(b *board) { _, _ = f.dial(b) }

// ask asks until the flood is stopped.
func (f *flood) ask(b *board, n int) {
	path := []string{"/v1/status", "/leader", "/metrics", "/v1/history", "/topdog.js"}[n%5]
	f.running.Go(func() {
		for {
			select {
			case <-f.stopped:
				return
			default:
			}
			conn, err := f.dial(b)
			if err != nil {
				continue // its cable is pulled, perhaps
			}
			in := bufio.NewReader(conn)
			for err == nil {
				_ = conn.SetDeadline(time.Now().Add(time.Second))
				fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", path, b)
				var response *http.Response
				if response, err = http.ReadResponse(in, nil); err == nil {
					f.answers.Add(1)
					_, err = io.Copy(io.Discard, response.Body)
				}
			}
			conn.Close()
		}
	})
}

// stop ends it.
func (f *flood) stop() {
	f.once.Do(func() { close(f.stopped) })
	f.mu.Lock()
	for _, conn := range f.open {
		conn.Close()
	}
	f.mu.Unlock()
	f.running.Wait()
}
