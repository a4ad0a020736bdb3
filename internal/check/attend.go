package check

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/starter"
)

// aliveEvery is how often a checker says that it runs.
const aliveEvery = time.Second

// Attend is the whole life of a checker. It returns when the daemon closes the pipe, or has ended. The files are
// inherited from Start; without them the error says so.
func Attend() error {
	orders, reports := inheritPipe(orderPipe), inheritPipe(reportPipe)
	if orders == nil || reports == nil {
		return errors.New("this is a part of `topdog run`, which starts it: it is of no use by itself")
	}
	// The daemon decides when to go. A service manager that ends it signals every process
	// of the service.
	signal.Ignore(unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT)
	// The name of the process; only for people, so it does not matter if it fails.
	_ = os.WriteFile("/proc/self/comm", []byte("topdog-checker"), 0)
	if err := starter.HideMemory(); err != nil { // from a daemon that was taken over
		return fmt.Errorf("checker: %w", err)
	}
	t := inheritTools()
	defer t.close()
	return newChecker(t, reports).attend(orders)
}

// inheritPipe returns the pipe that Start has opened; nil without one.
func inheritPipe(fd int) *os.File {
	var stat unix.Stat_t
	if unix.Fstat(fd, &stat) != nil || stat.Mode&unix.S_IFMT != unix.S_IFIFO {
		return nil
	}
	unix.CloseOnExec(fd) // it is not for what the checks start
	return os.NewFile(uintptr(fd), "pipe")
}

// checker runs checks, and the score command, as it is ordered.
type checker struct {
	tools   *tools
	workers map[string]*runningWorker // by the check's ID
	scorer  scorer
	reports chan Report
	ended   chan struct{} // closed when nobody takes reports any more
	out     *json.Encoder
}

// runningWorker is a worker, and what ends it.
type runningWorker struct {
	check Check
	end   context.CancelFunc
	ended sync.WaitGroup
}

func newChecker(t *tools, out io.Writer) *checker {
	c := &checker{tools: t, workers: map[string]*runningWorker{}, reports: make(chan Report), ended: make(chan struct{}), out: json.NewEncoder(out)}
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

// attend carries out orders until there are no more to come.
func (c *checker) attend(in io.Reader) error {
	orders := make(chan Order)
	var broken error
	go func() {
		defer close(orders)
		for lines := json.NewDecoder(bufio.NewReader(in)); ; {
			var o Order
			if err := lines.Decode(&o); err != nil {
				if !errors.Is(err, io.EOF) {
					broken = fmt.Errorf("read an order: %w", err)
				}
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
				c.end()
				return broken
			}
			c.carryOut(o)
		case r := <-c.reports:
			if r.Score != nil || c.workers[r.ID] != nil { // else it was ended meanwhile
				err = c.out.Encode(r)
			}
		case <-alive.C:
			err = c.out.Encode(Report{})
		}
		if err != nil {
			c.end()
			return fmt.Errorf("report to the daemon: %w", err)
		}
	}
}

// carryOut ends what is not ordered any more, and begins what is new. What goes on reports nothing, since the
// daemon has heard it.
func (c *checker) carryOut(o Order) {
	c.scorer.replace(o.Score)
	moved := o.Interface != c.tools.iface
	c.tools.floating, c.tools.iface = o.Floating, o.Interface
	if o.NoGateway != "" {
		c.tools.noAsker = errors.New(o.NoGateway)
	}
	wanted := map[string]bool{}
	for i := range o.Checks {
		check := &o.Checks[i]
		if check.When == Leading && !o.Leading {
			continue
		}
		wanted[check.ID()] = true
	}
	for id, w := range c.workers {
		if !wanted[id] || moved && w.check.Kind == Gateway {
			w.end()
			delete(c.workers, id)
		}
	}
	for i := range o.Checks {
		if id := o.Checks[i].ID(); wanted[id] && c.workers[id] == nil {
			c.start(id, o.Checks[i], o.Once)
		}
	}
}

// start starts a check, which is run again and again, or once.
func (c *checker) start(id string, check Check, once bool) {
	ctx, end := context.WithCancel(context.Background())
	running := &runningWorker{check: check, end: end}
	c.workers[id] = running
	p, err := c.tools.prober(&check) // here: the next order changes the tools
	running.ended.Go(func() {
		report := func(r Report) {
			select {
			case c.reports <- r:
			case <-ctx.Done():
			}
		}
		if err != nil {
			report(Report{ID: id, Text: err.Error()})
			return
		}
		w := worker{check: check, prober: p, report: report}
		if once {
			w.runOnce(ctx)
			return
		}
		w.run(ctx)
	})
}

// endWithin bounds how long the checks may take to end. What they have started is killed by then.
const endWithin = time.Second

// end ends all checks, and the score command.
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
