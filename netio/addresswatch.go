package netio

import (
	"bytes"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"topdog/wire"
)

// AddressWatch says how the machine that has a floating address is asked for it, again and again.
type AddressWatch struct {
	Addr netip.Addr
	// To is the Ethernet address to ask if nobody has announced Addr since the Announcer was opened. It may be nil: then
	// nothing is asked until somebody announces Addr.
	To    net.HardwareAddr
	Every time.Duration // between two questions; 0 ends the watch
}

// WatchReport is what a watch has found out.
type WatchReport struct {
	// MissedSince is when the first of the questions was asked that have gone unanswered, on the clock of Now; 0 while the
	// address answers.
	MissedSince time.Duration
	// Every is the time between two questions at present. 0 says that the watch is of no use: nothing answers, or answers
	// come too late, or too few.
	Every     time.Duration
	RoundTrip time.Duration // how long answers take, smoothed; 0 if none has come
	Lost      float64       // share of questions that were not answered of late, 0 to 1
	Why       WatchState
}

// WatchState is what a watch is in.
type WatchState uint8

const (
	WatchNoAnswer WatchState = iota // nothing has answered yet, or for long
	WatchAnswers                    // the address answers
	WatchMissed                     // the latest questions have gone unanswered
	WatchLate                       // answers take too long
	WatchLossy                      // too few answers come
)

var watchStates = [...]string{
	WatchNoAnswer: "no_answer", WatchAnswers: "answers", WatchMissed: "missed", WatchLate: "late", WatchLossy: "lossy",
}

// String returns an identifier.
func (s WatchState) String() string {
	if int(s) >= len(watchStates) {
		return fmt.Sprintf("WatchState(%d)", int(s))
	}
	return watchStates[s]
}

// drainTries is how often drainMax packets are read before an answer is missed. After a flood, the socket is as full as it gets.
const drainTries = 8

// addressWatching is the AddressWatch of an Announcer. In the steady state a question wakes the process twice, when it is due and when
// the answer comes, and nothing is allocated.
type addressWatching struct {
	wanted AddressWatch // the zero value while nothing is watched
	target hardwareAddr // who is asked; zero for nobody
	rounds rounds
	least  uint32     // the least ARP operation that spares a question, arpRequest or arpReply; 0 as long as it is not known
	limit  wire.Limit // of what the machine that is asked sends besides answers
	awaits bool       // the latest question was not answered: in a flood, the kernel lets the answer in
	heard  func(WatchReport)
	timer  *wakeTimer // nil before the first watch

	// own is the Ethernet address in whose name is asked. Since it may change, it is read anew for the second question of
	// each round: the answers to a former address do not arrive. So a change costs one question.
	own  hardwareAddr
	to   unix.RawSockaddrLinklayer
	ask  [arpLength]byte  // the question
	send func(fd uintptr) // made once, since a closure allocates
	err  error            // of send
}

// Watch begins to ask for an address, or changes how it is asked for, or ends that. Only one address is watched at a time.
func (a *Announcer) Watch(w AddressWatch) error {
	w.Addr = w.Addr.Unmap()
	if w.Every > 0 && (!w.Addr.Is4() || len(w.To) != 0 && len(w.To) != len(hardwareAddr{})) {
		return fmt.Errorf("netio: watch %s on interface %d: asking %s for it by ARP is impossible", w.Addr, a.index, w.To)
	}
	w.To = slices.Clone(w.To)
	a.reading.Lock()
	defer a.reading.Unlock()
	if w.Every <= 0 {
		a.watching.wanted, a.watching.target, a.watching.least = AddressWatch{}, hardwareAddr{}, 0
		_ = a.renewFilter()
		return nil // the timer expires once more
	}
	if err := a.openWatchTimer(); err != nil {
		return fmt.Errorf("netio: watch %s on interface %d: %w", w.Addr, a.index, err)
	}
	former := a.watching.wanted
	a.watching.wanted = w
	if former.Addr != w.Addr || former.Every != w.Every {
		a.watching.target = hardwareAddr{} // to begin anew
	}
	a.aim()
	return nil
}

// Watched sets the function that is told what a watch has found out. heard must call no method of the Announcer.
func (a *Announcer) Watched(heard func(WatchReport)) {
	a.reading.Lock()
	defer a.reading.Unlock()
	a.watching.heard = heard
}

// openWatchTimer opens the timer, and has it ask whenever it expires. It is called with reading locked.
func (a *Announcer) openWatchTimer() error {
	select {
	case <-a.closed:
		return net.ErrClosed
	default:
	}
	if a.watching.timer != nil {
		return nil
	}
	timer, err := openWakeTimer()
	if err != nil {
		return err
	}
	a.watching.timer, a.watching.send = timer, a.sendWatch
	a.listener.Go(func() { timer.each(a.watchDue) })
	return nil
}

// closeWatch ends the watch. To close the timer waits for watchDue, which may wait for reading.
func (a *Announcer) closeWatch() {
	a.reading.Lock()
	a.watching.wanted, a.watching.target = AddressWatch{}, hardwareAddr{}
	timer := a.watching.timer
	a.reading.Unlock()
	if timer != nil {
		timer.Close()
	}
}

// aim finds out who is to be asked. For another host the watch begins anew. It is called with reading locked.
func (a *Announcer) aim() {
	w := &a.watching
	a.mu.Lock()
	target := a.announcers[w.wanted.Addr]
	a.mu.Unlock()
	if target == (hardwareAddr{}) && len(w.wanted.To) == len(target) {
		target = hardwareAddr(w.wanted.To)
	}
	if target == w.target {
		return
	}
	w.target, w.own, w.least = target, hardwareAddr{}, 0
	w.to = unix.RawSockaddrLinklayer{Family: unix.AF_PACKET, Protocol: a.socket.protocol, Ifindex: int32(a.index), Halen: uint8(len(target))}
	copy(w.to.Addr[:], target[:])
	w.rounds.begin(w.wanted.Every, Now())
	a.setWatchTimer()
}

// watchDue is called when the timer has expired. It first reads what has arrived: this process may have been late.
func (a *Announcer) watchDue() {
	a.reading.Lock()
	defer a.reading.Unlock()
	w := &a.watching
	if w.target == (hardwareAddr{}) {
		return // nobody is asked
	}
	for tries := 0; !a.drain() && tries < drainTries; tries++ {
	}
	ask := w.rounds.due(Now())
	a.tellWatch()
	if ask {
		a.askWatch()
	}
	a.setWatchTimer()
}

// askWatch sends a question. It is called with reading locked.
func (a *Announcer) askWatch() {
	w := &a.watching
	if w.rounds.questions > 0 {
		w.own = hardwareAddr{}
	}
	w.awaits = true
	a.renewAwaited()
	before := Now()
	if err := a.socket.Control(w.send); err != nil || w.err != nil {
		w.rounds.unsent(Now()) // the link is down, which the daemon sees by itself, or the socket is closed
		return
	}
	w.rounds.sent(before, Now())
}

// sendWatch is for askWatch.
func (a *Announcer) sendWatch(fd uintptr) {
	w := &a.watching
	if w.own == (hardwareAddr{}) {
		if w.own, w.err = ownHardwareAddr(int(fd)); w.err != nil {
			return
		}
		a.order()
	}
	question := a.question(w.wanted.Addr).from(w.own)
	if w.rounds.hears() {
		question.targetMAC = w.target // which no kernel looks at; see goesBy
	}
	question.append(w.ask[:0])
	if w.err = w.sendAsk(fd); w.err == unix.ENETDOWN {
		w.err = w.sendAsk(fd) // see sendFrame
	}
}

// sendAsk sends the question. It does not wait; see packetInbox.read.
func (w *addressWatching) sendAsk(fd uintptr) error {
	if _, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, fd, uintptr(unsafe.Pointer(&w.ask)), uintptr(len(w.ask)), unix.MSG_DONTWAIT,
		uintptr(unsafe.Pointer(&w.to)), unsafe.Sizeof(w.to)); errno != 0 {
		return errno
	}
	return nil
}

// watchAnswered notes a packet that answers the watch, or that spares it a question, and reports whether it was one. A frame to
// a former Ethernet address of this host, which arrives where all frames do, is not to us. It is called with reading locked.
func (a *Announcer) watchAnswered(packet arpPacket, toUs bool) bool {
	w := &a.watching
	switch {
	case !toUs || packet.senderMAC != w.target || packet.targetMAC != w.own:
		return false
	case packet.operation == arpReply && packet.senderIP == w.wanted.Addr:
		if !w.rounds.answer(Now()) {
			return false
		}
		w.awaits = false
		a.renewAwaited()
		a.tellWatch()
	case !w.limit.Allow(Now(), watchRate):
		return false
	case w.goesBy(packet):
		w.rounds.alive(Now())
	}
	a.setWatchTimer()
	return true
}

// watchRate allows what the machine that is asked sends to this host, besides answers, before it counts as a flood. A watch asks
// at most 500 times a second (election.MinWatch), and what comes while this process stands still for a second or two is
// read at once.
var watchRate = wire.Rate{Every: time.Millisecond, Burst: 1000}

// goesBy reports whether a packet of the machine that is asked spares this watch a question. Where two boards watch each other,
// since each leads another group, the one with the lower Ethernet address asks, and the other goes by its questions. Where
// one board watches another for several groups, it goes by the answers for lower addresses.
//
// A question that names our Ethernet address as that of its target says that its sender has heard us when it asked before: see
// sendWatch. A machine that sends and does not hear is asked.
func (w *addressWatching) goesBy(packet arpPacket) bool {
	if packet.operation == arpReply {
		return packet.senderIP.Less(w.wanted.Addr)
	}
	return w.least == arpRequest
}

// order finds out whether questions spare one, see goesBy, and has the kernel pass them. If that fails, only answers are heard,
// and all questions are asked.
func (a *Announcer) order() {
	w, former := &a.watching, a.watching.least
	w.least = arpReply
	if bytes.Compare(w.target[:], w.own[:]) < 0 {
		w.least = arpRequest
	}
	if w.least != former {
		_ = a.renewFilter()
	}
}

// watchAwaits is the address that is watched, if an answer is awaited.
func (a *Announcer) watchAwaits() []netip.Addr {
	if a.watching.target == (hardwareAddr{}) || !a.watching.awaits {
		return nil
	}
	return []netip.Addr{a.watching.wanted.Addr}
}

// onlyWatched reports whether nobody else awaits packets that speak as an address.
func (a *Announcer) onlyWatched(addr netip.Addr) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, asked := a.asked[addr]
	return !asked && len(a.waiting) == 0 && !slices.Contains(a.ours, addr)
}

// tellWatch tells of news. It is called with reading locked.
func (a *Announcer) tellWatch() {
	if report, news := a.watching.rounds.report(Now()); news && a.watching.heard != nil {
		a.watching.heard(report)
	}
}

// setWatchTimer sets the timer. It is called with reading locked.
func (a *Announcer) setWatchTimer() {
	if a.watching.target != (hardwareAddr{}) {
		a.watching.timer.Set(a.watching.rounds.deadline - Now())
	}
}
