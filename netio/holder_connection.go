package netio

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// connection is the daemon's end of a socket to its holder. One request at a time is made on it and answered. The loop
// of the daemon has one for itself, where nobody else keeps it waiting. What may take long is asked on others.
type connection struct {
	mu     sync.Mutex // held from a request to its answer
	buffer []byte
	fd     int

	closing sync.Mutex // of what follows, and held while the socket is closed
	closed  bool
}

const (
	// waitStep is how long a connection waits for an answer before it counts the time.
	waitStep = 50 * time.Millisecond
	// waitSpare is by how much a wait may be longer than it counts. The watchdog of systemd waits for the daemon, too.
	waitSpare = time.Second
)

// errHolderLost is what every request gives once the holder has ended, or has not answered.
var errHolderLost = errors.New("netio: the holder does not answer any more")

// call makes a request, and returns the body of the answer and the files that came with it, which are the caller's. If
// the holder has ended, or does not answer within the time, the error matches errHolderLost, and the connection is of
// no use any more. A long wait calls alive now and then with the time that is left, and ends when that reports false;
// nil is always alive.
func (c *connection) call(
	asked holderRequest, body []byte, files []int, within time.Duration, alive func(left time.Duration) (took time.Duration, ok bool),
) (answer []byte, received []int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.send(asked, body, files); err != nil {
		return nil, nil, err
	}
	if _, err := c.await(within, alive); err != nil {
		return nil, nil, err
	}
	if answer, received, err = c.receive(); err == net.ErrClosed {
		// A holder that refuses says why before it closes its end, and the kernel tells of that first.
		answer, received, err = c.receive()
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
func (c *connection) ping(within time.Duration) (took time.Duration, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.send(askPing, nil, nil) != nil {
		return 0, false
	}
	took, err := c.await(within, nil)
	if err != nil {
		return took, false
	}
	_, files, err := c.receive()
	closeAll(files)
	return took, err == nil
}

func (c *connection) send(asked holderRequest, body []byte, files []int) error {
	if 1+len(body) > maxRequestBytes {
		return fmt.Errorf("netio: %d bytes are too long for the holder (at most %d)", len(body), maxRequestBytes-1)
	}
	c.buffer = append(append(c.buffer[:0], byte(asked)), body...)
	if err := sendMessage(c.fd, c.buffer, files...); err != nil && !errors.Is(err, unix.EPIPE) {
		return fmt.Errorf("%w (%w)", errHolderLost, err)
	}
	return nil
}

// await waits for the answer, and returns how long that took. Each turn of the wait counts as waitStep, however long
// it was: on a busy machine this process does not run either, and that is not the holder's silence. In all it takes no
// more than waitSpare longer.
func (c *connection) await(within time.Duration, alive func(time.Duration) (time.Duration, bool)) (took time.Duration, err error) {
	end, unasked := Now()+within+waitSpare, time.Duration(0)
	for {
		ready, err := unix.Poll([]unix.PollFd{{Fd: int32(c.fd), Events: unix.POLLIN}}, int(waitStep/time.Millisecond))
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
func (c *connection) receive() (message []byte, files []int, err error) {
	if cap(c.buffer) < maxAnswerBytes {
		c.buffer = make([]byte, maxAnswerBytes)
	}
	return receiveMessage(c.fd, c.buffer[:cap(c.buffer)])
}

// shut ends every call that waits, and every later one, with an error.
func (c *connection) shut() {
	c.closing.Lock()
	defer c.closing.Unlock()
	if !c.closed {
		_ = unix.Shutdown(c.fd, unix.SHUT_RDWR)
	}
}

// close closes the connection. It may be called more than once.
func (c *connection) close() {
	c.shut()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closing.Lock()
	defer c.closing.Unlock()
	if !c.closed {
		unix.Close(c.fd)
	}
	c.closed, c.fd = true, -1
}
