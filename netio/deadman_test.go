package netio

import (
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"topdog/wire"
)

// companionWord on its command line makes the test binary a companion.
const companionWord = "companion"

var companionCommand = []string{"/proc/self/exe", companionWord}

// attend is the test binary as a companion. It returns its exit status.
func attend() int {
	if err := AttendDeadman(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// testResign is any datagram: netio does not look into it. It has bytes that JSON would not carry as they are.
var testResign = []byte("the RESIGN \x00\xff\xfe\n")

// longLease is longer than any test.
const longLease = time.Hour

// heardAs is how an inbox says which datagram it has heard, but for the sender's port.
func heardAs(way string, datagram []byte, from netip.Addr) string {
	return fmt.Sprintf("%s %q from %s:", way, datagram, from)
}

// deadmanGroup is where the boards of these tests speak.
var deadmanGroup = wire.DefaultGroup

// guardedBoard is a board with the address of which the daemon's end of a switch is in
// this process, and a neighbour that hears what becomes of it.
type guardedBoard struct {
	*board
	conn      *inbox
	floating  floating
	neighbour *inbox
}

// newGuardedBoard makes a board that holds the address, with a lifetime so long that only a
// companion removes it.
func newGuardedBoard(t *testing.T, method HoldMethod) *guardedBoard {
	t.Helper()
	if method == HoldTUN {
		needTUN(t)
	}
	l := newLAN(t, 2)
	b := &guardedBoard{board: l.boards[0]}
	other := l.boards[1]
	b.neighbour = openInbox(t, "neighbour", other, Options{Interface: "eth0", Local: other.addr, Group: deadmanGroup})
	b.conn = openInbox(t, "board", b.board, Options{Interface: "eth0", Local: b.addr, Group: deadmanGroup})
	b.untilHeard(t, b.conn.Conn)
	b.floating = openFloating(t, b.board, FloatingOptions{Method: method, lifetime: longLease})
	must(t, b.floating.Acquire())
	return b
}

// untilHeard waits until the neighbour hears the board, and has heard all that was said to find out.
func (b *guardedBoard) untilHeard(t testing.TB, conn *Conn) {
	t.Helper()
	said := ""
	eventually(t, "the neighbour hears the board", func() bool {
		if len(b.neighbour.got) == 0 {
			said += "."
			must(t, conn.Multicast([]byte(said)))
		}
		return len(b.neighbour.got) > 0
	})
	for last := heardAs("multicast", []byte(said), b.addr); ; {
		if strings.HasPrefix(receive(t, "the last one", b.neighbour.got), last) {
			return
		}
	}
}

// plan has the address, the RESIGN, and whom to send it.
func (b *guardedBoard) plan() ReleasePlan {
	plan := b.floating.ReleasePlan()
	plan.Resign = testResign
	plan.To = []netip.AddrPort{deadmanGroup, b.neighbour.self}
	plan.From = b.conn.Conn
	return plan
}

// guard is a dead man's switch with its lease.
type guard struct {
	*Deadman
	fence *Fence
}

// startDeadman starts a dead man's switch on the board, with a lease that nothing but the switch
// enforces.
func (b *board) startDeadman() (*guard, error) {
	return on(b, func() (*guard, error) {
		f, err := newFence(nil)
		if err != nil {
			return nil, err
		}
		return startGuard(f)
	})
}

func startGuard(f *Fence) (*guard, error) {
	d, err := StartDeadman(companionCommand, f)
	return &guard{d, f}, err
}

// extend has a lease end then, and the companion look then.
func extend(f *Fence, end time.Duration) bool { return f.Extend(end, end) }

func (g *guard) arm()                          { g.fence.Begin(NoEnd) }
func (g *guard) extend(end time.Duration) bool { return extend(g.fence, end) }
func (g *guard) fired() bool                   { return g.fence.Fired() }

// disarm is what a daemon does that releases the addresses.
func (g *guard) disarm() (inTime bool) {
	inTime = g.fence.Shut()
	g.fence.Released()
	return inTime
}

// prepare prepares it there.
func (b *board) prepare(d *guard, plan ReleasePlan) error {
	return b.in(func() error { return d.Prepare(plan) })
}

// startSwitch starts a switch with the plan, and arms it.
func startSwitch(t testing.TB, b *board, plan ReleasePlan) *guard {
	t.Helper()
	d, err := b.startDeadman()
	must(t, err)
	t.Cleanup(func() { d.Close(); d.fence.Close() })
	must(t, b.prepare(d, plan))
	d.arm()
	return d
}

// waitOut returns when the lease of another companion has run out, which begins now: a
// lease that began before and is shorter has run out by then.
func waitOut(t testing.TB, b *board, lease time.Duration) {
	t.Helper()
	clock := startSwitch(t, b, ReleasePlan{})
	clock.extend(Now() + lease)
	eventually(t, "the lease of the clock has run out", clock.fired)
	must(t, clock.Close())
}

// wantResign wants the neighbour to hear the RESIGN both ways before anything else.
func (b *guardedBoard) wantResign(t *testing.T) {
	t.Helper()
	missing := map[string]bool{
		heardAs("multicast", testResign, b.addr): true,
		heardAs("unicast", testResign, b.addr):   true,
	}
	for len(missing) > 0 {
		got := receive(t, "the RESIGN", b.neighbour.got)
		before, port, _ := strings.Cut(got, b.addr.String()+":")
		switch what := before + b.addr.String() + ":"; {
		case port == strconv.Itoa(int(deadmanGroup.Port())):
			t.Fatalf("heard %s: a RESIGN must leave the port of the group free", got)
		case what != heardAs("multicast", testResign, b.addr) && what != heardAs("unicast", testResign, b.addr):
			t.Fatalf("heard %s, want the RESIGN", got)
		default:
			delete(missing, what)
		}
	}
	if drops := b.neighbour.Drops(); drops.WrongTTL > 0 {
		t.Errorf("%d datagrams came with another TTL than 255", drops.WrongTTL)
	}
}

// wantQuiet wants the neighbour to have heard nothing of a companion that has ended.
func (b *guardedBoard) wantQuiet(t *testing.T) {
	t.Helper()
	marker := []byte("nothing came before this")
	must(t, b.conn.Multicast(marker))
	if got := receive(t, "the marker", b.neighbour.got); !strings.HasPrefix(got, heardAs("multicast", marker, b.addr)) {
		t.Errorf("the neighbour heard %s", got)
	}
}

func (b *guardedBoard) holds(t testing.TB) bool { return b.has(t, "", testVIP) }

func TestCloseReleasesNothing(t *testing.T) {
	for _, disarmed := range []bool{true, false} {
		b := newGuardedBoard(t, HoldLifetime)
		d := startSwitch(t, b.board, b.plan())
		d.extend(Now() + longLease)
		if disarmed && !d.disarm() {
			t.Error("the lease has run out")
		}
		must(t, d.Close())
		must(t, d.Close()) // may be called twice
		receive(t, "the companion's end", d.Exited())
		if !b.holds(t) {
			t.Error("the address is gone")
		}
		b.wantQuiet(t)
	}
}

// TestLatestPlan gives the companion several plans at once: the last counts.
func TestLatestPlan(t *testing.T) {
	b := newGuardedBoard(t, HoldLifetime)
	former := b.plan()
	former.Resign = []byte("a former RESIGN")
	d := startSwitch(t, b.board, former)
	for range 20 {
		must(t, b.prepare(d, former))
	}
	alone := b.floating.ReleasePlan() // without a RESIGN
	must(t, b.prepare(d, alone))
	must(t, b.prepare(d, b.plan()))
	d.extend(Now() + time.Millisecond)
	eventually(t, "the address is gone", func() bool { return !b.holds(t) })
	b.wantResign(t)
}

// TestNobodyToTell has a plan without a RESIGN.
func TestNobodyToTell(t *testing.T) {
	b := newGuardedBoard(t, HoldTUN)
	d := startSwitch(t, b.board, b.plan())
	must(t, b.prepare(d, b.floating.ReleasePlan()))
	d.extend(Now() + time.Millisecond)
	eventually(t, "the address is gone", func() bool { return !b.holds(t) })
	must(t, d.Close())
	b.wantQuiet(t)
}

// TestForeignAddressStays holds that the companion removes only what is in the plan.
func TestForeignAddressStays(t *testing.T) {
	b := newGuardedBoard(t, HoldLifetime)
	d := startSwitch(t, b.board, b.plan())
	must(t, b.floating.Release()) // somebody else has deleted it already
	d.extend(Now() + time.Millisecond)
	b.wantResign(t)
	if !b.has(t, "eth0", b.addr) {
		t.Error("the board's own address is gone")
	}
}

func TestPlanTooLong(t *testing.T) {
	b := newLAN(t, 1).boards[0]
	d := startSwitch(t, b, ReleasePlan{})
	var full ReleasePlan
	for n := range 256 {
		full.To = append(full.To, netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 168, 254, byte(n)}), 65535))
	}
	full.Resign = make([]byte, wire.MaxPacket)
	full.Addresses = []netip.Addr{testVIP, testVIP, testVIP, testVIP}
	if err := b.prepare(d, full); err != nil {
		t.Errorf("a full group: %v", err)
	}
	full.Resign = make([]byte, maxPlanBytes)
	err := b.prepare(d, full)
	if err == nil || !strings.Contains(err.Error(), "too long (at most 16384)") {
		t.Errorf("too much: %v", err)
	}
	if d.fired() || !d.extend(Now()+longLease) {
		t.Error("the switch fired, or cannot be extended")
	}
}
