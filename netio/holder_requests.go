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

// handle does what is asked. The files are those that came with the request; what is kept of them is taken out.
func (s *session) handle(message []byte, files *[]int) (answer []byte, given []int, err error) {
	if len(message) == 0 {
		return nil, nil, errors.New("netio: the holder was asked for nothing")
	}
	payload := message[1:]
	switch asked := holderRequest(message[0]); asked {
	case askPing:
	case askFence:
		return s.makeFence()
	case askCover:
		answer, err = s.cover(payload)
	case askSockets:
		return s.openSockets(payload)
	case askFloating:
		answer, err = s.openFloating(payload)
	case askAcquire, askRelease, askRenew:
		answer, err = s.changeAddresses(asked)
	case askResign:
		err = s.prepareResign(payload)
	case askAnnouncer, askAnnounce, askProbe, askRivals, askQuestions, askResolve, askAnnounced, askSilence:
		answer, err = s.speakARP(asked, payload)
	case askFrames, askIgnored, askCount, askSenders, askNoFrames:
		answer, err = s.countFrames(asked, payload)
	case askConnection, askGatewayConnection, askEvents:
		err = s.addConnection(asked, files)
	case askGateway:
		err = s.askGateway(payload)
	default:
		err = fmt.Errorf("netio: the holder knows no request %d: restart both services, which must be of one version", asked)
	}
	return answer, given, err
}

// makeFence makes the fence, once, and gives the daemon the lease's memory and its timer.
func (s *session) makeFence() (answer []byte, given []int, err error) {
	if s.fence != nil {
		return nil, nil, errors.New("netio: the fence was made already")
	}
	fence, err := bestFence(s.options.Floating)
	if err != nil {
		return nil, nil, err
	}
	s.mu.Lock()
	s.fence = fence
	s.mu.Unlock()
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

func (s *session) cover(payload []byte) ([]byte, error) {
	var r coverRequest
	if err := json.Unmarshal(payload, &r); err != nil {
		return nil, err
	}
	s.mu.Lock()
	fence := s.fence
	s.mu.Unlock()
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
func (s *session) openSockets(payload []byte) (answer []byte, given []int, err error) {
	var r socketsRequest
	if err := json.Unmarshal(payload, &r); err != nil {
		return nil, nil, err
	}
	if err := s.checkInterface(r.Interface); err != nil {
		return nil, nil, err
	}
	if err := s.checkLocal(r.Interface, r.Local); err != nil {
		return nil, nil, err
	}
	o := Options{Interface: r.Interface, Local: r.Local, Group: s.options.Group, Floating: s.options.Floating}
	if s.sockets.are(o, s.options.Tag) {
		err = s.sockets.renew()
	} else {
		s.sockets.close()
		*s.sockets, err = openHeld(o, s.options.Tag)
	}
	if err != nil {
		return nil, nil, err
	}
	if s.sender != nil {
		s.sender.Close()
	}
	if s.sender, err = openSender(o, s.sockets.index); err != nil {
		return nil, nil, fmt.Errorf("open a socket for the pre-signed RESIGN: %w", err)
	}
	s.local = r.Local
	return []byte(s.sockets.unlimited), s.sockets.files(), nil
}

// checkLocal refuses an address that is not this board's own on an interface. What the daemon says and asks goes out in the name of that.
func (s *session) checkLocal(iface string, local netip.Addr) error {
	if s.isFloating(local.Unmap()) {
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

func (s *session) openFloating(payload []byte) ([]byte, error) {
	var r floatingRequest
	if err := json.Unmarshal(payload, &r); err != nil {
		return nil, err
	}
	if err := s.checkInterface(r.Interface); err != nil {
		return nil, err
	}
	for _, p := range r.Addresses {
		if !s.isFloating(p.Addr()) {
			return nil, fmt.Errorf("netio: the holder does not hold %s: restart topdog-holder.service if the configuration has changed", p.Addr())
		}
		if !s.mayHave(p) {
			return nil, fmt.Errorf("netio: %s is not what the holder's configuration has: restart topdog-holder.service if the configuration has changed", p)
		}
	}
	if s.floating != nil { // on another interface
		if err := s.floating.Close(); err != nil {
			return nil, err
		}
	}
	floating, err := NewFloatingIP(FloatingOptions{Interface: r.Interface, Addresses: r.Addresses, Method: s.options.Method, lifetime: s.lifetime})
	if err != nil {
		return nil, err
	}
	state := floating.State()
	s.mu.Lock()
	s.floating, s.toldState = floating, state
	s.mu.Unlock()
	return json.Marshal(state)
}

// mayHave reports whether a floating address may have that prefix length: that of the configuration or, without one, none. The length
// decides which route comes with the address.
func (s *session) mayHave(p netip.Prefix) bool {
	for _, configured := range s.options.Prefixes {
		if configured.Addr() == p.Addr() {
			return configured == p
		}
	}
	return p.IsSingleIP()
}

// errNoLease says that the daemon may not answer for the addresses.
var errNoLease = fmt.Errorf("netio: %w: there is no lease, or it was ended", ErrNotHeld)

// lasts reports whether there is a lease that is not over: only then the neighbours may be told.
func (s *session) lasts() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fence != nil && s.fence.lasts()
}

// leased reports whether there is a lease that nobody has ended. It may be over, and go on: then the fence is closed meanwhile.
func (s *session) leased() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fence == nil {
		return false
	}
	word := s.fence.word.load()
	return word != leaseIdle && word != leaseFired
}

func (s *session) changeAddresses(asked holderRequest) (answer []byte, err error) {
	s.mu.Lock()
	floating := s.floating
	s.mu.Unlock()
	switch {
	case asked == askRelease:
		s.past = true // only the loop asks for it
		if err = s.removeAddresses(); err == nil {
			s.remove = retry{} // nothing is left that would have to be removed
		}
		return nil, err
	case floating == nil:
		return nil, errors.New("netio: the addresses were not prepared")
	case !s.leased():
		return nil, errNoLease
	case asked == askAcquire:
		s.remove = retry{} // of a former lease; only the loop asks for it
		err = floating.Acquire()
		answer = []byte{0}
		if err == nil && s.announceAll(floating.options.Addresses) {
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
		answer = append(answer, s.stateNews(floating)...)
	}
	return answer, err
}

// stateNews is how the addresses are held, if that is not what the daemon was told last.
func (s *session) stateNews(floating *FloatingIP) []byte {
	state := floating.State()
	s.mu.Lock()
	defer s.mu.Unlock()
	if state == s.toldState {
		return nil
	}
	news, err := json.Marshal(state)
	if err != nil {
		return nil
	}
	s.toldState = state
	return news
}

// announceAll announces the addresses that were just acquired: nobody looks for them here before that, and to be asked for it
// takes longer than it does. It reports whether all were announced. To acquire them may have taken until after the
// end of the lease.
func (s *session) announceAll(addresses []netip.Prefix) bool {
	s.mu.Lock()
	announcer := s.announcer
	s.mu.Unlock()
	if announcer == nil {
		return false
	}
	for _, p := range addresses {
		if !s.lasts() || announcer.Announce(p.Addr()) != nil {
			return false
		}
	}
	return true
}

func (s *session) prepareResign(payload []byte) error {
	var r PreparedResign
	if err := json.Unmarshal(payload, &r); err != nil {
		return fmt.Errorf("netio: read the pre-signed RESIGN: %w", err)
	}
	s.resign, s.past = r, false
	return nil
}

// speakARP does what is asked of the Announcer.
func (s *session) speakARP(asked holderRequest, payload []byte) (answer []byte, err error) {
	if asked == askAnnouncer {
		return nil, s.openAnnouncer(payload)
	}
	if asked == askSilence {
		s.closeAnnouncer()
		return nil, nil
	}
	s.mu.Lock()
	announcer := s.announcer
	s.mu.Unlock()
	if announcer == nil {
		return nil, errors.New("netio: nothing reaches the neighbours: the link was lost")
	}
	if asked == askProbe {
		return s.probe(announcer, payload)
	}
	addrs := addrsIn(payload)
	switch asked {
	case askRivals:
		announcer.Rivals(addrs, s.rivalHeard)
		return nil, nil
	case askQuestions:
		if len(payload) < 4 || (len(payload)-4)%questionBytes != 0 {
			break
		}
		questions := questionsIn(payload[4:])
		if len(questions) > maxQuestions {
			return nil, fmt.Errorf("netio: %d questions are too many (at most %d)", len(questions), maxQuestions)
		}
		if err := s.checkSpeaker(addrs[0]); err != nil {
			return nil, err
		}
		return nil, announcer.Ask(addrs[0], questions)
	case askResolve:
		if len(addrs) != 2 {
			break
		}
		if err := s.checkSpeaker(addrs[0]); err != nil {
			return nil, err
		}
		return nil, announcer.Resolve(addrs[0], addrs[1])
	case askAnnounced:
		if len(addrs) != 1 {
			break
		}
		if mac, known := announcer.LastAnnouncer(addrs[0]); known {
			answer = mac
		}
		return answer, nil
	case askAnnounce:
		switch {
		case len(addrs) != 1:
		case !s.isFloating(addrs[0]):
			return nil, fmt.Errorf("netio: the holder does not announce %s", addrs[0])
		case !s.lasts():
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
func (s *session) checkSpeaker(as netip.Addr) error {
	switch {
	case !s.local.IsValid():
		return errors.New("netio: the holder speaks ARP for nobody before the sockets of the group are open")
	case as != s.local:
		return fmt.Errorf("netio: the holder speaks ARP as %s and not as %s", s.local, as)
	}
	return nil
}

func (s *session) openAnnouncer(payload []byte) error {
	index, err := indexIn(payload)
	if err != nil {
		return err
	}
	link, err := s.linkAt(index)
	if err != nil {
		return err
	}
	s.closeAnnouncer()
	announcer, err := OpenAnnouncer(link.Index, s.local, s.options.Floating...)
	if err != nil {
		return err
	}
	announcer.Answers(s.answerHeard)
	s.mu.Lock()
	s.announcer = announcer
	s.mu.Unlock()
	return nil
}

func (s *session) rivalHeard(addr netip.Addr, mac net.HardwareAddr) {
	s.tell(append(appendAddr([]byte{byte(eventRival)}, addr), mac...))
}

func (s *session) answerHeard(answer ARPAnswer) {
	s.tell(appendTime(appendAddr([]byte{byte(eventAnswer)}, answer.Addr), answer.AskedAt))
}

// maxProbes bounds how often somebody is asked in one request.
const maxProbes = 16

func (s *session) probe(announcer *Announcer, payload []byte) ([]byte, error) {
	var r probeRequest
	if err := json.Unmarshal(payload, &r); err != nil {
		return nil, err
	}
	if !s.isFloating(r.Addr) && r.Addr != announcer.local || r.Times < 1 || r.Times > maxProbes || r.Spacing <= 0 || r.Spacing > answerWithin {
		return nil, fmt.Errorf("netio: the holder does not probe for %s %d times, %v apart", r.Addr, r.Times, r.Spacing)
	}
	owner, found, err := announcer.Probe(context.Background(), r.Addr, r.Times, r.Spacing)
	if !found {
		owner = nil
	}
	return owner, err
}

// countFrames does what is asked of the FrameCounter.
func (s *session) countFrames(asked holderRequest, payload []byte) (answer []byte, err error) {
	if asked == askFrames {
		return nil, s.openFrames(payload)
	}
	if asked == askNoFrames {
		s.closeFrames()
		return nil, nil
	}
	s.mu.Lock()
	frames := s.frames
	s.mu.Unlock()
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

func (s *session) openFrames(payload []byte) error {
	index, err := indexIn(payload)
	if err != nil {
		return err
	}
	link, err := s.portAt(index)
	if err != nil {
		return err
	}
	s.closeFrames()
	frames, err := OpenFrameCounter(link.Index)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.frames = frames
	s.mu.Unlock()
	return nil
}

// maxConnections bounds how many connections a daemon opens. It asks for few things at once.
const maxConnections = 16

// addConnection takes in a connection that came with a request.
func (s *session) addConnection(asked holderRequest, files *[]int) error {
	if len(*files) != 1 {
		return fmt.Errorf("netio: %d files came with request %d of the holder", len(*files), asked)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	fd := (*files)[0]
	if asked == askEvents {
		if s.events >= 0 {
			unix.Close(s.events)
		}
		s.events, *files = fd, nil
		return nil
	}
	if len(s.open) >= maxConnections {
		return fmt.Errorf("netio: the holder has %d connections, and takes no more", len(s.open))
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return os.NewSyscallError("fcntl", err)
	}
	file := os.NewFile(uintptr(fd), "connection")
	s.open, *files = append(s.open, file), nil
	allowed := concurrentRequests
	if asked == askGatewayConnection {
		allowed = []holderRequest{askGateway}
	}
	s.workers.Go(func() {
		s.serveConnection(file, allowed)
		s.closeConnection(file)
	})
	return nil
}

// closeConnection forgets a connection that nobody uses any more.
func (s *session) closeConnection(file *os.File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = slices.DeleteFunc(s.open, func(connection *os.File) bool { return connection == file })
	file.Close()
}

// maxGatewayWait bounds how long the gateway is waited for.
const maxGatewayWait = time.Minute

// askGateway asks the default gateway of the group's interface whether it is there.
func (s *session) askGateway(payload []byte) error {
	if len(payload) < 5 {
		return fmt.Errorf("netio: request %d of the holder has %d bytes", askGateway, len(payload))
	}
	within := time.Duration(binary.BigEndian.Uint32(payload)) * time.Millisecond
	iface := string(payload[4:])
	if err := s.checkInterface(iface); err != nil {
		return err
	}
	s.mu.Lock()
	var err error
	if s.gateway == nil {
		s.gateway, err = OpenGatewayAsker()
	}
	gateway := s.gateway
	s.mu.Unlock()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(s.served, min(within, maxGatewayWait))
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
