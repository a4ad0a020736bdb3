package netio

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// companionWord on its command line makes the test binary a companion.
const companionWord = "companion"

var companionCommand = []string{"/proc/self/exe", companionWord}

// armedVariable makes the test binary a daemon that holds the address, by the method that
// the variable gives, with an armed switch.
const armedVariable = "TOPDOG_TEST_ARMED"

// attend is the test binary as a companion. It returns its exit status.
func attend() int {
	if err := AttendDeadman(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// testWill is any datagram: netio does not look into it. It has bytes that JSON would not carry as they are.
var testWill = []byte("the will \x00\xff\xfe\n")

// longLease is longer than any test.
const longLease = time.Hour

// heardAs is how an inbox says which datagram it has heard, but for the sender's port.
func heardAs(way string, datagram []byte, from netip.Addr) string {
	return fmt.Sprintf("%s %q from %s:", way, datagram, from)
}

// deadmanGroup is where the boards of these tests speak.
var deadmanGroup = netip.MustParseAddrPort("224.0.0.254:9254")

// bereaved is a board of which the daemon's end is in this process, and a neighbour
// that hears what becomes of it.
type bereaved struct {
	*board
	conn      *inbox
	floating  floating
	neighbour *inbox
}

// newBereaved makes a board that holds the address by a method that only a companion removes it.
func newBereaved(t *testing.T, method HoldMethod) *bereaved {
	t.Helper()
	if method == HoldTUN {
		needTUN(t)
	}
	l := newLAN(t, 2)
	b := &bereaved{board: l.boards[0]}
	other := l.boards[1]
	b.neighbour = openInbox(t, "neighbour", other, Options{Interface: "eth0", Local: other.addr, Group: deadmanGroup})
	b.conn = openInbox(t, "board", b.board, Options{Interface: "eth0", Local: b.addr, Group: deadmanGroup})
	b.untilHeard(t, b.conn.Conn)
	b.floating = openFloating(t, b.board, FloatingOptions{Method: method, Lifetime: longLease})
	must(t, b.floating.Acquire())
	return b
}

// untilHeard waits until the neighbour hears the board, and has heard all that was said to find out.
func (b *bereaved) untilHeard(t testing.TB, conn *Conn) {
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

// estate is all that the board has to leave.
func (b *bereaved) estate() ReleasePlan {
	e := b.floating.ReleasePlan()
	e.Resign = testWill
	e.To = []netip.AddrPort{deadmanGroup, b.neighbour.self}
	e.From = b.conn.Conn
	return e
}

// startDeadman starts a dead man's switch on the board.
func (b *board) startDeadman() (*Deadman, error) {
	return on(b, func() (*Deadman, error) { return StartDeadman(companionCommand) })
}

// prepare prepares it there.
func (b *board) prepare(d *Deadman, plan ReleasePlan) error {
	return b.in(func() error { return d.Prepare(plan) })
}

// startSwitch starts a switch that lets go of what the estate says.
func startSwitch(t testing.TB, b *board, e ReleasePlan) *Deadman {
	t.Helper()
	d, err := b.startDeadman()
	must(t, err)
	t.Cleanup(func() { d.Close() })
	must(t, b.prepare(d, e))
	d.Arm()
	return d
}

// outwait returns when another companion has found that so much time is over, of
// which this switch needs less. No companion is sooner than its alarm.
func outwait(t testing.TB, b *board, lease time.Duration) {
	t.Helper()
	clock := startSwitch(t, b, ReleasePlan{})
	clock.Extend(lease)
	eventually(t, "the lease of the clock has run out", clock.Fired)
	must(t, clock.Close())
}

// wantWill wants the neighbour to hear the will both ways before anything else.
func (b *bereaved) wantWill(t *testing.T) {
	t.Helper()
	missing := map[string]bool{
		heardAs("multicast", testWill, b.addr): true,
		heardAs("unicast", testWill, b.addr):   true,
	}
	for len(missing) > 0 {
		got := receive(t, "the will", b.neighbour.got)
		before, port, _ := strings.Cut(got, b.addr.String()+":")
		switch what := before + b.addr.String() + ":"; {
		case port == strconv.Itoa(int(deadmanGroup.Port())):
			t.Fatalf("heard %s: a will must leave the port of the group free", got)
		case what != heardAs("multicast", testWill, b.addr) && what != heardAs("unicast", testWill, b.addr):
			t.Fatalf("heard %s, want the will", got)
		default:
			delete(missing, what)
		}
	}
	if drops := b.neighbour.Drops(); drops.WrongTTL > 0 {
		t.Errorf("%d datagrams came with another TTL than 255", drops.WrongTTL)
	}
}

// wantQuiet wants the neighbour to have heard nothing of a companion that has ended.
func (b *bereaved) wantQuiet(t *testing.T) {
	t.Helper()
	marker := []byte("nothing came before this")
	must(t, b.conn.Multicast(marker))
	if got := receive(t, "the marker", b.neighbour.got); !strings.HasPrefix(got, heardAs("multicast", marker, b.addr)) {
		t.Errorf("the neighbour heard %s", got)
	}
}

func (b *bereaved) holds(t testing.TB) bool { return b.has(t, "", testVIP) }

func TestLeaseRunsOut(t *testing.T) {
	for _, method := range []HoldMethod{HoldTUN, HoldLifetime} {
		t.Run(method.String(), func(t *testing.T) {
			b := newBereaved(t, method)
			d := startSwitch(t, b.board, b.estate())
			if d.Fired() || !d.Extend(10*time.Millisecond) {
				t.Fatal("the lease has run out before it began")
			}
			eventually(t, "the address is gone", func() bool { return !b.holds(t) })
			b.wantWill(t)
			if !d.Fired() || d.Extend(longLease) || d.Extend(0) || d.Disarm() {
				t.Error("the daemon is not told that the lease has run out")
			}
			if d.Fired() {
				t.Error("a lease that was ended counts as run out")
			}

			// The same companion watches the next lease.
			must(t, b.floating.Acquire())
			must(t, b.prepare(d, b.estate()))
			d.Arm()
			if !d.Extend(10 * time.Millisecond) {
				t.Error("the next lease cannot be extended")
			}
			eventually(t, "the address is gone again", func() bool { return !b.holds(t) })
		})
	}
}

func TestLeaseExtended(t *testing.T) {
	for _, test := range []struct {
		name string
		end  func(d *Deadman) bool
	}{
		{"for longer", func(d *Deadman) bool { return d.Extend(longLease) }},
		{"for ever", func(d *Deadman) bool { return d.Extend(0) }},
		{"ended", (*Deadman).Disarm},
		{"ended, and the next one begun", func(d *Deadman) bool {
			ok := d.Disarm()
			d.Arm()
			return ok
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			const lease = 100 * time.Millisecond
			b := newBereaved(t, HoldLifetime)
			d := startSwitch(t, b.board, b.estate())
			for d.Extend(lease); !test.end(d); d.Extend(lease) {
				// This machine stood still, and the lease has run out.
				eventually(t, "the address is gone", func() bool { return !b.holds(t) })
				d.Disarm()
				outwait(t, b.board, lease) // until all copies of the will were said
				for len(b.neighbour.got) > 0 {
					<-b.neighbour.got
				}
				must(t, b.floating.Acquire())
				d.Arm()
			}
			outwait(t, b.board, 2*lease)
			if d.Fired() || !b.holds(t) {
				t.Error("a lease that was extended has run out")
			}
			must(t, d.Close())
			b.wantQuiet(t)
		})
	}
}

// TestLeaseExtendedOrNot has the daemon be late by about nothing, time and again: either it
// has extended the lease and keeps the address, or it is told that it has not.
func TestLeaseExtendedOrNot(t *testing.T) {
	b := newBereaved(t, HoldLifetime)
	e := b.floating.ReleasePlan()
	d := startSwitch(t, b.board, e)
	extended, fired := 0, 0
	for round := range 60 {
		d.Extend(time.Millisecond)
		// From a little before the end to a little after it.
		for until := monotonic() + int64(time.Millisecond) + int64(round%12-3)*int64(20*time.Microsecond); monotonic() < until; {
			runtime.Gosched()
		}
		if d.Extend(longLease) {
			extended++
			if d.Fired() {
				t.Fatal("a lease that was extended has run out")
			}
			continue
		}
		fired++
		eventually(t, "the address is gone", func() bool { return !b.holds(t) })
		if d.Disarm() {
			t.Fatal("a lease that could not be extended was ended in peace")
		}
		must(t, b.floating.Acquire())
		d.Arm()
	}
	outwait(t, b.board, 50*time.Millisecond) // for what the companion may still be about to do
	if !b.holds(t) {
		t.Error("the address was let go of, and the daemon does not know")
	}
	t.Logf("extended %d times, too late %d times", extended, fired)
}

// TestCompanionFrozen has a companion sleep over the end of a lease that was extended
// meanwhile, and of one that was not.
func TestCompanionFrozen(t *testing.T) {
	const lease = 20 * time.Millisecond
	for _, extended := range []bool{true, false} {
		t.Run(fmt.Sprintf("extended=%t", extended), func(t *testing.T) {
			b := newBereaved(t, HoldLifetime)
			d := startSwitch(t, b.board, b.estate())
			d.Extend(longLease)
			must(t, syscall.Kill(d.PID(), syscall.SIGSTOP))
			eventually(t, "the companion stands still", func() bool { return processState(t, d.PID()) == "T" })
			d.Extend(lease)
			outwait(t, b.board, 2*lease)
			if d.Fired() || !b.holds(t) {
				t.Fatal("a frozen companion lets go")
			}
			if extended && !d.Extend(longLease) {
				t.Fatal("a lease that nobody has ended cannot be extended")
			}
			must(t, syscall.Kill(d.PID(), syscall.SIGCONT))
			if !extended {
				eventually(t, "the address is gone", func() bool { return !b.holds(t) })
				b.wantWill(t)
				return
			}
			outwait(t, b.board, lease)
			if d.Fired() || !b.holds(t) {
				t.Error("the companion let go at the end of a lease that was extended")
			}
		})
	}
}

// TestExpire holds when a companion ends a lease, and when it waits before.
func TestExpire(t *testing.T) {
	ago := func(d time.Duration) func() uint32 {
		return func() uint32 { return leaseAt(monotonic() - int64(d)) }
	}
	for _, test := range []struct {
		name  string
		word  func() uint32
		rang  bool
		waits bool
		want  bool
	}{
		{"in time", ago(0), true, false, true},
		{"late", ago(asleepTogether + time.Millisecond), true, true, true},
		{"set anew before it is looked at", ago(0), false, false, false},
		{"set anew meanwhile", ago(-longLease / 4), false, false, false},
		{"nothing to let go of", func() uint32 { return leaseIdle }, true, false, false},
		{"let go already", func() uint32 { return leaseFired }, true, false, false},
		{"for ever", func() uint32 { return leaseForever }, true, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			alarm, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
			must(t, err)
			defer unix.Close(alarm)
			if test.rang {
				must(t, unix.TimerfdSettime(alarm, 0, &unix.ItimerSpec{Value: unix.NsecToTimespec(1)}, nil))
				_, err := unix.Poll([]unix.PollFd{{Fd: int32(alarm), Events: unix.POLLIN}}, -1)
				must(t, err)
			}
			c := &companion{word: new(atomic.Uint32)}
			before := test.word()
			c.word.Store(before)
			start := Now()
			if got := c.expire(alarm); got != test.want || got != (c.word.Load() == leaseFired && before != leaseFired) {
				t.Errorf("ends the lease: %t, and the word is %d, want %t", got, c.word.Load(), test.want)
			}
			if took := Now() - start; test.waits && took < awakening {
				t.Errorf("the daemon was given %s, want %s", took, awakening)
			}
		})
	}
}

// TestMachineFrozen has both processes of a board stand still over the end of a lease, and go
// on at the same time: then the daemon is given a moment to extend it.
func TestMachineFrozen(t *testing.T) {
	const lease = 10 * time.Millisecond
	b := newBereaved(t, HoldLifetime)
	d := startSwitch(t, b.board, b.estate())
	extended := 0
	for round := range 20 {
		d.Extend(longLease)
		must(t, syscall.Kill(d.PID(), syscall.SIGSTOP))
		eventually(t, "the companion stands still", func() bool { return processState(t, d.PID()) == "T" })
		d.Extend(lease)
		outwait(t, b.board, lease+2*asleepTogether)
		must(t, syscall.Kill(d.PID(), syscall.SIGCONT))
		// From the moment at which the companion goes on to when it waits.
		for until := monotonic() + int64(round)*int64(40*time.Microsecond); monotonic() < until; {
			runtime.Gosched()
		}
		if !d.Extend(longLease) {
			// This process was slow: the machine is busy.
			eventually(t, "the address is gone", func() bool { return !b.holds(t) })
			d.Disarm()
			must(t, b.floating.Acquire())
			d.Arm()
			continue
		}
		extended++
		if round%4 == 0 {
			outwait(t, b.board, 2*awakening)
		}
		if d.Fired() || !b.holds(t) {
			t.Fatal("a lease that was extended has run out")
		}
	}
	if extended == 0 {
		t.Error("the daemon never came in time")
	}
	t.Logf("came in time %d times", extended)
}

func processState(t testing.TB, pid int) string {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	must(t, err)
	_, rest, _ := strings.Cut(string(stat), ") ")
	state, _, _ := strings.Cut(rest, " ")
	return state
}

// TestSettleTooLate has a companion be so slow between the end of a lease and the
// removal of the address that the daemon has let go of it itself, and taken it anew.
func TestSettleTooLate(t *testing.T) {
	for word, want := range map[uint32]bool{leaseFired: false, leaseIdle: true, leaseForever: true} {
		b := newBereaved(t, HoldLifetime)
		c := &companion{word: new(atomic.Uint32), handle: b.handle, estate: b.floating.ReleasePlan()}
		c.word.Store(word)
		must(t, c.settle())
		if got := b.holds(t); got != want {
			t.Errorf("the word is %d: the address is there: %t, want %t", word, got, want)
		}
	}
}

// TestToldToEnd has a service manager, or a terminal, tell every process to end. Only the
// daemon decides when to go.
func TestToldToEnd(t *testing.T) {
	b := newBereaved(t, HoldLifetime)
	d := startSwitch(t, b.board, b.estate())
	outwait(t, b.board, time.Millisecond) // the companion has begun, most likely, as this one has
	d.Extend(time.Millisecond)
	b.wantWill(t) // now it surely has
	d.Disarm()
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGABRT, syscall.SIGPIPE} {
		must(t, syscall.Kill(d.PID(), s))
	}
	must(t, b.floating.Acquire())
	must(t, b.prepare(d, b.estate()))
	d.Arm()
	d.Extend(time.Millisecond)
	eventually(t, "the address is gone", func() bool { return !b.holds(t) })
	select {
	case <-d.Exited():
		t.Error("the companion has ended")
	default:
	}
}

func TestCloseInPeace(t *testing.T) {
	for _, disarmed := range []bool{true, false} {
		b := newBereaved(t, HoldLifetime)
		d := startSwitch(t, b.board, b.estate())
		d.Extend(longLease)
		if disarmed && !d.Disarm() {
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

// TestLatestEstate has the companion be told several things at once: the last counts.
func TestLatestEstate(t *testing.T) {
	b := newBereaved(t, HoldLifetime)
	former := b.estate()
	former.Resign = []byte("a former will")
	d := startSwitch(t, b.board, former)
	for range 20 {
		must(t, b.prepare(d, former))
	}
	alone := b.floating.ReleasePlan() // without a will
	must(t, b.prepare(d, alone))
	must(t, b.prepare(d, b.estate()))
	d.Extend(time.Millisecond)
	eventually(t, "the address is gone", func() bool { return !b.holds(t) })
	b.wantWill(t)
}

// TestNobodyToTell has an estate without a will.
func TestNobodyToTell(t *testing.T) {
	b := newBereaved(t, HoldTUN)
	d := startSwitch(t, b.board, b.estate())
	must(t, b.prepare(d, b.floating.ReleasePlan()))
	d.Extend(time.Millisecond)
	eventually(t, "the address is gone", func() bool { return !b.holds(t) })
	must(t, d.Close())
	b.wantQuiet(t)
}

// TestForeignAddressStays: what is not in the estate is nobody's business.
func TestForeignAddressStays(t *testing.T) {
	b := newBereaved(t, HoldLifetime)
	d := startSwitch(t, b.board, b.estate())
	must(t, b.floating.Release()) // somebody else has deleted it already
	d.Extend(time.Millisecond)
	b.wantWill(t)
	if !b.has(t, "eth0", b.addr) {
		t.Error("the board's own address is gone")
	}
}

func TestEstateTooLong(t *testing.T) {
	b := newLAN(t, 1).boards[0]
	d := startSwitch(t, b, ReleasePlan{})
	var full ReleasePlan
	for n := range 256 {
		full.To = append(full.To, netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 168, 254, byte(n)}), 65535))
	}
	full.Resign = make([]byte, MaxPacket)
	full.Addresses = []netip.Addr{testVIP, testVIP, testVIP, testVIP}
	if err := b.prepare(d, full); err != nil {
		t.Errorf("a full group: %v", err)
	}
	full.Resign = make([]byte, maxEstate)
	err := b.prepare(d, full)
	if err == nil || !strings.Contains(err.Error(), "too long (at most 16384)") {
		t.Errorf("too much: %v", err)
	}
	if d.Fired() || !d.Extend(longLease) {
		t.Error("the switch was impressed")
	}
}

func TestCompanionKilled(t *testing.T) {
	b := newBereaved(t, HoldLifetime)
	d := startSwitch(t, b.board, b.estate())
	select {
	case <-d.Exited():
		t.Fatal("ended before it was killed")
	default:
	}
	must(t, syscall.Kill(d.PID(), syscall.SIGKILL))
	receive(t, "the companion's end", d.Exited())
	if d.Fired() || !d.Extend(longLease) {
		t.Error("a companion that is dead let go")
	}
	if err := b.prepare(d, b.estate()); err == nil {
		t.Error("nobody was told, and there is no error")
	}
	if err := d.Close(); err == nil || !strings.Contains(err.Error(), "signal: killed") {
		t.Errorf("closing it gives %v", err)
	}
	if !b.holds(t) {
		t.Error("the address is gone")
	}
	b.wantQuiet(t)
}

func TestCompanionByHand(t *testing.T) {
	out, err := exec.Command(companionCommand[0], companionCommand[1:]...).CombinedOutput()
	const want = "this is a part of `topdog run`, which starts it: it is of no use by itself\n"
	if status, ok := errors.AsType[*exec.ExitError](err); !ok || status.ExitCode() != 1 || string(out) != want {
		t.Errorf("it says %q and ends with %v", out, err)
	}
}

func TestCompanionCannotStart(t *testing.T) {
	before := openFiles(t)
	_, err := StartDeadman([]string{"/nonexistent/topdog", companionWord})
	if err == nil || !strings.Contains(err.Error(), "start the dead man's switch") || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if after := openFiles(t); after != before {
		t.Errorf("%d files are open, %d were before", after, before)
	}
}

// TestNothingLeaks has companions come and go as if somebody killed them for fun.
func TestNothingLeaks(t *testing.T) {
	b := newBereaved(t, HoldTUN)
	use := func() {
		d, err := b.startDeadman()
		must(t, err)
		must(t, b.prepare(d, b.estate()))
		must(t, d.Close())
	}
	use()
	before := openFiles(t)
	for range 3 {
		use()
	}
	if after := openFiles(t); after != before {
		t.Errorf("%d files are open, %d were before", after, before)
	}

	// Nor does a companion keep what it was given before.
	d := startSwitch(t, b.board, ReleasePlan{})
	fds := func() int {
		files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", d.PID()))
		must(t, err)
		return len(files)
	}
	// It has what it began with, and the two files of the estate.
	taken := func() bool { return len(glob(t, fmt.Sprintf("/proc/%d/fd/*", d.PID()), "/dev/net/tun")) == 1 }
	must(t, b.prepare(d, b.estate()))
	eventually(t, "the companion has the device", taken)
	with := fds()
	for range 5 {
		must(t, b.prepare(d, b.estate()))
	}
	must(t, b.prepare(d, ReleasePlan{}))
	eventually(t, "the companion has closed all", func() bool { return fds() == with-2 })
}

// glob returns the links that match a pattern and lead to a target.
func glob(t testing.TB, pattern, target string) (found []string) {
	t.Helper()
	links, err := filepath.Glob(pattern)
	must(t, err)
	for _, l := range links {
		if to, err := os.Readlink(l); err == nil && to == target {
			found = append(found, l)
		}
	}
	return found
}

func openFiles(t testing.TB) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	return len(entries)
}

// TestProgramText: what a companion drops must come back from the program's file as it was.
func TestProgramText(t *testing.T) {
	// The lines of proc_pid_smaps(5) that matter, of a position-independent program.
	const smaps = `01000000-01400000 r-xp 00001000 fe:00 1234    /usr/bin/topdog
Anonymous:             0 kB
THPeligible:           0
01400000-01600000 r--p 00401000 fe:00 1234    /usr/bin/topdog
Anonymous:          2048 kB
01600000-01700000 r--p 00601000 fe:00 1234    /usr/bin/topdog
Anonymous:             0 kB
01700000-01710000 rw-p 00701000 fe:00 1234    /usr/bin/topdog
Anonymous:             0 kB
40000000-40400000 ---p 00000000 00:00 0
Anonymous:             0 kB
7fff0000-7fff2000 r-xp 00000000 00:00 0       [vdso]
Anonymous:             0 kB
`
	want := []span{{0x01000000, 0x01400000}, {0x01600000, 0x01700000}}
	if got := programText(smaps); !slices.Equal(got, want) {
		t.Errorf("would drop %x, want %x", got, want)
	}
	own, err := os.ReadFile("/proc/self/smaps")
	must(t, err)
	if len(programText(string(own))) == 0 {
		t.Error("nothing of this program would be dropped")
	}
}

// holdArmed is the test binary as a daemon with an armed switch: it holds the address,
// says "armed" and the number of the companion's process, and waits for its end.
func holdArmed(method string) error {
	n, err := strconv.Atoi(method)
	if err != nil {
		return err
	}
	// The kernel shall not be quicker than the companion.
	f, err := NewFloatingIP(FloatingOptions{Interface: "eth0", Addresses: []netip.Prefix{testFloating}, Method: HoldMethod(n), Lifetime: longLease})
	if err != nil {
		return err
	}
	if err := f.Acquire(); err != nil {
		return err
	}
	conn, err := Open(Options{Interface: "eth0", Local: netip.MustParseAddr("10.77.0.1"), Group: deadmanGroup})
	if err != nil {
		return err
	}
	d, err := StartDeadman(companionCommand)
	if err != nil {
		return err
	}
	e := f.ReleasePlan()
	e.Resign, e.To, e.From = testWill, []netip.AddrPort{deadmanGroup, netip.MustParseAddrPort("10.77.0.2:9254")}, conn
	if err := d.Prepare(e); err != nil {
		return err
	}
	d.Arm()
	d.Extend(0)
	fmt.Println(d.PID())
	io.Copy(io.Discard, os.Stdin)
	if !d.Disarm() {
		return errors.New("the lease has run out")
	}
	return errors.Join(f.Release(), d.Close(), f.Close(), conn.Close())
}

// startArmed starts such a daemon on a board, and returns the companion's process.
func startArmed(t testing.TB, b *board, method HoldMethod) (h *holder, companion int) {
	t.Helper()
	h = startProcess(t, b, armedVariable+"="+strconv.Itoa(int(method)))
	must(t, h.stdout.SetReadDeadline(time.Now().Add(patience)))
	if !h.lines.Scan() {
		t.Fatal("the daemon says nothing")
	}
	companion, err := strconv.Atoi(h.lines.Text())
	must(t, err)
	return h, companion
}

func TestDaemonKilled(t *testing.T) {
	for _, method := range testedMethods {
		t.Run(method.String(), func(t *testing.T) {
			b := newMourned(t, method)
			must(t, b.daemon.cmd.Process.Kill())
			eventually(t, "the address is gone", func() bool { return !b.has(t, "", testVIP) })
			b.wantWill(t)
			eventually(t, "the companion has ended", func() bool { return gone(b.companion) })
			eventually(t, "the device is gone", func() bool { return !b.hasLink(t, DefaultDevice) })
		})
	}
}

// TestDeviceIsKept: to take a device down must not delay the end of a killed daemon, so the
// companion has it open as well. It goes with the companion then.
func TestDeviceIsKept(t *testing.T) {
	b := newMourned(t, HoldTUN)
	b.untilInformed(t)
	must(t, b.daemon.cmd.Process.Kill())
	eventually(t, "the device is gone", func() bool { return !b.hasLink(t, DefaultDevice) })
	if !gone(b.companion) {
		t.Error("the device went before the companion")
	}
	b.wantWill(t)
}

// TestDaemonKilledCompanionFrozen: a companion is a process group of its own, and the
// kernel wakes a group that has nobody left who could.
func TestDaemonKilledCompanionFrozen(t *testing.T) {
	b := newMourned(t, HoldTUN)
	b.untilInformed(t)
	must(t, syscall.Kill(b.companion, syscall.SIGSTOP))
	eventually(t, "the companion stands still", func() bool { return processState(t, b.companion) == "T" })
	must(t, b.daemon.cmd.Process.Kill())
	eventually(t, "the address is gone", func() bool { return !b.has(t, "", testVIP) })
	b.wantWill(t)
}

// TestDaemonRestarted has the next daemon begin while the companion of the killed one
// still settles: neither the port nor the device may be in its way.
func TestDaemonRestarted(t *testing.T) {
	for _, method := range []HoldMethod{HoldTUN, HoldLifetime} {
		t.Run(method.String(), func(t *testing.T) {
			b := newMourned(t, method)
			must(t, b.daemon.cmd.Process.Kill())
			b.daemon.cmd.Wait()
			next, _ := startArmed(t, b.board, method)
			eventually(t, "the former companion has ended", func() bool { return gone(b.companion) })
			if method == HoldTUN && !b.has(t, "", testVIP) {
				t.Error("the former companion removed the address of the next daemon")
			}
			must(t, next.cmd.Process.Kill())
			eventually(t, "the address is gone", func() bool { return !b.has(t, "", testVIP) })
		})
	}
}

// TestDaemonStops has a daemon let go itself, and end its companion.
func TestDaemonStops(t *testing.T) {
	b := newMourned(t, HoldTUN)
	must(t, b.daemon.stdin.Close())
	must(t, b.daemon.cmd.Wait())
	if b.has(t, "", testVIP) || b.hasLink(t, DefaultDevice) || !gone(b.companion) {
		t.Error("the daemon left something behind")
	}
	b.conn = openInbox(t, "board", b.board, Options{Interface: "eth0", Local: b.addr, Group: deadmanGroup})
	b.wantQuiet(t)
}

// mourned is a board with a daemon that can be killed.
type mourned struct {
	bereaved
	daemon    *holder
	companion int
}

func newMourned(t *testing.T, method HoldMethod) *mourned {
	t.Helper()
	if method == HoldTUN {
		needTUN(t)
	}
	l := newLAN(t, 2)
	b := &mourned{bereaved: bereaved{board: l.boards[0]}}
	other := l.boards[1]
	b.neighbour = openInbox(t, "neighbour", other, Options{Interface: "eth0", Local: other.addr, Group: deadmanGroup})
	conn, err := b.open(Options{Interface: "eth0", Local: b.addr, Group: deadmanGroup})
	must(t, err)
	b.untilHeard(t, conn)
	must(t, conn.Close())
	b.daemon, b.companion = startArmed(t, b.board, method)
	return b
}

// untilInformed waits until the companion has what it was given.
func (b *mourned) untilInformed(t *testing.T) {
	t.Helper()
	eventually(t, "the companion has the device", func() bool {
		return len(glob(t, fmt.Sprintf("/proc/%d/fd/*", b.companion), "/dev/net/tun")) == 1
	})
}

// gone reports whether a process has ended. It was no child of this one.
func gone(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(stat), ") Z ")
}

func (b *board) hasLink(t testing.TB, name string) bool {
	t.Helper()
	_, err := b.handle.LinkByName(name)
	if _, missing := errors.AsType[netlink.LinkNotFoundError](err); missing {
		return false
	}
	must(t, err)
	return true
}
