package bench

import (
	"bytes"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/frame"
)

// announcement is one that the client heard.
type announcement struct {
	at  time.Time
	mac []byte // of who sent it
}

// announcements collects them.
type announcements struct {
	listener

	mu    sync.Mutex
	heard []announcement
}

// maxAnnouncements bounds what is kept; a failover has a few.
const maxAnnouncements = 1 << 10

// hearAnnouncements begins to listen at the client.
func (r *rig) hearAnnouncements() (*announcements, error) {
	a := &announcements{}
	err := a.add(r.LAN.Client(), unix.ETH_P_ARP, func(f frame.Frame) (more bool) {
		if f.Outgoing || !announces(f) {
			return true
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		a.heard = append(a.heard, announcement{f.At, bytes.Clone(f.From())})
		return len(a.heard) < maxAnnouncements
	})
	return a, err
}

func (a *announcements) all() []announcement {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.heard)
}
