package attack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/frame"
)

// Stream is what a laptop sends.
type Stream struct {
	Frames [][]byte // in turn, over and over
	Rate   int      // a second; 0 is as many as this machine gives
	For    time.Duration
	// Cores are the processors on which it may run; none stands for those of this process.
	Cores []int
}

// Sent is what became of a stream.
type Sent struct {
	Frames int
	Took   time.Duration
}

// Rate is how many frames a second there were.
func (s Sent) Rate() float64 {
	if s.Took <= 0 {
		return 0
	}
	return float64(s.Frames) / s.Took.Seconds()
}

const (
	// batchLen is how many frames are given to the kernel by one call.
	batchLen = 64
	// sendEvery is how often frames are sent that have a rate.
	sendEvery = time.Millisecond
)

// Send sends a stream to its end, or that of ctx.
func (l *Laptop) Send(ctx context.Context, s Stream) (sent Sent, err error) {
	if len(s.Frames) == 0 {
		return sent, errors.New("attack: there is nothing to send")
	}
	// The thread belongs to nobody else, and ends with the stream.
	err = l.host.Do(func() error {
		if err := s.placeThread(); err != nil {
			return err
		}
		port, end, err := openPort(l.host.Interface)
		if err != nil {
			return err
		}
		defer end()
		sent, err = port.send(ctx, s)
		return err
	})
	if err != nil {
		return sent, fmt.Errorf("attack: send on %s of %s: %w", l.host.Interface, l.host.Name, err)
	}
	return sent, nil
}

// placeThread gives the calling thread its processors, and the priority of an ordinary process: the laptop is
// not more important than the boards, though this process may be.
func (s Stream) placeThread() error {
	if err := unix.Setpriority(unix.PRIO_PROCESS, 0, 0); err != nil {
		return fmt.Errorf("set the priority of the sender: %w", err)
	}
	if len(s.Cores) == 0 {
		return nil
	}
	return pin(0, s.Cores)
}

// port sends whole frames.
type port struct{ raw syscall.RawConn }

// openPort opens one in the namespace of the calling thread. Frames do not wait in the queue of the interface.
func openPort(name string) (p port, end func() error, err error) {
	socket, err := frame.Open(name, 0)
	if err != nil {
		return p, nil, err
	}
	p.raw = socket.SyscallConn()
	var optionErr error
	err = p.raw.Control(func(fd uintptr) {
		optionErr = unix.SetsockoptInt(int(fd), unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS, 1)
	})
	if err = errors.Join(err, os.NewSyscallError("PACKET_QDISC_BYPASS", optionErr)); err != nil {
		socket.Close()
	}
	return p, socket.Close, err
}

// send sends in turn, at the rate.
func (p port) send(ctx context.Context, s Stream) (sent Sent, err error) {
	headers := messagesOf(s.Frames)
	began := time.Now()
	defer func() { sent.Took = time.Since(began) }()
	for next := 0; ctx.Err() == nil; {
		passed := time.Since(began)
		if passed >= s.For {
			return sent, nil
		}
		due := batchLen
		if s.Rate > 0 {
			// The first one leaves at once.
			due = min(batchLen, 1+int(passed.Seconds()*float64(s.Rate))-sent.Frames)
		}
		if due <= 0 {
			// At least for sendEvery, so that a slow stream costs nothing.
			wait(ctx, max(sendEvery, min(s.untilNext(sent.Frames), s.For)-passed))
			continue
		}
		n, err := p.batch(headers[next:min(next+due, len(headers))])
		if err != nil {
			return sent, err
		}
		sent.Frames += n
		next = (next + n) % len(headers)
	}
	return sent, nil
}

// untilNext is how long after the begin a frame is due, by its number.
func (s Stream) untilNext(number int) time.Duration {
	return max(time.Duration(float64(number)/float64(s.Rate)*float64(time.Second)), sendEvery)
}

// message is struct mmsghdr (sendmmsg(2)).
type message struct {
	header unix.Msghdr
	length uint32
}

// messagesOf points at frames, which must stay as they are.
func messagesOf(frames [][]byte) []message {
	vectors := make([]unix.Iovec, len(frames))
	messages := make([]message, len(frames))
	for i, frame := range frames {
		vectors[i].Base = &frame[0]
		vectors[i].SetLen(len(frame))
		messages[i].header.Iov = &vectors[i]
		messages[i].header.SetIovlen(1)
	}
	return messages
}

// batch gives frames to the kernel, and returns how many it has taken. None is no error if it is full.
func (p port) batch(messages []message) (n int, err error) {
	var errno syscall.Errno
	err = p.raw.Write(func(fd uintptr) bool {
		var sent uintptr
		sent, _, errno = unix.Syscall6(unix.SYS_SENDMMSG, fd, uintptr(unsafe.Pointer(&messages[0])), uintptr(len(messages)), 0, 0, 0)
		n = int(sent)
		return errno != unix.EAGAIN
	})
	switch {
	case err != nil:
		return 0, err
	case errno == 0:
		return n, nil
	case errno == unix.ENOBUFS || errno == unix.EINTR:
		return 0, nil
	}
	return 0, os.NewSyscallError("sendmmsg", errno)
}
