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

// Order is all that a checker must know. It replaces the order before. A check that is in both goes on. An order with
// nothing to run ends the checker.
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

// Report tells of one thing: that a check has changed or fails for another reason, or what one of the last four fields
// says. An empty report only says that the checker runs.
type Report struct {
	ID      string `json:"id,omitempty"` // of the check
	Passing bool   `json:"passing,omitempty"`
	Text    string `json:"text,omitempty"` // why it fails
	// Misaimed says that the check is aimed at a floating address, so its result means nothing.
	Misaimed bool `json:"misaimed,omitempty"`

	Score *Score            `json:"score,omitempty"`
	Tried map[string]string `json:"tried,omitempty"` // of Order.Once, by the check's ID: why it fails, "" if it passes
	Began int               `json:"began,omitempty"` // the PID of a checker that was started
	Ended *Ended            `json:"ended,omitempty"`
}

// Ended is the end of a checker.
type Ended struct {
	PID    int    `json:"pid"`              // 0 if it couldn't be started
	Reason string `json:"reason,omitempty"` // "" if it ended because it had nothing to do
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

// Process is the daemon's end of a connection to a checker. The starter starts a checker when there is an order and none
// runs, see [Open]. The methods may be called from several goroutines.
type Process struct {
	socket      *net.UnixConn
	starterPID  int
	openGateway func() (*os.File, error) // opens the connection by which the checker asks the gateway
	reports     chan Report

	mu   sync.Mutex
	life *life // nil while there is no checker
}

// life is the time from the first order of a checker to its end.
type life struct {
	process   *os.Process   // nil until it has begun
	ordered   bool          // it has an order, and the connection to the holder if there is one
	noGateway string        // why it has no connection to the holder
	ended     chan struct{} // closed when its end was reported
}

// read receives reports until the starter has ended.
func (p *Process) read() {
	defer close(p.reports)
	defer p.note(&Report{Ended: &Ended{}})
	// There is room for the credentials of the sender alone, so the kernel closes files that a checker sends.
	message, control := make([]byte, reportMax), make([]byte, unix.CmsgSpace(unix.SizeofUcred))
	for {
		n, controlLength, _, _, err := p.socket.ReadMsgUnix(message, control)
		if err != nil {
			return
		}
		var r Report
		err = json.Unmarshal(message[:n], &r)
		ofStarter := r.Began != 0 || r.Ended != nil
		// A checker has the same end of the connection as the starter, and could have the daemon kill any process.
		forged := ofStarter && senderPID(control[:controlLength]) != p.starterPID
		if err != nil || forged {
			p.Kill() // somebody has taken the checker over
			continue
		}
		over := p.note(&r)
		if r.Began == 0 { // that doesn't show that the checker works
			p.reports <- r
		}
		if over != nil {
			close(over.ended) // now: Stop has taken the report, which must not end the next trial
		}
	}
}

// senderPID returns the PID of the process that has sent a message, as the kernel tells it, or 0 if it doesn't.
func senderPID(control []byte) int {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil || len(messages) == 0 {
		return 0
	}
	credentials, err := unix.ParseUnixCredentials(&messages[0])
	if err != nil {
		return 0
	}
	return int(credentials.Pid)
}

// note notes the beginning and the end of a checker. It returns the life that is over, if one is.
func (p *Process) note(r *Report) (over *life) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case r.Began != 0:
		// By a pidfd: another process may get the PID before the end is reported.
		p.alive().process, _ = os.FindProcess(r.Began)
	case r.Ended != nil && p.life != nil:
		if p.life.process != nil {
			_ = p.life.process.Release()
		}
		over, p.life = p.life, nil
	}
	return over
}

// alive returns the present life, which may just begin.
func (p *Process) alive() *life {
	if p.life == nil {
		p.life = &life{ended: make(chan struct{})}
	}
	return p.life
}

// Reports returns what the checkers report. It must be read while a checker runs, and is closed when the starter
// has ended.
func (p *Process) Reports() <-chan Report { return p.reports }

// Send gives an order to the checker, and starts one if none runs. It doesn't block, since the daemon's loop calls it. It
// fails if the checker doesn't read its orders, or if the starter has ended.
func (p *Process) Send(o Order) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.alive()
	var rights []byte
	if !l.ordered && !o.Idle() {
		if gateway, err := p.openGateway(); err == nil {
			defer gateway.Close()
			rights = unix.UnixRights(int(gateway.Fd()))
		} else {
			l.noGateway = fmt.Sprintf("the gateway cannot be asked by ARP: %v", err)
		}
	}
	o.NoGateway = l.noGateway
	message, err := encode(o)
	if err == nil {
		err = p.sendNow(message, rights)
	}
	if err == nil {
		l.ordered = !o.Idle() // an order after an idle one is for the next checker
	}
	return err
}

// errEnded says that the starter has ended, and what to do.
var errEnded = errors.New("the process that starts checkers has ended, and the daemon itself executes nothing: " +
	"systemctl restart topdog")

// sendNow sends a message, or fails if there is no room for it.
func (p *Process) sendNow(message, rights []byte) error {
	raw, err := p.socket.SyscallConn()
	if err != nil {
		return errEnded // it was closed
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.Sendmsg(int(fd), message, rights, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
	})
	switch {
	case err != nil, errors.Is(failed, unix.EPIPE), errors.Is(failed, unix.ECONNRESET):
		return errEnded
	case errors.Is(failed, unix.EAGAIN):
		return errors.New("it does not read")
	}
	return os.NewSyscallError("sendmsg", failed)
}

// Kill kills the checker.
func (p *Process) Kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.life != nil && p.life.process != nil {
		_ = p.life.process.Kill()
	}
}

// killedWithin bounds how long Stop waits for a checker that it has killed. The starter may be stuck.
const killedWithin = time.Second

// Stop ends the checker with all that it has started, and kills it if that takes too long. Its last reports are lost.
func (p *Process) Stop() error {
	p.mu.Lock()
	l := p.life
	p.mu.Unlock()
	if l == nil {
		return nil
	}
	if p.Send(Order{}) == nil && p.endsWithin(l, 2*endWithin) {
		return nil
	}
	p.Kill()
	if !p.endsWithin(l, killedWithin) {
		return errors.New("it does not end")
	}
	return nil
}

func (p *Process) endsWithin(l *life, d time.Duration) bool {
	for over := time.After(d); ; {
		select {
		case <-l.ended:
			return true
		case <-over:
			return false
		case _, open := <-p.reports: // which may keep the end from being read
			if !open {
				return true
			}
		}
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
// why it fails, or "" if it passes. Each takes as long as its timeout allows.
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
			case r.Ended != nil && r.Ended.PID == 0:
				return nil, errors.New(r.Ended.Reason)
			case r.Ended != nil && r.Ended.Reason != "": // else it is the one of the last trial
				return nil, errors.New("the process that tries the checks has ended: see journalctl -u topdog")
			}
			if reasons, complete := o.reasons(r.Tried); complete {
				return reasons, nil
			}
			silence.Reset(silenceMax)
		case <-silence.C:
			return nil, errors.New("the process that tries the checks does not answer: see whether the board is overloaded")
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// reasons returns why each check fails. It is not complete if what was tried is another order.
func (o *Order) reasons(tried map[string]string) (reasons []string, complete bool) {
	for i := range o.Checks {
		reason, found := tried[o.Checks[i].ID()]
		if !found {
			return nil, false
		}
		reasons = append(reasons, reason)
	}
	return reasons, true
}
