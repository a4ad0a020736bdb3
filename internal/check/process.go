package check

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/starter"
)

// Process is a checker, as the daemon sees it. Its methods are for one goroutine.
type Process struct {
	process *starter.Process
	orders  *os.File
	reports chan Report
	closing sync.Once

	noGateway string // why the checker cannot ask the gateway; "" if it can
}

// Start has a checker started. It waits for nothing: what the checker is sent meanwhile waits for it. openGateway opens
// the way by which the checker asks the gateway, see netio.InheritGatewayAsker.
func Start(s *starter.Starter, openGateway func() (*os.File, error)) (*Process, error) {
	theirOrders, orders, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start the checker: %w", err)
	}
	defer theirOrders.Close()
	reports, theirReports, err := os.Pipe()
	if err != nil {
		orders.Close()
		return nil, fmt.Errorf("start the checker: %w", err)
	}
	defer theirReports.Close()
	files := []*os.File{theirOrders, theirReports}
	widen(orders)
	// If it cannot be opened, those checks fail that need it, and say why.
	noGateway := ""
	if gateway, err := openGateway(); err == nil {
		defer gateway.Close()
		files = append(files, gateway)
	} else {
		noGateway = fmt.Sprintf("the gateway cannot be asked by ARP: %v", err)
	}
	process, err := s.Start(files...)
	if err != nil {
		orders.Close()
		reports.Close()
		return nil, fmt.Errorf("start the checker: %w", err)
	}
	p := &Process{process: process, orders: orders, reports: make(chan Report), noGateway: noGateway}
	go p.read(reports)
	return p, nil
}

// orderMax is more than any order has: a configuration file of config.MaxFileBytes may be six times as long as JSON.
const orderMax = 1 << 20

// widen has a pipe take any order at once. By default it takes 64 KiB, and who sends more waits for a checker
// that may just be starting. It matters to few, so what fails is left as it is.
func widen(pipe *os.File) {
	if raw, err := pipe.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, orderMax) })
	}
}

// Where the checker finds its files.
const (
	orderPipe = 3 + iota
	reportPipe
	gatewaySocket
)

// reportMax is more than any report has: a checker that somebody has taken over must not fill
// the memory of the daemon.
const reportMax = 1 << 20

// read receives reports until the checker's end of the pipe is closed.
func (p *Process) read(from *os.File) {
	defer close(p.reports)
	defer from.Close()
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, reportMax)
	for lines.Scan() {
		var r Report
		if json.Unmarshal(lines.Bytes(), &r) != nil {
			return
		}
		p.reports <- r
	}
}

// Reports is what the checker reports. It is closed when the checker has ended, and must be
// read until then.
func (p *Process) Reports() <-chan Report { return p.reports }

// errFull says that a checker has not read what it was given before.
var errFull = errors.New("it does not read")

// Send gives the checker an order. It waits for nothing, since the loop of the daemon calls it: a pipe takes many
// orders at once, unless nobody reads.
func (p *Process) Send(o Order) error {
	o.NoGateway = p.noGateway
	line, err := json.Marshal(o)
	if err == nil {
		err = writeNow(p.orders, append(line, '\n'))
	}
	if err != nil {
		return fmt.Errorf("give the checker its order: %w", err)
	}
	return nil
}

// writeNow writes a text to a pipe that has room for all of it.
func writeNow(pipe *os.File, text []byte) error {
	raw, err := pipe.SyscallConn()
	if err != nil {
		return err
	}
	var written int
	var failed error
	err = raw.Write(func(fd uintptr) bool {
		for written, failed = unix.Write(int(fd), text); failed == unix.EINTR; {
			written, failed = unix.Write(int(fd), text)
		}
		return true // also if the pipe is full: nobody waits
	})
	switch {
	case err != nil:
		return err
	case failed == unix.EAGAIN, failed == nil && written < len(text):
		return errFull
	}
	return failed
}

// PID is the checker's process; 0 until it was started.
func (p *Process) PID() int { return p.process.PID() }

// Kill ends a checker that is stuck.
func (p *Process) Kill() { p.process.Kill() }

// killedWithin bounds how long Close waits for a checker that was killed. Who kills it may be stuck itself.
const killedWithin = time.Second

// Close ends the checker, and waits for it. The error says how it has ended, if that was not well.
func (p *Process) Close() error {
	p.closing.Do(func() {
		p.orders.Close()
		go func() {
			for range p.reports {
				continue // of no use to anybody
			}
		}()
		if !p.endsWithin(2 * endWithin) {
			p.Kill()
			p.endsWithin(killedWithin)
		}
	})
	select {
	case <-p.process.Ended():
		switch err := p.process.Err(); {
		case err != nil && p.PID() == 0:
			return fmt.Errorf("start the checker: %w", err)
		case err != nil:
			return fmt.Errorf("the checker ended with: %w", err)
		}
	default:
	}
	return nil
}

// endsWithin reports whether the process ends in that time.
func (p *Process) endsWithin(d time.Duration) bool {
	select {
	case <-p.process.Ended():
		return true
	case <-time.After(d):
		return false
	}
}
