package netio

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A connection is a socket between a daemon and its holder. On a connection one request at a time is made and
// answered. The loop of the daemon has one for itself, and is kept waiting by nobody else there; what
// may take long is asked on others. A message begins with a byte: of a request what is asked for, of an
// answer what has become of it.
type connection struct {
	mu     sync.Mutex // held from a request to its answer
	buffer []byte
	fd     int

	closing sync.Mutex // of what follows, and held while the socket is closed
	closed  bool
}

const (
	// maxRequestBytes bounds a request: a pre-signed RESIGN, and the addresses of 255 peers in JSON.
	maxRequestBytes = 16 << 10
	// maxAnswerBytes bounds an answer: the text of an error, most of all.
	maxAnswerBytes = 4 << 10
	// maxFiles bounds the files that come with a message: a socket for each address of the group,
	// and for each floating address.
	maxFiles = 64
)

// What an answer begins with: that all went well, or which error it was, with the error's text.
const (
	answerGood byte = iota
	answerFailed
	answerKnown // and one of knownErrors behind that
)

// knownErrors are those that a daemon tells apart. The order is a part of the protocol; both ends are
// the same program.
var knownErrors = []error{ErrLinkDown, ErrExpired, ErrNotHeld, unix.EADDRINUSE, unix.EPERM}

// errorAnswer is the answer that tells of an error.
func errorAnswer(err error) []byte {
	for i, known := range knownErrors {
		if errors.Is(err, known) {
			return append([]byte{answerKnown, byte(i)}, err.Error()...)
		}
	}
	return append([]byte{answerFailed}, err.Error()...)
}

// holderError is an error of the holder. It matches the one that it was there, if that is known.
type holderError struct {
	text  string
	known error
}

func (e *holderError) Error() string { return e.text }
func (e *holderError) Unwrap() error { return e.known }

// readAnswer returns what an answer says, or the error that it tells of.
func readAnswer(answer []byte) ([]byte, error) {
	switch {
	case len(answer) > 0 && answer[0] == answerGood:
		return answer[1:], nil
	case len(answer) > 0 && answer[0] == answerFailed:
		return nil, &holderError{string(answer[1:]), nil}
	case len(answer) > 1 && answer[0] == answerKnown && int(answer[1]) < len(knownErrors):
		return nil, &holderError{string(answer[2:]), knownErrors[answer[1]]}
	}
	return nil, fmt.Errorf("netio: the holder says %q, which is no answer: restart both services, which must be of one version", answer)
}

const (
	// waitStep is how long a connection waits for an answer before it counts the time.
	waitStep = 50 * time.Millisecond
	// waitSpare is by how much a wait may be longer than it counts. The watchdog of systemd waits for the daemon, too.
	waitSpare = time.Second
)

// errHolderLost is what every request gives once the holder has ended, or has not answered.
var errHolderLost = errors.New("netio: the holder does not answer any more")

// call makes a request, and returns what the holder answers and the files that come with it, which are
// the caller's. If the holder does not answer within the time, or has ended, the error matches errHolderLost: the connection
// is of no use then. While it is waited for long, alive is called now and then with the time that is left, and ends it with false; nil for
// always.
func (l *connection) call(asked holderRequest, payload []byte, files []int, within time.Duration, alive func(left time.Duration) (took time.Duration, ok bool)) (answer []byte, received []int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.send(asked, payload, files); err != nil {
		return nil, nil, err
	}
	if _, err := l.await(within, alive); err != nil {
		return nil, nil, err
	}
	if answer, received, err = l.receive(); err == net.ErrClosed {
		// A holder that refuses says why before it closes its end, and the kernel tells of that first.
		answer, received, err = l.receive()
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%w (%w)", errHolderLost, err)
	}
	answer, err = readAnswer(answer)
	if err != nil {
		closeAll(received)
		return nil, nil, err
	}
	return slices.Clone(answer), received, nil // the buffer is used again
}

// ping asks whether the holder is alive, and returns how long that took, as await counts it.
func (l *connection) ping(within time.Duration) (took time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.send(askPing, nil, nil) != nil {
		return 0, false
	}
	took, err := l.await(within, nil)
	if err != nil {
		return took, false
	}
	_, files, err := l.receive()
	closeAll(files)
	return took, err == nil
}

// send sends a request.
func (l *connection) send(asked holderRequest, payload []byte, files []int) error {
	if 1+len(payload) > maxRequestBytes {
		return fmt.Errorf("netio: %d bytes are too long for the holder (at most %d)", len(payload), maxRequestBytes-1)
	}
	l.buffer = append(append(l.buffer[:0], byte(asked)), payload...)
	var rights []byte
	if len(files) > 0 {
		rights = unix.UnixRights(files...)
	}
	if err := unix.Sendmsg(l.fd, l.buffer, rights, nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT); err != nil && !errors.Is(err, unix.EPIPE) {
		return fmt.Errorf("%w (%w)", errHolderLost, err)
	}
	return nil
}

// await waits until there is an answer, and returns how long that took. Each turn of the wait counts for waitStep, however long it was:
// on a busy machine this process does not run either, and that is not the holder's silence. In all it is no more than waitSpare longer.
func (l *connection) await(within time.Duration, alive func(time.Duration) (time.Duration, bool)) (took time.Duration, err error) {
	end, unasked := Now()+within+waitSpare, time.Duration(0)
	for {
		ready, err := unix.Poll([]unix.PollFd{{Fd: int32(l.fd), Events: unix.POLLIN}}, int(waitStep/time.Millisecond))
		switch {
		case errors.Is(err, unix.EINTR) && Now() < end:
			continue
		case err != nil:
			return took, fmt.Errorf("%w (%w)", errHolderLost, err)
		case ready > 0:
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

// receive reads one message, without waiting.
func (l *connection) receive() (message []byte, files []int, err error) {
	if cap(l.buffer) < maxAnswerBytes {
		l.buffer = make([]byte, maxAnswerBytes)
	}
	return receiveMessage(l.fd, l.buffer[:cap(l.buffer)])
}

// receiveMessage reads one message into a buffer, without waiting. It returns net.ErrClosed when the
// other end is closed.
func receiveMessage(fd int, buffer []byte) (message []byte, files []int, err error) {
	var rights [(maxFiles + 8) * 4]byte
	n, controls, flags, _, err := unix.Recvmsg(fd, buffer, rights[:], unix.MSG_CMSG_CLOEXEC|unix.MSG_DONTWAIT)
	switch {
	case errors.Is(err, unix.ECONNRESET), err == nil && n == 0 && controls == 0:
		return nil, nil, net.ErrClosed
	case err != nil:
		return nil, nil, err
	}
	if messages, err := unix.ParseSocketControlMessage(rights[:controls]); err == nil && len(messages) > 0 {
		files, _ = unix.ParseUnixRights(&messages[0])
	}
	if flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 {
		closeAll(files)
		return nil, nil, fmt.Errorf("a message was cut: %w", unix.EMSGSIZE)
	}
	return buffer[:n], files, nil
}

// newConnectionPair returns the two ends of a connection.
func newConnectionPair() (ours, theirs int, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, -1, os.NewSyscallError("socketpair", err)
	}
	return pair[0], pair[1], nil
}

// shut has every call end that waits, and every later one, with an error.
func (l *connection) shut() {
	l.closing.Lock()
	defer l.closing.Unlock()
	if !l.closed {
		_ = unix.Shutdown(l.fd, unix.SHUT_RDWR)
	}
}

// close closes the connection. It may be called more than once.
func (l *connection) close() {
	l.shut()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closing.Lock()
	defer l.closing.Unlock()
	if !l.closed {
		unix.Close(l.fd)
	}
	l.closed, l.fd = true, -1
}
