package demo

import (
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/demopage"
	"topdog/internal/lab/observe"
)

// scriptedLine is how a client asks of whom a test decides who answers.
type scriptedLine struct {
	who   atomic.Int32 // answers; 0 for nobody
	asked chan int
	ended chan struct{}
}

func newScriptedLine() *scriptedLine {
	return &scriptedLine{asked: make(chan int, 1), ended: make(chan struct{})}
}

func (l *scriptedLine) Ask(uint32) error {
	if who := l.who.Load(); who != 0 {
		l.asked <- int(who)
	}
	return nil
}

func (l *scriptedLine) Answer() (int, error) {
	select {
	case who := <-l.asked:
		return who, nil
	case <-l.ended:
		return 0, net.ErrClosed
	}
}

func (l *scriptedLine) Close() error { close(l.ended); return nil }

// holdersLAN is a LAN of which only the holders of the address are known.
type holdersLAN struct {
	lan
	record *observe.Holders
}

func (l holdersLAN) holders() *observe.Holders { return l.record }

// TestOutageInProgress: an outage counts while it goes on, and belongs to what was done last before it.
func TestOutageInProgress(t *testing.T) {
	type followed struct {
		verb   demopage.Verb
		outage time.Duration
		goesOn bool
		before int
		after  int
		moves  int
	}
	for name, test := range map[string]struct {
		first   int32         // who answers in the beginning
		silence time.Duration // after the second action, until the documents are made or somebody answers
		then    int32         // who answers then; 0 if nobody
		want    [2]followed   // the newest first
	}{
		"nobody has ever answered": {0, time.Second, 0, [2]followed{{verb: demopage.Heal}, {verb: demopage.CableOut}}},
		"just missed":              {1, silentAfter / 2, 0, [2]followed{{verb: demopage.Heal}, {verb: demopage.CableOut}}},
		"goes on":                  {1, time.Minute, 0, [2]followed{{verb: demopage.Heal}, {demopage.CableOut, 65 * time.Second, true, 1, 0, 0}}},
		"is over":                  {1, time.Minute, 2, [2]followed{{verb: demopage.Heal}, {demopage.CableOut, 65*time.Second + askEvery, false, 1, 2, 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				line := newScriptedLine()
				g := &group{started: time.Now(), changed: make(chan struct{}), lan: holdersLAN{record: observe.NewHolders()}}
				g.client = observe.StartAsker(line, askEvery)
				defer g.client.Close()
				w := &watch{group: g}
				do := func(d deed) {
					assert.ErrorIs(t, g.act(d, func() error { return nil }), nil, "")
				}
				line.who.Store(test.first)
				time.Sleep(10*time.Second + askEvery/2)
				synctest.Wait()
				do(deed{demopage.CableOut, 1, ""})
				if test.silence > time.Second {
					line.who.Store(0)
				}
				time.Sleep(5 * time.Second)
				do(deed{demopage.Heal, 0, ""})
				line.who.Store(0)
				time.Sleep(test.silence)
				line.who.Store(test.then)
				if test.then != 0 {
					time.Sleep(10 * time.Second)
				}
				synctest.Wait()
				for i, a := range w.followed(2) {
					got := followed{a.Action, time.Duration(a.OutageNs).Truncate(askEvery), a.OutageGoesOn, a.Before, a.After, a.Moves}
					assert.Is(t, test.want[i], got, "")
				}
			})
		})
	}
}
