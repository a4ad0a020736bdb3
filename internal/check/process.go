package check

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Order is what a checker runs again and again. It replaces the previous order. A check that is in both goes on.
type Order struct {
	Checks    []Check      `json:"checks"`
	Score     []string     `json:"score,omitempty"` // the score command: a program and its arguments; none for no score
	Leading   bool         `json:"leading"`         // this board leads
	Floating  []netip.Addr `json:"floating"`        // the addresses that checks must not ask
	Interface string       `json:"interface"`       // of the group, where the gateway is
}

// Idle reports whether there is nothing to run.
func (o *Order) Idle() bool { return len(o.Checks) == 0 && len(o.Score) == 0 }

// Report tells of one thing: that a check has changed or fails for another reason, the score, or the end of a checker. An
// empty report only says that the checker runs.
type Report struct {
	ID      string `json:"id,omitempty"` // of the check
	Passing bool   `json:"passing,omitempty"`
	Text    string `json:"text,omitempty"` // why it fails
	// Misaimed says that the check is aimed at a floating address, so its result means nothing.
	Misaimed bool `json:"misaimed,omitempty"`

	Score *Score `json:"score,omitempty"`
	// Ended says that the checker has failed, was killed, or couldn't be started. If it couldn't be started, Text says why.
	// Only the starter sets it.
	Ended bool `json:"ended,omitempty"`
}

// request is what the daemon tells a checker. One field is set.
type request struct {
	Order  *Order  `json:"order,omitempty"`
	Trial  *trial  `json:"trial,omitempty"` // replaces the previous trial; one without checks only ends the previous one
	Answer *answer `json:"answer,omitempty"`
}

// trial has each check of an order run once, whether this board leads or not.
type trial struct {
	Order
	Number int `json:"number"`
}

// message is what a checker tells the daemon: a report, the result of a trial, or a question.
type message struct {
	Report
	Tried    *tried    `json:"tried,omitempty"`
	Question *question `json:"question,omitempty"`
}

// tried is the result of a trial.
type tried struct {
	Number  int      `json:"number"`
	Reasons []string `json:"reasons"` // for each check: why it fails, "" if it passes
}

// question asks whether the default gateway of an interface is there.
type question struct {
	Number    int           `json:"number"`
	Interface string        `json:"interface"`
	Within    time.Duration `json:"within"`
}

// answer is the answer to a question.
type answer struct {
	Number  int    `json:"number"`
	Failure string `json:"failure"` // "" if the gateway is there
}

const (
	// requestMax bounds a request in bytes. The checks of a configuration file (config.MaxFileBytes) have at most three
	// times its size in JSON.
	requestMax = 256 << 10
	// messageMax bounds a message in bytes. The longest has the results of Max checks.
	messageMax = 32 << 10
	// questionsMax bounds the questions that the daemon passes on to the holder at the same time, even if an attacker has
	// taken the checker over. The holder answers three times as many requests at the same time (netio).
	questionsMax = 16
)

// encode returns a request or a message as JSON. With HTML escapes some characters would take six times their size.
func encode(what any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(what)
	return b.Bytes(), err
}

// Process is the daemon's end of the connection to its checker. When there is a request and no checker, the starter starts
// one, see [Open]. The methods may be called from several goroutines.
type Process struct {
	conn       *net.UnixConn
	starter    *os.Process
	askGateway func(ctx context.Context, iface string) error
	asking     chan struct{} // has a value for each question that waits for its answer
	reports    chan Report
	trials     int          // how many there were
	tried      chan message // takes the results of trials, and the ends of checkers; closed as reports is
}

// errEnded says that the starter has ended, and what to do.
var errEnded = errors.New("the process that starts checkers has ended, and the daemon itself executes nothing: " +
	"systemctl restart topdog")

// Reports returns what the checkers report. It must be read while a checker runs, and is closed when the starter
// has ended.
func (p *Process) Reports() <-chan Report { return p.reports }

// Send gives an order to the checker, and has one started if none runs. A checker with nothing to run ends. Send doesn't
// block, since the daemon's loop calls it. It fails if the checker doesn't read, or if the starter has ended.
func (p *Process) Send(o Order) error { return p.request(request{Order: &o}) }

func (p *Process) request(r request) error {
	text, err := encode(r)
	if err != nil {
		return err
	}
	raw, err := p.conn.SyscallConn()
	if err != nil {
		return errEnded
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.Sendmsg(int(fd), text, nil, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
	})
	switch {
	case err != nil, errors.Is(failed, unix.EPIPE), errors.Is(failed, unix.ECONNRESET):
		return errEnded
	case errors.Is(failed, unix.EAGAIN):
		return errors.New("it does not read")
	}
	return os.NewSyscallError("sendmsg", failed)
}

// read takes in what is reported, until the starter has ended.
func (p *Process) read() {
	defer close(p.reports)
	defer close(p.tried)
	for buffer := make([]byte, messageMax); ; {
		n, err := p.conn.Read(buffer)
		if errors.Is(err, io.EOF) && !p.over() {
			n, err = 0, nil // an empty message, which the starter and its checkers don't send
		}
		if err != nil {
			return
		}
		var m message
		if json.Unmarshal(buffer[:n], &m) != nil {
			p.Kill() // an attacker has taken the checker over
			continue
		}
		if m.Tried != nil || m.Ended {
			select {
			case p.tried <- m:
			default: // nobody wants to know
			}
		}
		switch {
		case m.Question != nil:
			p.ask(*m.Question)
		case m.Tried == nil:
			p.reports <- m.Report
		}
	}
}

// over reports whether the starter and its checkers have closed their end of the connection.
func (p *Process) over() bool {
	over := true
	if raw, err := p.conn.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { over = poll(int(fd), unix.POLLRDHUP, 0) })
	}
	return over
}

// ask answers a question of the checker. It drops a question beyond questionsMax, and one whose text can't be the name of an
// interface: the requests that renew the address take the same way to the holder, and must not be kept waiting.
func (p *Process) ask(q question) {
	if len(q.Interface) >= unix.IFNAMSIZ {
		return
	}
	select {
	case p.asking <- struct{}{}:
	default:
		return
	}
	go func() {
		defer func() { <-p.asking }()
		ctx, cancel := context.WithTimeout(context.Background(), q.Within)
		defer cancel()
		a := answer{Number: q.Number}
		if err := p.askGateway(ctx, q.Interface); err != nil {
			a.Failure = err.Error()
		}
		if ctx.Err() != nil {
			return // it is too late, and the checker says so in better words
		}
		_ = p.request(request{Answer: &a}) // without the answer the check fails as well
	}()
}

// Try has the checker run each check of an order once, also those for the leader, all at the same time. For each check it
// returns why that fails, or "" if it passes. When ctx ends, so do the checks. Only one Try may run at a time.
func (p *Process) Try(ctx context.Context, o Order) ([]string, error) {
	if len(o.Checks) == 0 {
		return nil, nil
	}
	reasons, err := p.try(ctx, o)
	if err == nil && len(reasons) != len(o.Checks) { // somebody has taken the checker over
		err = errors.New("the process that tries the checks has tried other ones: systemctl restart topdog")
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*endWithin)
	defer cancel()
	if _, err := p.try(ending, Order{}); errors.Is(err, context.DeadlineExceeded) { // it is stuck
		p.Kill()
		p.trials++ // if it answers after all, it has not ended yet
		killed, cancel := context.WithTimeout(context.WithoutCancel(ctx), endWithin)
		defer cancel()
		_, _ = p.awaitTrial(killed) // a request that is made before the checker has ended would be lost, see tellEnd
	}
	return reasons, err
}

func (p *Process) try(ctx context.Context, o Order) ([]string, error) {
	for len(p.tried) > 0 {
		<-p.tried // about an earlier trial, or none
	}
	p.trials++
	if err := p.request(request{Trial: &trial{o, p.trials}}); err != nil {
		return nil, err
	}
	return p.awaitTrial(ctx)
}

// awaitTrial waits for the result of the last trial, or for the end of the checker.
func (p *Process) awaitTrial(ctx context.Context) ([]string, error) {
	for {
		select {
		case m, more := <-p.tried:
			switch {
			case !more:
				return nil, errEnded
			case m.Ended:
				return nil, errors.New(cmp.Or(m.Text, "the process that tries the checks has ended: see journalctl -u topdog"))
			case m.Tried.Number == p.trials:
				return m.Tried.Reasons, nil
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Kill has the starter kill the checker. Another order starts the next one.
func (p *Process) Kill() { _ = p.starter.Signal(killSignal) } // if the starter has ended, so has the checker

// Stop ends the checker with all that it has started, and the starter. The checker's last reports are lost. What takes too
// long to end is killed when this process ends.
func (p *Process) Stop() {
	_ = p.conn.CloseWrite()
	late := time.After(2 * endWithin)
	for {
		select {
		case _, more := <-p.reports:
			if !more {
				return
			}
		case <-late:
			return
		}
	}
}
