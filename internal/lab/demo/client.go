package demo

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"
)

const (
	// askEvery is how often the client asks. It is the resolution of all outages.
	askEvery = time.Millisecond
	// maxGaps and maxPauses bound what the client remembers.
	maxGaps   = 1024
	maxPauses = 64

	// A question is the client's own mark and a number, both of 32 bits; the
	// answer is the question followed by the number of the board, in one byte.
	questionLen = 8
	answerLen   = questionLen + 1
)

// socket is the client's: it sends to the floating address and receives from it.
type socket interface {
	ReadFromUDPAddrPort([]byte) (int, netip.AddrPort, error)
	WriteToUDPAddrPort([]byte, netip.AddrPort) (int, error)
	Close() error
}

// Gap is the time between two consecutive answers that is worth a mention: it
// is longer than between two questions, or another board answered.
type Gap struct {
	From, To      time.Time // To is now while it lasts
	Before, After int       // who answered; 0 is nobody yet
	// Paused is the longest time within it in which the client itself did not
	// get to ask, because the machine was busy. That much of it says nothing
	// about the boards.
	Paused time.Duration
}

// Duration returns the length of the gap.
func (g Gap) Duration() time.Duration { return g.To.Sub(g.From) }

// client asks who answers at the floating address, as an impatient user would:
// a new question does not wait for the answer to the old one.
type client struct {
	socket socket
	target netip.AddrPort
	stop   chan struct{}
	wg     sync.WaitGroup

	mu       sync.Mutex
	started  time.Time
	last     time.Time // of the last answer
	answers  int       // the board that gave it
	answered chan struct{}
	gaps     []Gap // oldest first
	total    int   // of all gaps ever
	pauses   []pause
}

// pause is a time in which the client did not ask.
type pause struct{ from, to time.Time }

func newClient(g ground) (*client, error) {
	s, err := g.dial()
	if err != nil {
		return nil, fmt.Errorf("open the client's socket: %w", err)
	}
	c := &client{
		socket: s, target: g.floating(), stop: make(chan struct{}),
		started: time.Now(), answered: make(chan struct{}),
	}
	var mark [4]byte
	rand.Read(mark[:])
	c.wg.Go(func() { c.ask(mark) })
	c.wg.Go(func() { c.listen(mark) })
	return c, nil
}

func (c *client) close() {
	close(c.stop)
	c.socket.Close()
	c.wg.Wait()
}

// ask sends the questions.
func (c *client) ask(mark [4]byte) {
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	question := append(mark[:], 0, 0, 0, 0)
	last := time.Now()
	for number := uint32(1); ; number++ {
		select {
		case <-c.stop:
			return
		case <-tick.C:
		}
		now := time.Now()
		if now.Sub(last) > 2*askEvery {
			c.paused(pause{last, now})
		}
		last = now
		binary.BigEndian.PutUint32(question[4:], number)
		// A question that cannot be sent is one without an answer.
		_, _ = c.socket.WriteToUDPAddrPort(question, c.target)
	}
}

func (c *client) paused(p pause) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.pauses) == maxPauses {
		c.pauses = append(c.pauses[:0], c.pauses[1:]...)
	}
	c.pauses = append(c.pauses, p)
}

// listen receives the answers.
func (c *client) listen(mark [4]byte) {
	buf := make([]byte, answerLen+1)
	for {
		n, from, err := c.socket.ReadFromUDPAddrPort(buf)
		at := time.Now()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil, n != answerLen, from != c.target, [4]byte(buf[:4]) != mark:
			continue // that is no answer to us
		}
		c.mu.Lock()
		c.take(at, int(buf[questionLen]))
		c.mu.Unlock()
	}
}

// take notes an answer. mu is held.
func (c *client) take(at time.Time, board int) {
	if c.answers != board || at.Sub(c.last) > 2*askEvery {
		g := c.open(at)
		g.After = board
		if len(c.gaps) == maxGaps {
			c.gaps = append(c.gaps[:0], c.gaps[1:]...)
		}
		c.gaps = append(c.gaps, g)
		c.total++
	}
	c.last, c.answers = at, board
	close(c.answered)
	c.answered = make(chan struct{})
}

// open returns the gap since the last answer. mu is held.
func (c *client) open(now time.Time) Gap {
	g := Gap{From: c.last, To: now, Before: c.answers}
	if c.answers == 0 {
		g.From = c.started
	}
	for _, p := range c.pauses {
		if p.to.After(g.From) && p.from.Before(g.To) {
			g.Paused = max(g.Paused, p.to.Sub(p.from))
		}
	}
	return g
}

// awaitAnswer waits for an answer of a board that arrives from now on.
func (c *client) awaitAnswer(ctx context.Context, board int) error {
	for {
		c.mu.Lock()
		answered := c.answered
		c.mu.Unlock()
		select {
		case <-answered:
		case <-ctx.Done():
			return ctx.Err()
		}
		c.mu.Lock()
		who := c.answers
		c.mu.Unlock()
		if who == board {
			return nil
		}
	}
}

// now returns who answers, and for how long nobody has.
func (c *client) now() (board int, silent time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answers == 0 {
		return 0, time.Since(c.started)
	}
	return c.answers, time.Since(c.last)
}

// longest returns the longest gap that had not ended before since. It is zero if
// there is none to mention.
func (c *client) longest(since time.Time) (longest Gap) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := len(c.gaps) - 1; i >= 0 && c.gaps[i].To.After(since); i-- {
		if c.gaps[i].Duration() > longest.Duration() {
			longest = c.gaps[i]
		}
	}
	if open := c.open(time.Now()); open.Duration() > max(2*askEvery, longest.Duration()) {
		longest = open
	}
	return longest
}

// after returns the gaps after the first n of all time, and how many there were.
func (c *client) after(n int) ([]Gap, int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := max(0, n-(c.total-len(c.gaps)))
	return append([]Gap(nil), c.gaps[first:]...), c.total
}
