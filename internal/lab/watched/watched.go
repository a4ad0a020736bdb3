// Package watched asks for a floating address where there is no ARP: on a LAN that is played in one process. It does in few words
// what netio.Announcer does with packets.
package watched

import (
	"sync"
	"time"

	"topdog/netio"
)

// Asker asks for the address of one board, as its daemon wants it. It reads the time from package time.
type Asker struct {
	// Reaches reports whether an answer would come to a question that is asked now.
	Reaches func() bool
	// Now is the clock of the daemon.
	Now func() time.Duration

	mu     sync.Mutex
	heard  func(netio.WatchReport)
	every  time.Duration
	timer  *time.Timer
	begun  bool          // it has answered
	since  time.Duration // when the first question was asked that has gone unanswered
	misses int           // how many have in a row
}

// apart is the time from a question that has gone unanswered to the next one.
const apart = time.Millisecond

// lastMiss is how many must go unanswered to count, and patient how many more are asked closely after that.
const (
	lastMiss = 2
	patient  = 50
)

// Watched sets who is told of news. heard must call no method of the Asker.
func (a *Asker) Watched(heard func(netio.WatchReport)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.heard = heard
}

// Watch begins to ask so often, or ends that.
func (a *Asker) Watch(w netio.AddressWatch) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.timer != nil {
		a.timer.Stop()
		a.timer = nil
	}
	a.every, a.begun, a.misses = w.Every, false, 0
	if a.every > 0 {
		a.after(a.every)
	}
	return nil
}

// Close ends the asking.
func (a *Asker) Close() { _ = a.Watch(netio.AddressWatch{}) }

func (a *Asker) after(d time.Duration) {
	var mine *time.Timer
	mine = time.AfterFunc(d, func() {
		answers := a.Reaches() // takes locks of others
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.timer == mine {
			a.asked(answers)
		}
	})
	a.timer = mine
}

// asked takes in whether the question that was just asked was answered. The lock is held.
func (a *Asker) asked(answers bool) {
	missed := a.misses >= lastMiss
	switch {
	case answers:
		if !a.begun || missed {
			a.report(netio.WatchAnswers, 0)
		}
		a.begun, a.misses = true, 0
		a.after(a.every)
		return
	case !a.begun:
		a.after(a.every)
		return
	case a.misses == 0:
		a.since = a.Now()
	}
	a.misses++
	if a.misses == lastMiss {
		a.report(netio.WatchMissed, a.since)
	}
	if a.misses > lastMiss+patient {
		a.after(a.every)
	} else {
		a.after(apart)
	}
}

func (a *Asker) report(why netio.WatchState, since time.Duration) {
	if heard := a.heard; heard != nil {
		heard(netio.WatchReport{MissedSince: since, Every: a.every, Why: why})
	}
}
