package netio

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
)

// TestCompanionFrozen has a companion sleep over the end of a lease that was extended
// meanwhile, and of one that was not.
func TestCompanionFrozen(t *testing.T) {
	const lease = 20 * time.Millisecond
	for _, extended := range []bool{true, false} {
		t.Run(fmt.Sprintf("extended=%t", extended), func(t *testing.T) {
			b := newGuardedBoard(t, HoldLifetime)
			d := startSwitch(t, b.board, b.plan())
			d.extend(Now() + longLease)
			must(t, syscall.Kill(d.PID(), syscall.SIGSTOP))
			eventually(t, "the companion stands still", func() bool { return processState(t, d.PID()) == "T" })
			d.extend(Now() + lease)
			waitOut(t, b.board, 2*lease)
			if d.fired() || !b.holds(t) {
				t.Fatal("a frozen companion removes the address")
			}
			if extended && !d.extend(Now()+longLease) {
				t.Fatal("a lease that nobody has ended cannot be extended")
			}
			must(t, syscall.Kill(d.PID(), syscall.SIGCONT))
			if !extended {
				eventually(t, "the address is gone", func() bool { return !b.holds(t) })
				b.wantResign(t)
				return
			}
			waitOut(t, b.board, lease)
			if d.fired() || !b.holds(t) {
				t.Error("the companion removed the address at the end of a lease that was extended")
			}
		})
	}
}

// TestMachineFrozen has both processes of a board stand still over the end of a lease, and go
// on at the same time: then the daemon is given a moment to extend it.
func TestMachineFrozen(t *testing.T) {
	const lease = 10 * time.Millisecond
	b := newGuardedBoard(t, HoldLifetime)
	d := startSwitch(t, b.board, b.plan())
	extended := 0
	for round := range 20 {
		d.extend(Now() + longLease)
		must(t, syscall.Kill(d.PID(), syscall.SIGSTOP))
		eventually(t, "the companion stands still", func() bool { return processState(t, d.PID()) == "T" })
		d.extend(Now() + lease)
		waitOut(t, b.board, lease+2*machineFrozenAfter)
		must(t, syscall.Kill(d.PID(), syscall.SIGCONT))
		// From the moment at which the companion goes on to when it waits.
		for until := Now() + time.Duration(round)*40*time.Microsecond; Now() < until; {
			runtime.Gosched()
		}
		if !d.extend(Now() + longLease) {
			// This process was slow: the machine is busy.
			eventually(t, "the address is gone", func() bool { return !b.holds(t) })
			d.disarm()
			must(t, b.floating.Acquire())
			d.arm()
			continue
		}
		extended++
		if round%4 == 0 {
			waitOut(t, b.board, 2*daemonWakes)
		}
		if d.fired() || !b.holds(t) {
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

// TestReleaseTooLate has a companion be so slow between the end of a lease and the removal
// of the address that the daemon has released it itself, and acquired it again.
func TestReleaseTooLate(t *testing.T) {
	for word, want := range map[uint64]bool{leaseFired: false, leaseIdle: true, leaseForever: true} {
		b := newGuardedBoard(t, HoldLifetime)
		c := &companion{lease: lease{word: leaseWord{new(uint64)}}, handle: b.handle, plan: b.floating.ReleasePlan()}
		c.lease.put(word)
		must(t, c.release())
		if got := b.holds(t); got != want {
			t.Errorf("the word is %d: the address is there: %t, want %t", word, got, want)
		}
	}
}

// TestReleaseOfTheNextLease has a companion stand still between its look at the lease and the removal of
// the address. The daemon has acquired it anew by then, for its next lease.
func TestReleaseOfTheNextLease(t *testing.T) {
	for _, method := range []HoldMethod{HoldTUN, HoldLifetime} {
		for _, again := range []bool{true, false} {
			t.Run(fmt.Sprintf("%v, acquired again=%t", method, again), func(t *testing.T) {
				b := newGuardedBoard(t, method)
				c := b.firedCompanion()
				planned, present := c.planned(), c.present(c.plan.Addresses)
				if again {
					must(t, b.floating.Release())
				}
				must(t, b.floating.Acquire())
				for what, addresses := range map[string][]labelled{"the plan": planned, "the list": present} {
					missing, err := c.remove(addresses)
					must(t, err)
					if again && !slices.Equal(missing, []netip.Addr{testVIP}) {
						t.Errorf("by the label of %s, these are not there: %v", what, missing)
					}
					if got := b.holds(t); got != again {
						t.Errorf("by the label of %s: the address is there: %t, want %t", what, got, again)
					}
				}
			})
		}
	}
}

// firedCompanion is a companion in this process, with the plan of now and a lease that was ended.
func (b *guardedBoard) firedCompanion() *companion {
	c := &companion{lease: lease{word: leaseWord{new(uint64)}}, handle: b.handle, plan: b.floating.ReleasePlan()}
	c.lease.put(leaseFired)
	return c
}

// TestRemovedByThePlan: the plan has the label that the address has in the kernel, each time it is held, so
// that the companion need not list the addresses, which may wait for the kernel as long as a removal.
func TestRemovedByThePlan(t *testing.T) {
	for _, method := range testedMethods {
		t.Run(method.String(), func(t *testing.T) {
			b := newGuardedBoard(t, method)
			labels := map[string]bool{}
			for range 2 {
				must(t, b.floating.Acquire())
				sent := b.firedCompanion()
				message, err := json.Marshal(sent.plan)
				must(t, err)
				sent.replacePlan(message, nil)
				missing, err := sent.remove(sent.planned())
				if len(missing) > 0 || err != nil || b.holds(t) {
					t.Errorf("not there by the label %q: %v, error %v", sent.plan.Label, missing, err)
				}
				labels[sent.plan.Label] = true
				must(t, b.floating.Release())
			}
			if len(labels) != 2 || labels[""] {
				t.Errorf("held twice by the labels %q", slices.Collect(maps.Keys(labels)))
			}
		})
	}
	t.Run("another device", func(t *testing.T) {
		b := newGuardedBoard(t, HoldTUN)
		must(t, b.handle.LinkDel(&netlink.Tuntap{LinkAttrs: *b.link(t, b.floating.Device())}))
		openFloating(t, b.board, FloatingOptions{Method: HoldTUN}) // has the name now
		_, err := b.floating.Renew()
		must(t, err)
		c := b.firedCompanion()
		if device, _, _ := strings.Cut(c.plan.Label, ":"); device != "topdog1" || device != b.floating.Device() {
			t.Errorf("the label is %q on %s", c.plan.Label, b.floating.Device())
		}
		if missing, err := c.remove(c.planned()); len(missing) > 0 || err != nil {
			t.Errorf("not there by the label %q: %v, error %v", c.plan.Label, missing, err)
		}
	})
}

// TestPlanBeforeAcquire has a companion that was given the plan of a board that had not acquired the address yet.
func TestPlanBeforeAcquire(t *testing.T) {
	for _, method := range testedMethods {
		t.Run(method.String(), func(t *testing.T) {
			needTUN(t)
			b := &guardedBoard{board: newLAN(t, 1).boards[0]}
			b.floating = openFloating(t, b.board, FloatingOptions{Method: method, lifetime: longLease})
			c := b.firedCompanion()
			must(t, b.floating.Acquire())
			must(t, c.removeAddresses())
			if b.holds(t) {
				t.Error("the address is there")
			}
		})
	}
}

// TestRemovedWithoutThePlan has an address that is not there by the label of the plan.
func TestRemovedWithoutThePlan(t *testing.T) {
	t.Run("a plan of the time before", func(t *testing.T) {
		b := newGuardedBoard(t, HoldLifetime)
		c := b.firedCompanion()
		must(t, b.floating.Release())
		must(t, b.floating.Acquire())
		must(t, c.removeAddresses())
		if b.holds(t) {
			t.Error("the address is there")
		}
	})
	t.Run("not in the list yet", func(t *testing.T) {
		b := newGuardedBoard(t, HoldLifetime)
		c := b.firedCompanion()
		must(t, b.floating.Release())
		missing, err := c.remove(c.planned())
		must(t, err)
		present := c.present(missing)
		must(t, b.floating.Acquire())
		_, err = c.remove(present)
		must(t, err)
		if b.holds(t) {
			t.Error("the address is there")
		}
	})
	t.Run("not there at all", func(t *testing.T) {
		b := newGuardedBoard(t, HoldLifetime)
		c := b.firedCompanion()
		must(t, b.floating.Release())
		must(t, c.removeAddresses())
		must(t, b.handle.LinkDel(&netlink.Veth{LinkAttrs: *b.link(t, "eth0")}))
		must(t, c.removeAddresses())
	})
}

// TestHeldLabel: the kernel has room for 15 characters, and the last digits are those that change.
func TestHeldLabel(t *testing.T) {
	const from = 123456789 * time.Microsecond
	for device, want := range map[string]string{
		"topdog0": "topdog0:21i3v9", "wlx0012345678": "wlx0012345678:9",
		"enx001234567890": "", "wlx00123456789": "",
	} {
		if got := heldLabel(device, from); got != want {
			t.Errorf("%s: %q, want %q", device, got, want)
		}
	}
	if heldLabel("topdog0", from) == heldLabel("topdog0", from+time.Microsecond) {
		t.Error("two times have one label")
	}
}

// TestToldToEnd has a service manager, or a terminal, tell every process to end. Only the
// daemon decides when to go.
func TestToldToEnd(t *testing.T) {
	b := newGuardedBoard(t, HoldLifetime)
	d := startSwitch(t, b.board, b.plan())
	waitOut(t, b.board, time.Millisecond) // the companion has begun, most likely, as this one has
	d.extend(Now() + time.Millisecond)
	b.wantResign(t) // now it surely has
	d.disarm()
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGABRT, syscall.SIGPIPE} {
		must(t, syscall.Kill(d.PID(), s))
	}
	must(t, b.floating.Acquire())
	must(t, b.prepare(d, b.plan()))
	d.arm()
	d.extend(Now() + time.Millisecond)
	eventually(t, "the address is gone", func() bool { return !b.holds(t) })
	select {
	case <-d.Exited():
		t.Error("the companion has ended")
	default:
	}
}

func TestCompanionKilled(t *testing.T) {
	b := newGuardedBoard(t, HoldLifetime)
	d := startSwitch(t, b.board, b.plan())
	select {
	case <-d.Exited():
		t.Fatal("ended before it was killed")
	default:
	}
	must(t, syscall.Kill(d.PID(), syscall.SIGKILL))
	receive(t, "the companion's end", d.Exited())
	if d.fired() || !d.extend(Now()+longLease) {
		t.Error("the lease of a dead companion has run out")
	}
	if err := b.prepare(d, b.plan()); err == nil {
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
	f, err := newFence(nil)
	must(t, err)
	defer f.Close()
	before := openFiles(t)
	_, err = StartDeadman([]string{"/nonexistent/topdog", companionWord}, f)
	if err == nil || !strings.Contains(err.Error(), "start the dead man's switch") || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if after := openFiles(t); after != before {
		t.Errorf("%d files are open, %d were before", after, before)
	}
}

// TestNothingLeaks starts and ends companions again and again.
func TestNothingLeaks(t *testing.T) {
	b := newGuardedBoard(t, HoldTUN)
	// A companion keeps nothing of what it was given before.
	d := startSwitch(t, b.board, ReleasePlan{})
	fds := func() int {
		files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", d.PID()))
		must(t, err)
		return len(files)
	}
	// It has what it began with, and the two files of the plan.
	must(t, b.prepare(d, b.plan()))
	bundle, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", d.fence.bundled.socket))
	must(t, err)
	eventually(t, "the companion has the bundle", func() bool {
		return len(glob(t, fmt.Sprintf("/proc/%d/fd/*", d.PID()), bundle)) == 1
	})
	with := fds()
	for range 5 {
		must(t, b.prepare(d, b.plan()))
	}
	must(t, b.prepare(d, ReleasePlan{}))
	eventually(t, "the companion has closed all", func() bool { return fds() == with-2 })

	// Nor does the daemon.
	use := func() {
		d, err := b.startDeadman()
		must(t, err)
		must(t, b.prepare(d, b.plan()))
		must(t, d.Close())
		must(t, d.fence.Close())
	}
	use()
	before := openFiles(t)
	for range 3 {
		use()
	}
	if after := openFiles(t); after != before {
		t.Errorf("%d files are open, %d were before", after, before)
	}
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
