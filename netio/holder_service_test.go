package netio

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/judge"
)

// serviceVariable makes the test binary a holder that is a service: the path of its socket, a colon, and who may ask.
const serviceVariable = "TOPDOG_TEST_HOLDER"

// attendService is the test binary as such a holder. SIGTERM ends it.
func attendService(value string) error {
	path, uid, _ := strings.Cut(value, ":")
	id, err := strconv.Atoi(uid)
	if err != nil {
		return err
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	return ServeHolder(ctx, ServiceOptions{
		Path: path, UID: id, GID: id, Ready: func() { fmt.Println("ready") },
		Options: func() ([]HolderOptions, error) {
			if several, err := os.ReadFile(path + groupsSuffix); err == nil {
				return groupOptions(HoldTUN)[:len(several)], nil
			}
			return []HolderOptions{{Interface: "eth0", Floating: []netip.Addr{testVIP}, Group: testGroup, Method: HoldTUN}}, nil
		},
		Alive: func() { fmt.Println("alive") }, AliveEvery: 50 * time.Millisecond,
	})
}

// service is a holder on a board that is a service.
type testService struct {
	*board
	*subprocess
	path string
}

func startService(t testing.TB, b *board, uid int) *testService {
	t.Helper()
	dir, err := os.MkdirTemp("", "holder")
	must(t, err)
	must(t, os.Chmod(dir, 0o755))
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := &testService{board: b, path: filepath.Join(dir, "socket")}
	s.subprocess = startProcess(t, b, fmt.Sprintf("%s=%s:%d", serviceVariable, s.path, uid))
	s.hears(t, "ready")
	return s
}

// hears waits until the holder says something.
func (s *testService) hears(t testing.TB, text string) {
	t.Helper()
	for s.line(t) != text {
	}
}

// dial connects as a daemon does, and prepares to hold the address.
func (s *testService) dial(t testing.TB) *guard {
	t.Helper()
	g, err := on(s.board, func() (g *guard, err error) {
		g = &guard{}
		if g.Holder, err = DialHolder(s.path, 0); err != nil {
			return nil, err
		}
		return g, g.prepare()
	})
	must(t, err)
	t.Cleanup(func() { g.close() })
	return g
}

// lead has the daemon open the sockets of the group, and hold the address.
func (s *testService) lead(t testing.TB, g *guard) *Conn {
	t.Helper()
	conn := s.openSockets(t, g)
	must(t, g.Prepare(PreparedResign{Datagram: testResign, To: []netip.AddrPort{testGroup}}))
	g.arm()
	must(t, g.floating.Acquire())
	return conn
}

// TestHolderServesOneAfterTheOther: the holder keeps the port while there is no daemon. The next one is given the same
// sockets, and hears nothing of the time before.
func TestHolderServesOneAfterTheOther(t *testing.T) {
	judge.RunTogether(t, testHolderServesOneAfterTheOther)
}

func testHolderServesOneAfterTheOther(t *judge.T) {
	needTUN(t)
	l := newLAN(t, 2)
	b, other := l.boards[0], l.boards[1]
	neighbour := other.inbox(t)
	s := startService(t, b, os.Getuid())
	for round := range 3 {
		g := s.dial(t)
		conn := s.lead(t, g)
		in := inboxOf(t, "board", conn)
		said := fmt.Sprintf("round %d", round)
		eventually(t, "the board hears its neighbour", func() bool {
			must(t, neighbour.Multicast([]byte(said)))
			return len(in.got) > 0
		})
		if got, want := <-in.got, heardAs("multicast", []byte(said), other.addr); !strings.HasPrefix(got, want) {
			t.Errorf("heard %s, want %s", got, want)
		}
		_, err := on(b, func() (*Holder, error) { return DialHolder(s.path, 0) })
		assert.ErrorIs(t, err, unix.EADDRINUSE, "a second daemon")
		if round == 1 {
			must(t, g.Close()) // as if it were killed
		} else {
			g.disarm()
			must(t, g.floating.Release())
			must(t, g.close())
		}
		must(t, conn.Close())
		eventually(t, "the address is gone", func() bool { return !b.has(t, "", testVIP) })
		must(t, neighbour.Multicast([]byte("to nobody")))
		_, err = b.open(b.options())
		assert.ErrorIs(t, err, unix.EADDRINUSE, "somebody else opens the port")
	}
	s.hears(t, "alive")
	must(t, s.cmd.Process.Signal(syscall.SIGTERM))
	must(t, s.cmd.Wait())
	resigned := 0
	for len(neighbour.got) > 0 {
		if strings.HasPrefix(<-neighbour.got, heardAs("multicast", testResign, b.addr)) {
			resigned++
		}
	}
	assert.Is(t, 1+len(resignPauses), resigned, "how often the RESIGN of the daemon that was killed was heard")
}

// TestHolderServesTheDaemonOnly: who else connects is told so.
func TestHolderServesTheDaemonOnly(t *testing.T) { judge.RunTogether(t, testHolderServesTheDaemonOnly) }

func testHolderServesTheDaemonOnly(t *judge.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can be somebody else")
	}
	b := newLAN(t, 1).boards[0]
	const daemon, stranger = 4711, 4712
	s := startService(t, b, daemon)
	for _, who := range []struct {
		uid, gid int
		refused  string
	}{
		{0, 0, ""}, {daemon, daemon, ""},
		{stranger, stranger, "permission denied: only root and the group of the daemon may"},
		{stranger, daemon, "the holder serves the daemon alone"},
	} {
		h, err := as(who.uid, who.gid, func() (*Holder, error) { return DialHolder(s.path, 0) })
		assert.ErrorContains(t, err, who.refused, "user %d of group %d", who.uid, who.gid)
		if err == nil {
			must(t, h.Close())
		}
	}
	_, err := DialHolder(s.path+"2", 0)
	assert.ErrorIs(t, err, os.ErrNotExist, "no holder")
	assert.ErrorContains(t, err, "does topdog-holder.service run?", "no holder")
}

// TestGatewayByTheHolder: a daemon without rights has its holder ask the gateway.
func TestGatewayByTheHolder(t *testing.T) { judge.RunTogether(t, testGatewayByTheHolder) }

func testGatewayByTheHolder(t *judge.T) {
	l := newLAN(t, 2)
	b, gateway := l.boards[0], l.boards[1]
	s := startService(t, b, os.Getuid())
	g := s.dial(t)
	ask := func(iface string, within time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		return g.AskGateway(ctx, iface)
	}
	assert.ErrorContains(t, ask("eth0", time.Second), "there is no default gateway on this interface", "without a gateway")
	must(t, b.handle.RouteAdd(&netlink.Route{LinkIndex: b.link(t, "eth0").Index, Gw: gateway.addr.AsSlice()}))
	must(t, ask("eth0", testTimeout))
	assert.ErrorContains(t, ask("lo", time.Second), "the holder works on eth0 and not on lo", "another interface")
	must(t, gateway.handle.LinkSetDown(&netlink.Veth{LinkAttrs: *gateway.link(t, "eth0")}))
	assert.ErrorContains(t, ask("eth0", 20*time.Millisecond), "does not answer", "a gateway that is gone")
	assert.Is(t, false, g.isLost(), "the daemon has lost its holder by that")
}

// asksGateway asks a gateway that does not answer, so many times at once, until the holder is closed.
func asksGateway(t *judge.T, g *guard, times int) {
	t.Helper()
	for range times {
		go func() { _ = g.AskGateway(context.Background(), "eth0") }()
	}
}

// TestGatewayKeepsNobodyWaiting: the next daemon is served at once although a gateway that does not answer is asked for the former one.
func TestGatewayKeepsNobodyWaiting(t *testing.T) { judge.RunTogether(t, testGatewayKeepsNobodyWaiting) }

func testGatewayKeepsNobodyWaiting(t *judge.T) {
	b := newLAN(t, 1).boards[0]
	must(t, b.handle.RouteAdd(&netlink.Route{LinkIndex: b.link(t, "eth0").Index, Gw: net.IP{10, 77, 0, 99}}))
	s := startService(t, b, os.Getuid())
	g := s.dial(t)
	asksGateway(t, g, 1)
	eventually(t, "the gateway is asked", func() bool {
		sockets, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/packet", s.cmd.Process.Pid))
		must(t, err)
		return strings.Count(string(sockets), "\n") > 1
	})
	must(t, g.Close())
	eventually(t, "the next daemon is served", func() bool {
		next, err := on(b, func() (*Holder, error) { return DialHolder(s.path, 0) })
		if err != nil {
			return false
		}
		must(t, next.Close())
		return true
	})
}

// TestCheckerKeepsNobodyWaiting: a checker that somebody has taken over has the daemon ask as often as that asks for it. The
// daemon renews the addresses all the same, and hears that the holder is alive.
func TestCheckerKeepsNobodyWaiting(t *testing.T) { judge.RunTogether(t, testCheckerKeepsNobodyWaiting) }

func testCheckerKeepsNobodyWaiting(t *judge.T) {
	b := newGuardedBoard(t, HoldLifetime)
	must(t, b.handle.RouteAdd(&netlink.Route{LinkIndex: b.link(t, "eth0").Index, Gw: net.IP{10, 77, 0, 99}}))
	asksGateway(t, b.guard, 32)        // 16 stand for probes
	time.Sleep(100 * time.Millisecond) // until they are asked
	_, err := b.floating.Renew()
	must(t, err)
	_, alive := b.alive(answerWithin)
	assert.Is(t, true, alive, "the holder is alive")
}

// TestHolderStops: a service manager stops the holder while it serves a daemon. The daemon knows, and the others are told.
func TestHolderStops(t *testing.T) { judge.RunTogether(t, testHolderStops) }

func testHolderStops(t *judge.T) {
	needTUN(t)
	l := newLAN(t, 2)
	b, other := l.boards[0], l.boards[1]
	neighbour := other.inbox(t)
	s := startService(t, b, os.Getuid())
	g := s.dial(t)
	defer s.lead(t, g).Close()
	must(t, s.cmd.Process.Signal(syscall.SIGTERM))
	receive(t, "the end of the holder", g.Lost())
	must(t, s.cmd.Wait())
	assert.Is(t, false, b.has(t, "", testVIP), "the address is there")
	assert.Is(t, true, g.fired(), "the daemon knows")
	if got := receive(t, "the RESIGN", neighbour.got); !strings.HasPrefix(got, heardAs("multicast", testResign, b.addr)) {
		t.Errorf("heard %s", got)
	}
}

// as connects as another user of another group, and of no other.
func as(uid, gid int, dial func() (*Holder, error)) (*Holder, error) {
	return onOwnThread(func() (*Holder, error) {
		_, _, none := unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0)
		_, _, group := unix.RawSyscall(unix.SYS_SETRESGID, uintptr(gid), uintptr(gid), uintptr(gid))
		_, _, user := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid))
		if none+group+user != 0 {
			return nil, fmt.Errorf("become somebody else: %v, %v, %v", none, group, user)
		}
		return dial()
	})
}
