package check

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"topdog/netio"
)

const (
	// aliveEvery is how often a checker reports that it runs.
	aliveEvery = time.Second
	// endWithin bounds how long the checks may take to end. By then everything that they have started was killed.
	endWithin = time.Second
)

// Attend is the whole life of a checker, which the starter starts. It returns when the daemon has closed the connection.
func Attend() error {
	socket, err := inherit(inheritedSocket)
	if err != nil {
		return err
	}
	t := &tools{}
	t.asker, t.noAsker = netio.InheritGatewayAsker(inheritedGateway)
	defer t.close()
	if err := beginLife("topdog-checker"); err != nil {
		return err
	}
	conn, err := connOf(socket)
	if err != nil {
		return fmt.Errorf("checker: %w", err)
	}
	return newChecker(t, conn).attend(conn)
}

// checker carries out orders.
type checker struct {
	tools   *tools
	score   scoreRunner
	tasks   map[string]*task // by what they run
	reports chan Report
	out     io.Writer
}

// task is what runs again and again, or once.
type task struct {
	end   context.CancelFunc
	ended sync.WaitGroup
}

func newChecker(t *tools, out io.Writer) *checker {
	return &checker{tools: t, out: out, score: runScoreCommand, tasks: map[string]*task{}, reports: make(chan Report)}
}

// attend carries out orders until the daemon has closed the connection.
func (c *checker) attend(in io.Reader) error {
	defer c.end()
	orders := make(chan Order)
	var broken error
	go func() {
		defer close(orders)
		for buffer := make([]byte, 2*orderMax); ; {
			var o Order
			n, err := in.Read(buffer)
			if errors.Is(err, io.EOF) || errors.Is(err, unix.ECONNRESET) {
				return
			}
			if err == nil {
				err = json.Unmarshal(buffer[:n], &o)
			}
			if err != nil {
				broken = fmt.Errorf("read an order: %w", err)
				return
			}
			orders <- o
		}
	}()
	alive := time.NewTicker(aliveEvery)
	defer alive.Stop()
	for {
		var err error
		select {
		case o, more := <-orders:
			if !more {
				return broken
			}
			c.carryOut(o)
		case r := <-c.reports:
			err = c.say(r)
		case <-alive.C:
			err = c.say(Report{})
		}
		if err != nil {
			return fmt.Errorf("report to the daemon: %w", err)
		}
	}
}

func (c *checker) say(r Report) error {
	message, err := encode(r)
	if err == nil {
		_, err = c.out.Write(message)
	}
	return err
}

// carryOut ends what the order doesn't have, and begins what is new. What goes on reports nothing, since the
// daemon knows it.
func (c *checker) carryOut(o Order) {
	c.tools.floating, c.tools.iface = o.Floating, o.Interface
	if o.NoGateway != "" {
		c.tools.noAsker = errors.New(o.NoGateway)
	}
	wanted := map[string]func(ctx context.Context, report func(Report)){}
	if len(o.Score) > 0 {
		wanted[fmt.Sprintf("score %q", o.Score)] = func(ctx context.Context, report func(Report)) {
			runScores(ctx, o.Score, c.score, report)
		}
	}
	t := *c.tools // the next order changes them
	if o.Once {   // the only order of this checker
		wanted["once"] = func(ctx context.Context, report func(Report)) { report(Report{Tried: t.try(ctx, o.Checks)}) }
	}
	for i := range o.Checks {
		if check := &o.Checks[i]; !o.Once && (check.When == Always || o.Leading) {
			wanted[c.keyOf(check)] = func(ctx context.Context, report func(Report)) { t.repeat(ctx, check, report) }
		}
	}
	for key, w := range c.tasks {
		if wanted[key] == nil {
			w.end()
			delete(c.tasks, key)
		}
	}
	for key, run := range wanted {
		if c.tasks[key] == nil {
			c.begin(key, run)
		}
	}
}

// keyOf returns the key of a check's task. If the group has another interface, the gateway is another one.
func (c *checker) keyOf(check *Check) string {
	if check.Kind == Gateway {
		return check.ID() + c.tools.iface
	}
	return check.ID()
}

// repeat runs a check again and again.
func (t *tools) repeat(ctx context.Context, check *Check, report func(Report)) {
	p, err := t.prober(check)
	if err != nil {
		report(Report{ID: check.ID(), Text: err.Error()})
		return
	}
	(&worker{check: *check, prober: p, report: report}).run(ctx)
}

// begin begins a task. What it reports after its end is dropped.
func (c *checker) begin(key string, run func(ctx context.Context, report func(Report))) {
	ctx, end := context.WithCancel(context.Background())
	w := &task{end: end}
	c.tasks[key] = w
	w.ended.Go(func() {
		run(ctx, func(r Report) {
			if ctx.Err() != nil {
				return
			}
			select {
			case c.reports <- r:
			case <-ctx.Done():
			}
		})
	})
}

// end ends all that runs.
func (c *checker) end() {
	ended := make(chan struct{})
	for _, w := range c.tasks {
		w.end()
	}
	go func() {
		defer close(ended)
		for _, w := range c.tasks {
			w.ended.Wait()
		}
	}()
	select {
	case <-ended:
	case <-time.After(endWithin):
	}
}

// Try runs the checks of an order once each, all at the same time, in this process. For each it returns why it
// fails, or "" if it passes.
func Try(ctx context.Context, o Order) []string {
	t := &tools{floating: o.Floating, iface: o.Interface}
	t.asker, t.noAsker = netio.OpenGatewayAsker()
	defer t.close()
	return t.try(ctx, o.Checks)
}

// try runs checks once each, all at the same time, and returns why each fails.
func (t *tools) try(ctx context.Context, checks []Check) []string {
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

// tools are what the probers of one process share. A prober keeps those that it was made with.
type tools struct {
	floating []netip.Addr
	iface    string
	asker    *netio.GatewayAsker
	noAsker  error // why there is no asker
}

func (t *tools) close() {
	if t.asker != nil {
		t.asker.Close()
	}
}

// prober returns the prober of a check.
func (t *tools) prober(c *Check) (prober, error) {
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
		return polled(t.askGateway), nil
	}
	return nil, fmt.Errorf("checks of the kind %d are not known", uint8(c.Kind))
}
