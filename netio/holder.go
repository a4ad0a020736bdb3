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
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"topdog/wire"
)

// HolderOptions say which interface, addresses and group a holder serves. A board with several groups has one holder, and as
// many of these.
type HolderOptions struct {
	// Interface is the group's; "" for the interface whose subnet contains the first floating address.
	Interface string
	Floating  []netip.Addr
	// Prefixes lists the floating addresses that have a configured prefix length.
	Prefixes []netip.Prefix
	Group    netip.AddrPort
	// Tag is in every packet of the group. A program in the kernel drops all others; 0 for no such program.
	Tag wire.GroupTag
	// Others are the tags of this board's other groups that share the port and the interface.
	Others []wire.GroupTag
	Method HoldMethod
}

// Holder is the one process of a board that may change the network, as the daemon of one group sees it. It has the floating
// addresses, the fence, ARP, and the sockets of the group. The daemon, which reads what strangers send, asks it for
// what is to be done, and needs no right of its own. The holder is the dead man's switch as well: it notices that the
// daemon was killed when the daemon's end of a socket closes, and that it is frozen when its lease runs out, which the
// daemon extends with every heartbeat. Then it releases the addresses, and tells the other boards so with a RESIGN
// that the daemon has signed beforehand.
//
// Its methods may be called from any goroutine. Once it is lost, everything that it has opened is useless.
type Holder struct {
	main *connection // for the daemon's loop
	side *os.File    // for requests that may take long, and for events; nil until it is open
	lane *lane       // for those that are made all the time; nil until it is open
	pid  int

	mu       sync.Mutex // guards what follows
	has      bool       // the holder has the addresses, or may have them
	fence    int        // the socket that keeps the fence, if the holder has given it away; -1 for none
	rival    func(netip.Addr, net.HardwareAddr)
	answered func(ARPAnswer)
	watched  func(WatchReport)
	failed   func(error) // is told what could not be announced

	lose   sync.Once
	lost   chan struct{}
	ended  bool // the holder has ended, rather than frozen; valid once lost is closed
	reader sync.WaitGroup

	child *child // nil if the holder is a service of its own
	leave sync.Once
}

// child is a holder that this process has started.
type child struct {
	command *exec.Cmd
	exited  chan struct{}
	uses    atomic.Int32 // how many groups use it
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
	// holderAliveWithin is how long a request may take until the holder is asked whether it is alive. It has the
	// same time to answer that. A holder that has the addresses and does not answer in time stands still. Its
	// addresses will soon be gone, since nobody renews them: the last renewal was at most DefaultLifetime/2 ago
	// when it was asked.
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

// StartHolder is StartHolders for a board with one group.
func StartHolder(command []string, o HolderOptions) (*Holder, error) {
	holders, err := StartHolders(command, o)
	if err != nil {
		return nil, err
	}
	return holders[0], nil
}

// StartHolders starts a holder as a child process, which ends with this one, and returns what each group has of it. The main
// function of command must call AttendHolder at once.
func StartHolders(command []string, groups ...HolderOptions) (holders []*Holder, err error) {
	options, err := json.Marshal(groups)
	if err != nil {
		return nil, err
	}
	c := exec.Command(command[0], command[1:]...)
	c.Args[0] = filepath.Base(os.Args[0]) // what ps shows, instead of /proc/self/exe
	c.Stderr = os.Stderr
	c.Env = append(append(os.Environ(), holderEnvironment...), holderOptionsVariable+"="+string(options))
	// It has a process group of its own, so that it does not get the signals that a terminal sends to the daemon.
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var sockets []int
	for range groups {
		ours, theirs, err := newConnection()
		if err != nil {
			closeAll(sockets)
			return nil, fmt.Errorf("netio: start the holder: %w", err)
		}
		file := os.NewFile(uintptr(theirs), "holder")
		defer file.Close()
		sockets, c.ExtraFiles = append(sockets, ours), append(c.ExtraFiles, file)
	}
	if err := c.Start(); err != nil {
		closeAll(sockets)
		return nil, fmt.Errorf("netio: start the holder: %w", err)
	}
	for _, file := range c.ExtraFiles {
		file.Close() // so that this process sees the end of the child
	}
	shared := &child{command: c, exited: make(chan struct{})}
	shared.uses.Store(int32(len(groups)))
	go func() {
		_ = c.Wait()
		close(shared.exited)
	}()
	for i, socket := range sockets {
		h := &Holder{child: shared, pid: c.Process.Pid}
		if err := h.open(socket, groups[i].Tag); err != nil { // the next ones would wait as long
			closeAll(sockets[i+1:])
			shared.uses.Store(int32(i))
			for _, h := range holders {
				_ = h.Close()
			}
			_ = shared.end(true)
			return nil, err
		}
		holders = append(holders, h)
	}
	return holders, nil
}

// DialHolder connects to a holder that is a service of its own, for one of this board's groups.
func DialHolder(path string, group wire.GroupTag) (*Holder, error) {
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
	return h, h.open(fd, group)
}

// open begins to use the socket. The first answer may take long: the process has to start, or to release what the
// previous daemon held.
func (h *Holder) open(socket int, group wire.GroupTag) error {
	h.fence, h.lost = -1, make(chan struct{})
	h.main = &connection{fd: socket, lost: h.lost}
	ours, theirs, err := newConnection()
	if err == nil {
		_, err = h.ask(askSideSocket, sideSocketRequest{group}, nil, prepareWithin, theirs)
		unix.Close(theirs)
		h.side = os.NewFile(uintptr(ours), "side socket")
	}
	if err == nil {
		h.lane, err = newLane(h.lost)
	}
	if err != nil {
		h.Close()
		return fmt.Errorf("netio: begin with the holder: %w", err)
	}
	h.reader.Go(h.listen)
	return nil
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
}

// ask makes a request for the loop, and decodes the answer into a value, unless that is nil. The files that came with
// the answer are the caller's.
func (h *Holder) ask(asked holderRequest, body, answer any, within time.Duration, files ...int) (received []int, err error) {
	message, err := encode(body)
	if err != nil {
		return nil, err
	}
	said, received, err := h.main.call(asked, message, within, h.alive, files...)
	if err := h.heard(asked, said, answer, err); err != nil {
		closeAll(received)
		return nil, err
	}
	return received, nil
}

// heard decodes an answer. If there is none because the holder is lost, it abandons the holder.
func (h *Holder) heard(asked holderRequest, said []byte, answer any, failed error) error {
	if errors.Is(failed, errHolderLost) {
		h.abandon(failed)
	}
	if failed != nil {
		return failed
	}
	if err := decode(said, answer); err != nil {
		return fmt.Errorf("netio: the holder answers %q to request %d: %w", said, asked, err)
	}
	return nil
}

// do makes a request for which the loop may wait. It takes no files.
func (h *Holder) do(asked holderRequest, body, answer any) error {
	files, err := h.ask(asked, body, answer, answerWithin)
	closeAll(files)
	return err
}

// doBeside makes a request that may take long. It must not be called by the loop.
func (h *Holder) doBeside(asked holderRequest, body, answer any, within time.Duration) error {
	message, err := encode(body)
	if err != nil {
		return err
	}
	said, files, _, err := callBeside(h.side, asked, message, within, h.alive, h.lost)
	closeAll(files)
	return h.heard(asked, said, answer, err)
}

// doOften is doBeside for a request without a body that a leader makes several times a second. One waits for another.
func (h *Holder) doOften(asked holderRequest, answer any, within time.Duration) error {
	said, files, _, err := h.lane.call(h.side, asked, nil, within, h.alive)
	closeAll(files)
	return h.heard(asked, said, answer, err)
}

// alive asks the holder whether it is alive, and returns how long that took. A holder without the addresses may take
// longer.
func (h *Holder) alive(left time.Duration) (took time.Duration, ok bool) {
	if h.side == nil {
		return 0, true // the side socket is just being opened
	}
	within := idleWithin
	h.mu.Lock()
	if h.has {
		within = holderAliveWithin
	}
	h.mu.Unlock()
	_, files, took, err := callBeside(h.side, askPing, nil, min(left, within), nil, h.lost)
	closeAll(files)
	return took, !errors.Is(err, errHolderLost) // a holder that refuses is alive
}

// setHas notes whether the holder has the addresses, as far as this process knows.
func (h *Holder) setHas(has bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.has = has
}

// maxEventBytes bounds an event.
const maxEventBytes = 256

// listen delivers events until the holder has ended.
func (h *Holder) listen() {
	h.abandon(readMessages(h.side, maxEventBytes, func(message []byte, files []int) bool {
		if len(message) > 0 {
			h.happened(event(message[0]), message[1:], files)
		}
		return true
	}))
}

// happened delivers one event.
func (h *Holder) happened(what event, body []byte, files []int) {
	h.mu.Lock()
	rival, answered, watched, failed := h.rival, h.answered, h.watched, h.failed
	if what == eventFence && len(files) <= 1 {
		former := h.fence
		h.fence = -1
		if len(files) == 1 {
			h.fence = files[0]
		}
		files = []int{former}
	}
	h.mu.Unlock()
	for _, fd := range files {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
	var host Neighbour
	var answer ARPAnswer
	var found WatchReport
	var text string
	switch {
	case what == eventRival && rival != nil && decode(body, &host) == nil:
		rival(host.Addr, host.MAC)
	case what == eventAnswer && answered != nil && decode(body, &answer) == nil:
		answered(answer)
	case what == eventWatch && watched != nil && decode(body, &found) == nil:
		watched(found)
	case what == eventUnannounced && failed != nil && decode(body, &text) == nil:
		failed(errors.New(text))
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

// Close ends the use of the holder, as the end of this process would: if a lease lasts, the holder releases the
// addresses, and tells the other boards. Close waits for a child that no other group uses. The error says how the child has ended, unless
// the holder was known to be lost.
func (h *Holder) Close() error {
	known := h.isLost()
	h.abandon(nil)
	h.main.close()
	if h.side != nil {
		h.side.Close()
	}
	if h.lane != nil {
		h.lane.close()
	}
	h.reader.Wait()
	h.mu.Lock()
	if h.fence >= 0 {
		unix.Close(h.fence)
	}
	h.fence = -1
	h.mu.Unlock()
	if h.child == nil {
		return nil
	}
	h.leave.Do(func() { h.child.uses.Add(-1) })
	return h.child.end(known)
}

// end waits for the end of a child that no group uses any more.
func (c *child) end(known bool) error {
	if c.uses.Load() > 0 {
		return nil
	}
	select {
	case <-c.exited:
	case <-time.After(closeWithin):
		_ = c.command.Process.Kill()
		<-c.exited
	}
	if status := c.command.ProcessState; !status.Success() && !known {
		return fmt.Errorf("netio: the holder ended with: %v", status)
	}
	return nil
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
