package netio

import (
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// callBeside makes a request on a side socket, and returns as well how long the answer took, as await counts it.
func callBeside(
	side *os.File, asked holderRequest, body []byte, within time.Duration, alive liveness, lost <-chan struct{},
) (answer []byte, received []int, took time.Duration, err error) {
	l, err := newLane(lost)
	if err != nil {
		return nil, nil, 0, err
	}
	defer l.close()
	l.once = true
	return l.call(side, asked, body, within, alive)
}

// lane is where the answers to requests on a side socket come, to one after the other. A wait for one takes no thread, since
// what waits is not in a hurry.
type lane struct {
	connection
	theirs int  // the holder's end, of which it gets a copy with each request
	once   bool // for one request: then the wait ends at once if the holder does
}

func newLane(lost <-chan struct{}) (*lane, error) {
	ours, theirs, err := newConnection()
	if err != nil {
		return nil, err
	}
	return &lane{connection{fd: ours, file: os.NewFile(uintptr(ours), "lane"), lost: lost}, theirs, false}, nil
}

func (l *lane) call(
	side *os.File, asked holderRequest, body []byte, within time.Duration, alive liveness,
) (answer []byte, received []int, took time.Duration, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fd < 0 {
		return nil, nil, 0, fmt.Errorf("netio: ask the holder: %w", net.ErrClosed)
	}
	socket, err := side.SyscallConn()
	if err != nil {
		return nil, nil, 0, fmt.Errorf("%w (%w)", errHolderLost, err)
	}
	if closed := socket.Control(func(fd uintptr) { err = sendRequest(int(fd), asked, body, l.theirs) }); closed != nil {
		err = fmt.Errorf("%w (%w)", errHolderLost, closed)
	}
	if l.once {
		l.closeTheirs()
	}
	if err != nil {
		return nil, nil, 0, err
	}
	return l.receive(within, alive)
}

// close waits for the answer to the last request.
func (l *lane) close() {
	l.connection.close()
	l.closeTheirs()
}

func (l *lane) closeTheirs() {
	if l.theirs >= 0 {
		unix.Close(l.theirs)
	}
	l.theirs = -1
}
