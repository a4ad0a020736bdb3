package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"topdog/election/steps"
	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/netio"
	"topdog/wire"
)

// address is the floating address on this board, or all of them, since they are held together. Only [address.acquire]
// acquires it: when the core says so, and again for as long as the core wants it held.
type address struct {
	shared
	link       *link
	group      *group
	lease      *lease
	floating   []config.Address
	takes      bool                               // take it from a machine that has it at a cold start, see election.TakeInUseAfter
	firstEnd   func() time.Duration               // when a lease ends that begins now, unless the COORDINATOR has left by then
	tellHeld   func(bool)                         // is called whenever it was acquired or released
	rivalHeard func(netip.Addr, net.HardwareAddr) // is called in the loop when a machine claims an address
	steps      steps.List

	// Holding it.
	iface      string          // where it is to be held
	addresses  Addresses       // nil until it was opened
	openedOn   string          // the interface that it was opened for
	state      netio.HoldState // how it is held, as people were told last
	wanted     bool            // the core wants the address held
	held       bool
	unfinished bool          // it was just acquired, and finishAcquire was not called yet
	acquired   int           // how often it was acquired
	renewAt    time.Duration // when to start its lifetime over, or to try again to acquire it
	restored   uint64        // how often something else had deleted it

	stray condition // a floating address is somewhere that topdog has not put it

	// Releasing it, and failing to.
	overtaken  bool          // somebody else had ended the lease before this board released the address
	unreleased bool          // this board may still have it
	goneAt     time.Duration // when the kernel has removed it
	releaseAt  time.Duration // when to try again to release it

	// Failing to acquire it.
	failed       bool          // acquiring it failed, and the core was not told yet
	backOff      time.Duration // how long this board backs off; it doubles
	backOffUntil time.Duration // when this board stands for the lead again; never if it does now

	// Announcing and defending it.
	announcer Announcer  // nil while the link is closed, and on a witness
	defence   wire.Limit // of the claims of rivals that are answered
	probes    int        // counts the probes, so that the answer to an old one is recognized
}

const (
	// renewEvery is how often the lifetime is started over. A renewal may be late by as much again before the address is
	// lost. From renewAfter on, the address is renewed whenever the loop is awake anyway, as for a heartbeat: waking up
	// costs more than renewing.
	renewEvery = netio.DefaultLifetime / 2
	renewAfter = netio.DefaultLifetime * 2 / 5
	// retryAcquireEvery is how often a leader that cannot acquire the address tries again.
	retryAcquireEvery = 500 * time.Millisecond
	// retryReleaseEvery is how often releasing it is tried again. Until then the other boards have to wait.
	retryReleaseEvery = 50 * time.Millisecond
)

// due is when the address needs attention again.
func (a *address) due() time.Duration {
	switch {
	case !a.wanted && a.unreleased:
		return a.releaseAt
	case !a.wanted:
		return never
	}
	return a.renewAt
}

// open prepares to hold the address when the link has been opened, so that a takeover finds everything open.
func (a *address) open(iface string, n Announcer) {
	a.iface, a.announcer = iface, n
	if n != nil {
		n.Rivals(nil, func(addr netip.Addr, mac net.HardwareAddr) { a.tasks.tryPost(func() { a.rivalHeard(addr, mac) }) })
		n.Unannounced(func(err error) { a.tasks.tryPost(func() { a.group.noteSend(err) }) })
	}
	a.openAddresses()
	if a.wanted {
		a.acquire() // the interface was made anew, or our own address changed, while this board leads
	}
}

func (a *address) openAddresses() {
	if a.isOpen() || a.platform.OpenAddresses == nil {
		return
	}
	a.reporter.beforeLong(a.now())
	addresses, err := a.platform.OpenAddresses(a.iface, a.configured())
	if err != nil {
		a.reporter.alert(console.ProblemAddressNotHeld, err.Error())
		return
	}
	if a.addresses != nil { // of another interface
		a.reporter.failed("close", a.addresses.Close())
	}
	a.addresses, a.openedOn = addresses, a.iface
	a.state = addresses.State()
	a.tellMissing()
	a.reporter.log.Infof("would hold %s on %s by %v (%s)", joined(a.prefixes()), a.state.Device, a.state.Method, a.state.Reason)
}

// isOpen reports whether everything is open to hold the address on the group's interface.
func (a *address) isOpen() bool { return a.addresses != nil && a.openedOn == a.iface }

// acquire acquires the address and has it announced, or does both again, as the core would have it done.
func (a *address) acquire() { a.steps.Do(steps.Acquire, a.take) }

// release releases the address, as the core would have it done.
func (a *address) release() { a.steps.Do(steps.Release, a.take) }

// take takes one step of acquiring or releasing the address. It reports false if this must not be done: if the dead man's switch
// has fired. The core hears of that before anything else is done.
func (a *address) take(s steps.Step) bool {
	switch s.Kind {
	case steps.Gate:
		return !a.lease.fired()
	case steps.BeginTimer: // Fence.Begin sets it before the lease word
	case steps.BeginWord:
		a.wanted = true
		a.lease.begin(a.firstEnd())
	case steps.Add:
		a.add()
	case steps.Shut:
		a.shut()
	case steps.Remove:
		a.remove()
	case steps.Open:
		a.openFence()
		if a.overtaken {
			a.lease.firedFirst()
		}
	}
	return true
}

// add acquires the address, and has it announced.
func (a *address) add() {
	now := a.now()
	a.renewAt = now + retryAcquireEvery
	a.openAddresses() // unless they were opened with the link
	if !a.isOpen() {
		a.failed = true
		return
	}
	if err := a.trace.during(console.StepAcquireBegun, console.StepAcquireEnded, a.addresses.Acquire); err != nil {
		a.acquireFailed(err)
		return
	}
	a.reporter.solved(console.ProblemAddressNotReleased)
	a.tellMoved()
	a.tellMissing()
	a.setHeld(true)
	a.unreleased, a.backOff = false, 0
	a.acquired++
	a.renewAt = now + renewEvery
	a.announce(ipsOf(a.floating))
	a.unfinished = true
}

func (a *address) acquireFailed(err error) {
	a.setHeld(false)
	a.failed, a.state.Problem = true, ""
	a.reporter.alert(console.ProblemAddressNotHeld, err.Error())
}

// setHeld notes whether this board has the address.
func (a *address) setHeld(held bool) {
	a.held = held
	a.tellHeld(held)
}

// finishAcquire does what can wait until the other boards know that the address was acquired.
func (a *address) finishAcquire() {
	if !a.unfinished {
		return
	}
	a.unfinished = false
	switch {
	case !a.held:
	case a.state.Problem != "":
		a.reporter.log.Infof("holds some of %s", joined(a.prefixes()))
	default:
		a.reporter.log.Infof("holds %s", joined(a.prefixes()))
	}
}

// shut ends the lease: if there is a fence, it keeps everybody off the address from then on.
func (a *address) shut() {
	a.wanted = false
	a.setHeld(false)
	a.overtaken = !a.lease.shut()
	a.announce(nil)
}

// remove removes the address. If that fails, it is tried again later. Even if it keeps failing, the kernel removes the
// address at the end of its lifetime, since nobody renews it.
func (a *address) remove() {
	if a.addresses != nil {
		if err := a.trace.during(console.StepReleaseBegun, console.StepReleaseEnded, a.addresses.Release); err != nil {
			if !a.unreleased {
				a.goneAt = a.now() + netio.GoneAfter
			}
			a.unreleased, a.releaseAt = true, a.now()+retryReleaseEvery
			a.reporter.alert(console.ProblemAddressNotReleased, err.Error())
			return
		}
	}
	if a.state.Problem != "" { // of what this board does not hold any more
		a.state.Problem = ""
		a.tellMissing()
	}
	if a.unreleased {
		a.unreleased = false
		a.reporter.solved(console.ProblemAddressNotReleased)
	}
}

// openFence opens the fence if the address was certainly removed.
func (a *address) openFence() {
	if !a.unreleased {
		a.lease.released()
	}
}

// mayAnswer reports whether this board may still answer for an address that it could not release, see steps.State.Withholds. The
// kernel removes the address at the end of its lifetime.
func (a *address) mayAnswer() bool {
	return a.unreleased && !a.lease.closes() && a.now() < a.goneAt
}

// close releases the address, and closes what holds it.
func (a *address) close() {
	a.release()
	if a.addresses != nil {
		a.reporter.failed("close", a.addresses.Close())
	}
}

// maintain does what is due for the address.
func (a *address) maintain(now time.Duration) {
	switch {
	case !a.wanted && a.unreleased && now >= a.releaseAt:
		a.remove()
		a.openFence()
		return
	case !a.wanted || a.announcer == nil:
		return
	case !a.held:
		if now >= a.renewAt {
			a.acquire()
		}
		return
	}
	if now >= a.renewAt-(renewEvery-renewAfter) {
		a.renew(now)
	}
}

// renew starts the lifetime of the address over, in a task. The kernel takes a lock for that, and another program, which
// makes a container or sets up a wireless interface, may hold it for tens of milliseconds. A leader's heartbeats must not
// wait for that. Several tasks may wait, since one that began earlier may have looked at the address before it was deleted.
func (a *address) renew(now time.Duration) {
	if a.lease.fired() {
		return // the core hears of it before anything else is done
	}
	a.renewAt = now + renewEvery
	addresses, acquired := a.addresses, a.acquired
	a.tasks.start(func(context.Context) {
		restored, err := addresses.Renew()
		a.tasks.post(func() { a.renewed(acquired, restored, err) })
	})
}

// renewed handles the result of a renewal, which began when the address had been acquired that often.
func (a *address) renewed(acquired int, restored bool, err error) {
	switch {
	case !a.held:
		return // it was released meanwhile
	case acquired != a.acquired:
		// It was released and acquired again meanwhile, so the result is out of date.
	case errors.Is(err, netio.ErrExpired):
		a.reporter.log.Warn("the lifetime of the address ended before it was renewed; acquiring it again")
		a.setHeld(false)
		a.renewAt = a.now() // acquire it once the core says that this board still leads
		return
	case err != nil:
		a.acquireFailed(err)
		return
	default:
		a.tellRenewed(restored)
	}
}

// tellRenewed tells people and neighbours what a renewal has changed.
func (a *address) tellRenewed(restored bool) {
	missing := a.state.Problem
	moved := a.tellMoved()
	a.tellMissing()
	switch completed := missing != "" && a.state.Problem == ""; {
	case completed:
		a.reporter.log.Infof("holds all of %s", joined(a.prefixes()))
	case !restored:
		return
	case !moved:
		a.restored++
		a.reporter.log.Warnf("something else deleted the address %s; it was put back", joined(a.prefixes()))
	}
	a.announceAnew()
}

// tellMoved logs if the address is held in another way than before, and reports whether it is.
func (a *address) tellMoved() (moved bool) {
	state := a.addresses.State()
	moved = state.Method != a.state.Method
	a.state = state
	if moved {
		a.reporter.log.Warnf("holds %s on %s by %v from now on (%s)", joined(a.prefixes()), state.Device, state.Method, state.Reason)
	}
	return moved
}

// tellMissing tells people that some of the addresses could not be added, for as long as that lasts. Those of IPv4 are held all
// the same, so this board leads on.
func (a *address) tellMissing() {
	if a.state.Problem == "" {
		a.reporter.solved(console.ProblemAddressNotHeld)
	} else {
		a.reporter.alert(console.ProblemAddressNotHeld, a.state.Problem)
	}
}

// restore renews the address if it is missing: somebody may have deleted it. If the snapshot is older than the address,
// that restores nothing.
func (a *address) restore(s netio.Snapshot) {
	missing := func(f config.Address) bool { return !s.Has(f.IP) }
	if a.held && slices.ContainsFunc(a.floating, missing) {
		a.renew(a.now())
	}
}

// How long a board that could not acquire the address backs off. Without that, boards that all lack the permission
// would pass the lead around as fast as they can send, and a broken board that preempts would claim it again and
// again.
const (
	backOffMin = 10 * time.Second
	backOffMax = 5 * time.Minute
)

// clearFailure reports whether the address could not be acquired, and is still wanted and not held. It then forgets the
// failure.
func (a *address) clearFailure() bool {
	failed := a.failed && a.wanted && !a.held
	a.failed = false
	return failed
}

// beginBackOff begins a time during which this board does not stand for the lead.
func (a *address) beginBackOff(now time.Duration) {
	a.backOff = min(max(2*a.backOff, backOffMin), backOffMax)
	a.backOffUntil = now + a.backOff
}

// backsOff reports whether that time has not ended.
func (a *address) backsOff() bool { return a.backOffUntil != never }

// endBackOff ends it when it is over, and reports whether it was.
func (a *address) endBackOff(now time.Duration) bool {
	if now < a.backOffUntil {
		return false
	}
	a.backOffUntil = never
	return true
}

// extendLease moves the end of the lease, see lease.extend.
func (a *address) extendLease(end, overdue time.Duration) {
	if a.announcer != nil {
		a.lease.extend(end, overdue)
	}
}

// prepare keeps the RESIGN of the dead man's switch up to date.
func (a *address) prepare(resign wire.Message) {
	if a.announcer != nil && a.held {
		a.lease.prepare(resign)
	}
}

// configured are the floating addresses with their configured prefix lengths. One without a configured length is alone
// (/32): then no route comes with it, and nothing is copied from the interface's own network, which may change.
func (a *address) configured() (all []netip.Prefix) {
	for _, f := range a.floating {
		if f.Bits == config.FromSubnet {
			f.Bits = f.IP.BitLen()
		}
		all = append(all, netip.PrefixFrom(f.IP, f.Bits))
	}
	return all
}

// prefixes are the floating addresses with the prefix lengths that people are told.
func (a *address) prefixes() (all []netip.Prefix) {
	for _, f := range a.floating {
		all = append(all, a.link.prefix(f))
	}
	return all
}

// status fills in what topdog status shows of it.
func (a *address) status(s *console.Status) {
	s.Holding = a.held
	s.Counters.AddressRestored = a.restored
	for _, p := range a.prefixes() {
		s.Addresses = append(s.Addresses, p.String())
	}
	if a.addresses != nil {
		state := a.addresses.State()
		s.HoldMethod = state.Method.String()
		if state.Method == netio.HoldTUN {
			s.Defences = append(s.Defences, console.Defence{
				Kind: console.DefenceTUN, On: true, Text: "the address goes when this daemon is killed",
			})
		}
		s.Defences = append(s.Defences, console.Defence{
			Kind: console.DefenceLifetime, On: true, Text: "the kernel removes the address when nobody has renewed it for 1 to 2.25 s",
		})
		s.HoldText = fmt.Sprintf("%v on %s: %s", state.Method, state.Device, state.Reason)
	}
}
