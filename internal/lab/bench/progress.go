package bench

import (
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// rewriteEvery and repeatEvery are how often progress is shown: on a terminal
	// in one line that is written again, elsewhere in a line of its own.
	rewriteEvery = 500 * time.Millisecond
	repeatEvery  = 15 * time.Second
)

// progress shows how far the bench has got.
type progress struct {
	file     *os.File
	terminal bool
	began    time.Time
	stop     chan struct{}
	once     sync.Once
	wg       sync.WaitGroup

	mu          sync.Mutex
	part        string
	count, of   int
	partBegan   time.Time
	lastWritten string
}

func newProgress(file *os.File) *progress {
	_, err := unix.IoctlGetTermios(int(file.Fd()), unix.TCGETS)
	p := &progress{file: file, terminal: err == nil, began: time.Now(), stop: make(chan struct{})}
	p.wg.Go(p.run)
	return p
}

func (p *progress) run() {
	every := repeatEvery
	if p.terminal {
		every = rewriteEvery
	}
	tick := time.NewTicker(every)
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
}

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

// note writes a line that stays.
func (p *progress) note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wipe()
	fmt.Fprintf(p.file, format+"\n", args...)
}

// close ends the showing.
func (p *progress) close() {
	p.once.Do(func() {
		close(p.stop)
		p.wg.Wait()
		p.mu.Lock()
		defer p.mu.Unlock()
		p.wipe()
	})
}

// write shows the state; p.mu is held.
func (p *progress) write() {
	if p.part == "" {
		return
	}
	line := progressLine(time.Since(p.began), time.Since(p.partBegan), p.part, p.count, p.of)
	if p.terminal {
		fmt.Fprintf(p.file, "\r\x1b[K%s", line)
	} else {
		fmt.Fprintln(p.file, line)
	}
	p.lastWritten = line
}

// wipe takes the rewritten line away; p.mu is held.
func (p *progress) wipe() {
	if p.terminal && p.lastWritten != "" {
		fmt.Fprint(p.file, "\r\x1b[K")
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
