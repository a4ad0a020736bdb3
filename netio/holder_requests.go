package netio

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// handle does what is asked. The files are those that came with the request; what is kept of them is taken out. The
// given ones go with the answer, and stay this process's.
func (s *session) handle(message []byte, files *[]int) (answer any, given []int, err error) {
	if len(message) == 0 {
		return nil, nil, errors.New("netio: the holder was asked for nothing")
	}
	body := message[1:]
	switch asked := holderRequest(message[0]); asked {
	case askPing:
	case askFence:
		return s.makeFence()
	case askSockets:
		answer, err = decoded(body, s.openSockets)
		if err == nil {
			given = s.sockets.files()
		}
	case askSideSocket:
		err = s.addSideSocket(files)
	case askCover:
		answer, err = decoded(body, s.cover)
	case askFloating:
		answer, err = decoded(body, s.openFloating)
	case askAcquire:
		answer, err = s.acquire()
	case askRelease:
		err = s.releaseAsAsked()
	case askRenew:
		answer, err = s.renew()
	case askResign:
		answer, err = decoded(body, s.prepareResign)
	case askARP:
		answer, err = decoded(body, s.openARP)
	case askAnnounce:
		answer, err = byAnnouncer(s, nil, func(a *Announcer, _ struct{}) (any, error) { a.AnnounceAnew(); return nil, nil })
	case askProbe:
		answer, err = byAnnouncer(s, body, s.probe)
	case askLAN:
		answer, err = byAnnouncer(s, body, s.askLAN)
	case askHeard:
		answer, err = byAnnouncer(s, nil, func(a *Announcer, _ struct{}) (any, error) {
			frames, senders, err := a.Heard()
			return framesAnswer{frames, senders}, err
		})
	case askWatch:
		answer, err = byAnnouncer(s, body, s.watch)
	case askGateway:
		answer, err = decoded(body, s.askGateway)
	default:
		err = fmt.Errorf("netio: the holder knows no request %d: restart both services, which must be of one version", asked)
	}
	return answer, given, err
}

// byAnnouncer has the Announcer do what a request says.
func byAnnouncer[R any](s *session, body []byte, do func(*Announcer, R) (any, error)) (answer any, err error) {
	announcer := s.currentAnnouncer()
	if announcer == nil {
		return nil, errors.New("netio: nothing reaches the neighbours: the link was lost")
	}
	return decoded(body, func(r R) (any, error) { return do(announcer, r) })
}

// makeFence makes the fence, once, and gives the daemon the lease's memory and its timer.
func (s *session) makeFence() (answer any, given []int, err error) {
	if s.fence != nil {
		return nil, nil, errors.New("netio: the fence was made already")
	}
	fence, err := bestFence(s.options.Floating)
	if err != nil {
		return nil, nil, err
	}
	timer, err := unix.FcntlInt(uintptr(fence.timer), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, nil, errors.Join(os.NewSyscallError("fcntl", err), fence.Close())
	}
	file := os.NewFile(uintptr(timer), "end of the lease")
	s.mu.Lock()
	s.fence, s.open = fence, append(s.open, file)
	s.mu.Unlock()
	s.workers.Go(func() { s.endLease(file) })
	return stateOf(fence, nil), []int{int(fence.file.Fd()), fence.timer}, nil
}

func stateOf(f *kernelFence, failed error) fenceState {
	s := fenceState{Closes: f.Closes()}
	s.Kind, s.Problem = f.State()
	if failed != nil {
		s.Failed = failed.Error()
	}
	for _, text := range []*string{&s.Problem, &s.Failed} {
		*text = cut(*text)
	}
	return s
}

// maxInterfaces bounds how many interfaces a fence covers.
const maxInterfaces = 4096

func (s *session) cover(r coverRequest) (any, error) {
	s.mu.Lock()
	fence := s.fence
	s.mu.Unlock()
	switch {
	case fence == nil:
		return nil, errors.New("netio: there is no fence to cover interfaces with")
	case len(r.Interfaces) > maxInterfaces:
		return nil, fmt.Errorf("netio: %d interfaces are too many for a fence (at most %d)", len(r.Interfaces), maxInterfaces)
	}
	return stateOf(fence, fence.Cover(r.Interfaces)), nil
}

// openSockets opens the sockets of the group, unless they are open.
func (s *session) openSockets(r socketsRequest) (any, error) {
	if err := s.checkInterface(r.Interface); err != nil {
		return nil, err
	}
	if err := s.checkLocal(r.Interface, r.Local); err != nil {
		return nil, err
	}
	o := Options{Interface: r.Interface, Local: r.Local, Group: s.options.Group, Floating: s.options.Floating}
	if err := s.sockets.provide(o, s.options.Tag, s.options.Others); err != nil {
		return nil, err
	}
	if s.sender != nil {
		s.sender.Close()
	}
	var err error
	if s.sender, err = openSender(o, s.sockets.index); err != nil {
		return nil, fmt.Errorf("open a socket for the pre-signed RESIGN: %w", err)
	}
	if s.local != r.Local {
		s.closeAnnouncer() // it speaks for the former address
	}
	s.local = r.Local
	return socketsAnswer{s.sockets.unlimited, s.sockets.options.Tag}, nil
}

// checkLocal refuses an address that is not this board's own on an interface. What the daemon says and asks goes out
// in the name of that.
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

func (s *session) openFloating(r floatingRequest) (any, error) {
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
	s.mu.Lock()
	defer s.mu.Unlock()
	s.floating, s.told = floating, floating.State()
	return s.told, nil
}

// mayHave reports whether a floating address may have that prefix length: that of the configuration or, without one,
// none. The length decides which route comes with the address.
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

// leased returns the addresses if there is a lease that nobody has ended. It may be over, and go on: then the fence is
// closed meanwhile.
func (s *session) leased() (*FloatingIP, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.floating == nil {
		return nil, errors.New("netio: the addresses were not prepared")
	}
	if s.fence != nil {
		if word := s.fence.word.load(); word != leaseIdle && word != leaseFired {
			return s.floating, nil
		}
	}
	return nil, errNoLease
}

// acquire acquires the addresses, and announces them at once: no client looks for them here before that, and a second
// request for it would take longer than the announcement. The lease may end while the kernel adds the addresses.
func (s *session) acquire() (any, error) {
	floating, err := s.leased()
	if err != nil {
		return nil, err
	}
	if err := floating.Acquire(); err != nil {
		s.announce(nil)
		return nil, err
	}
	var held []netip.Addr
	for _, p := range floating.options.Addresses {
		held = append(held, p.Addr())
	}
	s.announce(held)
	return s.news(floating, false), nil
}

// news is the answer to a daemon that knows how the addresses were held when it was told last.
func (s *session) news(floating *FloatingIP, restored bool) (answer addressAnswer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	answer.Restored = restored
	if state := floating.State(); state != s.told {
		s.told, answer.State = state, &state
	}
	return answer
}

func (s *session) renew() (any, error) {
	floating, err := s.leased()
	if err != nil {
		return nil, err
	}
	restored, err := floating.Renew()
	if err != nil {
		return nil, err
	}
	return s.news(floating, restored), nil
}

// releaseAsAsked releases the addresses because the daemon wants it. The daemon tells the other boards itself.
func (s *session) releaseAsAsked() error {
	s.past = true
	return s.removeAddresses()
}

func (s *session) prepareResign(r PreparedResign) (any, error) {
	s.resign, s.past = r, false
	return nil, nil
}

// openARP opens what reaches the neighbours, or only closes what was open. It speaks in the name of the address that the
// sockets were opened for.
func (s *session) openARP(r openARPRequest) (any, error) {
	if r.Index == 0 {
		s.closeAnnouncer()
		return nil, nil
	}
	link, err := s.linkAt(r.Index)
	if err != nil {
		return nil, err
	}
	if !s.local.IsValid() {
		return nil, errors.New("netio: the holder speaks ARP for nobody before the sockets of the group are open")
	}
	s.closeAnnouncer()
	announcer, err := OpenAnnouncer(link.Index, s.local, s.options.Floating...)
	if err != nil {
		return nil, err
	}
	announcer.Answers(func(answer ARPAnswer) { s.tell(eventAnswer, answer) })
	announcer.Watched(func(found WatchReport) { s.tell(eventWatch, found) })
	announcer.Unannounced(func(err error) {
		if !errors.Is(err, ErrLinkDown) { // the daemon sees that by itself
			text := err.Error()
			s.tell(eventUnannounced, text[:min(len(text), maxEventBytes/2)])
		}
	})
	announcer.Rivals(nil, func(addr netip.Addr, mac net.HardwareAddr) { s.tell(eventRival, Neighbour{addr, mac}) })
	s.mu.Lock()
	s.announcer = announcer
	s.mu.Unlock()
	return nil, nil
}

// announce has addresses announced while the lease lasts; nil for none. If ARP is opened later, the daemon acquires the
// addresses again.
func (s *session) announce(addrs []netip.Addr) {
	if announcer := s.currentAnnouncer(); announcer != nil {
		announcer.Hold(addrs, s.lasts)
	}
}

// maxProbes bounds how often somebody is asked in one request.
const maxProbes = 16

func (s *session) probe(announcer *Announcer, r probeRequest) (any, error) {
	if !s.isFloating(r.Addr) && r.Addr != announcer.local || r.Times < 1 || r.Times > maxProbes || r.Spacing <= 0 || r.Spacing > answerWithin {
		return nil, fmt.Errorf("netio: the holder does not probe for %s %d times, %v apart", r.Addr, r.Times, r.Spacing)
	}
	owner, _, err := announcer.Probe(context.Background(), r.Addr, r.Times, r.Spacing)
	return owner, err
}

// maxQuestions bounds how many questions come with one request. A daemon asks up to four witnesses, three neighbours and
// whoever may have the floating address.
const maxQuestions = 64

// check refuses what would not be a question to a host of IPv4.
func (r *lanRequest) check() error {
	if len(r.Questions) > maxQuestions {
		return fmt.Errorf("netio: %d questions are too many (at most %d)", len(r.Questions), maxQuestions)
	}
	addrs := slices.Clone(r.Ignored)
	for _, q := range r.Questions {
		addrs = append(addrs, q.Addr)
	}
	if r.Resolve.IsValid() {
		addrs = append(addrs, r.Resolve)
	}
	for _, addr := range addrs {
		if !addr.Is4() {
			return fmt.Errorf("netio: %s is no IPv4 address, so nobody can be asked for it by ARP", addr)
		}
	}
	return nil
}

func (s *session) askLAN(announcer *Announcer, r lanRequest) (any, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	switch {
	case r.Calm:
		return nil, announcer.Calm()
	case r.Resolve.IsValid():
		return nil, announcer.Resolve(r.Resolve)
	}
	if r.Port != 0 && !announcer.countsAt(r.Port) {
		if _, err := s.portAt(r.Port); err != nil {
			return nil, err
		}
	}
	return nil, announcer.Doubt(r.Doubt)
}

// The bounds of AddressWatch.Every. A watch that asks more often would keep a core busy.
const (
	leastWatchEvery = 2 * time.Millisecond
	mostWatchEvery  = 10 * time.Second
)

func (s *session) watch(announcer *Announcer, w AddressWatch) (any, error) {
	switch {
	case w.Every == 0:
	case !s.isFloating(w.Addr):
		return nil, fmt.Errorf("netio: the holder does not watch %s: restart topdog-holder.service if the configuration has changed", w.Addr)
	case w.Every < leastWatchEvery || w.Every > mostWatchEvery:
		return nil, fmt.Errorf("netio: the holder does not watch %s every %v (%v to %v)", w.Addr, w.Every, leastWatchEvery, mostWatchEvery)
	}
	return nil, announcer.Watch(w)
}

// addSideSocket takes in the side socket that came with a request.
func (s *session) addSideSocket(files *[]int) error {
	if len(*files) != 1 {
		return fmt.Errorf("netio: %d files came with a side socket to the holder", len(*files))
	}
	if !isConnection((*files)[0]) {
		return errors.New("netio: the side socket for the holder is no Unix socket that keeps the boundaries of messages")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.side != nil {
		return errors.New("netio: the holder has a side socket, and takes no other")
	}
	fd := (*files)[0]
	if err := unix.SetNonblock(fd, true); err != nil {
		return os.NewSyscallError("fcntl", err)
	}
	side := os.NewFile(uintptr(fd), "side socket")
	s.side, s.open, *files = side, append(s.open, side), nil
	s.workers.Go(func() {
		s.serveSideSocket(side)
		side.Close()
	})
	return nil
}

// maxGatewayWait bounds how long the gateway is waited for.
const maxGatewayWait = time.Minute

// askGateway asks the default gateway of the group's interface whether it is there.
func (s *session) askGateway(r gatewayRequest) (any, error) {
	if err := s.checkInterface(r.Interface); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(s.served, min(r.Within, maxGatewayWait))
	defer cancel()
	return nil, AskGateway(ctx, r.Interface)
}
