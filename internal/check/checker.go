package check

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"topdog/netio"
)

const (
	// aliveEvery is how often a checker reports that it runs.
	aliveEvery = time.Second
	// endWithin bounds how long the checks may take to end. What they have started is killed before that.
	endWithin = time.Second
)

// Attend is the whole life of a checker, which the starter starts. It returns when there is nothing to run, or when the
// daemon has closed the connection.
func Attend() error {
	socket, err := inherit()
	if err != nil {
		return err
	}
	if err := beginLife("topdog-checker"); err != nil {
		return err
	}
	conn, err := net.FileConn(socket)
	if err != nil {
		return fmt.Errorf("checker: %w", err)
	}
	return newChecker(conn).attend(conn)
}

// checker carries out requests.
type checker struct {
	score    scoreRunner
	order    Order
	trial    *trial                        // nil for none
	tasks    map[string]context.CancelFunc // ends a task that runs; by the key of the task, see wanted
	running  sync.WaitGroup                // the tasks, also those that are about to end
	messages chan message
	out      io.Writer

	mu        sync.Mutex            // guards what follows
	questions int                   // how many were asked so far
	unsolved  map[int]chan<- string // where the text of each answer goes, by the number of the question
}

func newChecker(out io.Writer) *checker {
	return &checker{
		score: runScoreCommand, tasks: map[string]context.CancelFunc{}, messages: make(chan message), out: out,
		unsolved: map[int]chan<- string{},
	}
}

// attend carries out requests until there is nothing to run, or the daemon has closed the connection.
func (c *checker) attend(in io.Reader) error {
	defer c.end()
	requests, carriedOut := make(chan request), make(chan struct{})
	var broken error
	go func() {
		defer close(requests)
		broken = readRequests(in, requests, carriedOut)
	}()
	alive := time.NewTicker(aliveEvery)
	defer alive.Stop()
	for {
		var err error
		select {
		case r, more := <-requests:
			if !more {
				return broken
			}
			if err = c.carryOut(r); err == nil {
				if c.order.Idle() && c.trial == nil {
					return nil
				}
				carriedOut <- struct{}{}
			}
		case m := <-c.messages:
			err = c.say(m)
		case <-alive.C:
			err = c.say(message{})
		}
		if err != nil {
			return fmt.Errorf("report to the daemon: %w", err)
		}
	}
}

// readRequests reads requests until the daemon has closed the connection. It reads the next one only when the last one was
// carried out: if a request ends this checker, those after it are for the next checker.
func readRequests(in io.Reader, requests chan<- request, carriedOut <-chan struct{}) error {
	for buffer := make([]byte, 2*requestMax); ; {
		var r request
		n, err := in.Read(buffer)
		if errors.Is(err, io.EOF) || errors.Is(err, unix.ECONNRESET) {
			return nil
		}
		if err == nil {
			err = json.Unmarshal(buffer[:n], &r)
		}
		if err != nil {
			return fmt.Errorf("read a request: %w", err)
		}
		requests <- r
		<-carriedOut
	}
}

func (c *checker) say(m message) error {
	text, err := encode(m)
	if err == nil {
		_, err = c.out.Write(text)
	}
	return err
}

// carryOut carries out one request. An error says that the daemon could not be told.
func (c *checker) carryOut(r request) error {
	switch {
	case r.Answer != nil:
		if answered := c.solve(r.Answer.Number); answered != nil {
			answered <- r.Answer.Failure
		}
		return nil
	case r.Order != nil:
		c.order = *r.Order
	case r.Trial != nil:
		c.trial = r.Trial
		if len(r.Trial.Checks) == 0 {
			c.trial = nil
		}
	}
	wanted := c.wanted()
	for key, end := range c.tasks {
		if wanted[key] == nil {
			end()
			delete(c.tasks, key)
		}
	}
	for key, do := range wanted {
		if c.tasks[key] == nil {
			c.begin(key, do)
		}
	}
	if r.Trial != nil && c.trial == nil {
		return c.say(message{Tried: &tried{Number: r.Trial.Number}})
	}
	return nil
}

// work is what a task does until ctx ends.
type work func(ctx context.Context, say func(message))

// wanted returns the tasks that have to run now. The key of a task says what it does. A task that runs already isn't begun
// again, so it reports nothing anew: the daemon knows its last report.
func (c *checker) wanted() map[string]work {
	wanted := map[string]work{}
	o := &c.order
	if words := o.Score; len(words) > 0 {
		wanted[fmt.Sprintf("score %q", words)] = func(ctx context.Context, say func(message)) {
			runScores(ctx, words, c.score, func(s Score) { say(message{Report: Report{Score: &s}}) })
		}
	}
	if t := c.trial; t != nil {
		wanted[fmt.Sprintf("trial %d", t.Number)] = func(ctx context.Context, say func(message)) {
			say(message{Tried: &tried{t.Number, c.toolsOf(&t.Order).try(ctx, t.Checks)}})
		}
	}
	t := c.toolsOf(o)
	for i := range o.Checks {
		check := &o.Checks[i]
		if check.When == Leading && !o.Leading {
			continue
		}
		key := check.ID()
		if check.Kind == Gateway {
			key += o.Interface // each interface has another gateway
		}
		wanted[key] = func(ctx context.Context, say func(message)) {
			t.repeat(ctx, check, func(r Report) { say(message{Report: r}) })
		}
	}
	return wanted
}

func (c *checker) toolsOf(o *Order) tools {
	return tools{floating: o.Floating, iface: o.Interface, askGateway: c.askGateway}
}

// repeat runs a check again and again.
func (t tools) repeat(ctx context.Context, check *Check, report func(Report)) {
	p, err := t.prober(check)
	if err != nil {
		report(Report{ID: check.ID(), Text: err.Error()})
		return
	}
	(&worker{check: *check, prober: p, report: report}).run(ctx)
}

// begin begins a task. What it says after its end is dropped.
func (c *checker) begin(key string, do work) {
	ctx, end := context.WithCancel(context.Background())
	c.tasks[key] = end
	c.running.Go(func() {
		do(ctx, func(m message) {
			if ctx.Err() != nil {
				return
			}
			select {
			case c.messages <- m:
			case <-ctx.Done():
			}
		})
	})
}

// end ends all tasks.
func (c *checker) end() {
	for _, end := range c.tasks {
		end()
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.running.Wait()
	}()
	select {
	case <-ended:
	case <-time.After(endWithin):
	}
}

// askGateway has the daemon ask the default gateway by ARP. This process lacks the capability for that.
func (c *checker) askGateway(ctx context.Context, iface string) error {
	answered := make(chan string, 1)
	c.mu.Lock()
	c.questions++
	number := c.questions
	c.unsolved[number] = answered
	c.mu.Unlock()
	defer c.solve(number)
	deadline, _ := ctx.Deadline() // each run has one
	select {
	case c.messages <- message{Question: &question{number, iface, time.Until(deadline)}}:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case failure := <-answered:
		if failure != "" {
			return errors.New(failure)
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// solve forgets a question, and returns the channel for its answer, or nil if nothing waits for the answer.
func (c *checker) solve(number int) chan<- string {
	c.mu.Lock()
	defer c.mu.Unlock()
	answered := c.unsolved[number]
	delete(c.unsolved, number)
	return answered
}

// Try runs the checks of an order once each, all at the same time, in this process. For each check it returns why that
// fails, or "" if it passes.
func Try(ctx context.Context, o Order) []string {
	return tools{floating: o.Floating, iface: o.Interface, askGateway: netio.AskGateway}.try(ctx, o.Checks)
}

// try runs checks once each, all at the same time, and returns why each fails.
func (t tools) try(ctx context.Context, checks []Check) []string {
	reasons := make([]string, len(checks))
	var running sync.WaitGroup
	for i := range checks {
		running.Go(func() {
			c := &checks[i]
			p, err := t.prober(c)
			if err == nil {
				defer p.close()
				err = probe(ctx, c, p)
			}
			reasons[i] = reasonOf(err)
		})
	}
	running.Wait()
	return reasons
}

// reasonOf returns why a check fails, or "" if it passes.
func reasonOf(err error) string {
	switch {
	case err == nil:
		return ""
	case err.Error() == "":
		return "it fails, and does not say why"
	}
	return shortened(err.Error(), textMax)
}

// tools are what the probers of an order share.
type tools struct {
	floating   []netip.Addr
	iface      string // of the group; "" if it isn't known yet
	askGateway func(ctx context.Context, iface string) error
}

// prober returns the prober of a check.
func (t tools) prober(c *Check) (prober, error) {
	d := dialer{floating: t.floating}
	if c.When == Leading {
		d.floating = nil
	}
	switch c.Kind {
	case Unit:
		return newUnitProber(c), nil
	case Exec:
		return newExecProber(c), nil
	case TCP:
		return polled(func(ctx context.Context) error { return d.tryTCP(ctx, c.Target) }), nil
	case HTTP:
		return polled(newHTTPProber(c, d).probe), nil
	case DNS:
		p, err := newDNSProber(c, d)
		return polled(p.probe), err
	case Command:
		return polled(func(ctx context.Context) error {
			_, err := runProgram(ctx, c.words(), commandOutputMax)
			return err
		}), nil
	case Gateway:
		return polled(func(ctx context.Context) error {
			if t.iface == "" {
				return errors.New("the interface is not known yet")
			}
			return t.askGateway(ctx, t.iface)
		}), nil
	}
	return nil, fmt.Errorf("checks of the kind %d are not known", uint8(c.Kind))
}
