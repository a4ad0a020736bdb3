package pi

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Answer is a board's reply to one ARP request for the floating address: it has answered for the
// address at a moment between the two.
type Answer struct {
	Board        int
	Asked, Heard time.Time
}

// Answers asks for the floating address all the time, also those boards that are cut off, and keeps who answers.
type Answers struct {
	lab    *Lab
	mac    []byte
	socket int
	ends   sync.WaitGroup
	end    chan struct{}

	mu    sync.Mutex
	asked [askerNumbers]time.Time
	all   []Answer
}

// A reply says only to which address it goes. So each request comes from another one, and a reply belongs
// to the last request from there: one that takes longer than 2 s would be taken for that of a later one.
const (
	askAnswersEvery = 20 * time.Millisecond
	askerNumbers    = 100
	firstAsker      = 100
)

// WatchAnswers begins to ask.
func (l *Lab) WatchAnswers() (*Answers, error) {
	index, mac, err := l.segment.Bridge()
	if err != nil {
		return nil, err
	}
	a := &Answers{lab: l, mac: mac, end: make(chan struct{})}
	if a.socket, err = l.arpSocket(index); err != nil {
		return nil, fmt.Errorf("ask who has %s: %w", l.Floating(), err)
	}
	a.ends.Go(a.receive)
	a.ends.Go(func() { a.ask(index) })
	return a, nil
}

// Close ends the asking.
func (a *Answers) Close() {
	close(a.end)
	a.ends.Wait()
	unix.Close(a.socket)
}

// Since returns what was heard since a moment, in the order in which it was.
func (a *Answers) Since(t time.Time) []Answer {
	a.mu.Lock()
	defer a.mu.Unlock()
	first := slices.IndexFunc(a.all, func(r Answer) bool { return !r.Heard.Before(t) })
	if first < 0 {
		return nil
	}
	return slices.Clone(a.all[first:])
}

// ask asks until the end.
func (a *Answers) ask(bridge int) {
	ticker := time.NewTicker(askAnswersEvery)
	defer ticker.Stop()
	for n := 0; ; n = (n + 1) % askerNumbers {
		select {
		case <-a.end:
			return
		case <-ticker.C:
		}
		request := arpQuestion(a.mac, a.lab.address(firstAsker+n).Addr(), a.lab.Floating())
		a.mu.Lock()
		a.asked[n] = time.Now()
		a.mu.Unlock()
		_ = unix.Sendto(a.socket, request, 0, everybodyOn(bridge)) // what is lost is asked again
	}
}

// receive keeps what is answered.
func (a *Answers) receive() {
	timeout := unix.NsecToTimeval(pollPeriod.Nanoseconds())
	_ = unix.SetsockoptTimeval(a.socket, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout) // for the end
	buf := make([]byte, 128)
	for {
		select {
		case <-a.end:
			return
		default:
		}
		n, _, err := unix.Recvfrom(a.socket, buf, 0)
		if err == nil {
			a.keep(buf[:n], time.Now())
		}
	}
}

func (a *Answers) keep(packet []byte, heard time.Time) {
	mac, ok := arpAnswer(packet, a.lab.Floating())
	if !ok {
		return
	}
	asker := int(packet[arpLength-1]) - firstAsker
	board, ok := a.lab.numberOf(mac)
	if asker < 0 || asker >= askerNumbers || !ok {
		return // to somebody else, or of nobody here
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if asked := a.asked[asker]; !asked.IsZero() {
		a.all = append(a.all, Answer{board, asked, heard})
	}
}

// Handover is how the address has come from one board to another: nobody has answered for so long in between. An answer
// was given at a moment between the question and when it was heard, so there is a least and a most. If the most is
// negative, both have answered at a time.
type Handover struct {
	From, To    int
	Least, Most time.Duration
}

func (h Handover) String() string {
	return fmt.Sprintf("%v to %v", h.Least.Round(time.Millisecond), h.Most.Round(time.Millisecond))
}

// HandoverFrom is that from one board to the first that has answered afterwards. ok is false if one of them has not.
func HandoverFrom(from int, answers []Answer) (h Handover, ok bool) {
	var last, first Answer
	for _, a := range answers {
		switch {
		case a.Board == from && a.Asked.After(last.Asked):
			last = a
		case a.Board != from && (first.Board == 0 || a.Heard.Before(first.Heard)):
			first = a
		}
	}
	return Handover{from, first.Board, first.Asked.Sub(last.Heard), first.Heard.Sub(last.Asked)}, last.Board != 0 && first.Board != 0
}
