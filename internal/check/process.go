package check

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Order is all that a checker must know. It replaces the order before. A check that is in both goes on.
type Order struct {
	Checks    []Check      `json:"checks"`
	Score     []string     `json:"score,omitempty"`      // the score command: a program and its arguments; none for no score
	Leading   bool         `json:"leading"`              // this board leads
	Floating  []netip.Addr `json:"floating"`             // the addresses that checks must not ask
	Interface string       `json:"interface"`            // of the group, where the gateway is
	NoGateway string       `json:"no_gateway,omitempty"` // why the gateway can't be asked; Process.Send sets it
	Once      bool         `json:"once,omitempty"`       // run each check once, on the leader or not
}

// Idle reports whether there is nothing to run.
func (o *Order) Idle() bool { return len(o.Checks) == 0 && len(o.Score) == 0 }

// Report tells of one thing: that a check has changed or fails for another reason, or what one of the last three fields
// says. An empty report only says that the checker runs.
type Report struct {
	ID      string `json:"id,omitempty"` // of the check
	Passing bool   `json:"passing,omitempty"`
	Text    string `json:"text,omitempty"` // why it fails
	// Misaimed says that the check is aimed at a floating address, so its result means nothing.
	Misaimed bool `json:"misaimed,omitempty"`

	Score *Score   `json:"score,omitempty"`
	Tried []string `json:"tried,omitempty"` // of Order.Once, for each check: why it fails, "" if it passes
	// Ended says that the checker has ended though there was something to run. If it couldn't be started, Text says why.
	Ended bool `json:"ended,omitempty"`
}

const (
	// orderMax bounds an order in bytes. The checks of a configuration file (config.MaxFileBytes) have at most three times
	// its size in JSON.
	orderMax = 256 << 10
	// reportMax bounds a report in bytes. The longest has the results of Max checks.
	reportMax = 32 << 10
)

// encode returns a message as JSON. With HTML escapes some characters would take six times their size.
func encode(message any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(message)
	return b.Bytes(), err
}

// Process is the daemon's place for a checker. When there is an order and no checker, the starter starts one, see [Open].
// The methods may be called from several goroutines.
type Process struct {
	starts      *net.UnixConn            // to the starter, which starts a checker for each message
	openGateway func() (*os.File, error) // opens the connection by which the checker asks the gateway
	reports     chan Report
	reading     sync.WaitGroup // the connections whose reports are read

	mu      sync.Mutex
	present *connection // to the present checker; nil if there is none
	over    bool        // the starter has ended
}

// connection is the daemon's end of the connection to a checker. If the daemon closes it, the starter kills the checker.
type connection struct {
	*net.UnixConn
	noGateway string        // why the checker can't ask the gateway
	ended     bool          // the checker has ended
	left      chan struct{} // closed when its reports aren't wanted any more
	closed    chan struct{} // closed when the connection is
}

// errEnded says that the starter has ended, and what to do.
var errEnded = errors.New("the process that starts checkers has ended, and the daemon itself executes nothing: " +
	"systemctl restart topdog")

// awaitEnd waits until the starter has ended. All checkers end with it.
func (p *Process) awaitEnd() {
	_, _ = p.starts.Read(make([]byte, 1)) // it sends nothing
	p.mu.Lock()
	p.over = true
	p.mu.Unlock()
	p.reading.Wait()
	close(p.reports)
}

// Reports returns what the checkers report. It must be read while a checker runs, and is closed when the starter
// has ended.
func (p *Process) Reports() <-chan Report { return p.reports }

// Send gives an order to the checker, and has one started if none runs. An order with nothing to run ends the checker. Send
// doesn't block, since the daemon's loop calls it. It fails if the checker doesn't read its orders, or if the starter has
// ended.
func (p *Process) Send(o Order) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if o.Idle() {
		p.leave()
		return nil
	}
	if p.present == nil || p.present.ended {
		if err := p.start(); err != nil {
			return err
		}
	}
	o.NoGateway = p.present.noGateway
	message, err := encode(o)
	if err != nil {
		return err
	}
	if err := sendNow(p.present.UnixConn, message, nil); !errors.Is(err, unix.EPIPE) {
		return err
	}
	return nil // it has just ended, and read reports that
}

// start has the starter start a checker.
func (p *Process) start() error {
	p.leave()
	if p.over {
		return errEnded
	}
	ours, theirs, err := socketPair()
	if err != nil {
		return err
	}
	defer theirs.Close()
	c := &connection{UnixConn: ours, left: make(chan struct{}), closed: make(chan struct{})}
	files := []int{int(theirs.Fd())}
	if gateway, err := p.openGateway(); err == nil {
		defer gateway.Close()
		files = append(files, int(gateway.Fd()))
	} else {
		c.noGateway = fmt.Sprintf("the gateway cannot be asked by ARP: %v", err)
	}
	if err := sendNow(p.starts, []byte{0}, unix.UnixRights(files...)); err != nil {
		ours.Close()
		if errors.Is(err, unix.EPIPE) {
			return errEnded
		}
		return err
	}
	p.present = c
	p.reading.Go(func() { p.read(c) })
	return nil
}

// sendNow sends a message with files, or fails if there is no room for it.
func sendNow(conn *net.UnixConn, message, rights []byte) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return unix.EPIPE // it was closed
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.Sendmsg(int(fd), message, rights, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
	})
	switch {
	case err != nil, errors.Is(failed, unix.ECONNRESET):
		return unix.EPIPE
	case errors.Is(failed, unix.EAGAIN):
		return errors.New("it does not read")
	}
	return os.NewSyscallError("sendmsg", failed)
}

// read receives reports until the checker has ended.
func (p *Process) read(c *connection) {
	end := Report{Ended: true}
	for message := make([]byte, reportMax); ; {
		n, err := c.Read(message) // the kernel closes files that a checker sends
		if errors.Is(err, unix.ECONNRESET) {
			continue // it has ended without reading its orders, and its last report may follow
		}
		if err != nil {
			break
		}
		var r Report
		if json.Unmarshal(message[:n], &r) != nil {
			break // somebody has taken the checker over
		}
		if r.Ended {
			end = r
			break
		}
		c.deliver(p.reports, r)
	}
	p.mu.Lock()
	c.ended = true
	p.mu.Unlock()
	c.Close()
	close(c.closed)
	c.deliver(p.reports, end)
}

// deliver passes a report on, unless it isn't wanted any more.
func (c *connection) deliver(reports chan<- Report, r Report) {
	select {
	case reports <- r:
	case <-c.left:
	}
}

// leave has the present checker end, and returns its connection. It is killed if that takes too long.
func (p *Process) leave() *connection {
	c := p.present
	if c != nil {
		p.present = nil
		close(c.left)
		_ = c.CloseWrite()
		time.AfterFunc(2*endWithin, func() { c.Close() })
	}
	return c
}

// Kill kills the checker.
func (p *Process) Kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.present != nil {
		p.present.Close()
	}
}

// Stop ends the checker with all that it has started, and kills it if that takes too long. Its last reports are lost.
func (p *Process) Stop() {
	p.mu.Lock()
	c := p.leave()
	p.mu.Unlock()
	if c != nil {
		<-c.closed
	}
}

// Runner carries out orders; Process is one.
type Runner interface {
	Send(Order) error
	Reports() <-chan Report
}

// silenceMax is how long Once waits while nothing is heard of the checker. It reports every second that it
// runs, but a busy board may take seconds to start it.
const silenceMax = 10 * time.Second

// Once has a runner run each check of an order once, also those for the leader, all at the same time. For each it returns
// why it fails, or "" if it passes. Each takes as long as its timeout allows. The checker must be stopped afterwards.
func Once(ctx context.Context, runner Runner, o Order) ([]string, error) {
	o.Leading, o.Once = true, true
	if o.Idle() {
		return nil, nil
	}
	if err := runner.Send(o); err != nil {
		return nil, err
	}
	silence := time.NewTimer(silenceMax)
	defer silence.Stop()
	for {
		select {
		case r, open := <-runner.Reports():
			switch {
			case !open:
				return nil, errEnded
			case r.Ended && r.Text != "":
				return nil, errors.New(r.Text)
			case r.Ended:
				return nil, errors.New("the process that tries the checks has ended: see journalctl -u topdog")
			case len(r.Tried) == len(o.Checks):
				return r.Tried, nil
			}
			silence.Reset(silenceMax)
		case <-silence.C:
			return nil, errors.New("the process that tries the checks does not answer: see whether the board is overloaded")
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
