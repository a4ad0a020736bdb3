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
	"time"

	"golang.org/x/sys/unix"
)

// carryOut does what is asked. The files are those that came with the request; what is kept of them is taken out.
func (h *holding) carryOut(message []byte, files *[]int) (answer []byte, given []int, err error) {
	if len(message) == 0 {
		return nil, nil, errors.New("netio: the holder was asked for nothing")
	}
	payload := message[1:]
	switch asked := holderRequest(message[0]); asked {
	case askPing:
	case askFence:
		return h.makeFence()
	case askCover:
		answer, err = h.cover(payload)
	case askSockets:
		return h.openSockets(payload)
	case askFloating:
		answer, err = h.openFloating(payload)
	case askAcquire, askRelease, askRenew:
		answer, err = h.changeAddresses(asked)
	case askResign:
		err = h.prepareResign(payload)
	case askAnnouncer, askAnnounce, askProbe, askRivals, askQuestions, askResolve, askAnnounced, askSilence:
		answer, err = h.speakARP(asked, payload)
	case askFrames, askIgnored, askCount, askSenders, askNoFrames:
		answer, err = h.countFrames(asked, payload)
	case askLane, askGatewayLane, askEvents:
		err = h.addLane(asked, files)
	case askGateway:
		err = h.askGateway(payload)
	default:
		err = fmt.Errorf("netio: the holder knows no request %d: restart both services, which must be of one version", asked)
	}
	return answer, given, err
}

// makeFence makes the fence, once, and gives the daemon the lease's memory and its timer.
func (h *holding) makeFence() (answer []byte, given []int, err error) {
	if h.fence != nil {
		return nil, nil, errors.New("netio: the fence was made already")
	}
	fence, err := bestFence(h.options.Floating)
	if err != nil {
		return nil, nil, err
	}
	h.mu.Lock()
	h.fence = fence
	h.mu.Unlock()
	answer, err = json.Marshal(stateOf(fence, nil))
	return answer, []int{int(fence.file.Fd()), fence.timer}, err
}

func stateOf(f *kernelFence, failed error) fenceState {
	s := fenceState{Closes: f.Closes()}
	s.Kind, s.Problem = f.State()
	if failed != nil {
		s.Failed = failed.Error()
	}
	return s
}

// maxInterfaces bounds how many interfaces a fence covers.
const maxInterfaces = 4096

func (h *holding) cover(payload []byte) ([]byte, error) {
	var r coverRequest
	if err := json.Unmarshal(payload, &r); err != nil {
		return nil, err
	}
	h.mu.Lock()
	fence := h.fence
	h.mu.Unlock()
	switch {
	case fence == nil:
		return nil, errors.New("netio: there is no fence to cover interfaces with")
	case len(r.Interfaces) > maxInterfaces:
		return nil, fmt.Errorf("netio: %d interfaces are too many for a fence (at most %d)", len(r.Interfaces), maxInterfaces)
	case r.Again:
		return json.Marshal(stateOf(fence, fence.CoverAgain()))
	}
	return json.Marshal(stateOf(fence, fence.Cover(r.Interfaces, r.First)))
}

// openSockets gives the daemon the sockets of the group, which are opened unless they are.
func (h *holding) openSockets(payload []byte) (answer []byte, given []int, err error) {
	var r socketsRequest
	if err := json.Unmarshal(payload, &r); err != nil {
		return nil, nil, err
	}
	if err := h.checkInterface(r.Interface); err != nil {
		return nil, nil, err
	}
	if err := h.checkLocal(r.Interface, r.Local); err != nil {
		return nil, nil, err
	}
	o := Options{Interface: r.Interface, Local: r.Local, Group: h.options.Group, Floating: h.options.Floating}
	if h.sockets.are(o, h.options.Tag) {
		err = h.sockets.renew()
	} else {
		h.sockets.close()
		*h.sockets, err = openHeld(o, h.options.Tag)
	}
	if err != nil {
		return nil, nil, err
	}
	if h.sender != nil {
		h.sender.Close()
	}
	if h.sender, err = openSender(o, h.sockets.index); err != nil {
		return nil, nil, fmt.Errorf("open a socket for the pre-signed RESIGN: %w", err)
	}
	h.local = r.Local
	return []byte(h.sockets.unlimited), h.sockets.files(), nil
}

// checkLocal refuses an address that is not this board's own on an interface. What the daemon says and asks goes out in the name of that.
func (h *holding) checkLocal(iface string, local netip.Addr) error {
	if h.isFloating(local.Unmap()) {
		return fmt.Errorf("netio: %s is a floating address, and no board's own", local.Unmap())
	}
	own, err := prefixesOn(iface)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(own, func(p netip.Prefix) bool { return p.Addr() == local }) {
		return fmt.Errorf("netio: %w: %s has no address %s", ErrLinkDown, iface, local)
	}
	return nil
}

// prefixesOn returns the IPv4 addresses of an interface.
func prefixesOn(iface string) ([]netip.Prefix, error) {
	link, err := net.InterfaceByName(iface)
	if err != nil {
		return nil, fmt.Errorf("netio: %w: there is no interface %s", ErrLinkDown, iface)
	}
	return prefixesOf(link)
}

// openSender opens a socket that sends as that of the group does, but from a port of its own: the one of the group must be
// free when the daemon has ended and is started again.
func openSender(o Options, index int) (*os.File, error) {
	socket, err := openSocket(o, index, netip.AddrPortFrom(o.Local, 0), PathUnicast)
	if err != nil {
		return nil, err
	}
	defer socket.Close()
	return socket.File()
}

func (h *holding) openFloating(payload []byte) ([]byte, error) {
	var r floatingRequest
	if err := json.Unmarshal(payload, &r); err != nil {
		return nil, err
	}
	if err := h.checkInterface(r.Interface); err != nil {
		return nil, err
	}
	for _, p := range r.Addresses {
		if !h.isFloating(p.Addr()) {
			return nil, fmt.Errorf("netio: the holder does not hold %s: restart topdog-holder.service if the configuration has changed", p.Addr())
		}
		if !h.mayHave(p) {
			return nil, fmt.Errorf("netio: %s is not what the holder's configuration has: restart topdog-holder.service if the configuration has changed", p)
		}
	}
	if h.floating != nil { // on another interface
		if err := h.floating.Close(); err != nil {
			return nil, err
		}
	}
	floating, err := NewFloatingIP(FloatingOptions{Interface: r.Interface, Addresses: r.Addresses, Method: h.options.Method, lifetime: h.lifetime})
	if err != nil {
		return nil, err
	}
	state := floating.State()
	h.mu.Lock()
	h.floating, h.toldState = floating, state
	h.mu.Unlock()
	return json.Marshal(state)
}

// mayHave reports whether a floating address may have that prefix length: that of the configuration or, without one, none. The length
// decides which route comes with the address.
func (h *holding) mayHave(p netip.Prefix) bool {
	for _, configured := range h.options.Prefixes {
		if configured.Addr() == p.Addr() {
			return configured == p
		}
	}
	return p.IsSingleIP()
}

// errNoLease says that the daemon may not answer for the addresses.
var errNoLease = fmt.Errorf("netio: %w: there is no lease, or it was ended", ErrNotHeld)

// lasts reports whether there is a lease that is not over: only then the neighbours may be told.
func (h *holding) lasts() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.fence != nil && h.fence.lasts()
}

// leased reports whether there is a lease that nobody has ended. It may be over, and go on: then the fence is closed meanwhile.
func (h *holding) leased() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fence == nil {
		return false
	}
	word := h.fence.word.load()
	return word != leaseIdle && word != leaseFired
}

func (h *holding) changeAddresses(asked holderRequest) (answer []byte, err error) {
	h.mu.Lock()
	floating := h.floating
	h.mu.Unlock()
	switch {
	case asked == askRelease:
		h.past = true // only the loop asks for it
		if err = h.removeAddresses(); err == nil {
			h.remove = retry{} // nothing is left that would have to be removed
		}
		return nil, err
	case floating == nil:
		return nil, errors.New("netio: the addresses were not prepared")
	case !h.leased():
		return nil, errNoLease
	case asked == askAcquire:
		h.remove = retry{} // of a former lease; only the loop asks for it
		err = floating.Acquire()
		answer = []byte{0}
		if err == nil && h.announceAll(floating.options.Addresses) {
			answer[0] = 1
		}
	default:
		var restored bool
		restored, err = floating.Renew()
		answer = []byte{0}
		if restored {
			answer[0] = 1
		}
	}
	if err == nil { // else the daemon gets the error alone
		answer = append(answer, h.stateNews(floating)...)
	}
	return answer, err
}

// stateNews is how the addresses are held, if that is not what the daemon was told last.
func (h *holding) stateNews(floating *FloatingIP) []byte {
	state := floating.State()
	h.mu.Lock()
	defer h.mu.Unlock()
	if state == h.toldState {
		return nil
	}
	news, err := json.Marshal(state)
	if err != nil {
		return nil
	}
	h.toldState = state
	return news
}

// announceAll announces the addresses that were just acquired: nobody looks for them here before that, and to be asked for it
// takes longer than it does. It reports whether all were announced. To acquire them may have taken until after the
// end of the lease.
func (h *holding) announceAll(addresses []netip.Prefix) bool {
	h.mu.Lock()
	announcer := h.announcer
	h.mu.Unlock()
	if announcer == nil {
		return false
	}
	for _, p := range addresses {
		if !h.lasts() || announcer.Announce(p.Addr()) != nil {
			return false
		}
	}
	return true
}

func (h *holding) prepareResign(payload []byte) error {
	var r PreparedResign
	if err := json.Unmarshal(payload, &r); err != nil {
		return fmt.Errorf("netio: read the pre-signed RESIGN: %w", err)
	}
	h.resign, h.past = r, false
	return nil
}

// speakARP does what is asked of the Announcer.
func (h *holding) speakARP(asked holderRequest, payload []byte) (answer []byte, err error) {
	if asked == askAnnouncer {
		return nil, h.openAnnouncer(payload)
	}
	if asked == askSilence {
		h.closeAnnouncer()
		return nil, nil
	}
	h.mu.Lock()
	announcer := h.announcer
	h.mu.Unlock()
	if announcer == nil {
		return nil, errors.New("netio: nothing reaches the neighbours: the link was lost")
	}
	if asked == askProbe {
		return h.probe(announcer, payload)
	}
	addrs := addrsIn(payload)
	switch asked {
	case askRivals:
		announcer.Rivals(addrs, h.rivalHeard)
		return nil, nil
	case askQuestions:
		if len(payload) < 4 || (len(payload)-4)%questionBytes != 0 {
			break
		}
		questions := questionsIn(payload[4:])
		if len(questions) > maxQuestions {
			return nil, fmt.Errorf("netio: %d questions are too many (at most %d)", len(questions), maxQuestions)
		}
		if err := h.checkSpeaker(addrs[0]); err != nil {
			return nil, err
		}
		return nil, announcer.Ask(addrs[0], questions)
	case askResolve:
		if len(addrs) != 2 {
			break
		}
		if err := h.checkSpeaker(addrs[0]); err != nil {
			return nil, err
		}
		return nil, announcer.Resolve(addrs[0], addrs[1])
	case askAnnounced:
		if len(addrs) != 1 {
			break
		}
		if mac, known := announcer.Holder(addrs[0]); known {
			answer = mac
		}
		return answer, nil
	case askAnnounce:
		switch {
		case len(addrs) != 1:
		case !h.isFloating(addrs[0]):
			return nil, fmt.Errorf("netio: the holder does not announce %s", addrs[0])
		case !h.lasts():
			return nil, errNoLease
		default:
			return nil, announcer.Announce(addrs[0])
		}
	}
	return nil, fmt.Errorf("netio: request %d of the holder has %d bytes", asked, len(payload))
}

// maxQuestions bounds how many questions come with one request. A daemon asks up to four witnesses, three neighbours and
// whoever may have the floating address.
const maxQuestions = 64

// checkSpeaker refuses to ask in the name of another address than this board's own: all who hear it believe what it says of the sender.
func (h *holding) checkSpeaker(as netip.Addr) error {
	switch {
	case !h.local.IsValid():
		return errors.New("netio: the holder speaks ARP for nobody before the sockets of the group are open")
	case as != h.local:
		return fmt.Errorf("netio: the holder speaks ARP as %s and not as %s", h.local, as)
	}
	return nil
}

func (h *holding) openAnnouncer(payload []byte) error {
	index, err := indexIn(payload)
	if err != nil {
		return err
	}
	link, err := h.linkAt(index)
	if err != nil {
		return err
	}
	h.closeAnnouncer()
	announcer, err := OpenAnnouncer(link.Index, h.local, h.options.Floating...)
	if err != nil {
		return err
	}
	announcer.Answers(h.answerHeard)
	h.mu.Lock()
	h.announcer = announcer
	h.mu.Unlock()
	return nil
}

func (h *holding) rivalHeard(addr netip.Addr, mac net.HardwareAddr) {
	h.tell(append(appendAddr([]byte{byte(eventRival)}, addr), mac...))
}

func (h *holding) answerHeard(answer ARPAnswer) {
	h.tell(appendTime(appendAddr([]byte{byte(eventAnswer)}, answer.Addr), answer.AskedAt))
}

// maxProbes bounds how often somebody is asked in one request.
const maxProbes = 16

func (h *holding) probe(announcer *Announcer, payload []byte) ([]byte, error) {
	var r probeRequest
	if err := json.Unmarshal(payload, &r); err != nil {
		return nil, err
	}
	if !h.isFloating(r.Addr) && r.Addr != announcer.local || r.Times < 1 || r.Times > maxProbes || r.Spacing <= 0 || r.Spacing > answerWithin {
		return nil, fmt.Errorf("netio: the holder does not probe for %s %d times, %v apart", r.Addr, r.Times, r.Spacing)
	}
	owner, found, err := announcer.Probe(context.Background(), r.Addr, r.Times, r.Spacing)
	if !found {
		owner = nil
	}
	return owner, err
}

// countFrames does what is asked of the FrameCounter.
func (h *holding) countFrames(asked holderRequest, payload []byte) (answer []byte, err error) {
	if asked == askFrames {
		return nil, h.openFrames(payload)
	}
	if asked == askNoFrames {
		h.closeFrames()
		return nil, nil
	}
	h.mu.Lock()
	frames := h.frames
	h.mu.Unlock()
	if frames == nil {
		return nil, errors.New("netio: no frames are counted: the link was lost")
	}
	switch asked {
	case askIgnored:
		return nil, frames.Ignore(addrsIn(payload))
	case askSenders:
		for _, n := range frames.Senders() {
			answer = append(appendAddr(answer, n.Addr), n.MAC...)
		}
		return answer, nil
	}
	count, err := frames.Frames()
	return binary.BigEndian.AppendUint64(nil, count), err
}

func (h *holding) openFrames(payload []byte) error {
	index, err := indexIn(payload)
	if err != nil {
		return err
	}
	link, err := h.portAt(index)
	if err != nil {
		return err
	}
	h.closeFrames()
	frames, err := OpenFrameCounter(link.Index)
	if err != nil {
		return err
	}
	h.mu.Lock()
	h.frames = frames
	h.mu.Unlock()
	return nil
}

// maxLanes bounds how many lanes a daemon opens. It asks for few things at once.
const maxLanes = 16

// addLane takes in a lane that came with a request.
func (h *holding) addLane(asked holderRequest, files *[]int) error {
	if len(*files) != 1 {
		return fmt.Errorf("netio: %d files came with request %d of the holder", len(*files), asked)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	fd := (*files)[0]
	if asked == askEvents {
		if h.events >= 0 {
			unix.Close(h.events)
		}
		h.events, *files = fd, nil
		return nil
	}
	if len(h.open) >= maxLanes {
		return fmt.Errorf("netio: the holder has %d lanes, and takes no more", len(h.open))
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return os.NewSyscallError("fcntl", err)
	}
	file := os.NewFile(uintptr(fd), "lane")
	h.open, *files = append(h.open, file), nil
	allowed := besides
	if asked == askGatewayLane {
		allowed = []holderRequest{askGateway}
	}
	h.besides.Go(func() {
		h.serveLane(file, allowed)
		h.closeLane(file)
	})
	return nil
}

// closeLane gives the place of a lane back that nobody uses any more.
func (h *holding) closeLane(file *os.File) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open = slices.DeleteFunc(h.open, func(lane *os.File) bool { return lane == file })
	file.Close()
}

// maxGatewayWait bounds how long the gateway is waited for.
const maxGatewayWait = time.Minute

// askGateway asks the default gateway of the group's interface whether it is there.
func (h *holding) askGateway(payload []byte) error {
	if len(payload) < 5 {
		return fmt.Errorf("netio: request %d of the holder has %d bytes", askGateway, len(payload))
	}
	within := time.Duration(binary.BigEndian.Uint32(payload)) * time.Millisecond
	iface := string(payload[4:])
	if err := h.checkInterface(iface); err != nil {
		return err
	}
	h.mu.Lock()
	var err error
	if h.gateway == nil {
		h.gateway, err = OpenGatewayAsker()
	}
	gateway := h.gateway
	h.mu.Unlock()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(h.served, min(within, maxGatewayWait))
	defer cancel()
	return gateway.Ask(ctx, iface)
}

func addrsIn(payload []byte) (all []netip.Addr) {
	for four := range slices.Chunk(payload, 4) {
		if len(four) == 4 {
			all = append(all, getAddr(four))
		}
	}
	return all
}

func questionsIn(payload []byte) (questions []ARPQuestion) {
	for q := range slices.Chunk(payload, questionBytes) {
		question := ARPQuestion{Addr: getAddr(q)}
		if to := hardwareAddr(q[4:]); to != (hardwareAddr{}) {
			question.To = to[:]
		}
		questions = append(questions, question)
	}
	return questions
}

func indexIn(payload []byte) (int, error) {
	if len(payload) != 4 {
		return 0, fmt.Errorf("netio: the index of an interface has 4 bytes, not %d", len(payload))
	}
	return int(binary.BigEndian.Uint32(payload)), nil
}
