package bench

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// repeatEvery is how often progress is shown.
const repeatEvery = 15 * time.Second

// progress shows how far the bench has got, in a line now and then.
type progress struct {
	out   io.Writer
	began time.Time
	stop  chan struct{}
	end   func()

	mu        sync.Mutex
	part      string
	count, of int
	partBegan time.Time
}

func newProgress(out io.Writer) *progress {
	p := &progress{out: out, began: time.Now(), stop: make(chan struct{})}
	done := make(chan struct{})
	p.end = sync.OnceFunc(func() { close(p.stop); <-done })
	go func() {
		defer close(done)
		tick := time.NewTicker(repeatEvery)
		defer tick.Stop()
		for {
			select {
			case <-p.stop:
				return
			case <-tick.C:
				p.mu.Lock()
				p.write()
				p.mu.Unlock()
			}
		}
	}()
	return p
}

// close ends the showing.
func (p *progress) close() { p.end() }

// begin starts a part of so many steps.
func (p *progress) begin(part string, steps int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.part, p.count, p.of, p.partBegan = part, 0, steps, time.Now()
	p.write()
}

// done notes that one step is done.
func (p *progress) done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count++
}

// say begins a part without steps.
func (p *progress) say(part string) { p.begin(part, 0) }

// note writes something else.
func (p *progress) note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.out, format+"\n", args...)
}

// write shows the state; p.mu is held.
func (p *progress) write() {
	if p.part != "" {
		fmt.Fprintln(p.out, progressLine(time.Since(p.began), time.Since(p.partBegan), p.part, p.count, p.of))
	}
}

// progressLine says how far it is, and how long the part may still take once a
// tenth of it is done.
func progressLine(all, part time.Duration, name string, count, of int) string {
	line := fmt.Sprintf("%s  %s", clock(all), name)
	if of == 0 {
		return line
	}
	line += fmt.Sprintf(": %d of %d", count, of)
	if count*10 >= of && count < of {
		left := time.Duration(float64(part) / float64(count) * float64(of-count))
		line += ", about " + clock(left) + " to go"
	}
	return line
}

// clock writes minutes and seconds.
func clock(d time.Duration) string {
	seconds := int(d.Round(time.Second) / time.Second)
	return fmt.Sprintf("%d:%02d", seconds/60, seconds%60)
}
