package check

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
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

// Attend is the whole life of a checker, which the starter starts. It returns when there is nothing to run any more,
// or when the daemon has ended.
func Attend() error {
	socket, err := inherit(inheritedSocket)
	if err != nil {
		return err
	}
	if err := beginLife("topdog-checker"); err != nil {
		return err
	}
	conn, err := connOf(socket)
	if err != nil {
		return fmt.Errorf("checker: %w", err)
	}
	t := &tools{}
	defer t.close()
	return newChecker(t, conn).attend(conn)
}

// checker carries out orders.
type checker struct {
	tools   *tools
	workers map[string]*runningWorker // by the check's ID, and the trial
	scorer  scorer
	reports chan Report
	ended   chan struct{} // closed when nobody takes reports any more
	out     io.Writer
}

// runningWorker runs one check again and again, or all checks of a trial once.
type runningWorker struct {
	check Check
	end   context.CancelFunc
	ended sync.WaitGroup
}

// trial is the place of the worker that runs each check once.
const trial = "trial"

// received is an order, with the connection that came with it.
type received struct {
	Order
	asker *netio.GatewayAsker // nil for none
}

func newChecker(t *tools, out io.Writer) *checker {
	c := &checker{tools: t, out: out, workers: map[string]*runningWorker{}, reports: make(chan Report)}
	c.ended = make(chan struct{})
	c.scorer = scorer{run: runScoreCommand, report: c.reportScore}
	return c
}

// reportScore reports a run of the score command.
func (c *checker) reportScore(s Score) {
	select {
	case c.reports <- Report{Score: &s}:
	case <-c.ended:
	}
}

// attend carries out orders until there is nothing to run.
func (c *checker) attend(in *net.UnixConn) error {
	defer c.end()
	orders := make(chan received)
	var broken error
	go func() {
		defer close(orders)
		buffer := make([]byte, 2*orderMax)
		for {
			o, err := receive(in, buffer)
			if err != nil {
				broken = err
				return
			}
			orders <- o
			if o.Idle() {
				return // what comes next is for the next checker
			}
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
			if o.Idle() {
				return nil
			}
			c.carryOut(o)
		case r := <-c.reports:
			if r.ID == "" || c.workers[r.ID] != nil { // else the check was ended meanwhile
				err = c.say(r)
			}
		case <-alive.C:
			err = c.say(Report{})
		}
		if err != nil {
			return fmt.Errorf("report to the daemon: %w", err)
		}
	}
}

// receive waits for an order. When the daemon has ended, that is an order to end.
func receive(in *net.UnixConn, buffer []byte) (o received, err error) {
	rights := make([]byte, unix.CmsgSpace(4))
	n, controls, flags, _, err := in.ReadMsgUnix(buffer, rights)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, unix.ECONNRESET):
		return o, nil
	case err != nil:
		return o, fmt.Errorf("read an order: %w", err)
	case flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0:
		return o, fmt.Errorf("read an order: %w", unix.EMSGSIZE)
	}
	if err := json.Unmarshal(buffer[:n], &o.Order); err != nil {
		return o, fmt.Errorf("read an order: %w", err)
	}
	if messages, err := unix.ParseSocketControlMessage(rights[:controls]); err == nil && len(messages) > 0 {
		if connections, err := unix.ParseUnixRights(&messages[0]); err == nil && len(connections) > 0 {
			if o.asker, err = netio.InheritGatewayAsker(connections[0]); err != nil {
				o.NoGateway = err.Error()
			}
		}
	}
	return o, nil
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
func (c *checker) carryOut(o received) {
	c.scorer.replace(o.Score)
	moved := o.Interface != c.tools.iface
	c.tools.floating, c.tools.iface = o.Floating, o.Interface
	switch {
	case c.tools.asker == nil:
		c.tools.asker = o.asker
	case o.asker != nil:
		o.asker.Close() // the order before, which was for another checker, had one too
	}
	if o.NoGateway != "" {
		c.tools.noAsker = errors.New(o.NoGateway)
	}
	if o.Once {
		c.tryOnce(o.Order)
		return
	}
	wanted := map[string]*Check{}
	for i := range o.Checks {
		check := &o.Checks[i]
		if check.When == Leading && !o.Leading || check.Kind == Gateway && !c.tools.knowsGateway() {
			continue
		}
		wanted[check.ID()] = check
	}
	for id, w := range c.workers {
		if wanted[id] == nil || moved && w.check.Kind == Gateway {
			w.end()
			delete(c.workers, id)
		}
	}
	for id, check := range wanted {
		if c.workers[id] == nil {
			c.runCheck(id, *check)
		}
	}
}

// runCheck runs a check again and again.
func (c *checker) runCheck(id string, check Check) {
	p, err := c.tools.prober(&check) // here: the next order changes the tools
	c.begin(id, check, func(ctx context.Context, report func(Report)) {
		if err != nil {
			report(Report{ID: id, Text: err.Error()})
			return
		}
		(&worker{check: check, prober: p, report: report}).run(ctx)
	})
}

// tryOnce runs each check once.
func (c *checker) tryOnce(o Order) {
	if former := c.workers[trial]; former != nil {
		former.end()
	}
	t := &tools{floating: o.Floating, iface: o.Interface, asker: c.tools.asker, noAsker: c.tools.noAsker}
	c.begin(trial, Check{}, func(ctx context.Context, report func(Report)) {
		tried := map[string]string{}
		for i, reason := range t.try(ctx, o.Checks) {
			tried[o.Checks[i].ID()] = reason
		}
		report(Report{Tried: tried})
	})
}

// begin begins a worker. What it reports after its end is dropped.
func (c *checker) begin(id string, check Check, run func(ctx context.Context, report func(Report))) {
	ctx, end := context.WithCancel(context.Background())
	w := &runningWorker{check: check, end: end}
	c.workers[id] = w
	w.ended.Go(func() {
		run(ctx, func(r Report) {
			select {
			case c.reports <- r:
			case <-ctx.Done():
			}
		})
	})
}

// end ends all checks and the score command.
func (c *checker) end() {
	close(c.ended)
	c.scorer.replace(nil)
	ended := make(chan struct{})
	for _, w := range c.workers {
		w.end()
	}
	go func() {
		defer close(ended)
		for _, w := range c.workers {
			w.ended.Wait()
		}
		c.scorer.running.Wait()
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
	return shortened(err.Error())
}
