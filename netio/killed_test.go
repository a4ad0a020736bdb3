package netio

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/judge"
)

// armedVariable makes the test binary a daemon that holds the address, by the method that
// the variable gives, with an armed switch.
const armedVariable = "TOPDOG_TEST_ARMED"

// informed, behind the method, has that daemon say nothing before its holder has put the device and the fence into its store.
const informed = "+informed"

// beating, behind the method, has that daemon extend a lease as with heartbeats, which ends when
// it is frozen. Else it has no end.
const (
	beating     = "+beats"
	beatEvery   = 50 * time.Millisecond
	beatenLease = time.Second
)

// holdArmed is the test binary as a daemon with an armed switch and a fence: it holds the address,
// says the number of the holder's process, and waits for its end.
func holdArmed(method string) error {
	method, beats := strings.CutSuffix(method, beating)
	method, waits := strings.CutSuffix(method, informed)
	n, err := strconv.Atoi(method)
	if err != nil {
		return err
	}
	g, err := startGuard(HoldMethod(n))
	if err != nil {
		return err
	}
	conn, err := g.OpenSockets(Options{
		Interface: "eth0", Local: netip.MustParseAddr("10.77.0.1"), Group: testGroup, Floating: []netip.Addr{testVIP},
	})
	if err != nil {
		return err
	}
	eth0, err := net.InterfaceByName("eth0")
	if err != nil {
		return err
	}
	// A holder may still have the programs of the daemon before.
	for range 200 {
		if err = g.fence.Cover([]int{eth0.Index}); err == nil {
			break
		}
		pause(nil, 5*time.Millisecond)
	}
	if err != nil {
		return err
	}
	resign := PreparedResign{Datagram: testResign, To: []netip.AddrPort{testGroup, netip.MustParseAddrPort("10.77.0.2:9254")}}
	if err := g.Prepare(resign); err != nil {
		return err
	}
	g.arm()
	if err := g.floating.Acquire(); err != nil {
		return err
	}
	if waits { // the holder has answered before it did that, and answers nothing else meanwhile
		if err := g.Prepare(resign); err != nil {
			return err
		}
	}
	if beats {
		g.extend(Now() + beatenLease)
	}
	ended := make(chan struct{})
	fmt.Println(g.PID())
	go func() {
		io.Copy(io.Discard, os.Stdin)
		close(ended)
	}()
	if beats {
		for pause(ended, beatEvery) {
			g.extend(Now() + beatenLease)
		}
	}
	<-ended
	if !g.disarm() {
		return errors.New("the lease has run out")
	}
	return errors.Join(g.floating.Release(), g.close(), conn.Close())
}

// startArmed starts such a daemon on a board, and returns the holder's process.
func startArmed(t testing.TB, b *board, method HoldMethod) (h *subprocess, holder int) {
	t.Helper()
	return startArmedAs(t, b, strconv.Itoa(int(method)))
}

func startArmedAs(t testing.TB, b *board, value string) (h *subprocess, holder int) {
	t.Helper()
	h = startProcess(t, b, armedVariable+"="+value)
	holder, err := strconv.Atoi(h.line(t))
	must(t, err)
	return h, holder
}

// killableBoard is a board with a daemon that can be killed.
type killableBoard struct {
	guardedBoard
	daemon *subprocess
	holder int
}

func newKillableBoard(t testing.TB, method HoldMethod) *killableBoard {
	t.Helper()
	if method == HoldTUN {
		needTUN(t)
	}
	l := newLAN(t, 2)
	b := &killableBoard{guardedBoard: guardedBoard{board: l.boards[0]}}
	other := l.boards[1]
	b.neighbour = other.inbox(t)
	conn, err := b.open(b.options())
	must(t, err)
	b.untilHeard(t, conn)
	must(t, conn.Close())
	b.daemon, b.holder = startArmed(t, b.board, method)
	return b
}

// untilInformed waits until the holder has put its device into the store.
func (b *killableBoard) untilInformed(t testing.TB) {
	t.Helper()
	eventually(t, "the holder has its device in the store alone", func() bool {
		return b.hasLink(t, DefaultDevice) && len(glob(t, fmt.Sprintf("/proc/%d/fd/*", b.holder), "/dev/net/tun")) == 0
	})
}

// TestDaemonKilled: its holder removes the address, and tells the others, whatever becomes of the daemon. To take a device down must
// not delay the end of a killed daemon, so that has none of its own. A holder is a process group of its own, and the kernel
// continues a stopped group that is orphaned.
func TestDaemonKilled(t *testing.T) {
	for _, test := range []struct {
		name             string
		method           HoldMethod
		informed, frozen bool // the holder has all that it needs, and then stands still
	}{
		{"lifetime", HoldLifetime, false, false},
		{"TUN", HoldTUN, false, false},
		{"holder informed", HoldTUN, true, false},
		{"holder frozen", HoldTUN, true, true},
	} {
		t.Run(test.name, judged(func(t *judge.T) {
			b := newKillableBoard(t, test.method)
			daemon := b.daemon.cmd.Process
			if test.informed {
				b.untilInformed(t)
			}
			if test.frozen {
				freeze(t, b.holder)
			}
			must(t, daemon.Kill())
			eventually(t, "the address is gone", func() bool { return !b.holds(t) })
			b.wantResign(t)
			eventually(t, "the holder has ended", func() bool { return gone(b.holder) })
			eventually(t, "the device is gone", func() bool { return !b.hasLink(t, DefaultDevice) })
		}))
	}
}

// freeze stops a process, and waits until its last thread stands still, which is when the kernel counts it as stopped.
func freeze(t testing.TB, pid int) {
	t.Helper()
	must(t, syscall.Kill(pid, syscall.SIGSTOP))
	eventually(t, "all threads stand still", func() bool {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
		must(t, err)
		return !slices.ContainsFunc(threads, func(dir string) bool {
			tid, err := strconv.Atoi(filepath.Base(dir))
			must(t, err)
			return processState(t, tid) != "T"
		})
	})
}

// TestDaemonRestarted has the next daemon begin while the holder of the killed one
// still sends: neither the port nor the device may be in its way.
func TestDaemonRestarted(t *testing.T) {
	t.Parallel()
	eachMethod(t, func(t *judge.T, method HoldMethod) {
		b := newKillableBoard(t, method)
		must(t, b.daemon.cmd.Process.Kill())
		b.daemon.cmd.Wait()
		next, _ := startArmed(t, b.board, method)
		eventually(t, "the former holder has ended", func() bool { return gone(b.holder) })
		if method == HoldTUN && !b.holds(t) {
			t.Error("the former holder removed the address of the next daemon")
		}
		must(t, next.cmd.Process.Kill())
		eventually(t, "the address is gone", func() bool { return !b.holds(t) })
	})
}

// TestDaemonStops has a daemon release the address itself, and end its holder.
func TestDaemonStops(t *testing.T) { judge.RunTogether(t, testDaemonStops) }

func testDaemonStops(t *judge.T) {
	b := newKillableBoard(t, HoldTUN)
	must(t, b.daemon.stdin.Close())
	must(t, b.daemon.cmd.Wait())
	assert.Equal(t, []bool{false, false, true}, []bool{b.holds(t), b.hasLink(t, DefaultDevice), gone(b.holder)}, "address, device, and no holder")
	b.conn = b.inbox(t)
	b.wantQuiet(t)
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
