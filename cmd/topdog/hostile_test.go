package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/console"
	"topdog/internal/lab/judge"
	"topdog/internal/lab/netns"
	"topdog/wire"
)

// stranger is somebody on the LAN who sends what it likes.
type stranger struct {
	conn  *net.UDPConn
	group *net.UDPAddr
}

// newStranger opens a socket on a host. Everything leaves with the TTL that the boards accept.
func newStranger(t testing.TB, h *netns.Host, ttl int) *stranger {
	t.Helper()
	s := &stranger{group: net.UDPAddrFromAddrPort(wire.DefaultGroup)}
	must(t, h.Do(func() (err error) {
		if s.conn, err = net.ListenUDP("udp4", &net.UDPAddr{IP: h.Addr.Addr().AsSlice()}); err != nil {
			return err
		}
		raw, err := s.conn.SyscallConn()
		if err != nil {
			return err
		}
		var set error
		err = raw.Control(func(fd uintptr) {
			set = errors.Join(
				unix.SetsockoptInet4Addr(int(fd), unix.IPPROTO_IP, unix.IP_MULTICAST_IF, h.Addr.Addr().As4()),
				unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MULTICAST_TTL, ttl),
				unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_TTL, ttl),
			)
		})
		return errors.Join(err, set)
	}))
	t.Cleanup(func() { s.conn.Close() })
	return s
}

func (s *stranger) shout(t testing.TB, packet []byte) {
	t.Helper()
	if _, err := s.conn.WriteToUDP(packet, s.group); err != nil {
		t.Fatal(err)
	}
}

func (s *stranger) tell(t testing.TB, h *netns.Host, packet []byte) {
	t.Helper()
	to := netip.AddrPortFrom(h.Addr.Addr(), wire.DefaultGroup.Port())
	if _, err := s.conn.WriteToUDPAddrPort(packet, to); err != nil {
		t.Fatal(err)
	}
}

// recorder keeps what is sent to the group.
type recorder struct {
	conn *net.UDPConn
	done sync.WaitGroup

	mu      sync.Mutex
	packets [][]byte
}

func newRecorder(t testing.TB, h *netns.Host) *recorder {
	t.Helper()
	r := &recorder{}
	must(t, h.Do(func() (err error) {
		eth0, err := net.InterfaceByName(h.Interface)
		if err != nil {
			return err
		}
		r.conn, err = net.ListenMulticastUDP("udp4", eth0, net.UDPAddrFromAddrPort(wire.DefaultGroup))
		return err
	}))
	r.done.Go(func() {
		buf := make([]byte, 1500)
		for {
			n, _, err := r.conn.ReadFromUDP(buf)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			r.mu.Lock()
			r.packets = append(r.packets, append([]byte(nil), buf[:n]...))
			r.mu.Unlock()
		}
	})
	t.Cleanup(r.stop)
	return r
}

func (r *recorder) stop() {
	r.conn.Close()
	r.done.Wait()
}

func (r *recorder) recorded() [][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.packets[:len(r.packets):len(r.packets)]
}

// dropped adds up the packets that a board has dropped for one of these reasons.
func dropped(s console.Status, reasons ...wire.DropReason) (n uint64) {
	for _, r := range reasons {
		n += s.Counters.DroppedByReason[r.Identifier()]
	}
	return n
}

func TestGarbage(t *testing.T) {
	judge.RunAlone(t, func(t *judge.T) {
		c := newCluster(t, 3, nil)
		record := newRecorder(t, c.LAN.Client())
		c.start(c.boards...)
		leader := c.agree()
		c.untilTrue("packets of every board are recorded", func() bool { return len(record.recorded()) >= 20 })
		began := time.Now()
		noise := rand.New(rand.NewPCG(1, 2))
		near, far := newStranger(t, c.LAN.Client(), wire.TTL), newStranger(t, c.LAN.Client(), 64)
		packets := record.recorded()
		const rounds = 300
		for i := range rounds {
			random := make([]byte, noise.IntN(wire.MaxPacket))
			for j := range random {
				random[j] = byte(noise.Uint32())
			}
			good := packets[noise.IntN(len(packets))]
			truncated := good[:noise.IntN(len(good))]
			changed := append([]byte(nil), good...)
			changed[noise.IntN(len(changed))] ^= 1 << noise.IntN(8)
			longer := append(append([]byte(nil), good...), random...)
			for _, p := range [][]byte{random, truncated, changed, longer[:min(len(longer), wire.MaxPacket)]} {
				near.shout(t, p)
				near.tell(t, c.boards[i%3].Host, p)
			}
			far.shout(t, good)
			if i%10 == 0 {
				c.watchFor(time.Millisecond) // the receive queue is not what is tested
			}
		}
		for _, b := range c.boards {
			s := b.untilStatus("all is counted", func(s console.Status) string {
				if n := dropped(s, wire.TooShort, wire.BadVersion, wire.OtherGroup, wire.BadTag, wire.Unauthenticated); n < rounds {
					return "some of it is not counted"
				}
				if s.Counters.DroppedByReason[console.DroppedWrongTTL] < rounds/2 {
					return "what came from beyond the link is not counted"
				}
				return ""
			})
			t.Logf("%s: %v", b, s.Counters.DroppedByReason)
		}
		c.agreeOn(leader, c.boards...)
		c.undisturbed(began, leader)
	})
}

// Recordings of a leader that is dead by now, played from its own address: to
// boards that knew it, and to one that has just booted.
func TestReplay(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 3, nil)
		record := newRecorder(t, c.LAN.Client())
		c.start(c.boards...)
		dead := c.agree()
		// Make it claim while it is being recorded: RESIGN and COORDINATOR are what
		// somebody would want to play.
		if o := dead.topdog("resign"); o.status != 0 {
			t.Fatalf("resign: %v", o)
		}
		other := c.agree()
		if o := other.topdog("resign"); o.status != 0 {
			t.Fatalf("resign: %v", o)
		}
		dead = c.agree()
		c.untilTrue("enough is recorded", func() bool { return len(record.recorded()) >= 50 })
		record.stop()
		tape := record.recorded()

		dead.signal(syscall.SIGKILL)
		c.untilTakenFrom(dead)
		alive := c.except(dead)
		leader := c.agree(alive...)

		began := time.Now()
		player := newStranger(t, dead.Host, wire.TTL)
		for _, p := range tape {
			player.shout(t, p)
			for _, b := range alive {
				player.tell(t, b.Host, p)
			}
		}
		for _, b := range alive {
			s := b.untilStatusIs("the recordings are counted", func(s console.Status) bool {
				return dropped(s, wire.Replayed, wire.Duplicate, wire.Unproven, wire.Own) >= uint64(len(tape))
			})
			t.Logf("%s: %v", b, s.Counters.DroppedByReason)
		}
		c.agreeOn(leader, alive...)
		c.undisturbed(began, leader)

		// Everybody is dead, and a board boots while the recording is played over
		// and over: it leads as soon as it would without.
		for _, b := range alive {
			b.signal(syscall.SIGKILL)
			b.gone()
		}
		fresh := alive[0]
		ctx, stop := context.WithCancel(context.Background())
		var playing sync.WaitGroup
		playing.Go(func() {
			tick := time.NewTicker(2 * time.Millisecond)
			defer tick.Stop()
			for i := 0; ctx.Err() == nil; i++ {
				_, _ = player.conn.WriteToUDP(tape[i%len(tape)], player.group)
				<-tick.C
			}
		})
		defer playing.Wait()
		defer stop()
		booted := time.Now()
		fresh.start()
		c.agreeOn(fresh, fresh)
		if held := c.Holders.Since(booted).Spans; len(held) > 0 {
			t.Logf("the board that booted led %v after its start", held[len(held)-1].From.Sub(booted).Round(time.Millisecond))
		}
		s := fresh.untilStatusIs("the recordings are counted", func(s console.Status) bool { return dropped(s, wire.Unproven) > 0 })
		t.Logf("%s: %v", fresh, s.Counters.DroppedByReason)
		for _, known := range s.Boards {
			if !known.Self {
				t.Errorf("the board that booted believes in %s (%s), which is dead", known.ID, known.Role)
			}
		}
		c.twoHoldersAtMost(booted, 0)
	})
}
