package netio

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// What a daemon has of its holder: the same as kernelFence, FloatingIP, Announcer, FrameCounter and Conn
// are in one process.

// HeldFence is a kernelFence that a holder has. The lease is memory that both share: to extend it costs no request.
type HeldFence struct {
	sharedLease
	holder *Holder

	mu     sync.Mutex
	state  fenceState
	covers []int // the interfaces that it was put on
}

// OpenFence makes the fence of the holder's addresses.
func (h *Holder) OpenFence() (*HeldFence, error) {
	answer, files, err := h.askFiles(h.main, askFence, nil, prepareWithin)
	if err != nil {
		return nil, fmt.Errorf("make the fence: %w", err)
	}
	f := &HeldFence{holder: h, sharedLease: sharedLease{timer: -1}}
	if err := json.Unmarshal(answer, &f.state); err != nil || len(files) != 2 {
		closeAll(files)
		return nil, fmt.Errorf("netio: the holder's answer about the fence is %q with %d files", answer, len(files))
	}
	f.file, f.timer, f.set = os.NewFile(uintptr(files[0]), "lease"), files[1], leaseIdle
	if err := f.mapWord(files[0]); err != nil {
		f.sharedLease.close()
		return nil, fmt.Errorf("netio: map the lease: %w", err)
	}
	return f, nil
}

// Extend moves the end of the lease; see sharedLease.Extend. The lease may have been over until now, and the neighbours may have heard
// of another board meanwhile: what was announced when the addresses were acquired counts no more.
func (f *HeldFence) Extend(end, wake time.Duration) bool {
	f.holder.announcedBy(nil, false)
	return f.sharedLease.Extend(end, wake)
}

// Cover puts the fence on interfaces; see kernelFence.Cover.
func (f *HeldFence) Cover(interfaces []int, first int) error {
	f.mu.Lock()
	if slices.ContainsFunc(interfaces, func(i int) bool { return !slices.Contains(f.covers, i) }) {
		f.state.Closes = false // until it is there as well
	}
	f.covers = slices.Clone(interfaces)
	f.mu.Unlock()
	return f.cover(coverRequest{Interfaces: interfaces, First: first})
}

// CoverAgain tries to cover what could not be covered.
func (f *HeldFence) CoverAgain() error { return f.cover(coverRequest{Again: true}) }

// coverWithin is how long the kernel may take to put the fence on all interfaces of a machine that has many.
const coverWithin = time.Minute

func (f *HeldFence) cover(r coverRequest) error {
	message, err := json.Marshal(r)
	if err != nil {
		return err
	}
	answer, err := f.holder.doLong(askCover, message, coverWithin)
	if err != nil {
		return fmt.Errorf("cover the interfaces: %w", err)
	}
	var s fenceState
	if err := json.Unmarshal(answer, &s); err != nil {
		return fmt.Errorf("netio: the holder's answer about the fence is %q: %w", answer, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state = s
	if s.Failed != "" {
		return errors.New(s.Failed)
	}
	return nil
}

// State says what the fence is, and in words why it is not better, or where it is not.
func (f *HeldFence) State() (kind FenceKind, problem string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state.Kind, f.state.Problem
}

// Closes reports whether nobody reaches this board by the addresses once the lease was ended.
func (f *HeldFence) Closes() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state.Closes
}

// Close ends the use of the lease. The fence itself goes with the use of the holder.
func (f *HeldFence) Close() error {
	f.sharedLease.close()
	f.sharedLease = sharedLease{timer: -1}
	return nil
}

// HeldAddresses are floating addresses that a holder holds; see FloatingIP.
type HeldAddresses struct {
	holder *Holder
	addrs  []netip.Addr

	mu    sync.Mutex
	state HoldState
}

// OpenFloating prepares to hold the addresses on the interface.
func (h *Holder) OpenFloating(iface string, addresses []netip.Prefix) (*HeldAddresses, error) {
	message, err := json.Marshal(floatingRequest{iface, addresses})
	if err != nil {
		return nil, err
	}
	answer, err := h.ask(h.main, askFloating, message, prepareWithin)
	if err != nil {
		return nil, err
	}
	f := &HeldAddresses{holder: h}
	for _, p := range addresses {
		f.addrs = append(f.addrs, p.Addr())
	}
	if err := f.heard(answer); err != nil {
		return nil, err
	}
	return f, nil
}

// heard enters how the holder holds the addresses. No news says that it is as before.
func (f *HeldAddresses) heard(news []byte) error {
	if len(news) == 0 {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := json.Unmarshal(news, &f.state); err != nil {
		return fmt.Errorf("netio: the holder's answer about the addresses is %q: %w", news, err)
	}
	return nil
}

// Acquire adds the addresses; see FloatingIP.Acquire. It announces them as well, if it can, so the first
// HeldAnnouncer.Announce of each does nothing more.
func (f *HeldAddresses) Acquire() error {
	f.holder.setHas(true)
	answer, err := f.holder.do(askAcquire, nil)
	if err != nil || len(answer) < 1 {
		return err
	}
	f.holder.announcedBy(f.addrs, answer[0] != 0)
	return f.heard(answer[1:])
}

// Renew starts the lifetimes over; see FloatingIP.Renew.
func (f *HeldAddresses) Renew() (restored bool, err error) {
	answer, err := f.holder.doLong(askRenew, nil, coverWithin)
	if err != nil || len(answer) < 1 {
		return false, err
	}
	return answer[0] != 0, f.heard(answer[1:])
}

// Release removes the addresses; see FloatingIP.Release. If the holder has ended, a TUN device goes with it, and the
// addresses with that: until then there is an error.
func (f *HeldAddresses) Release() error {
	f.holder.announcedBy(nil, false)
	_, err := f.holder.do(askRelease, nil)
	if err == nil {
		f.holder.setHas(false)
	}
	if errors.Is(err, errHolderLost) && f.State().Method == HoldTUN && f.holder.ended {
		return f.awaitGone()
	}
	return err
}

// deviceGoneWithin is how long a release waits for the kernel to remove the device of a process that has ended.
const deviceGoneWithin = 2 * time.Millisecond

// awaitGone returns when the device is gone, or an error if that takes long.
func (f *HeldAddresses) awaitGone() error {
	f.holder.giveUpDevice()
	for end := Now() + deviceGoneWithin; ; pause(nil, deviceGoneWithin/10) {
		if _, err := net.InterfaceByName(f.State().Device); err != nil {
			return nil
		}
		if Now() >= end {
			return fmt.Errorf("netio: the holder has ended, and the kernel is at removing its device %s, which has the address", f.State().Device)
		}
	}
}

// State says how the addresses are held.
func (f *HeldAddresses) State() HoldState {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state
}

// Close does nothing more: what the holder has goes with the use of the holder.
func (f *HeldAddresses) Close() error { return nil }

// HeldAnnouncer is an Announcer that a holder has.
type HeldAnnouncer struct{ holder *Holder }

// announcedBy enters which addresses were announced when they were acquired.
func (h *Holder) announcedBy(addrs []netip.Addr, all bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.announced = h.announced[:0]
	if all {
		h.announced = append(h.announced, addrs...)
	}
}

// hasAnnounced reports whether an address was announced when it was acquired, the first time that it is asked for.
func (h *Holder) hasAnnounced(addr netip.Addr) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := slices.Index(h.announced, addr)
	if i >= 0 {
		h.announced = slices.Delete(h.announced, i, i+1)
	}
	return i >= 0
}

// OpenAnnouncer opens what reaches the neighbours; see the function of that name.
func (h *Holder) OpenAnnouncer(index int) (*HeldAnnouncer, error) {
	h.announcedBy(nil, false) // on another interface
	if _, err := h.do(askAnnouncer, appendIndex(nil, index)); err != nil {
		return nil, err
	}
	return &HeldAnnouncer{h}, nil
}

// Announce tells every neighbour that addr is here.
func (a *HeldAnnouncer) Announce(addr netip.Addr) error {
	if a.holder.hasAnnounced(addr) {
		return nil
	}
	_, err := a.holder.do(askAnnounce, appendAddr(nil, addr))
	return err
}

// Probe asks who has a floating address; see Announcer.Probe. It does not end with ctx, but soon.
func (a *HeldAnnouncer) Probe(ctx context.Context, addr netip.Addr, n int, spacing time.Duration) (owner net.HardwareAddr, found bool, err error) {
	message, err := json.Marshal(probeRequest{addr, n, spacing})
	if err != nil {
		return nil, false, err
	}
	answer, err := a.holder.doLong(askProbe, message, time.Duration(n)*spacing+answerWithin)
	if err == nil {
		err = context.Cause(ctx)
	}
	if err != nil || len(answer) != len(hardwareAddr{}) {
		return nil, false, err
	}
	return answer, true, nil
}

// Rivals sets the addresses whose rivals are told of, and who is told; see Announcer.Rivals.
func (a *HeldAnnouncer) Rivals(ours []netip.Addr, heard func(netip.Addr, net.HardwareAddr)) {
	a.holder.mu.Lock()
	a.holder.rival = heard
	a.holder.mu.Unlock()
	// It fails only if the holder is lost, which says so by itself.
	_, _ = a.holder.do(askRivals, appendAddrs(nil, ours))
}

// Ask sends questions in the name of own; see Announcer.Ask.
func (a *HeldAnnouncer) Ask(own netip.Addr, questions []ARPQuestion) error {
	message := appendAddr(make([]byte, 0, 4+len(questions)*questionBytes), own)
	for _, q := range questions {
		message = appendAddr(message, q.Addr)
		var to hardwareAddr
		copy(to[:], q.To)
		message = append(message, to[:]...)
	}
	_, err := a.holder.do(askQuestions, message)
	return err
}

// Answers sets who is told of answers.
func (a *HeldAnnouncer) Answers(heard func(ARPAnswer)) {
	a.holder.mu.Lock()
	defer a.holder.mu.Unlock()
	a.holder.answered = heard
}

// Resolve asks for the Ethernet address of a host; see Announcer.Resolve.
func (a *HeldAnnouncer) Resolve(own, addr netip.Addr) error {
	_, err := a.holder.do(askResolve, appendAddr(appendAddr(nil, own), addr))
	return err
}

// LastAnnouncer returns who has announced a floating address last.
func (a *HeldAnnouncer) LastAnnouncer(addr netip.Addr) (mac net.HardwareAddr, known bool) {
	answer, err := a.holder.do(askAnnounced, appendAddr(nil, addr))
	if err != nil || len(answer) != len(hardwareAddr{}) {
		return nil, false
	}
	return append(net.HardwareAddr(nil), answer...), true
}

// Close ends it.
func (a *HeldAnnouncer) Close() error {
	a.holder.mu.Lock()
	a.holder.rival, a.holder.answered = nil, nil
	a.holder.mu.Unlock()
	_, err := a.holder.do(askSilence, nil)
	return ignoreLost(err)
}

// HeldFrames is a FrameCounter that a holder has.
type HeldFrames struct{ holder *Holder }

// OpenFrames begins to count frames.
func (h *Holder) OpenFrames(index int) (*HeldFrames, error) {
	if _, err := h.do(askFrames, appendIndex(nil, index)); err != nil {
		return nil, err
	}
	return &HeldFrames{h}, nil
}

// Ignore has the frames of these hosts not counted from now on, and those of all others.
func (f *HeldFrames) Ignore(hosts []netip.Addr) error {
	_, err := f.holder.do(askIgnored, appendAddrs(nil, hosts))
	return err
}

// Frames returns how many frames have arrived since the counter was opened.
func (f *HeldFrames) Frames() (uint64, error) {
	answer, err := f.holder.do(askCount, nil)
	if err != nil {
		return 0, err
	}
	return uint64(getTime(answer)), nil
}

// Senders returns who has sent some of them; see FrameCounter.Senders.
func (f *HeldFrames) Senders() (senders []Neighbour) {
	answer, err := f.holder.do(askSenders, nil)
	if err != nil {
		return nil
	}
	for ; len(answer) >= questionBytes; answer = answer[questionBytes:] {
		senders = append(senders, Neighbour{Addr: getAddr(answer), MAC: append(net.HardwareAddr(nil), answer[4:questionBytes]...)})
	}
	return senders
}

// Close ends the counting.
func (f *HeldFrames) Close() error {
	_, err := f.holder.do(askNoFrames, nil)
	return ignoreLost(err)
}

// OpenSockets returns a Conn with the group's sockets, which the holder has opened, and keeps open. What they
// have received before is thrown away.
func (h *Holder) OpenSockets(o Options) (*Conn, error) {
	message, err := json.Marshal(socketsRequest{o.Interface, o.Local})
	if err != nil {
		return nil, err
	}
	unlimited, files, err := h.askFiles(h.main, askSockets, message, prepareWithin)
	if err != nil {
		return nil, err
	}
	return takeOver(o, files, string(unlimited))
}

// OpenGatewaySocket opens the way by which a process without rights asks the default gateway, see InheritGatewayAsker.
func (h *Holder) OpenGatewaySocket() (*os.File, error) {
	ours, theirs, err := newConnectionPair()
	if err != nil {
		return nil, err
	}
	_, err = h.ask(h.main, askGatewayConnection, nil, answerWithin, theirs)
	unix.Close(theirs)
	if err != nil {
		unix.Close(ours)
		return nil, err
	}
	return os.NewFile(uintptr(ours), "gateway"), nil
}

// askGatewayBy asks the default gateway by such a connection.
func askGatewayBy(ctx context.Context, l *connection, iface string) error {
	within := maxGatewayWait
	if deadline, bounded := ctx.Deadline(); bounded {
		within = min(within, time.Until(deadline))
	}
	question := binary.BigEndian.AppendUint32(nil, uint32(max(within, 0).Milliseconds()))
	_, received, err := l.call(askGateway, append(question, iface...), nil, within+answerWithin, nil)
	closeAll(received)
	return err
}

func ignoreLost(err error) error {
	if errors.Is(err, errHolderLost) {
		return nil
	}
	return err
}

// questionBytes is the length of an ARPQuestion in a message.
const questionBytes = 4 + 6

func appendAddr(b []byte, addr netip.Addr) []byte {
	as4 := [4]byte{}
	if a := addr.Unmap(); a.Is4() {
		as4 = a.As4()
	}
	return append(b, as4[:]...)
}

func appendAddrs(b []byte, all []netip.Addr) []byte {
	for _, addr := range all {
		b = appendAddr(b, addr)
	}
	return b
}

func appendIndex(b []byte, index int) []byte { return binary.BigEndian.AppendUint32(b, uint32(index)) }

func appendTime(b []byte, t time.Duration) []byte { return binary.BigEndian.AppendUint64(b, uint64(t)) }

func getAddr(b []byte) netip.Addr { return netip.AddrFrom4([4]byte(b)) }

func getTime(b []byte) time.Duration {
	if len(b) < 8 {
		return 0
	}
	return time.Duration(binary.BigEndian.Uint64(b))
}
