package netio

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"
)

// What follows stands in the daemon for what the holder has: a kernelFence, a FloatingIP, an Announcer, and the
// sockets of a Conn.

// HeldFence is the fence of a holder. The lease is memory that both processes share, so that extending it needs no request.
type HeldFence struct {
	sharedLease
	holder *Holder

	covering sync.Mutex // held while the holder covers interfaces
	mu       sync.Mutex // guards what follows
	state    fenceState
	covers   coverRequest // what was asked for last
}

// OpenFence makes the fence of the holder's addresses.
func (h *Holder) OpenFence() (*HeldFence, error) {
	f := &HeldFence{holder: h, sharedLease: sharedLease{timer: -1}}
	files, err := h.ask(askFence, nil, &f.state, prepareWithin)
	if err == nil && len(files) != 2 {
		closeAll(files)
		err = fmt.Errorf("netio: %d files came with the holder's answer", len(files))
	}
	if err != nil {
		return nil, fmt.Errorf("make the fence: %w", err)
	}
	f.file, f.timer, f.set = os.NewFile(uintptr(files[0]), "lease"), files[1], leaseIdle
	if err := f.mapWord(files[0]); err != nil {
		f.sharedLease.close()
		return nil, fmt.Errorf("netio: map the lease: %w", err)
	}
	return f, nil
}

// Cover puts the fence on interfaces; see kernelFence.Cover.
func (f *HeldFence) Cover(interfaces []int) error {
	f.mu.Lock()
	if slices.ContainsFunc(interfaces, func(i int) bool { return !slices.Contains(f.covers.Interfaces, i) }) {
		f.state.Closes = false // until the fence is on that interface as well
	}
	f.covers = coverRequest{slices.Clone(interfaces)}
	f.mu.Unlock()
	return f.CoverAgain()
}

// coverWithin is how long the kernel may take to put the fence on all interfaces, of which a machine may have many.
const coverWithin = time.Minute

// CoverAgain tries to cover what could not be covered.
func (f *HeldFence) CoverAgain() error {
	f.covering.Lock()
	defer f.covering.Unlock()
	f.mu.Lock()
	wanted := f.covers
	f.mu.Unlock()
	var s fenceState
	if err := f.holder.doBeside(askCover, wanted, &s, coverWithin); err != nil {
		return fmt.Errorf("cover the interfaces: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state = s
	if s.Failed != "" {
		return errors.New(s.Failed)
	}
	return nil
}

// State says which kind of fence it is, and in words why there is no better one, or which interfaces it is missing from.
func (f *HeldFence) State() (kind FenceKind, problem string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state.Kind, f.state.Problem
}

// Closes reports whether the fence keeps everybody off the addresses once the lease has ended.
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

// HeldAddresses are the floating addresses of a holder; see FloatingIP.
type HeldAddresses struct {
	holder *Holder

	mu    sync.Mutex
	state HoldState
}

// OpenFloating prepares to hold the addresses on the interface.
func (h *Holder) OpenFloating(iface string, addresses []netip.Prefix) (*HeldAddresses, error) {
	f := &HeldAddresses{holder: h}
	files, err := h.ask(askFloating, floatingRequest{iface, addresses}, &f.state, prepareWithin)
	closeAll(files)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// heard notes how the holder holds the addresses; nil means as before.
func (f *HeldAddresses) heard(news *HoldState) {
	if news != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.state = *news
	}
}

// Acquire adds the addresses; see FloatingIP.Acquire. From then on the holder also announces them, see Announcer.Hold.
func (f *HeldAddresses) Acquire() error {
	f.holder.setHas(true)
	var answer addressAnswer
	if err := f.holder.do(askAcquire, nil, &answer); err != nil {
		return err
	}
	f.heard(answer.State)
	return nil
}

// Renew starts the lifetimes over; see FloatingIP.Renew.
func (f *HeldAddresses) Renew() (restored bool, err error) {
	var answer addressAnswer
	if err := f.holder.doOften(askRenew, &answer, coverWithin); err != nil {
		return false, err
	}
	f.heard(answer.State)
	return answer.Restored, nil
}

// Release removes the addresses; see FloatingIP.Release. If the holder has ended, its TUN device goes, and the
// addresses with it. Until they are gone, Release returns an error.
func (f *HeldAddresses) Release() error {
	err := f.holder.do(askRelease, nil, nil)
	if err == nil {
		f.holder.setHas(false)
	}
	if errors.Is(err, errHolderLost) && f.State().Method == HoldTUN && f.holder.ended {
		return f.awaitGone()
	}
	return err
}

const (
	// deviceGoneWithin is how long Release waits for the kernel to remove the device of a process that has ended. The address
	// answers meanwhile. The devices of several groups go one after the other, each within 4 ms on a quiet machine.
	deviceGoneWithin = 20 * time.Millisecond
	// deviceGoneEvery is how often it looks.
	deviceGoneEvery = 200 * time.Microsecond
)

// awaitGone waits until the device is gone, or returns an error if that takes too long.
func (f *HeldAddresses) awaitGone() error {
	for end := Now() + deviceGoneWithin; ; pause(nil, deviceGoneEvery) {
		if _, err := net.InterfaceByName(f.State().Device); err != nil {
			return nil
		}
		if Now() >= end {
			return fmt.Errorf("netio: the holder has ended, and the kernel is still removing its device %s, which has the address", f.State().Device)
		}
	}
}

// State says how the addresses are held.
func (f *HeldAddresses) State() HoldState {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state
}

// Close does nothing: the holder releases everything when its use ends.
func (f *HeldAddresses) Close() error { return nil }

// HeldAnnouncer is the Announcer of a holder.
type HeldAnnouncer struct{ holder *Holder }

// OpenAnnouncer opens ARP on an interface; see the function OpenAnnouncer. The sockets must have been opened before.
func (h *Holder) OpenAnnouncer(index int) (*HeldAnnouncer, error) {
	if err := h.do(askARP, openARPRequest{index}, nil); err != nil {
		return nil, err
	}
	return &HeldAnnouncer{h}, nil
}

// Hold does nothing: the holder announces what it has acquired until it releases it, and knows when the lease is over.
func (a *HeldAnnouncer) Hold([]netip.Addr, func() bool) {}

// AnnounceAnew announces what is held as if it had been acquired now. If that fails, the holder is lost.
func (a *HeldAnnouncer) AnnounceAnew() { _ = a.holder.do(askAnnounce, nil, nil) }

// Probe asks who has a floating address; see Announcer.Probe. If ctx ends, Probe still waits for the holder's answer.
func (a *HeldAnnouncer) Probe(ctx context.Context, addr netip.Addr, n int, spacing time.Duration) (owner net.HardwareAddr, found bool, err error) {
	err = a.holder.doBeside(askProbe, probeRequest{addr, n, spacing}, &owner, time.Duration(n)*spacing+answerWithin)
	if err == nil {
		err = context.Cause(ctx)
	}
	return owner, err == nil && len(owner) > 0, err
}

// Rivals sets the function that is told of rivals; see Announcer.Rivals. The holder knows which addresses are ours.
func (a *HeldAnnouncer) Rivals(_ []netip.Addr, heard func(netip.Addr, net.HardwareAddr)) {
	a.holder.mu.Lock()
	defer a.holder.mu.Unlock()
	a.holder.rival = heard
}

// Unannounced sets the function that is told why what is held could not be announced; see Announcer.Unannounced.
func (a *HeldAnnouncer) Unannounced(failed func(error)) {
	a.holder.mu.Lock()
	defer a.holder.mu.Unlock()
	a.holder.failed = failed
}

// Answers sets the function that is told of answers.
func (a *HeldAnnouncer) Answers(heard func(ARPAnswer)) {
	a.holder.mu.Lock()
	defer a.holder.mu.Unlock()
	a.holder.answered = heard
}

// Ask sends questions; see Announcer.Ask.
func (a *HeldAnnouncer) Ask(questions []ARPQuestion) error {
	return a.Doubt(Doubt{Questions: questions})
}

// Doubt sends questions, and begins to count frames; see Announcer.Doubt.
func (a *HeldAnnouncer) Doubt(d Doubt) error { return a.holder.do(askLAN, lanRequest{Doubt: d}, nil) }

// Watch begins, changes or ends the watch of a floating address; see Announcer.Watch.
func (a *HeldAnnouncer) Watch(w AddressWatch) error {
	if w.Every == 0 {
		return a.end(askWatch, AddressWatch{})
	}
	return a.holder.do(askWatch, w, nil)
}

// Watched sets the function that is told what the watch has found out.
func (a *HeldAnnouncer) Watched(heard func(WatchReport)) {
	a.holder.mu.Lock()
	defer a.holder.mu.Unlock()
	a.holder.watched = heard
}

// Resolve asks for the Ethernet address of a host; see Announcer.Resolve.
func (a *HeldAnnouncer) Resolve(addr netip.Addr) error {
	return a.holder.do(askLAN, lanRequest{Resolve: addr}, nil)
}

// Heard returns how many frames were counted, and some of their senders; see Announcer.Heard.
func (a *HeldAnnouncer) Heard() (frames uint64, senders []Neighbour, err error) {
	var answer framesAnswer
	err = a.holder.do(askHeard, nil, &answer)
	return answer.Frames, answer.Senders, err
}

// Calm ends the counting of frames.
func (a *HeldAnnouncer) Calm() error { return a.end(askLAN, lanRequest{Calm: true}) }

// Close closes ARP.
func (a *HeldAnnouncer) Close() error {
	a.Rivals(nil, nil)
	a.Unannounced(nil)
	a.Answers(nil)
	a.Watched(nil)
	return a.end(askARP, openARPRequest{})
}

// end makes a request to end something. A holder that is lost has ended everything.
func (a *HeldAnnouncer) end(asked holderRequest, body any) error {
	if err := a.holder.do(asked, body, nil); !errors.Is(err, errHolderLost) {
		return err
	}
	return nil
}

// OpenSockets returns a Conn of the group's sockets. The holder opens fresh ones, and keeps them open.
func (h *Holder) OpenSockets(o Options) (*Conn, error) {
	var answer socketsAnswer
	files, err := h.ask(askSockets, socketsRequest{o.Interface, o.Local}, &answer, prepareWithin)
	if err != nil {
		return nil, err
	}
	o.Tag = answer.Tag
	return takeOver(o, files, answer.Unlimited)
}

// AskGateway asks the default gateway of the group's interface whether it is there, and returns when it has answered, or
// when ctx ends. The loop must not call it. That it fails says nothing of the holder: the question is that of a checker.
func (h *Holder) AskGateway(ctx context.Context, iface string) error {
	within := maxGatewayWait
	if deadline, bounded := ctx.Deadline(); bounded {
		within = min(within, time.Until(deadline))
	}
	body, err := encode(gatewayRequest{iface, max(within, 0)})
	if err != nil {
		return err
	}
	_, files, _, err := callBeside(h.side, askGateway, body, within+answerWithin, nil, h.lost)
	closeAll(files)
	return err
}
