package main

import (
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/console"
	"topdog/internal/lab/assert"
	"topdog/internal/lab/frame"
	"topdog/internal/lab/judge"
	"topdog/internal/lab/observe"
)

// reached asks each board for an echo at an address, in the name of nobody, whatever the client's kernel believes: a
// board that stands still has the address for a moment longer, and must not answer.
func (c *testCluster) reached(address netip.Addr) *observe.Prober {
	c.t.Helper()
	client := c.LAN.Client()
	socket, err := client.Capture(unix.ETH_P_ALL)
	must(c.t, err)
	nobody := slices.Clone(client.HardwareAddr)
	nobody[4] = 0xaa
	probe := observe.Probe{
		Address: address, MAC: nobody, From: []netip.Addr{client.Addr.Addr().Next()}, Boards: map[int]net.HardwareAddr{},
		ARP: observe.SolicitEvery, Echo: 2 * time.Millisecond,
	}
	if address.Is6() {
		probe.From[0] = client.Addr6.Addr().Next()
	}
	for _, b := range c.boards {
		probe.Boards[b.Number] = b.HardwareAddr
	}
	prober := observe.StartProber(socket, probe)
	c.t.Cleanup(prober.Close)
	return prober
}

// all sends a signal to the daemon of a board and to its holder.
func (b *board) all(sig syscall.Signal) {
	b.c.t.Helper()
	pids, err := b.Processes()
	must(b.c.t, err)
	b.Log.Note("%v to all", sig)
	b.mayEnd = b.mayEnd || sig == syscall.SIGKILL
	b.withoutHolder = b.withoutHolder || sig == syscall.SIGKILL
	for _, pid := range pids {
		must(b.c.t, unix.Kill(pid, sig))
	}
}

// bothKilled is the one fault after which two boards may answer: with hold = "lifetime" the addresses stay on the interface when
// the fence goes with the last process, and if the lease was over before that, another board leads already.
const bothKilled = "daemon and holder killed"

// TestIPv6Follows: the IPv6 address is where the IPv4 address is, whatever happens to the leader, and no two boards answer
// at either.
func TestIPv6Follows(t *testing.T) {
	t.Parallel()
	for _, hold := range holds {
		t.Run(hold, judge.Of(func(t *judge.T) {
			c := newClusterWithIPv6(t, 3, settings{"hold": quote(hold)})
			c.start(c.boards...)
			c.agree()
			probers := map[netip.Addr]*observe.Prober{vip: c.reached(vip), vip6: c.reached(vip6)}
			for _, fault := range []struct {
				name       string
				begin, end func(*board)
				two        time.Duration // that the kernels have the addresses on two boards
			}{
				{"cable", func(b *board) { must(t, b.Pull()) }, func(b *board) { must(t, b.Plug()) }, 0},
				{"daemon killed", func(b *board) { b.signal(syscall.SIGKILL) }, (*board).restart, atOnce()},
				{bothKilled, func(b *board) { b.all(syscall.SIGKILL) }, (*board).restart, lifetime},
				{"stopped", func(b *board) { b.signal(syscall.SIGTERM) }, (*board).restart, 0},
				{"daemon frozen", func(b *board) { b.signal(syscall.SIGSTOP) }, func(b *board) { b.signal(syscall.SIGCONT) }, atOnce()},
				{"daemon and holder frozen", func(b *board) { b.all(syscall.SIGSTOP) }, func(b *board) { b.all(syscall.SIGCONT) }, lifetime},
			} {
				t.Run(fault.name, func(*judge.T) {
					old, began := c.agree(), time.Now()
					fault.begin(old)
					c.untilTakenFrom(old)
					leader := c.agree(c.except(old)...)
					fault.end(old)
					c.agree(c.boards...)
					c.twoHoldersAtMost(began, fault.two)
					for address, prober := range probers {
						if two := prober.Since(began).Overlap(); two > 0 && !(fault.name == bothKilled && hold == "lifetime") {
							t.Errorf("%s and %s both answered at %v for %v", old, leader, address, two)
						}
					}
				})
				if t.Failed() {
					return
				}
			}
		}))
	}
}

// restart starts a daemon that has ended.
func (b *board) restart() {
	b.c.t.Helper()
	b.gone()
	b.start()
	b.withoutHolder = false
}

// TestIPv6ClientIsTold: the next leader announces the address as RFC 4861 wants it (section 7.2.6), so that a client asks it
// without having asked who has the address.
func TestIPv6ClientIsTold(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newClusterWithIPv6(t, 2, nil)
		c.start(c.boards...)
		old := c.agree()
		next := c.except(old)[0]

		socket, err := c.LAN.Client().Capture(unix.ETH_P_ALL) // what it sends, too
		must(t, err)
		var mu sync.Mutex
		var told []frame.Neighbour
		asked := false
		var running sync.WaitGroup
		running.Go(func() {
			for f, err := socket.Read(); err == nil; f, err = socket.Read() {
				packet, _ := f.Packet()
				n, ok := packet.Neighbour()
				mu.Lock()
				switch {
				case !ok || n.Target != vip6:
				case n.Advertises && packet.To == frame.AllNodes && f.IsFrom(next.HardwareAddr):
					n.MAC = slices.Clone(n.MAC)
					told = append(told, n)
				case f.Outgoing && !n.Advertises && packet.To.IsMulticast():
					asked = true
				}
				mu.Unlock()
			}
		})
		must(t, old.Pull())
		c.answeredBy(next)
		socket.Close()
		running.Wait()
		if asked {
			t.Error("the client has asked who has the address")
		}
		if len(told) == 0 {
			t.Fatal("the client was told nothing")
		}
		assert.Equal(t, frame.Neighbour{Advertises: true, Flags: frame.NeighbourOverride, Target: vip6, MAC: next.HardwareAddr}, told[0],
			"what it was told")
	})
}

// TestForeignIPv6: a machine that is no board has the IPv6 address when the group starts, and it is found. When it has gone, and
// comes back while a board leads, it is a rival, which the leader names and answers.
func TestForeignIPv6(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newClusterWithIPv6(t, 2, nil)
		foreign := c.LAN.Client()
		floating := netip.PrefixFrom(vip6, 128)
		must(t, foreign.AddAddress(floating))
		c.start(c.boards...)
		c.until("somebody finds the machine", func() string {
			for _, b := range c.boards {
				s, err := b.Status()
				if err == nil && slices.ContainsFunc(s.Problems, func(p console.Problem) bool {
					return containsAll(p.Text, []string{foreign.HardwareAddr.String(), vip6.String()})
				}) {
					return ""
				}
			}
			return "nobody complains of it"
		})
		c.watchFor(2 * time.Second) // long enough for everybody to try
		for _, held := range []observe.Timeline{c.Holders.Since(c.began), c.Holders6.Since(c.began)} {
			if len(held.Spans) > 0 {
				t.Errorf("an address was claimed though a foreign machine has one: %v", held.Spans)
			}
		}
		must(t, foreign.DeleteAddress(floating))
		leader := c.agree()
		leader.untilNoProblems()

		forger := c.except(leader)[0]
		forger.signal(syscall.SIGTERM)
		forger.ended()
		socket, err := forger.Capture(0)
		must(t, err)
		t.Cleanup(func() { socket.Close() })
		claim := frame.Neighbour{Advertises: true, Flags: frame.NeighbourOverride, Target: vip6, MAC: forger.HardwareAddr}
		for range 3 {
			must(t, socket.Send(claim.Packet(vip6, frame.AllNodes, frame.MulticastMAC(frame.AllNodes)).Frame()))
			c.answeredBy(leader)
		}
		leader.untilStatus("it names the forger", func(s console.Status) string {
			must(t, socket.Send(claim.Packet(vip6, frame.AllNodes, frame.MulticastMAC(frame.AllNodes)).Frame()))
			for _, p := range s.Problems {
				if containsAll(p.Text, []string{forger.HardwareAddr.String(), "answers for " + vip6.String()}) {
					return ""
				}
			}
			return "it does not"
		})
	})
}
