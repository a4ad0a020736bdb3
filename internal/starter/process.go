package starter

import (
	"errors"
	"os"
	"strconv"
	"sync/atomic"
)

// Process is a checker that was started, or is about to be.
type Process struct {
	leash *os.File
	pid   atomic.Int64
	err   error // good when ended is closed
	ended chan struct{}
}

// What is said on a leash. The starter says the number of the process; and failure and the reason, if it could not be started,
// or did not end well.
const (
	kill    = "kill"
	failure = '!'
)

// leashMax is more than anybody says on a leash.
const leashMax = 1 << 10

// hold listens to the starter until the leash ends.
func (p *Process) hold() {
	defer close(p.ended)
	defer p.leash.Close()
	for message := make([]byte, leashMax); ; {
		n, err := p.leash.Read(message)
		switch {
		case err != nil || n == 0:
			return
		case message[0] == failure:
			p.err = errors.New(string(message[1:n]))
		default:
			pid, _ := strconv.Atoi(string(message[:n]))
			p.pid.Store(int64(pid))
		}
	}
}

// PID is the number of the process; 0 until it was started.
func (p *Process) PID() int { return int(p.pid.Load()) }

// Kill kills it, also if it was not started yet.
func (p *Process) Kill() { _, _ = p.leash.Write([]byte(kill)) }

// Ended is closed when the process has ended, or could not be started.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Err is why a process that has ended could not be started, or how it has ended if that was not well.
func (p *Process) Err() error { return p.err }
