package bench

import (
	"bytes"
	"slices"
	"sync"
	"time"
)

// announcement is one that the client heard.
type announcement struct {
	at  time.Time
	mac []byte // of who sent it
}

// announcements collects them.
type announcements struct {
	capture *capture
	done    chan struct{}
	mu      sync.Mutex
	heard   []announcement
}

// maxAnnouncements bounds what is kept; a failover has a few.
const maxAnnouncements = 1 << 10

// hearAnnouncements begins to listen at the client.
func (r *rig) hearAnnouncements() (*announcements, error) {
	c, err := newCapture(r.LAN.Client())
	if err != nil {
		return nil, err
	}
	a := &announcements{capture: c, done: make(chan struct{})}
	go func() {
		defer close(a.done)
		for {
			f, err := c.read()
			if err != nil {
				return
			}
			if f.outgoing || !f.announces() {
				continue
			}
			a.mu.Lock()
			if len(a.heard) < maxAnnouncements {
				a.heard = append(a.heard, announcement{f.at, bytes.Clone(f.bytes[offsetSource:offsetEtherType])})
			}
			a.mu.Unlock()
		}
	}()
	return a, nil
}

func (a *announcements) all() []announcement {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.heard)
}

func (a *announcements) close() {
	a.capture.close()
	<-a.done
}
