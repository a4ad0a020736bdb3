package netio

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/judge"
	"topdog/wire"
)

// groupsSuffix is what the path of a service's socket and that of its configuration differ by, if it serves several groups: the
// file has a byte for each.
const groupsSuffix = ".groups"

// groupOptions are those of a holder of two groups.
func groupOptions(method HoldMethod) (groups []HolderOptions) {
	tags := []wire.GroupTag{testTag, testTag + 1}
	for i, tag := range tags {
		groups = append(groups, HolderOptions{
			Interface: "eth0", Floating: []netip.Addr{netip.AddrFrom4([4]byte{10, 77, 0, byte(101 + i)})}, Group: testGroup,
			Tag: tag, Others: []wire.GroupTag{tags[1-i]}, Method: method,
		})
	}
	return groups
}

// groupGuard is what the daemon of one group has.
type groupGuard struct {
	*guard
	HolderOptions
	in *inbox
}

func (g *groupGuard) address() netip.Addr { return g.Floating[0] }
func (g *groupGuard) said() []byte        { return ofGroup(g.Tag, 40) }
func (g *groupGuard) resign() []byte      { return ofGroup(g.Tag, 41) }

// lead has the daemon of a group open its sockets, and hold the address.
func (b *board) lead(t testing.TB, h *Holder, o HolderOptions) *groupGuard {
	t.Helper()
	g := &groupGuard{guard: &guard{Holder: h}, HolderOptions: o}
	t.Cleanup(func() { g.close() })
	conn, err := on(b, func() (*Conn, error) {
		if err := g.prepareTo(g.address()); err != nil {
			return nil, err
		}
		return g.OpenSockets(b.options(g.address()))
	})
	must(t, err)
	g.in = inboxOf(t, fmt.Sprintf("group %x", g.Tag), conn)
	must(t, g.Prepare(PreparedResign{Datagram: g.resign(), To: []netip.AddrPort{testGroup}}))
	g.arm()
	must(t, g.floating.Acquire())
	assert.Is(t, true, b.has(t, "", g.address()), "%s has its address", g.in.name)
	return g
}

// leadGroups starts a holder of two groups, which have their addresses.
func (b *board) leadGroups(t testing.TB) (groups []*groupGuard) {
	t.Helper()
	needTUN(t)
	options := groupOptions(HoldTUN)
	holders, err := on(b, func() ([]*Holder, error) { return StartHolders(holderCommand, options...) })
	must(t, err)
	for i, h := range holders {
		groups = append(groups, b.lead(t, h, options[i]))
	}
	return groups
}

// wantSorted wants each group to hear what is said to it, and only that, if it is said to all boards, and one of the groups to
// hear what is said to this board alone.
func wantSorted(t testing.TB, from *inbox, groups ...*groupGuard) {
	t.Helper()
	for path, say := range map[string]func([]byte) error{"multicast": from.Multicast, "broadcast": from.Broadcast} {
		for _, g := range groups {
			eventually(t, "the bridge forwards", func() bool { must(t, say(g.said())); return len(g.in.got) > 0 })
		}
		for round := range 2 { // so that each hears something after what the other one was told
			for _, g := range groups {
				must(t, say(append(g.said(), byte('0'+round))))
			}
		}
		for _, g := range groups {
			for last := ""; !strings.HasPrefix(last, heardAs(path, append(g.said(), '1'), from.options.Local)); {
				last = receive(t, "what was said last", g.in.got)
				if !strings.HasPrefix(last, strings.TrimSuffix(fmt.Sprintf("%s %q", path, g.said()), `"`)) {
					t.Errorf("%s hears %s", g.in.name, last)
				}
			}
		}
	}
	for _, g := range groups {
		const times = 5
		for range times {
			must(t, from.Unicast(g.said(), g.in.self))
		}
		for range times {
			eventually(t, "one of the groups hears what is said to the board", func() bool {
				for _, other := range groups {
					select {
					case <-other.in.got:
						return true
					default:
					}
				}
				return false
			})
		}
	}
}

// wantAll wants a group that alone has a daemon to hear all that is said to this board: of sockets that share
// an address, the kernel gives it to the one that was opened last.
func wantAll(t testing.TB, from *board, g *groupGuard) {
	t.Helper()
	say := func(data []byte) { send(t, openForeign(t, from), 255, data, g.in.self) }
	for len(g.in.got) > 0 {
		<-g.in.got
	}
	eventually(t, "the holder knows that the other daemon has ended", func() bool { say(g.said()); return len(g.in.got) > 0 })
	for round := range 8 {
		data := append(g.said(), byte('0'+round))
		say(data)
		for last := ""; !strings.HasPrefix(last, heardAs("unicast", data, from.addr)); {
			last = receive(t, "what is said to "+g.in.name+" alone", g.in.got)
		}
	}
}

// wantNoPort wants that somebody else cannot have the port.
func (b *board) wantNoPort(t testing.TB) {
	t.Helper()
	_, err := b.open(b.options())
	assert.ErrorIs(t, err, unix.EADDRINUSE, "somebody else opens the port")
	bound, err := on(b, func() (int, error) { return bindAs(b.addr), nil })
	must(t, err)
	assert.Is(t, 0, bound, "how often another socket could be bound to the port")
}

// wantResigned wants a neighbour to hear the RESIGN of a group, and none of others before.
func wantResigned(t testing.TB, neighbour *inbox, g *groupGuard, from netip.Addr) {
	t.Helper()
	got := receive(t, "the RESIGN", neighbour.got)
	assert.Is(t, true, strings.HasPrefix(got, heardAs("multicast", g.resign(), from)), "the RESIGN of %s; heard %s", g.in.name, got)
}

// TestGroupsOfOneHolder: each group of a board has its own address, lease and sockets, and one can end while the other goes on.
func TestGroupsOfOneHolder(t *testing.T) { judge.RunTogether(t, testGroupsOfOneHolder) }

func testGroupsOfOneHolder(t *judge.T) {
	l := newLAN(t, 2)
	b, neighbour := l.boards[0], l.boards[1].inbox(t)
	groups := b.leadGroups(t)
	one, other := groups[0], groups[1]
	wantSorted(t, neighbour, groups...)
	for _, g := range groups {
		assert.Is(t, 0, g.in.Drops().Overflows, "packets without room: those of the other group are none")
	}
	b.wantNoPort(t)
	one.extend(Now() + time.Millisecond)
	eventually(t, "the address is gone whose lease is over", func() bool { return !b.has(t, "", one.address()) })
	assert.Is(t, true, b.has(t, "", other.address()) && !other.fired(), "the other group has its address")
	wantResigned(t, neighbour, one, b.addr)
	wantSorted(t, neighbour, groups...) // the sockets stay
	must(t, one.close())
	eventually(t, "what is said to the board arrives at the group that is left", func() bool {
		must(t, neighbour.Unicast(other.said(), other.in.self))
		return len(other.in.got) > 0
	})
	for len(other.in.got) > 0 {
		<-other.in.got
	}
	assert.Is(t, true, b.has(t, "", other.address()) && !other.isLost(), "the other group has its address")
	b.wantNoPort(t)
	must(t, other.Close()) // as if the daemon were killed
	assert.Is(t, false, b.has(t, "", other.address()), "the other address is there")
	for len(neighbour.got) > 0 {
		if strings.HasPrefix(<-neighbour.got, heardAs("multicast", other.resign(), b.addr)) {
			return
		}
	}
	t.Error("the RESIGN of the other group was not heard")
}

// TestHolderOfGroupsKilled: with the holder go the addresses of all groups, and the port.
func TestHolderOfGroupsKilled(t *testing.T) { judge.RunTogether(t, testHolderOfGroupsKilled) }

func testHolderOfGroupsKilled(t *judge.T) {
	b := newLAN(t, 1).boards[0]
	groups := b.leadGroups(t)
	must(t, syscall.Kill(groups[0].PID(), syscall.SIGKILL))
	for _, g := range groups {
		receive(t, "the end of the holder", g.Lost())
		eventually(t, "the address is gone", func() bool { return !b.has(t, "", g.address()) })
		must(t, g.in.Close())
		_ = g.close()
	}
	conn, err := b.open(b.options())
	must(t, err)
	must(t, conn.Close())
}

// TestAdmissionOfGroups: the programs of two groups pass each other's packets, and nothing else.
func TestAdmissionOfGroups(t *testing.T) { judge.RunTogether(t, testAdmissionOfGroups) }

func testAdmissionOfGroups(t *judge.T) {
	const user = 64001
	l := newLAN(t, 2)
	b := l.boards[0]
	groups := b.leadGroups(t)
	for _, g := range groups {
		if why := g.in.Unlimited(); why != "" {
			t.Skipf("the kernel attaches no program: %s", why)
		}
	}
	wantSorted(t, l.boards[1].inbox(t), groups...)
	stranger, users := openForeign(t, l.boards[1]), b.listen(t, netip.AddrPortFrom(b.addr, 0))
	raw, err := users.SyscallConn()
	must(t, err)
	must(t, raw.Control(func(fd uintptr) { must(t, unix.Fchown(int(fd), user, -1)) }))
	for i, g := range groups {
		other := groups[1-i]
		wantDropped(t, g.in.Conn, Drops{LocalUser: 1}, func() { send(t, users, 255, g.said(), testGroup) })
		hold := netip.AddrPortFrom(g.address(), testGroup.Port())
		wantDropped(t, g.in.Conn, Drops{OtherGroup: 1}, func() { send(t, stranger, 255, other.said(), hold) })
		send(t, stranger, 255, g.said(), hold)
		receive(t, "what is said to the group's own address", g.in.got)
	}
	dropped := func() (n uint64) { return groups[0].in.Drops().OtherGroup + groups[1].in.Drops().OtherGroup }
	before := dropped()
	send(t, stranger, 255, ofGroup(testTag+2, 40), groups[0].in.self)
	eventually(t, "a packet of no group of this board is dropped", func() bool { return dropped() == before+1 })
}

// TestAddressDoesNotWaitForSockets: a daemon is gone while another group is opening its sockets, which may take long.
func TestAddressDoesNotWaitForSockets(t *testing.T) {
	judge.RunTogether(t, testAddressDoesNotWaitForSockets)
}

func testAddressDoesNotWaitForSockets(t *judge.T) {
	b := newLAN(t, 1).boards[0]
	var sockets boardSockets
	o := groupOptions(HoldLifetime)[0]
	b.do(t, func() error {
		s := newSession(o, sockets.of(o.Tag))
		s.trusted, s.lifetime = true, longLease
		ours, theirs, err := newConnection()
		must(t, err)
		unix.Close(ours)
		s.main = os.NewFile(uintptr(theirs), "main")
		if _, _, err := s.makeFence(); err != nil {
			return err
		}
		if _, err := s.openFloating(floatingRequest{"eth0", []netip.Prefix{netip.PrefixFrom(o.Floating[0], 32)}}); err != nil {
			return err
		}
		s.fence.Begin(NoEnd)
		if _, err := s.acquire(); err != nil {
			return err
		}
		sockets.mu.Lock()
		ended := make(chan struct{})
		go func() { s.daemonEnded(); close(ended) }()
		eventually(t, "the address is gone", func() bool { return !b.has(t, "", o.Floating[0]) })
		sockets.mu.Unlock()
		receive(t, "the end of the session", ended)
		s.close()
		return nil
	})
}

// TestServiceOfGroups: the holder that is a service keeps the sockets of all groups from one daemon to the next, but for those
// that are in the configuration no more: there, nobody would hear what is said to the board.
func TestServiceOfGroups(t *testing.T) { judge.RunTogether(t, testServiceOfGroups) }

func testServiceOfGroups(t *judge.T) {
	needTUN(t)
	l := newLAN(t, 2)
	b, neighbour := l.boards[0], l.boards[1].inbox(t)
	s := startService(t, b, os.Getuid())
	t.Cleanup(func() { os.Remove(s.path + groupsSuffix) })
	configure := func(groups int) { must(t, os.WriteFile(s.path+groupsSuffix, make([]byte, groups), 0o644)) }
	options := groupOptions(HoldTUN)
	dial := func(i int) *groupGuard {
		t.Helper()
		h, err := on(b, func() (*Holder, error) { return DialHolder(s.path, options[i].Tag) })
		must(t, err)
		return b.lead(t, h, options[i])
	}
	end := func(g *groupGuard) { must(t, g.close()); must(t, g.in.Close()) }
	sockets := func() int {
		udp, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/udp", s.cmd.Process.Pid))
		must(t, err)
		return strings.Count(string(udp), fmt.Sprintf(":%04X 00000000:0000", testGroup.Port()))
	}
	const each = 4 // the board's own address, the group's, that of all, and the floating one
	configure(2)
	var one, other *groupGuard
	for range 3 {
		one, other = dial(0), dial(1)
		wantSorted(t, neighbour, one, other)
		b.wantNoPort(t)
		_, err := on(b, func() (*Holder, error) { return DialHolder(s.path, one.Tag) })
		assert.ErrorIs(t, err, unix.EADDRINUSE, "a second daemon of a group")
		end(one)
		eventually(t, "the address is gone of a daemon that was killed", func() bool { return !b.has(t, "", one.address()) })
		assert.Is(t, true, b.has(t, "", other.address()), "the other group has its address")
		one = dial(0) // while the other one goes on
		end(one)
		wantAll(t, l.boards[1], other)
		end(other)
		eventually(t, "both addresses are gone", func() bool { return !b.has(t, "", one.address()) && !b.has(t, "", other.address()) })
		b.wantNoPort(t)
		assert.Is(t, 2*each-1, sockets(), "the sockets that the holder keeps: only one of them for the board's own address")
		for _, i := range []int{0, 1} { // whichever group was the last one
			alone := dial(i)
			wantAll(t, l.boards[1], alone)
			end(alone)
			eventually(t, "the address is gone", func() bool { return !b.has(t, "", alone.address()) })
		}
	}
	other = dial(1) // whose end the next daemon does not wait for
	configure(1)
	one = dial(0)
	assert.Is(t, 2*each, sockets(), "the sockets while both groups have a daemon")
	end(other)
	eventually(t, "the sockets are closed of the group that is gone", func() bool { return sockets() == each })
	_, err := on(b, func() (*Holder, error) { return DialHolder(s.path, other.Tag) })
	assert.ErrorContains(t, err, "no such group", "a daemon of the group that is gone")
	wantSorted(t, neighbour, one)
	b.wantNoPort(t)
	end(one)
}

// TestHoldersCannotStart: whatever the first group is told is the answer for all of them.
func TestHoldersCannotStart(t *testing.T) {
	_, err := StartHolders([]string{"/bin/true"}, groupOptions(HoldLifetime)...)
	assert.ErrorIs(t, err, errHolderLost, "a holder that ends at once")
	assert.ErrorIs(t, err, net.ErrClosed, "a holder that ends at once")
}
