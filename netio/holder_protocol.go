package netio

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"reflect"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"topdog/wire"
)

// A daemon and its holder exchange messages over Unix sockets that keep their boundaries (SOCK_SEQPACKET). Every
// message, request, answer or event, is one byte that says what it is, and a body in JSON. An empty body stands for
// the zero value: the requests that are in a hurry, to acquire and release the addresses, have no body and, most
// often, neither have their answers. Files travel with a message (SCM_RIGHTS in unix(7)).
//
// The daemon's loop makes its requests on the main connection, one at a time. The side socket is a second connection, for the
// requests that may take long: each brings a socket for its answer, so that none waits for another one, but for renewals,
// which share one (lane). In the other direction the side socket carries events.
//
// Both ends are the same program, so the protocol has no version. But a daemon may have been taken over: the holder
// does only what is in this list, and only for the addresses, the interface and the group of its own configuration.

// holderRequest says what a daemon asks for.
type holderRequest byte

const (
	askSideSocket holderRequest = 1 + iota // sideSocketRequest: serve the side socket that comes with it; the first request
	askFence                               // make the fence; the answer is a fenceState, with the memory and the timer of the lease
	askCover                               // coverRequest: put the fence on interfaces; the answer is a fenceState
	askSockets                             // socketsRequest: open the group's sockets; they come with the answer, a socketsAnswer
	askFloating                            // floatingRequest: prepare to hold the addresses; the answer is a HoldState
	askAcquire                             // acquire and announce the addresses; the answer is an addressAnswer
	askRelease                             // release them
	askRenew                               // start their lifetimes over; the answer is an addressAnswer
	askResign                              // PreparedResign: what to send when the daemon no longer can
	askARP                                 // openARPRequest: open ARP on an interface, or close it
	askAnnounce                            // announce what is held as if it had been acquired now
	askProbe                               // probeRequest: who has an address? The answer is a net.HardwareAddr, empty for nobody
	askLAN                                 // lanRequest: ask hosts by ARP, and begin or end to count frames
	askHeard                               // which frames were counted; the answer is a framesAnswer
	askGateway                             // gatewayRequest: does the default gateway answer?
	askWatch                               // AddressWatch: ask for a floating address again and again, or end that
	askPing                                // nothing
)

// sideRequests are those that may take long, and so are made on the side socket.
var sideRequests = []holderRequest{askCover, askRenew, askProbe, askGateway, askPing}

// The first byte of an answer: success, failure, or failure with one of knownErrors. The body of a failure is its
// text.
const (
	answerGood byte = iota
	answerFailed
	answerKnown // and the index of a known error is added
)

// event is what a holder tells by itself.
type event byte

const (
	eventRival       event = 1 + iota // Neighbour: a host that speaks as a floating address, or as this board
	eventAnswer                       // ARPAnswer
	eventUnannounced                  // string: why what is held could not be announced
	eventWatch                        // WatchReport
	eventFence                        // the socket that keeps the fence comes with it; none if the holder alone is to keep that
)

type (
	sideSocketRequest struct{ Group wire.GroupTag } // for which the daemon asks
	coverRequest      struct{ Interfaces []int }
	fenceState        struct {
		Kind    FenceKind
		Closes  bool
		Problem string
		Failed  string // what could not be covered; "" if all could
	}
	socketsRequest struct {
		Interface string
		Local     netip.Addr
	}
	// socketsAnswer says why no program in the kernel limits what comes. If one does, its memory comes after the sockets.
	socketsAnswer struct {
		Unlimited string
		Tag       wire.GroupTag // see Options.Tag
	}
	floatingRequest struct {
		Interface string
		Addresses []netip.Prefix
	}
	addressAnswer struct {
		Restored bool       // something else had deleted an address
		State    *HoldState // nil if it is as before
	}
	openARPRequest struct{ Index int } // of the interface; 0 to close ARP
	probeRequest   struct {
		Addr    netip.Addr
		Times   int
		Spacing time.Duration
	}
	lanRequest struct {
		Doubt
		Resolve netip.Addr // instead of all else, see Announcer.Resolve
		Calm    bool       // instead of all else, see Announcer.Calm
	}
	framesAnswer struct {
		Frames  uint64
		Senders []Neighbour
	}
	gatewayRequest struct {
		Interface string
		Within    time.Duration
	}
)

// PreparedResign is what a holder sends when it has released the addresses because the daemon no longer could.
type PreparedResign struct {
	// Datagram is a RESIGN that the daemon has signed beforehand, nil for none.
	Datagram []byte
	To       []netip.AddrPort
}

const (
	// maxRequestBytes bounds a request: a pre-signed RESIGN and the addresses of 255 peers, or all hosts that are not
	// counted.
	maxRequestBytes = 16 << 10
	// maxAnswerBytes bounds an answer: the text of an error, or the senders of some frames.
	maxAnswerBytes = 4 << 10
	// maxTextBytes bounds a text in an answer as JSON, in which a byte may take six.
	maxTextBytes = maxAnswerBytes / 4
	// maxFiles bounds the files that come with a message: a socket for each address of the group,
	// and for each floating address.
	maxFiles = 64
)

// encode returns the body that has a value; nil has none.
func encode(value any) ([]byte, error) {
	if value == nil || reflect.ValueOf(value).IsZero() {
		return nil, nil
	}
	return json.Marshal(value)
}

// cut returns the beginning of a text, so that its JSON has at most maxTextBytes.
func cut(text string) string {
	text = text[:min(len(text), maxTextBytes)]
	for {
		encoded, err := json.Marshal(text)
		excess := len(encoded) - maxTextBytes
		if err != nil || excess <= 0 {
			return text
		}
		text = text[:len(text)-(excess+5)/6]
	}
}

// decode reads a body.
func decode(body []byte, value any) error {
	if len(body) == 0 || value == nil {
		return nil
	}
	return json.Unmarshal(body, value)
}

// decoded calls a function with what a request says.
func decoded[R any](body []byte, do func(R) (any, error)) (answer any, err error) {
	var r R
	if err := decode(body, &r); err != nil {
		return nil, fmt.Errorf("netio: read a request to the holder: %w", err)
	}
	return do(r)
}

// knownErrors are the errors that a daemon tells apart. The order is a part of the protocol.
var knownErrors = []error{ErrLinkDown, ErrExpired, ErrNotHeld, unix.EADDRINUSE, unix.EPERM}

// answerMessage is the answer to a request: a value, or an error.
func answerMessage(value any, failed error) []byte {
	body, err := encode(value)
	if failed == nil && err == nil && len(body) >= maxAnswerBytes {
		err = errors.New("netio: the answer of the holder is too long")
	}
	if err = errors.Join(failed, err); err == nil {
		return append([]byte{answerGood}, body...)
	}
	status := answerFailed
	for i, known := range knownErrors {
		if errors.Is(err, known) {
			status = answerKnown + byte(i)
			break
		}
	}
	text := err.Error()
	return append([]byte{status}, text[:min(len(text), maxAnswerBytes-1)]...)
}

// holderError is an error of the holder. If the original error is one of knownErrors, it matches that.
type holderError struct {
	text  string
	known error
}

func (e *holderError) Error() string { return e.text }
func (e *holderError) Unwrap() error { return e.known }

// readAnswer returns the body of an answer, or the error that it tells of.
func readAnswer(message []byte) (body []byte, err error) {
	if len(message) > 0 {
		switch status, body := message[0], message[1:]; {
		case status == answerGood:
			return body, nil
		case status == answerFailed:
			return nil, &holderError{string(body), nil}
		case int(status-answerKnown) < len(knownErrors):
			return nil, &holderError{string(body), knownErrors[status-answerKnown]}
		}
	}
	return nil, fmt.Errorf("netio: the holder says %q, which is no answer: restart both services, which must be of one version", message)
}

// sendMessage sends a message with files. It does not wait for room.
func sendMessage(fd int, message []byte, files ...int) error {
	var rights []byte
	if len(files) > 0 {
		rights = unix.UnixRights(files...)
	}
	return sendQuickly(fd, message, rights)
}

// receiveMessage reads one message into a buffer, without waiting. The files that came with it are the caller's. It
// returns net.ErrClosed when the other end is closed.
func receiveMessage(fd int, buffer []byte) (message []byte, files []int, err error) {
	var control [(maxFiles + 8) * 4]byte
	n, controls, flags, err := receiveQuickly(fd, buffer, control[:])
	switch {
	case errors.Is(err, unix.ECONNRESET), err == nil && n == 0 && controls == 0:
		return nil, nil, net.ErrClosed
	case err != nil:
		return nil, nil, err
	}
	files = filesOf(control[:controls])
	if flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 {
		closeAll(files)
		return nil, nil, fmt.Errorf("a message was cut: %w", unix.EMSGSIZE)
	}
	return buffer[:n], files, nil
}

// readMessages calls a function with each message that arrives at a socket, and the files that came with it, until the
// socket is closed, a message is longer than the limit, or the function wants no more. The message is valid only during
// the call.
func readMessages(from *os.File, limit int, each func(message []byte, files []int) (more bool)) error {
	socket, err := from.SyscallConn()
	if err != nil {
		return err
	}
	buffer := make([]byte, limit)
	for {
		var message []byte
		var files []int
		var failed error
		if err := socket.Read(func(fd uintptr) bool {
			message, files, failed = receiveMessage(int(fd), buffer)
			return failed != unix.EAGAIN
		}); err != nil {
			return net.ErrClosed
		}
		if failed != nil {
			return failed
		}
		if !each(message, files) {
			return nil
		}
	}
}

// filesOf returns the files that came with a message. Whoever has passed a socket on may have set options on it, so that
// the kernel adds the credentials of the sender to each message, or a pidfd, which is closed here.
func filesOf(control []byte) (files []int) {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return nil // the kernel writes none that cannot be read
	}
	for _, m := range messages {
		unwanted := m.Header.Type == unix.SCM_PIDFD
		if unwanted {
			m.Header.Type = unix.SCM_RIGHTS // it has the same format
		}
		switch received, err := unix.ParseUnixRights(&m); {
		case err != nil: // it has no files
		case unwanted:
			closeAll(received)
		default:
			files = append(files, received...)
		}
	}
	return files
}

// newConnection returns the two ends of a connection.
func newConnection() (ours, theirs int, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, -1, os.NewSyscallError("socketpair", err)
	}
	return pair[0], pair[1], nil
}

// isConnection reports whether a file may be an end of such a connection. A holder writes to no other file that it is
// given: by a datagram socket, a daemon that was taken over could have it speak to systemd, which takes each datagram for
// one of the process that sends it.
func isConnection(fd int) bool {
	domain, _ := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	return err == nil && domain == unix.AF_UNIX && kind == unix.SOCK_SEQPACKET
}

func closeAll(files []int) {
	for _, file := range files {
		unix.Close(file)
	}
}

// connection is the daemon's end of a socket on which its holder answers, one request at a time.
type connection struct {
	mu   sync.Mutex // held from a request to its answer
	fd   int
	file *os.File        // has it too, and waits without a thread of its own; nil for the loop, which may wait no longer than it must
	lost <-chan struct{} // ends every wait; nil for never
}

const (
	// waitStep is how long a connection waits for an answer before it counts the time.
	waitStep = 50 * time.Millisecond
	// waitSpare is by how much a wait may be longer than it counts. The watchdog of systemd waits for the daemon, too.
	waitSpare = time.Second
)

// errHolderLost is what every request gives once the holder has ended, or has not answered.
var errHolderLost = errors.New("netio: the holder does not answer any more")

// liveness asks whether the holder is alive, and returns how long that took. The answer comes within the time that is left.
type liveness func(left time.Duration) (took time.Duration, alive bool)

// call makes a request, and returns the body of the answer and the files that came with it, which are the caller's. If
// the holder has ended, or does not answer within the time, the error matches errHolderLost, and the connection is of
// no use any more. A long wait asks now and then whether the holder is alive; nil is always.
func (c *connection) call(asked holderRequest, body []byte, within time.Duration, alive liveness, files ...int) (answer []byte, received []int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := sendRequest(c.fd, asked, body, files...); err != nil {
		return nil, nil, err
	}
	answer, received, _, err = c.receive(within, alive)
	return answer, received, err
}

func sendRequest(fd int, asked holderRequest, body []byte, files ...int) error {
	if 1+len(body) > maxRequestBytes {
		return fmt.Errorf("netio: %d bytes are too long for the holder (at most %d)", len(body), maxRequestBytes-1)
	}
	// If the other end is closed, the reason may be there to read.
	if err := sendMessage(fd, append([]byte{byte(asked)}, body...), files...); err != nil && !errors.Is(err, unix.EPIPE) {
		return fmt.Errorf("%w (%w)", errHolderLost, err)
	}
	return nil
}

// receive waits for an answer.
func (c *connection) receive(within time.Duration, alive liveness) (answer []byte, files []int, took time.Duration, err error) {
	if took, err = c.await(within, alive); err != nil {
		return nil, nil, took, err
	}
	buffer := make([]byte, maxAnswerBytes)
	if answer, files, err = receiveMessage(c.fd, buffer); err == net.ErrClosed {
		// A holder that refuses says why before it closes its end, and the kernel tells of that first.
		answer, files, err = receiveMessage(c.fd, buffer)
	}
	if err != nil {
		return nil, nil, took, fmt.Errorf("%w (%w)", errHolderLost, err)
	}
	if answer, err = readAnswer(answer); err != nil {
		closeAll(files)
		return nil, nil, took, err
	}
	return answer, files, took, nil
}

// await waits until there is an answer, and returns how long that took. Each turn of the wait counts as waitStep,
// however long it was: on a busy machine this process does not run either, and that is not the holder's silence. In
// all it takes no more than waitSpare longer.
func (c *connection) await(within time.Duration, alive liveness) (took time.Duration, err error) {
	end, unasked := Now()+within+waitSpare, time.Duration(0)
	for {
		select {
		case <-c.lost:
			return took, fmt.Errorf("%w (%w)", errHolderLost, net.ErrClosed)
		default:
		}
		ready, err := c.wait()
		switch {
		case errors.Is(err, unix.EINTR) && Now() < end:
			continue
		case err != nil:
			return took, fmt.Errorf("%w (%w)", errHolderLost, err)
		case ready:
			return took, nil
		}
		took, unasked = took+waitStep, unasked+waitStep
		if unasked >= holderAliveWithin && alive != nil && took < within {
			unasked = 0
			pinged, ok := alive(within - took)
			if took += pinged; !ok {
				return took, fmt.Errorf("%w (it stands still)", errHolderLost)
			}
		}
		if took >= within || Now() >= end {
			return took, fmt.Errorf("%w (not within %v)", errHolderLost, within)
		}
	}
}

// wait waits for one waitStep at most, and reports whether there is an answer.
func (c *connection) wait() (ready bool, err error) {
	if c.file == nil {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(c.fd), Events: unix.POLLIN}}, int(waitStep/time.Millisecond))
		return n > 0, err
	}
	socket, err := c.file.SyscallConn()
	if err == nil {
		err = c.file.SetReadDeadline(time.Now().Add(waitStep))
	}
	if err == nil {
		err = socket.Read(hasMessage)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return false, nil
	}
	return err == nil, err
}

// close closes the connection once no request is made on it. It may be called more than once.
func (c *connection) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.file != nil:
		c.file.Close()
	case c.fd >= 0:
		unix.Close(c.fd)
	}
	c.fd = -1
}
