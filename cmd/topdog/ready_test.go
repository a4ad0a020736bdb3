package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/internal/lab/cluster"
	"topdog/internal/lab/judge"
	"topdog/internal/lab/netns"
	"topdog/wire"
)

var (
	readyDraws = flag.Int("ready.draws", 24, "how many boards TestCheckKnowsWhatStarts draws")
	readySeed  = flag.Uint64("ready.seed", 28, "with which seed")
)

// site is a board with what may be wrong with it, and a neighbour.
type site struct {
	*cluster.Cluster
	board, other *cluster.Topdog
	ownKey       config.Key
	otherKey     config.Key
	undo         []func()
}

// trait is something that may be so of a site. It is drawn with a weight: most boards have few mistakes.
type trait struct {
	name   string
	weight int
	make   func(s *site) error
}

// as sets keys of the configuration.
func as(changes settings) func(*site) error {
	return func(s *site) error { return s.board.Set(changes) }
}

// keyFile replaces the key of the board by a file with that content.
func keyFile(content string, mode os.FileMode) func(*site) error {
	return func(s *site) error {
		if err := os.WriteFile(s.board.KeyFile(), []byte(content), mode); err != nil {
			return err
		}
		return os.Chmod(s.board.KeyFile(), mode)
	}
}

// second gives the board another interface, in the LAN or in none, with an address.
func second(kind func(parent int) netlink.Link, address string) func(*site) error {
	return func(s *site) error {
		return s.board.Do(func() error {
			eth0, err := netlink.LinkByName(s.board.Interface)
			if err != nil {
				return err
			}
			link := kind(eth0.Attrs().Index)
			if err := netlink.LinkAdd(link); err != nil {
				return err
			}
			addr, err := netlink.ParseAddr(address)
			if err != nil {
				return err
			}
			if err := netlink.AddrAdd(link, addr); err != nil {
				return err
			}
			return netlink.LinkSetUp(link)
		})
	}
}

func wifi(parent int) netlink.Link {
	return &netlink.Macvlan{LinkAttrs: netlink.LinkAttrs{Name: "wlan0", ParentIndex: parent}, Mode: netlink.MACVLAN_MODE_BRIDGE}
}

func tunnel(int) netlink.Link {
	return &netlink.Tuntap{LinkAttrs: netlink.LinkAttrs{Name: "wg0"}, Mode: netlink.TUNTAP_MODE_TUN}
}

// otherRuns starts the neighbour's daemon, and waits until it holds its address.
func otherRuns(s *site) error {
	if err := s.other.Run(); err != nil {
		return err
	}
	return cluster.Until("the neighbour to lead", func() string {
		status, err := s.other.Status()
		if err != nil {
			return err.Error()
		}
		if !status.Holding {
			return "it is " + status.Role
		}
		return ""
	})
}

func asItIs(*site) error { return nil }

// traits are what is drawn, one of each group.
var traits = [][]trait{
	{
		{"free address", 20, asItIs},
		{"with its prefix", 2, as(settings{"address": quote(vip24.String())})},
		{"/8", 1, as(settings{"address": quote(vip.String() + "/8")})},
		{"first of the network", 1, as(settings{"address": quote("10.77.0.0")})},
		{"last of the network", 1, as(settings{"address": quote("10.77.0.255")})},
		{"this board's own", 1, as(settings{"address": quote("10.77.0.1")})},
		{"the neighbour's own", 1, as(settings{"address": quote("10.77.0.2")})},
		{"another network", 1, as(settings{"address": quote("192.168.77.100")})},
		{"another network on eth0", 1, as(settings{"address": quote("192.168.77.100"), "interface": quote("eth0")})},
		{"two addresses", 1, as(settings{"address": `["10.77.0.100", "10.77.0.101"]`})},
		{"addresses in two networks", 1, as(settings{"address": `["10.77.0.100", "10.88.0.100"]`})},
		{"of the second interface, on eth0", 1, as(settings{"address": quote("10.88.0.100"), "interface": quote("eth0")})},
	},
	{
		{"any interface", 20, asItIs},
		{"eth0", 2, as(settings{"interface": quote("eth0")})},
		{"no such interface", 1, as(settings{"interface": quote("eth7")})},
		{"wlan0", 1, as(settings{"interface": quote("wlan0")})},
		{"a tunnel", 1, as(settings{"interface": quote("wg0")})},
		{"eth0 and wlan0", 2, as(settings{"interface": `["eth0", "wlan0"]`})},
	},
	{
		{"one interface", 12, asItIs},
		{"Wi-Fi in the same network", 1, second(wifi, "10.77.0.51/24")},
		{"Wi-Fi in another network", 2, second(wifi, "10.88.0.1/24")},
		{"a tunnel in the same network", 1, second(tunnel, "10.77.0.51/24")},
		{"a tunnel in another network", 1, second(tunnel, "10.88.0.1/24")},
	},
	{
		{"good key", 30, asItIs},
		{"no key file", 1, func(s *site) error { return os.Remove(s.board.KeyFile()) }},
		{"key for everybody", 1, func(s *site) error { return os.Chmod(s.board.KeyFile(), 0o644) }},
		{"garbage for a key", 1, keyFile("hello\n", 0o600)},
		{"empty key file", 1, keyFile("", 0o600)},
		{"without a key", 1, as(settings{"key_file": quote("none")})},
	},
	{
		{"alone", 8, asItIs},
		{"beside a leader", 8, otherRuns},
		{"beside one with another key", 1, func(s *site) error {
			if err := s.other.SetKey(s.otherKey); err != nil {
				return err
			}
			return otherRuns(s)
		}},
		{"beside one with its id", 1, func(s *site) error {
			if err := s.other.Set(settings{"id": quote("10.77.0.1")}); err != nil {
				return err
			}
			return otherRuns(s)
		}},
		{"beside one with its address", 1, func(s *site) error {
			if err := s.other.SetAddress(s.board.Addr); err != nil {
				return err
			}
			return otherRuns(s)
		}},
		{"beside one with another address", 1, func(s *site) error {
			if err := s.other.Set(settings{"address": quote("10.77.0.111")}); err != nil {
				return err
			}
			return otherRuns(s)
		}},
		{"the neighbour has the address", 1, func(s *site) error { return s.other.AddAddress(vip24) }},
	},
	{
		{"plugged", 24, asItIs},
		{"no cable", 1, func(s *site) error { return s.board.Pull() }},
		{"behind its firewall", 2, func(s *site) error {
			f, err := netns.Within(s.board.Host, netns.NewFirewall)
			if err == nil {
				s.undo = append(s.undo, func() { f.Close() })
			}
			return err
		}},
		{"no address of its own", 1, func(s *site) error { return s.board.DeleteAddress(s.board.Addr) }},
		{"its port is taken", 1, func(s *site) error {
			l, err := netns.Within(s.board.Host, func() (net.PacketConn, error) { return net.ListenPacket("udp4", wire.DefaultGroup.String()) })
			if err == nil {
				s.undo = append(s.undo, func() { l.Close() })
			}
			return err
		}},
		{"a stray address", 1, func(s *site) error { return s.board.AddAddress(netip.PrefixFrom(vip, 24)) }},
	},
	{
		{"no mistake", 30, asItIs},
		{"an unknown key", 1, as(settings{"hartbeat": quote("1s")})},
		{"a wrong value", 1, as(settings{"heartbeat": quote("1")})},
		{"algorithm bully", 1, as(settings{"algorithm": quote("bully")})},
		{"never leads", 1, as(settings{"priority": "0"})},
	},
}

// draw draws one trait of each group.
func draw(r *rand.Rand) (drawn []trait) {
	for _, group := range traits {
		sum := 0
		for _, t := range group {
			sum += t.weight
		}
		at := r.IntN(sum)
		for _, t := range group {
			if at -= t.weight; at < 0 {
				drawn = append(drawn, t)
				break
			}
		}
	}
	return drawn
}

// settled is for how long a daemon runs until it is looked whether it takes part: a board behind a firewall, and one whose address another
// machine has, find that out by and by.
const settled = 7 * time.Second

// TestCheckKnowsWhatStarts draws boards and what is wrong with them. What `topdog check` calls right leads or follows then, and what it calls
// wrong does not. scripts/nightly draws 200.
func TestCheckKnowsWhatStarts(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		netns.Reserve(t)
		r := rand.New(rand.NewPCG(*readySeed, 0))
		var running sync.WaitGroup
		places := make(chan struct{}, 8)
		began := time.Now()
		var mu sync.Mutex
		counts := map[bool]int{}
		for n := range *readyDraws {
			drawn := draw(r)
			places <- struct{}{}
			running.Go(func() {
				defer func() { <-places }()
				works, text, err := tryOut(t.Context(), drawn)
				mu.Lock()
				defer mu.Unlock()
				counts[works]++
				if err != nil {
					var names []string
					for _, d := range drawn {
						names = append(names, d.name)
					}
					t.Errorf("draw %d (%s): %v\n%s", n, strings.Join(names, ", "), err, text)
				}
			})
		}
		running.Wait()
		t.Logf("%d boards drawn, of which %d lead or follow, in %v", *readyDraws, counts[true], time.Since(began).Round(time.Second))
		if counts[true] == 0 || counts[false] == 0 {
			t.Errorf("the draws are of one kind only: %v", counts)
		}
	})
}

// tryOut makes a site, checks the board, and has it run. The error is that both contradict each other.
func tryOut(ctx context.Context, drawn []trait) (works bool, text string, err error) {
	built, err := cluster.New(2)
	if err != nil {
		return false, "", err
	}
	s := &site{Cluster: built}
	defer func() {
		for _, undo := range s.undo {
			undo()
		}
		s.Stop(cluster.Timeout)
		s.Close()
	}()
	if s.board, err = s.NewTopdog(itself(), 1, settings{"heartbeat": quote("100ms")}); err != nil {
		return false, "", err
	}
	if s.other, err = s.NewTopdog(itself(), 2, settings{"heartbeat": quote("100ms")}); err != nil {
		return false, "", err
	}
	for key, digits := range map[*config.Key]string{&s.ownKey: "01", &s.otherKey: "02"} {
		ring, err := config.ParseKeys("test", []byte(strings.Repeat(digits, wire.KeySize)))
		if err != nil {
			return false, "", err
		}
		*key = ring.Signs
	}
	for _, b := range []*cluster.Topdog{s.board, s.other} {
		if err := b.SetKey(s.ownKey); err != nil {
			return false, "", err
		}
	}
	for _, d := range drawn {
		if err := d.make(s); err != nil {
			return false, "", fmt.Errorf("%s: %w", d.name, err)
		}
	}

	var stdout, stderr bytes.Buffer
	p, err := s.board.Host.Start(ctx, itself().Path, []string{"check", "--json", "--config", s.board.ConfigFile()},
		netns.Env(itself().Env...), netns.Stdout(&stdout), netns.Stderr(&stderr))
	if err != nil {
		return false, "", err
	}
	status := 0
	if exit, failed := errors.AsType[*exec.ExitError](p.Wait()); failed {
		status = exit.ExitCode()
	}
	var report console.Report
	if err := json.Unmarshal(stdout.Bytes(), &report); err != nil {
		return false, "", fmt.Errorf("check: %w: %s%s", err, stdout.String(), stderr.String())
	}
	text = fmt.Sprintf("check ended with %d:\n%s%s", status, stdout.String(), stderr.String())
	if right := report.State != console.StateWrong; right != (status == 0) {
		return false, text, fmt.Errorf("it says %s, and ends with %d", report.State, status)
	}

	if err := s.board.Run(); err != nil {
		return false, text, err
	}
	select {
	case <-time.After(settled):
	case <-ctx.Done():
		return false, text, ctx.Err()
	}
	role := "it has ended"
	if s.board.Running() {
		now, err := s.board.Status()
		role = now.Role
		if err != nil {
			role = err.Error()
		}
		works = err == nil && (now.Role == console.RoleLeader && now.Holding || now.Role == console.RoleFollower)
	}
	text += "\nthe daemon: " + role + "\n" + s.board.Log.String()
	if works != (status == 0) {
		return works, text, fmt.Errorf("check says %s, and the daemon is: %s", report.State, role)
	}
	return works, text, nil
}
