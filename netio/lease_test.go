package netio

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/judge"
)

func TestLeaseRunsOut(t *testing.T) {
	eachMethod(t, func(t *judge.T, method HoldMethod) {
		b := newGuardedBoard(t, method)
		assert.Is(t, true, !b.fired() && b.extend(Now()+10*time.Millisecond), "the lease lasts, and can be extended")
		eventually(t, "the address is gone", func() bool { return !b.holds(t) })
		b.wantResign(t)
		if !b.fired() || b.extend(Now()+longLease) || b.extend(NoEnd) || b.disarm() {
			t.Error("the daemon is not told that the lease has run out")
		}
		assert.Is(t, false, b.fired(), "a lease that was ended counts as run out")

		// The same holder watches the next lease.
		b.arm()
		must(t, b.floating.Acquire())
		must(t, b.prepare(testResign))
		assert.Is(t, true, b.extend(Now()+10*time.Millisecond), "the next lease can be extended")
		eventually(t, "the address is gone again", func() bool { return !b.holds(t) })
	})
}

func TestLeaseExtended(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		end  func(g *guard) bool
	}{
		{"for longer", func(g *guard) bool { return g.extend(Now() + longLease) }},
		{"for ever", func(g *guard) bool { return g.extend(NoEnd) }},
		{"ended", (*guard).disarm},
		{"ended, and the next one begun", func(g *guard) bool {
			ok := g.disarm()
			g.arm()
			return ok
		}},
	} {
		t.Run(test.name, judged(func(t *judge.T) {
			const lease = 100 * time.Millisecond
			b := newGuardedBoard(t, HoldLifetime)
			for b.extend(Now() + lease); !test.end(b.guard); b.extend(Now() + lease) {
				// This machine stood still, and the lease has run out.
				eventually(t, "the address is gone", func() bool { return !b.holds(t) })
				b.disarm()
				until(Now() + lease) // until all copies of the RESIGN were sent
				for len(b.neighbour.got) > 0 {
					<-b.neighbour.got
				}
				b.arm()
				must(t, b.floating.Acquire())
			}
			until(Now() + 2*lease)
			b.wantHeld(t)
			b.disarm()
			must(t, b.Close())
			b.wantQuiet(t)
		}))
	}
}

// TestLeaseLooksLater has the holder not look before the moment that it was given, though the lease is over.
func TestLeaseLooksLater(t *testing.T) { judge.RunTogether(t, testLeaseLooksLater) }

func testLeaseLooksLater(t *judge.T) {
	b := newGuardedBoard(t, HoldLifetime)
	wake := Now() + 50*time.Millisecond
	assert.Is(t, true, b.fence.Extend(Now(), wake), "the lease lasts, and can be extended")
	eventually(t, "the address is gone", func() bool {
		gone := !b.holds(t)
		if gone && Now() < wake {
			t.Errorf("it looked %v too soon", wake-Now())
		}
		return gone
	})
	b.wantResign(t)
}

// TestLeaseExtendedOrNot has the daemon be late by about nothing, time and again: either it
// has extended the lease and keeps the address, or it is told that it has not.
func TestLeaseExtendedOrNot(t *testing.T) { judge.RunTogether(t, testLeaseExtendedOrNot) }

func testLeaseExtendedOrNot(t *judge.T) {
	b := newGuardedBoard(t, HoldLifetime)
	extended, fired := 0, 0
	for round := range 60 {
		b.extend(Now() + time.Millisecond)
		// From a little before the end to a little after it.
		for until := Now() + time.Millisecond + time.Duration(round%12-3)*20*time.Microsecond; Now() < until; {
			runtime.Gosched()
		}
		if b.extend(Now() + longLease) {
			extended++
			assert.Is(t, false, b.fired(), "a lease that was extended has run out")
			continue
		}
		fired++
		eventually(t, "the address is gone", func() bool { return !b.holds(t) })
		assert.Is(t, false, b.disarm(), "a lease that could not be extended was ended in time")
		b.arm()
		must(t, b.floating.Acquire())
	}
	until(Now() + 50*time.Millisecond) // for what the holder may still be about to do
	assert.Is(t, true, b.holds(t), "the address is there, as the daemon believes")
	t.Logf("extended %d times, too late %d times", extended, fired)
}

// TestExpire holds when a holder ends a lease, and when it waits before.
func TestExpire(t *testing.T) {
	ago := func(d time.Duration) func() uint64 {
		return func() uint64 { return wordOf(Now() - d) }
	}
	for _, test := range []struct {
		name  string
		word  func() uint64
		fired bool
		waits bool
		want  bool
	}{
		{"in time", ago(0), true, false, true},
		{"late", ago(machineFrozenAfter + time.Millisecond), true, true, true},
		{"set anew before it is looked at", ago(0), false, false, false},
		{"set anew meanwhile", ago(-longLease / 4), false, false, false},
		{"nothing to release", func() uint64 { return leaseIdle }, true, false, false},
		{"released already", func() uint64 { return leaseFired }, true, false, false},
		{"for ever", func() uint64 { return leaseForever }, true, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			timer, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
			must(t, err)
			defer unix.Close(timer)
			if test.fired {
				must(t, unix.TimerfdSettime(timer, 0, &unix.ItimerSpec{Value: unix.NsecToTimespec(1)}, nil))
				_, err := unix.Poll([]unix.PollFd{{Fd: int32(timer), Events: unix.POLLIN}}, -1)
				must(t, err)
			}
			l := sharedLease{word: sharedWord{new(uint64)}, timer: timer}
			before := test.word()
			l.put(before)
			start := Now()
			if got := l.expire(); got != test.want || got != (l.word.load() == leaseFired && before != leaseFired) {
				t.Errorf("ends the lease: %t, and the word is %d, want %t", got, l.word.load(), test.want)
			}
			if took := Now() - start; test.waits && took < daemonWakes {
				t.Errorf("the daemon was given %s, want %s", took, daemonWakes)
			}
		})
	}
}

// TestExpireAfterExtend has the machine stand still until after the holder had to wake. The holder runs first,
// and the daemon extends the lease while that waits, also by the same end if the majority was not heard.
func TestExpireAfterExtend(t *testing.T) {
	for _, test := range []struct {
		name     string
		end      func(former time.Duration) time.Duration
		extended bool
	}{
		{"another end", func(time.Duration) time.Duration { return Now() + longLease }, true},
		{"the same end", func(former time.Duration) time.Duration { return former }, true},
		{"the daemon stands still", nil, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			l, err := newLease(nil)
			must(t, err)
			defer l.close()
			end := Now()
			l.Begin(end + longLease)
			assert.Is(t, true, l.Extend(end, end+time.Millisecond), "the lease lasts, and can be extended")
			until(end + 2*machineFrozenAfter)
			ended := make(chan bool)
			go func() { ended <- l.expire() }()
			if test.end != nil {
				for began := Now(); Now()-began < time.Millisecond; { // until the holder waits
					runtime.Gosched()
				}
				test.extended = l.Extend(test.end(end), Now()+longLease) // false if this machine stood still
			}
			assert.Is(t, !test.extended, <-ended, "the holder ends the lease")
			assert.Is(t, !test.extended, l.Fired(), "the lease has fired")
		})
	}
}

func TestLeaseLasts(t *testing.T) {
	l, err := newLease(nil)
	must(t, err)
	defer l.close()
	for name, c := range map[string]struct {
		word uint64
		want bool
	}{
		"none":         {leaseIdle, false},
		"ended":        {leaseFired, false},
		"without end":  {leaseForever, true},
		"for a second": {uint64(Now() + time.Second), true},
		"just over":    {uint64(Now()), false},
	} {
		l.put(c.word)
		assert.Is(t, c.want, l.lasts(), "%s: it lasts", name)
	}
}

// TestLeaseWord has many change the word at the same time, across the border between its halves: none
// of the changes is lost, and nobody reads halves that do not belong together.
func TestLeaseWord(t *testing.T) {
	const workers, each, step, start = 4, 2000, 1<<20 + 1, 1<<32 - 1<<21
	word := sharedWord{new(uint64)}
	if !word.swap(0, start) || word.load() != start {
		t.Fatalf("the word is %#x", word.load())
	}
	if word.swap(0, 1) || word.load() != start {
		t.Errorf("a word that has another value was changed to %#x", word.load())
	}
	var work sync.WaitGroup
	for range workers {
		work.Go(func() {
			for range each {
				for {
					former := word.load()
					if (former-start)%step != 0 {
						t.Errorf("%#x was read, which the word never was", former)
						return
					}
					if word.swap(former, former+step) {
						break
					}
				}
			}
		})
	}
	work.Wait()
	assert.Is(t, uint64(start+workers*each*step), word.load(), "the word")
}
