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

	mu        sync.Mutex
	next      *time.Timer
	part      string
	count, of int
	partBegan time.Time
}

func newProgress(out io.Writer) *progress {
	p := &progress{out: out, began: time.Now()}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next = time.AfterFunc(repeatEvery, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.write()
	})
	return p
}

// close ends the showing.
func (p *progress) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.part = ""
	p.next.Stop()
}

// begin starts a part of so many steps, or of none.
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

// note writes something else.
func (p *progress) note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.out, format+"\n", args...)
}

// write shows the state now, and again after a while; p.mu is held.
func (p *progress) write() {
	if p.part != "" {
		fmt.Fprintln(p.out, progressLine(time.Since(p.began), time.Since(p.partBegan), p.part, p.count, p.of))
		p.next.Reset(repeatEvery)
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
