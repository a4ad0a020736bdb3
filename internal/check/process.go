package check

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"topdog/netio"
)

// Process is a checker, as the daemon sees it. Its methods are for one goroutine.
type Process struct {
	command *exec.Cmd
	orders  *os.File
	reports chan Report
	exited  chan struct{}
	err     error // of the process; good when exited is closed
	closing sync.Once
}

// Start starts a checker: command is a program of which the main function calls Attend at once.
func Start(command []string) (*Process, error) {
	p := &Process{reports: make(chan Report), exited: make(chan struct{})}
	theirOrders, orders, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start the checker: %w", err)
	}
	reports, theirReports, err := os.Pipe()
	if err != nil {
		theirOrders.Close()
		orders.Close()
		return nil, fmt.Errorf("start the checker: %w", err)
	}
	p.orders = orders
	widen(orders)
	p.command = exec.Command(command[0], command[1:]...)
	p.command.Args[0] = filepath.Base(os.Args[0]) // what ps shows, instead of /proc/self/exe
	// Only the daemon may open this socket. If it may not either, those checks fail that need it.
	if asker, err := netio.OpenGatewayAsker(); err == nil {
		defer asker.Close()
		p.command.ExtraFiles = []*os.File{asker.File()}
	}
	p.command.Stdin, p.command.Stdout, p.command.Stderr = theirOrders, theirReports, os.Stderr
	// Checks wait most of the time, so one processor is enough, and what they need is small.
	p.command.Env = append(os.Environ(), "GOMAXPROCS=1", "GOMEMLIMIT=16MiB")
	// A process group of its own: what a terminal sends to the daemon is not for it. It does not outlive
	// the daemon, also if it is stuck.
	p.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go p.run(started)
	err = <-started
	theirOrders.Close()
	theirReports.Close()
	if err != nil {
		orders.Close()
		reports.Close()
		return nil, fmt.Errorf("start the checker: %w", err)
	}
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

// gatewaySocket is where the checker finds its socket for ARP.
const gatewaySocket = 3

// run starts the process and waits for its end. It gets none of this process's capabilities: those that systemd
// gives are ambient, and those of root come from the bounding set, and both belong to the thread. The kernel sends the signal of a parent's death when the thread ends
// that has made the child, so this one belongs to this goroutine until then.
func (p *Process) run(started chan<- error) {
	runtime.LockOSThread()
	dropCapabilities()
	err := p.command.Start()
	started <- err
	if err != nil {
		return
	}
	p.err = p.command.Wait()
	close(p.exited)
}

// dropCapabilities has this thread start programs without capabilities.
func dropCapabilities() {
	// What fails is not there to be given up, or not given to programs that are started.
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	for capability := range uintptr(unix.CAP_LAST_CAP + 1) {
		_ = unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0)
	}
}

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

// orderWithin is how long an order may take, which the loop of the daemon waits for. A pipe takes
// many of them at once, unless nobody reads.
const orderWithin = 5 * time.Millisecond

// Send gives the checker an order.
func (p *Process) Send(o Order) error {
	line, err := json.Marshal(o)
	if err == nil {
		err = p.orders.SetWriteDeadline(time.Now().Add(orderWithin))
	}
	if err == nil {
		_, err = p.orders.Write(append(line, '\n'))
	}
	if err != nil {
		return fmt.Errorf("give the checker its order: %w", err)
	}
	return nil
}

// PID is the checker's process.
func (p *Process) PID() int { return p.command.Process.Pid }

// Kill ends a checker that is stuck.
func (p *Process) Kill() { _ = p.command.Process.Kill() }

// Close ends the checker, and waits for it.
func (p *Process) Close() error {
	p.closing.Do(func() {
		p.orders.Close()
		go func() {
			for range p.reports {
				continue // of no use to anybody
			}
		}()
		select {
		case <-p.exited:
		case <-time.After(2 * endWithin):
			p.Kill()
			<-p.exited
		}
	})
	if p.err != nil {
		return fmt.Errorf("the checker ended with: %w", p.err)
	}
	return nil
}
