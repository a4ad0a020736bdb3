package netio

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"topdog/wire"
)

// A holder is the one process of a board that may change the network. It has the floating addresses, the
// fence, ARP, and the sockets of the group. The daemon, which reads what strangers send, asks it for
// what is to be done, and needs no right of its own. The holder is the dead man's switch as well: it
// notices that the daemon was killed when the daemon's end of a socket closes, and that it is frozen when
// its lease runs out, which the daemon extends with every heartbeat. Then it releases the addresses, and
// tells the other boards so with a RESIGN that the daemon has signed beforehand.
//
// A holder does only what this list has, and only for the addresses, the interface and the group of its
// own configuration, whatever it is asked.
type holderRequest byte

const (
	askFence             holderRequest = 1 + iota // make the fence and its lease: the memory and the timer of the lease come with the answer
	askCover                                      // coverRequest: put the fence on interfaces
	askSockets                                    // socketsRequest: the sockets of the group come with the answer, and after them the memory of admission if a program in the kernel keeps it; else the answer says why none does
	askFloating                                   // floatingRequest: prepare to hold the addresses
	askAcquire                                    // acquire them, and announce them; the answer has 1 if it did, and the device
	askRelease                                    // release them
	askRenew                                      // start their lifetimes over
	askResign                                     // PreparedResign: what is sent when the daemon no longer can
	askAnnouncer                                  // 4 bytes, the index of the interface: open what reaches the neighbours
	askAnnounce                                   // 4 bytes, a floating address: tell the neighbours where it is
	askProbe                                      // probeRequest: who has a floating address
	askRivals                                     // 4 bytes each: the addresses whose rivals are told of from now on
	askQuestions                                  // 4 bytes, this host's address, and 10 for each question: an address, and the Ethernet address that is asked
	askResolve                                    // 4 and 4 bytes: this host's address, and that of a board
	askAnnounced                                  // 4 bytes, a floating address: who has announced it last
	askSilence                                    // close what reaches the neighbours
	askFrames                                     // 4 bytes, the index of the interface: begin to count frames
	askIgnored                                    // 4 bytes each: the hosts whose frames are not counted
	askCount                                      // how many frames were counted
	askSenders                                    // who has sent some of them
	askNoFrames                                   // end the counting
	askConnection                                 // a connection comes with it, on which requests are made as well
	askEvents                                     // a connection comes with it, on which the holder tells of events
	askGatewayConnection                          // a connection comes with it, on which nothing is asked but for the gateway
	askGateway                                    // 4 bytes, milliseconds, and the name of the interface: whether the default gateway answers within them
	askPing                                       // nothing
	askEnd                                        // end, and release nothing
)

// event is what a holder tells of by itself.
type event byte

const (
	eventRival    event = 1 + iota // 4 and 6 bytes: a host that speaks as a floating address
	eventAnswer                    // 4 and 8 bytes: an ARPAnswer
	eventPrograms                  // the store that keeps the fence comes with it
)

type (
	coverRequest struct {
		Interfaces []int `json:"interfaces"`
		First      int   `json:"first"`
		Again      bool  `json:"again"` // only what could not be covered
	}
	// fenceState is the answer to askFence and to askCover.
	fenceState struct {
		Kind    FenceKind `json:"kind"`
		Closes  bool      `json:"closes"`
		Problem string    `json:"problem"`
		Failed  string    `json:"failed"` // what could not be covered; "" if all could
	}
	socketsRequest struct {
		Interface string     `json:"interface"`
		Local     netip.Addr `json:"local"`
	}
	floatingRequest struct {
		Interface string         `json:"interface"`
		Addresses []netip.Prefix `json:"addresses"`
	}
	probeRequest struct {
		Addr    netip.Addr    `json:"addr"`
		Times   int           `json:"times"`
		Spacing time.Duration `json:"spacing_ns"`
	}
)

// PreparedResign is what a holder sends when it has released the addresses because the daemon no longer could.
type PreparedResign struct {
	// Datagram is a RESIGN that the daemon has signed beforehand, nil for none.
	Datagram []byte           `json:"datagram"`
	To       []netip.AddrPort `json:"to"`
}

// HolderOptions say what a holder does things for.
type HolderOptions struct {
	// Interface is the group's; "" for that whose subnet contains the first floating address.
	Interface string
	Floating  []netip.Addr
	// Prefixes are those of the floating addresses whose prefix length is configured.
	Prefixes []netip.Prefix
	Group    netip.AddrPort
	// Tag is in all packets of the group. The kernel drops others; 0 for no such program.
	Tag    wire.GroupTag
	Method HoldMethod
}

// Holder is a board's holder as the daemon sees it. Its methods may be called from any goroutine.
// When it is lost, everything that was opened by it is of no use any more.
type Holder struct {
	main   *connection // of the loop
	events *os.File    // where the holder tells of events; nil before
	pid    int

	mu          sync.Mutex    // of what follows
	ping        *connection   // on which it is asked whether it is alive; nil before
	idle        []*connection // for what may take long
	connections []*connection // all of them but main
	has         bool          // the addresses, or may have
	programs    int           // the store that keeps the fence; -1 for none
	rival       func(netip.Addr, net.HardwareAddr)
	answered    func(ARPAnswer)
	// announced are the addresses that the holder announced when it acquired them, until the daemon asks it to.
	announced []netip.Addr

	lose   sync.Once
	lost   chan struct{}
	ended  bool // rather than frozen; good when lost is closed
	reader sync.WaitGroup

	command *exec.Cmd // nil if it is a service of its own
	exited  chan struct{}
}

const (
	// answerWithin is how long the loop waits for the holder. The kernel may keep the holder waiting
	// that changes an address, for as long as somebody else configures interfaces.
	answerWithin = time.Second
	// prepareWithin is how long it waits for what a board needs to begin with: devices and programs, which take their time on a board that
	// has just been switched on. In one turn the loop waits for the sockets and the announcer, 3 s + 1 s, and then for the addresses and to
	// acquire them, as long again. It feeds the watchdog of systemd before each of the two, which waits for 5 s. So does a daemon that
	// has waited for the holder of a service, before the fence.
	prepareWithin = 3 * time.Second
	// holderAliveWithin is how long a request may take until the holder is asked whether it is alive, and within what
	// it answers that while it has the addresses. One that does not stands still. Soon its addresses are gone, since
	// nobody renews them: they were renewed DefaultLifetime/2 ago when the holder was asked to.
	holderAliveWithin = DefaultLifetime / 4
	// idleWithin is within what it answers while it has none. On a busy machine it may not run for so long, and no client
	// would notice.
	idleWithin = answerWithin
)

// The files that a holder finds open that was started by a daemon.
const (
	holderSocket = 3 + iota
)

// StartHolder starts a holder as a child: command is a program of which the main function calls
// AttendHolder at once. It ends with this process.
func StartHolder(command []string, o HolderOptions) (*Holder, error) {
	ours, theirs, err := newConnectionPair()
	if err != nil {
		return nil, fmt.Errorf("netio: start the holder: %w", err)
	}
	file := os.NewFile(uintptr(theirs), "holder")
	defer file.Close()
	options, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	c := exec.Command(command[0], command[1:]...)
	c.Args[0] = filepath.Base(os.Args[0]) // what ps shows, instead of /proc/self/exe
	c.ExtraFiles = []*os.File{file}
	c.Stderr = os.Stderr
	c.Env = append(os.Environ(), holderEnvironment()...)
	c.Env = append(c.Env, holderOptionsVariable+"="+string(options))
	// A process group of its own: what a terminal sends to the daemon is not for it.
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		unix.Close(ours)
		return nil, fmt.Errorf("netio: start the holder: %w", err)
	}
	file.Close() // so that the end of the child is seen
	h := &Holder{command: c, exited: make(chan struct{}), pid: c.Process.Pid}
	go func() {
		_ = c.Wait()
		close(h.exited)
	}()
	return h, h.open(ours)
}

// holderEnvironment keeps a holder small: one processor is enough for a process that does one thing at a
// time, and a collector that hardly runs wakes nobody.
func holderEnvironment() []string { return []string{"GOMAXPROCS=1", "GOGC=off", "GOMEMLIMIT=8MiB"} }

// holderOptionsVariable gives a child its options. Its parent may do all that it may.
const holderOptionsVariable = "TOPDOG_HOLDER_OPTIONS"

// DialHolder connects to a holder that is a service of its own.
func DialHolder(path string) (*Holder, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("netio: connect to the holder: %w", os.NewSyscallError("socket", err))
	}
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		unix.Close(fd)
		advice := "does topdog-holder.service run?"
		if err == unix.EACCES {
			advice = "only root and the group of the daemon may"
		}
		return nil, fmt.Errorf("netio: connect to the holder at %s: %w: %s", path, err, advice)
	}
	h := &Holder{}
	if peer, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
		h.pid = int(peer.Pid)
	}
	return h, h.open(fd)
}

// open makes use of the socket.
func (h *Holder) open(socket int) error {
	h.main, h.programs, h.lost = &connection{fd: socket}, -1, make(chan struct{})
	ours, theirs, err := newConnectionPair()
	if err == nil {
		// The process has to start, or the holder has to end what the daemon before has left.
		_, err = h.ask(h.main, askEvents, nil, prepareWithin, theirs)
		unix.Close(theirs)
		if err != nil {
			unix.Close(ours)
		}
	}
	if err != nil {
		h.Close()
		return fmt.Errorf("netio: begin with the holder: %w", err)
	}
	h.events = os.NewFile(uintptr(ours), "events")
	h.reader.Go(h.listen)
	l, err := h.takeConnection()
	if err != nil {
		h.Close()
		return fmt.Errorf("netio: begin with the holder: %w", err)
	}
	h.mu.Lock()
	h.ping = l
	h.mu.Unlock()
	return nil
}

// PID is the holder's process.
func (h *Holder) PID() int { return h.pid }

// Lost is closed when the holder has ended, or does not answer any more.
func (h *Holder) Lost() <-chan struct{} { return h.lost }

// abandon is called when the holder is of no use any more: because of an error, or without one.
func (h *Holder) abandon(why error) {
	h.lose.Do(func() {
		for _, gone := range []error{net.ErrClosed, unix.EPIPE, unix.ECONNRESET} {
			h.ended = h.ended || errors.Is(why, gone)
		}
		close(h.lost)
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	h.main.shut()
	for _, l := range h.connections {
		l.shut()
	}
}

// ask makes a request on a connection, and returns the answer.
func (h *Holder) ask(l *connection, asked holderRequest, payload []byte, within time.Duration, files ...int) (answer []byte, err error) {
	answer, received, err := h.askFiles(l, asked, payload, within, files...)
	closeAll(received)
	return answer, err
}

// askFiles is ask for requests that are answered with files.
func (h *Holder) askFiles(l *connection, asked holderRequest, payload []byte, within time.Duration, files ...int) (answer []byte, received []int, err error) {
	answer, received, err = l.call(asked, payload, files, within, h.alive)
	if errors.Is(err, errHolderLost) {
		h.abandon(err)
	}
	return answer, received, err
}

// do makes a request for which the loop may wait.
func (h *Holder) do(asked holderRequest, payload []byte) ([]byte, error) {
	return h.ask(h.main, asked, payload, answerWithin)
}

// patience is how long the holder may take to say that it is alive.
func (h *Holder) patience() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.has {
		return holderAliveWithin
	}
	return idleWithin
}

// setHas enters whether the holder has the addresses, as far as this process knows.
func (h *Holder) setHas(has bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.has = has
}

// alive asks the holder whether it is alive, and returns how long that took.
func (h *Holder) alive(left time.Duration) (took time.Duration, ok bool) {
	h.mu.Lock()
	l := h.ping
	h.mu.Unlock()
	if l == nil {
		return 0, true // nothing was asked yet but for this
	}
	return l.ping(min(left, h.patience()))
}

// doLong makes a request for which the holder may need long, beside the loop.
func (h *Holder) doLong(asked holderRequest, payload []byte, within time.Duration) (answer []byte, err error) {
	l, err := h.takeConnection()
	if err != nil {
		return nil, err
	}
	answer, err = h.ask(l, asked, payload, within)
	h.returnConnection(l)
	return answer, err
}

// takeConnection returns a connection that nobody uses.
func (h *Holder) takeConnection() (*connection, error) {
	h.mu.Lock()
	if n := len(h.idle); n > 0 {
		l := h.idle[n-1]
		h.idle = h.idle[:n-1]
		h.mu.Unlock()
		return l, nil
	}
	h.mu.Unlock()
	ours, theirs, err := newConnectionPair()
	if err != nil {
		return nil, err
	}
	_, err = h.ask(h.main, askConnection, nil, answerWithin, theirs)
	unix.Close(theirs)
	if err != nil {
		unix.Close(ours)
		return nil, err
	}
	l := &connection{fd: ours}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.connections = append(h.connections, l)
	return l, nil
}

func (h *Holder) returnConnection(l *connection) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.idle = append(h.idle, l)
}

// listen tells of events until the holder has ended.
func (h *Holder) listen() {
	socket, failed := h.events.SyscallConn()
	defer func() { h.abandon(failed) }()
	if failed != nil {
		return
	}
	var buffer [64]byte
	read := func(fd uintptr) bool {
		message, files, err := receiveMessage(int(fd), buffer[:])
		if err == unix.EAGAIN {
			return false
		}
		if failed = err; err == nil {
			h.happened(message, files)
		}
		return true
	}
	for failed == nil && socket.Read(read) == nil {
	}
}

// happened tells of one event.
func (h *Holder) happened(message []byte, files []int) {
	h.mu.Lock()
	rival, answered := h.rival, h.answered
	if len(files) == 1 && len(message) == 1 && event(message[0]) == eventPrograms {
		h.programs, files[0] = files[0], h.programs
	}
	h.mu.Unlock()
	for _, fd := range files {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
	switch {
	case len(message) == 11 && event(message[0]) == eventRival && rival != nil:
		rival(netip.AddrFrom4([4]byte(message[1:])), net.HardwareAddr(append([]byte(nil), message[5:11]...)))
	case len(message) == 13 && event(message[0]) == eventAnswer && answered != nil:
		answered(ARPAnswer{Addr: netip.AddrFrom4([4]byte(message[1:])), AskedAt: getTime(message[5:])})
	}
}

// Prepare has the holder know what to send when this daemon no longer can. It must be called before the first
// lease begins, and again whenever the RESIGN or where it goes changes during a lease.
func (h *Holder) Prepare(r PreparedResign) error {
	message, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if _, err := h.do(askResign, message); err != nil {
		return fmt.Errorf("prepare the dead man's switch: %w", err)
	}
	return nil
}

// giveUpDevice closes the device if this process has a copy of it as well, together with the fence's programs. The
// lease was ended before. The kernel may take some 20 ms to take a device down.
func (h *Holder) giveUpDevice() {
	if h.command == nil {
		return
	}
	h.mu.Lock()
	programs := h.programs
	h.programs = -1
	h.mu.Unlock()
	if programs >= 0 {
		go unix.Close(programs)
	}
}

// closeWithin bounds how long Close waits for a holder that is a child.
const closeWithin = time.Second

// Close ends the use of the holder, which then releases nothing. A child is waited for.
func (h *Holder) Close() error {
	known := h.isLost()
	if !known {
		_, _, _ = h.main.call(askEnd, nil, nil, holderAliveWithin, nil) // that it closes its end is no news then
	}
	return h.leave(known)
}

// isLost reports whether the holder is of no use any more.
func (h *Holder) isLost() bool {
	select {
	case <-h.lost:
		return true
	default:
		return false
	}
}

// Abandon ends the use of the holder as if this process had ended: what is held is released, and told.
func (h *Holder) Abandon() error { return h.leave(h.isLost()) }

// leave closes everything, and returns how a child has ended, unless it is known that the holder was lost.
func (h *Holder) leave(known bool) error {
	h.abandon(nil)
	h.main.close()
	h.mu.Lock()
	connections := h.connections
	h.connections, h.idle = nil, nil
	h.mu.Unlock()
	for _, l := range connections {
		l.close()
	}
	if h.events != nil {
		h.events.Close()
	}
	h.reader.Wait()
	h.mu.Lock()
	if h.programs >= 0 {
		unix.Close(h.programs)
	}
	h.programs = -1
	h.mu.Unlock()
	if h.command == nil {
		return nil
	}
	select {
	case <-h.exited:
	case <-time.After(closeWithin):
		_ = h.command.Process.Kill()
		<-h.exited
	}
	if status := h.command.ProcessState; !status.Success() && !known {
		return fmt.Errorf("netio: the holder ended with: %v", status)
	}
	return nil
}
