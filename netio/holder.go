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

// HolderOptions say which interface, addresses and group a holder serves.
type HolderOptions struct {
	// Interface is the group's; "" for the interface whose subnet contains the first floating address.
	Interface string
	Floating  []netip.Addr
	// Prefixes lists the floating addresses that have a configured prefix length.
	Prefixes []netip.Prefix
	Group    netip.AddrPort
	// Tag is in every packet of the group. A program in the kernel drops all others; 0 for no such program.
	Tag    wire.GroupTag
	Method HoldMethod
}

// Holder is the one process of a board that may change the network, as the daemon sees it. It has the floating
// addresses, the fence, ARP, and the sockets of the group. The daemon, which reads what strangers send, asks it for
// what is to be done, and needs no right of its own. The holder is the dead man's switch as well: it notices that the
// daemon was killed when the daemon's end of a socket closes, and that it is frozen when its lease runs out, which the
// daemon extends with every heartbeat. Then it releases the addresses, and tells the other boards so with a RESIGN
// that the daemon has signed beforehand.
//
// Its methods may be called from any goroutine. Once it is lost, everything that it has opened is useless.
type Holder struct {
	main   *connection // for the daemon's loop
	events *os.File    // the holder sends events here; nil until it is open
	pid    int

	mu          sync.Mutex    // guards what follows
	pings       *connection   // for askPing; nil until it is open
	idle        []*connection // connections for long requests that nobody uses now
	connections []*connection // all connections but main
	has         bool          // the holder has the addresses, or may have them
	fence       int           // the fd store that keeps the fence; -1 for none
	rival       func(netip.Addr, net.HardwareAddr)
	answered    func(ARPAnswer)
	// announced are the addresses that the holder announced as it acquired them. The daemon's next request to announce
	// one is left out.
	announced []netip.Addr

	lose   sync.Once
	lost   chan struct{}
	ended  bool // the holder has ended, rather than frozen; valid once lost is closed
	reader sync.WaitGroup

	command *exec.Cmd // nil if the holder is a service of its own
	exited  chan struct{}
}

const (
	// answerWithin is how long the loop waits for the holder. When it changes an address, the kernel may keep it
	// waiting while somebody else configures interfaces.
	answerWithin = time.Second
	// prepareWithin is how long the loop waits for what a board needs at the start: devices and programs, which take
	// their time on a board that was just switched on. In one turn the loop may wait for the sockets and for ARP, 3 s
	// + 1 s, and then as long again to prepare the addresses and acquire them. Systemd's watchdog waits for 5 s, so
	// the loop feeds it before each of the two. A daemon that has waited for a holder of a service feeds it before it
	// asks for the fence.
	prepareWithin = 3 * time.Second
	// holderAliveWithin is how long a request may take until the holder is asked whether it is alive. A holder that
	// has the addresses answers that as quickly; otherwise it stands still. Its addresses will soon be gone, since
	// nobody renews them: the last renewal was at most DefaultLifetime/2 ago when it was asked.
	holderAliveWithin = DefaultLifetime / 4
	// idleWithin is how quickly a holder without the addresses has to answer. On a busy machine it may not run for so
	// long, and no client would notice.
	idleWithin = answerWithin
	// closeWithin is how long Close waits for a holder that is a child.
	closeWithin = time.Second

	// holderSocket is the descriptor at which a child finds its socket.
	holderSocket = 3
	// holderOptionsVariable is the environment variable that has a child's options.
	holderOptionsVariable = "TOPDOG_HOLDER_OPTIONS"
)

// holderEnvironment keeps a holder small: one processor is enough for a process that does one thing at a time, and a
// garbage collector that hardly runs wakes nobody.
var holderEnvironment = []string{"GOMAXPROCS=1", "GOGC=off", "GOMEMLIMIT=8MiB"}

// StartHolder starts a holder as a child process, which ends with this one. The main function of command must call
// AttendHolder at once.
func StartHolder(command []string, o HolderOptions) (*Holder, error) {
	ours, theirs, err := newConnection()
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
	c.Env = append(append(os.Environ(), holderEnvironment...), holderOptionsVariable+"="+string(options))
	// It has a process group of its own, so that it does not get the signals that a terminal sends to the daemon.
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		unix.Close(ours)
		return nil, fmt.Errorf("netio: start the holder: %w", err)
	}
	file.Close() // so that this process sees the end of the child
	h := &Holder{command: c, exited: make(chan struct{}), pid: c.Process.Pid}
	go func() {
		_ = c.Wait()
		close(h.exited)
	}()
	return h, h.open(ours)
}

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

// open begins to use the socket. The first answer may take long: the process has to start, or to release what the
// previous daemon held.
func (h *Holder) open(socket int) error {
	h.main, h.fence, h.lost = &connection{fd: socket}, -1, make(chan struct{})
	events, err := h.connect(forEvents, prepareWithin)
	if err == nil {
		h.events = os.NewFile(uintptr(events), "events")
		h.reader.Go(h.listen)
		var pings *connection
		pings, err = h.takeConnection()
		h.mu.Lock()
		h.pings = pings
		h.mu.Unlock()
	}
	if err != nil {
		h.Close()
		return fmt.Errorf("netio: begin with the holder: %w", err)
	}
	return nil
}

// connect opens a further connection, and returns this process's end.
func (h *Holder) connect(purpose purpose, within time.Duration) (fd int, err error) {
	ours, theirs, err := newConnection()
	if err != nil {
		return -1, err
	}
	_, err = h.ask(h.main, askConnect, connectRequest{purpose}, nil, within, theirs)
	unix.Close(theirs)
	if err != nil {
		unix.Close(ours)
		return -1, err
	}
	return ours, nil
}

// PID is the holder's process.
func (h *Holder) PID() int { return h.pid }

// Lost is closed when the holder has ended, or no longer answers.
func (h *Holder) Lost() <-chan struct{} { return h.lost }

// abandon ends all requests: after an error that says that the holder is lost, or because it is not needed any more.
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
	for _, c := range h.connections {
		c.shut()
	}
}

// ask makes a request on a connection, and decodes the answer into a value, unless that is nil. The files that came
// with the answer are the caller's.
func (h *Holder) ask(c *connection, asked holderRequest, body, answer any, within time.Duration, files ...int) (received []int, err error) {
	message, err := encode(body)
	if err != nil {
		return nil, err
	}
	said, received, err := c.call(asked, message, files, within, h.alive)
	if errors.Is(err, errHolderLost) {
		h.abandon(err)
	}
	if err != nil {
		return nil, err
	}
	if err := decode(said, answer); err != nil {
		closeAll(received)
		return nil, fmt.Errorf("netio: the holder answers %q to request %d: %w", said, asked, err)
	}
	return received, nil
}

// do makes a request for which the loop may wait. It takes no files.
func (h *Holder) do(asked holderRequest, body, answer any) error {
	files, err := h.ask(h.main, asked, body, answer, answerWithin)
	closeAll(files)
	return err
}

// doBeside makes a request that may take long, on a connection of its own. It must not be called by the loop.
func (h *Holder) doBeside(asked holderRequest, body, answer any, within time.Duration) error {
	c, err := h.takeConnection()
	if err != nil {
		return err
	}
	files, err := h.ask(c, asked, body, answer, within)
	closeAll(files)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.idle = append(h.idle, c)
	return err
}

// takeConnection returns a connection that nobody uses, and opens one if there is none.
func (h *Holder) takeConnection() (*connection, error) {
	h.mu.Lock()
	if n := len(h.idle); n > 0 {
		defer h.mu.Unlock()
		c := h.idle[n-1]
		h.idle = h.idle[:n-1]
		return c, nil
	}
	h.mu.Unlock()
	fd, err := h.connect(forRequests, answerWithin)
	if err != nil {
		return nil, err
	}
	c := &connection{fd: fd}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.connections = append(h.connections, c)
	return c, nil
}

// alive asks the holder whether it is alive, and returns how long that took. A holder without the addresses may take
// longer.
func (h *Holder) alive(left time.Duration) (took time.Duration, ok bool) {
	h.mu.Lock()
	pings, within := h.pings, idleWithin
	if h.has {
		within = holderAliveWithin
	}
	h.mu.Unlock()
	if pings == nil {
		return 0, true // that connection is just being opened
	}
	return pings.ping(min(left, within))
}

// setHas notes whether the holder has the addresses, as far as this process knows.
func (h *Holder) setHas(has bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.has = has
}

// listen delivers events until the holder has ended.
func (h *Holder) listen() {
	socket, failed := h.events.SyscallConn()
	defer func() { h.abandon(failed) }()
	if failed != nil {
		return
	}
	var buffer [256]byte
	read := func(fd uintptr) bool {
		message, files, err := receiveMessage(int(fd), buffer[:])
		if err == unix.EAGAIN {
			return false
		}
		if failed = err; err == nil && len(message) > 0 {
			h.happened(event(message[0]), message[1:], files)
		}
		return true
	}
	for failed == nil && socket.Read(read) == nil {
	}
}

// happened delivers one event.
func (h *Holder) happened(what event, body []byte, files []int) {
	h.mu.Lock()
	rival, answered := h.rival, h.answered
	if len(files) == 1 && what == eventFence {
		h.fence, files[0] = files[0], h.fence
	}
	h.mu.Unlock()
	for _, fd := range files {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
	var host Neighbour
	var answer ARPAnswer
	switch {
	case what == eventRival && rival != nil && decode(body, &host) == nil:
		rival(host.Addr, host.MAC)
	case what == eventAnswer && answered != nil && decode(body, &answer) == nil:
		answered(answer)
	}
}

// Prepare tells the holder what to send when this daemon no longer can. It must be called before the first lease
// begins, and again whenever the RESIGN, or its destinations, change during a lease.
func (h *Holder) Prepare(r PreparedResign) error {
	if err := h.do(askResign, r, nil); err != nil {
		return fmt.Errorf("prepare the dead man's switch: %w", err)
	}
	return nil
}

// giveUpDevice closes this process's copy of the device and of the fence's programs, if it has one. The lease must
// have ended. The kernel may need 20 ms to take the device down.
func (h *Holder) giveUpDevice() {
	if h.command == nil {
		return
	}
	h.mu.Lock()
	fence := h.fence
	h.fence = -1
	h.mu.Unlock()
	if fence >= 0 {
		go unix.Close(fence)
	}
}

// Close ends the use of the holder, which then releases nothing. A child is waited for.
func (h *Holder) Close() error {
	known := h.isLost()
	if !known {
		_, _, _ = h.main.call(askEnd, nil, nil, holderAliveWithin, nil) // an error only says that the holder has ended already
	}
	return h.leave(known)
}

// isLost reports whether the holder is lost.
func (h *Holder) isLost() bool {
	select {
	case <-h.lost:
		return true
	default:
		return false
	}
}

// Abandon ends the use of the holder as the end of this process would: the holder releases the addresses, and tells
// the other boards.
func (h *Holder) Abandon() error { return h.leave(h.isLost()) }

// leave closes everything. The error says how a child has ended, unless it is known that the holder was lost.
func (h *Holder) leave(known bool) error {
	h.abandon(nil)
	h.main.close()
	h.mu.Lock()
	connections := h.connections
	h.connections, h.idle = nil, nil
	h.mu.Unlock()
	for _, c := range connections {
		c.close()
	}
	if h.events != nil {
		h.events.Close()
	}
	h.reader.Wait()
	h.mu.Lock()
	if h.fence >= 0 {
		unix.Close(h.fence)
	}
	h.fence = -1
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
