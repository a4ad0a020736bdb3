package netns

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// questionBuffer is the client's socket send buffer. While the address has no
// owner the kernel keeps questions until ARP is resolved, at most
// net.ipv4.neigh.*.unres_qlen_bytes (212,992) of them, and then drops the
// oldest. With a send buffer no larger than that, writing would block instead.
const questionBuffer = 1 << 20

// Prober keeps asking "who answers at this address?" from the client, as an
// impatient user would. The client's kernel does its usual ARP: it goes on
// sending to a dead board until it hears an announcement or gives up by itself.
type Prober struct {
	lan      *LAN
	target   netip.AddrPort
	conn     *net.UDPConn
	interval time.Duration
	stop     chan struct{}
	stopOnce sync.Once
	wg       sync.WaitGroup

	mu     sync.Mutex
	log    probeLog
	wake   chan struct{} // closed at the next answer or the end; nil if nobody waits
	closed bool
}

// StartProber starts asking at an address of the LAN's subnet once every
// interval, usually a millisecond. It ends with Close or with the LAN.
func (l *LAN) StartProber(addr netip.Addr, interval time.Duration) (*Prober, error) {
	fail := func(err error) (*Prober, error) {
		return nil, fmt.Errorf("lab: start to ask at %s: %w", addr, err)
	}
	if interval <= 0 {
		return fail(fmt.Errorf("interval %s: must be positive", interval))
	}
	if !l.client.Addr.Masked().Contains(addr) {
		return fail(fmt.Errorf("the client (%s) has no route to it", l.client.Addr))
	}
	if err := l.responders.start(l.boards); err != nil {
		return fail(err)
	}
	p := &Prober{lan: l, target: probeTarget(addr), interval: interval, stop: make(chan struct{})}
	err := l.client.Do(func() (err error) {
		p.conn, err = net.ListenUDP("udp4", nil)
		return err
	})
	if err != nil {
		return fail(err)
	}
	err = setSocketOption(p.conn, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, questionBuffer)
	if err == nil {
		err = l.whileOpen(func() error { l.parts.add(p); return nil })
	}
	if err != nil {
		p.conn.Close()
		return fail(err)
	}
	p.log.start = time.Now()
	p.wg.Go(p.ask)
	p.wg.Go(p.listen)
	return p, nil
}

// Close ends the asking. The answers until then can still be evaluated.
func (p *Prober) Close() {
	p.lan.parts.remove(p)
	p.stopOnce.Do(func() {
		close(p.stop)
		p.conn.Close()
	})
	p.wg.Wait()

	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.closed = true
		p.log.end = time.Now()
		p.wakeAll()
	}
}

// ask sends the questions.
func (p *Prober) ask() {
	tick := time.NewTicker(p.interval)
	defer tick.Stop()
	question := make([]byte, questionLen)
	last := time.Now()
	for number := uint64(1); ; number++ {
		select {
		case <-p.stop:
			return
		case <-tick.C:
		}
		now := time.Now()
		if now.Sub(last) > 2*p.interval {
			p.mu.Lock()
			p.log.addPause(last, now)
			p.mu.Unlock()
		}
		last = now
		binary.BigEndian.PutUint64(question, number)
		// Before it is sent, since the answer may be here before the call returns.
		p.mu.Lock()
		p.log.ask(now)
		p.mu.Unlock()
		// A question that can't be sent ("no route to host": the kernel
		// gave up on ARP) is one that stays without an answer.
		_, _ = p.conn.WriteToUDPAddrPort(question, p.target)
	}
}

// listen receives the answers.
func (p *Prober) listen() {
	buf := make([]byte, answerLen+1)
	for {
		n, from, err := p.conn.ReadFromUDPAddrPort(buf)
		at := time.Now()
		if err != nil {
			if isClosed(err) {
				return
			}
			continue // An ICMP error, for instance, is no answer.
		}
		if n != answerLen || from.Port() != p.target.Port() || from.Addr().Unmap() != p.target.Addr() {
			continue // Somebody else answered, which helps no user.
		}
		p.mu.Lock()
		p.log.add(at, int(binary.BigEndian.Uint16(buf[questionLen:])))
		p.wakeAll()
		p.mu.Unlock()
	}
}

// wakeAll wakes all callers of WaitAnswer. p.mu is held.
func (p *Prober) wakeAll() {
	if p.wake != nil {
		close(p.wake)
		p.wake = nil
	}
}

// WaitAnswer waits for an answer, arriving from now on, of a board for which
// cond is true, and returns that board.
func (p *Prober) WaitAnswer(ctx context.Context, cond func(board int) bool) (board int, err error) {
	p.mu.Lock()
	seen := p.log.total()
	p.mu.Unlock()
	for {
		p.mu.Lock()
		fresh := p.log.from(seen)
		seen = p.log.total()
		closed := p.closed
		if p.wake == nil {
			p.wake = make(chan struct{})
		}
		wake := p.wake
		p.mu.Unlock()

		for _, a := range fresh {
			if cond(int(a.board)) {
				return int(a.board), nil
			}
		}
		if closed {
			return 0, fmt.Errorf("lab: wait for an answer from %s: %w", p.target, ErrClosed)
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return 0, fmt.Errorf("lab: wait for an answer from %s: %w", p.target, ctx.Err())
		}
	}
}

// Outage returns the longest time without an answer that lasted until after
// since: from the last answer before it to the first one after it, or until
// now if there is none.
func (p *Prober) Outage(since time.Time) (time.Duration, Gap) {
	longest := p.Report(since).Longest
	return longest.Duration(), longest
}

// Report evaluates the answers since a point in time.
func (p *Prober) Report(since time.Time) Report {
	p.mu.Lock()
	log := p.log // Shares memory that is never written again.
	p.mu.Unlock()
	until := log.end
	if until.IsZero() {
		until = time.Now()
	}
	return log.report(since, until, p.interval)
}

func isClosed(err error) bool { return errors.Is(err, net.ErrClosed) }
