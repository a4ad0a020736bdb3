package netio

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/judge"
	"topdog/internal/lab/netns"
)

// TestFrozenThenKilled has all processes of a board stand still: the address falls silent at the end
// of the lease, though the kernel still has it. Then the daemon is killed, and it stays silent.
func TestFrozenThenKilled(t *testing.T) {
	t.Parallel()
	testedFences(t)
	eachMethod(t, func(t *judge.T, method HoldMethod) {
		if method == HoldTUN {
			needTUN(t)
		}
		l := newLAN(t, 2)
		b, client := l.boards[0], l.boards[1]
		asks := openTestAnnouncer(t, client)
		answers := func(addr netip.Addr) bool { return asks.hasOwner(t, addr, 1, silence) }
		daemon, holder := startArmedAs(t, b, strconv.Itoa(int(method))+beating)
		eventually(t, "the address is answered", func() bool { return answers(testVIP) })
		// Before it has its name it does not ignore the SIGHUP with which the kernel continues it below.
		eventually(t, "the holder has begun", func() bool {
			name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", holder))
			return string(name) == "topdog-holder\n"
		})

		must(t, netns.Freeze(holder))
		must(t, netns.Freeze(daemon.cmd.Process.Pid))
		frozen := Now()
		// An answer may be late, where the processors are busy. So the last one counts.
		last := frozen
		for Now() <= frozen+beatenLease {
			if answers(testVIP) {
				last = Now()
			}
			until(Now() + silence)
		}
		if last < frozen+beatenLease/2 {
			t.Errorf("last answered after %v, long before the end of the lease", last-frozen)
		}
		for range 5 {
			assert.Is(t, false, answers(testVIP), "the address is answered after the end of the lease")
		}
		assert.Is(t, true, b.has(t, "", testVIP), "the address is there, and silent by the fence")
		assert.Is(t, "T", processState(t, holder), "the state of the holder")
		eventually(t, "the board's own address is answered", func() bool { return answers(b.addr) })

		// The kernel continues the holder then, see TestDaemonKilledHolderFrozen.
		must(t, daemon.cmd.Process.Kill())
		for silent := true; silent && b.has(t, "", testVIP); {
			silent = !answers(testVIP)
			if !silent && b.has(t, "", testVIP) {
				t.Error("the fence was gone before the address")
			}
		}
		eventually(t, "the holder has ended", func() bool { return gone(holder) })
		wantNothingLeft(t, b)
	})
}

// TestAllKilled kills a holder and its daemon while both stand still, and starts them again, a few times. The address
// goes before the fence, though the daemon still lives.
func TestAllKilled(t *testing.T) {
	t.Parallel()
	judge.RunTogether(t, testAllKilled)
}

func testAllKilled(t *judge.T) {
	kinds := testedFences(t)
	needTUN(t)
	b := newLAN(t, 1).boards[0]
	for range 4 {
		daemon, holder := startArmedAs(t, b, strconv.Itoa(int(HoldTUN))+informed)
		if kinds[0] == FenceTCX {
			eth0 := b.link(t, "eth0").Index
			for _, attach := range []uint32{unix.BPF_TCX_INGRESS, unix.BPF_TCX_EGRESS} {
				assert.Is(t, 1, b.programsAt(t, eth0, attach), "programs attached")
			}
		}
		must(t, netns.Freeze(holder)) // so that it does not act first
		must(t, netns.Freeze(daemon.cmd.Process.Pid))
		must(t, syscall.Kill(holder, syscall.SIGKILL))
		// The daemon might be killed at any instant now. So the fence must not be in its hands.
		eventually(t, "the address and the fence are gone", func() bool {
			fenced := kinds[0] == FenceTCX && b.programsAt(t, b.link(t, "eth0").Index, unix.BPF_TCX_INGRESS) > 0
			held := b.has(t, "", testVIP)
			if held && kinds[0] == FenceTCX && !fenced {
				t.Fatal("the fence is gone before the address")
			}
			return !held && !fenced
		})
		wantNothingLeft(t, b)
		must(t, daemon.cmd.Process.Kill())
		daemon.cmd.Wait()
		eventually(t, "both have ended", func() bool { return gone(holder) })
		wantNothingLeft(t, b)
	}
}

// wantNothingLeft wants a board to be as if there had never been a daemon.
func wantNothingLeft(t testing.TB, b *board) {
	t.Helper()
	eventually(t, "nothing is left", func() bool {
		eth0 := b.link(t, "eth0")
		xdp := eth0.Xdp != nil && eth0.Xdp.Attached
		return !b.has(t, "", testVIP) && !b.hasLink(t, DefaultDevice) && !xdp &&
			b.programsAt(t, eth0.Index, unix.BPF_TCX_INGRESS)+b.programsAt(t, eth0.Index, unix.BPF_TCX_EGRESS) == 0
	})
}

// programsAt counts the programs of traffic control on an interface; 0 if the kernel has no tcx.
func (b *board) programsAt(t testing.TB, ifindex int, attach uint32) (count int) {
	t.Helper()
	query := struct {
		ifindex, attach, flags, attachFlags uint32
		programs                            uint64
		count, _                            uint32
		_                                   [4]uint64 // the kernel writes a revision into it, whatever length it is told
	}{ifindex: uint32(ifindex), attach: attach}
	err := b.in(func() error {
		_, err := callBPF(unix.BPF_PROG_QUERY, &query)
		return err
	})
	if err != nil && err != unix.EINVAL && err != unix.ENOSPC {
		t.Fatal(fmt.Errorf("count programs: %w", err))
	}
	return int(query.count)
}

// TestFenceRefused has the kernel refuse bpf, as to a process without the capability: there is a lease, no fence, and a reason.
func TestFenceRefused(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root has capabilities to lose")
	}
	f, err := onLesserThread(func() (*kernelFence, error) { return bestFence([]netip.Addr{testVIP}) }, unix.CAP_BPF, unix.CAP_SYS_ADMIN)
	must(t, err)
	kind, why := f.State()
	assert.Is(t, FenceNone, kind, "the kind")
	assert.Is(t, "make an array map: operation not permitted (needs CAP_BPF and CAP_NET_ADMIN)", why, "the reason")
	must(t, f.Cover([]int{loopback}))
	wantLeaseAlone(t, f)
}

// TestNoFence has a kernel with nothing that is asked for.
func TestNoFence(t *testing.T) {
	f, err := newFence([]netip.Addr{testVIP}, FenceNone)
	must(t, err)
	wantLeaseAlone(t, f)
}

// wantLeaseAlone wants a lease to work that no fence enforces, and ends it.
func wantLeaseAlone(t *testing.T, f *kernelFence) {
	t.Helper()
	defer f.Close()
	assert.Is(t, false, f.Closes(), "it closes")
	f.Begin(NoEnd)
	assert.Is(t, true, extend(f, Now()+longLease), "the lease can be extended")
	assert.Is(t, true, f.Shut(), "the lease was not ended before")
	assert.Is(t, false, f.Fired(), "fired")
	f.Released()
}

// onLesserThread runs something in a thread without some capabilities.
func onLesserThread[T any](do func() (T, error), without ...uint) (T, error) {
	return onOwnThread(func() (v T, err error) {
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var data [2]unix.CapUserData
		if err := unix.Capget(&header, &data[0]); err != nil {
			return v, err
		}
		for _, capability := range without {
			data[capability/32].Effective &^= 1 << (capability % 32)
		}
		if err := unix.Capset(&header, &data[0]); err != nil {
			return v, err
		}
		return do()
	})
}

// TestFrozenThenAllKilled has all processes of a board stand still for longer than the lease, and then kills both
// of them, in either order, while somebody configures interfaces: then the kernel takes milliseconds to take the
// device away. The address is never answered again.
func TestFrozenThenAllKilled(t *testing.T) {
	t.Parallel() // and not judged: it makes the kernel late itself
	testedFences(t)
	needTUN(t)
	l := newLAN(t, 2)
	b, client := l.boards[0], l.boards[1]
	asks := openTestAnnouncer(t, client)
	var answered atomic.Int64
	asks.Answers(func(answer ARPAnswer) {
		if answer.Addr == testVIP {
			answered.Add(1)
		}
	})
	ask := func() { must(t, asks.Ask([]ARPQuestion{{Addr: testVIP}})) }
	_, handle := newNamespace(t)
	for range 2 {
		for _, holderFirst := range []bool{true, false} {
			daemon, holder := startArmedAs(t, b, strconv.Itoa(int(HoldTUN))+beating)
			eventually(t, "the address is answered", func() bool { ask(); return answered.Load() > 0 })
			eventually(t, "the daemon has no device of its own any more", func() bool {
				return len(glob(t, fmt.Sprintf("/proc/%d/fd/*", daemon.cmd.Process.Pid), "/dev/net/tun")) == 0
			})
			must(t, netns.Freeze(holder))
			must(t, netns.Freeze(daemon.cmd.Process.Pid))
			until(Now() + beatenLease)
			eventually(t, "the address is silent", func() bool { answered.Store(0); ask(); time.Sleep(silence); return answered.Load() == 0 })
			assert.Is(t, true, b.has(t, "", testVIP), "the address is there, and silent by the fence")
			stop := keepBusy(t, handle)
			kill := []func() error{func() error { return syscall.Kill(holder, syscall.SIGKILL) }, daemon.cmd.Process.Kill}
			if !holderFirst {
				slices.Reverse(kill)
			}
			for _, k := range kill {
				must(t, k())
			}
			for b.has(t, "", testVIP) {
				ask()
			}
			ask()
			daemon.cmd.Wait()
			eventually(t, "both have ended", func() bool { return gone(holder) })
			wantNothingLeft(t, b)
			stop()
			assert.Is(t, 0, answered.Load(), "answers of a board that is dead (holder first: %t)", holderFirst)
			answered.Store(0)
		}
	}
}

// keepBusy makes and deletes interfaces in another namespace, for which the kernel holds the lock that all
// namespaces share.
func keepBusy(t *testing.T, handle *netlink.Handle) (stop func()) {
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-end:
				return
			default:
			}
			veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "busy0"}, PeerName: "busy1"}
			_ = handle.LinkAdd(veth)
			_ = handle.LinkDel(veth)
		}
	}()
	stop = sync.OnceFunc(func() { close(end); <-ended })
	t.Cleanup(stop)
	return stop
}
