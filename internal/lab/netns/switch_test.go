package netns

import (
	"fmt"
	"net"
	"testing"

	"topdog/internal/lab/assert"
)

// TestWhoHearsWhom has all hosts say something to each other while a port, an interface or the switch is as the step has it. A
// text that was lost must not arrive later: the next one to arrive is what was said afterwards.
func TestWhoHearsWhom(t *testing.T) {
	l := newLAN(t, 4)
	one, two, three, four := l.Board(1), l.Board(2), l.Board(3), l.Board(4)
	all := []*Host{one, two, three, four, l.Client()}
	ears := map[*Host]*net.UDPConn{}
	for _, h := range all {
		ears[h] = listen(t, h)
	}
	everybody := func(_, _ *Host) bool { return true }
	nobody := func(_, _ *Host) bool { return false }
	without := func(h *Host) func(from, to *Host) bool {
		return func(from, to *Host) bool { return from != h && to != h }
	}
	// onOneSide is for a switch that has fallen in two halves.
	onOneSide := func(side ...*Host) func(from, to *Host) bool {
		half := map[*Host]bool{}
		for _, h := range side {
			half[h] = true
		}
		return func(from, to *Host) bool { return half[from] == half[to] }
	}
	split := func() error { return l.Split(one, two, l.Client()) }
	for _, step := range []struct {
		name  string
		do    func() error
		hears func(from, to *Host) bool
	}{
		// Everybody learns everybody's hardware address first, so that ARP holds nothing back.
		{"at first", func() error { return nil }, everybody},
		{"muted", two.Mute, without(two)},
		{"unmuted", two.Unmute, everybody},
		{"deaf", func() error { return one.Deafen(true) }, func(_, to *Host) bool { return to != one }},
		{"deaf and mute", func() error { return one.Silence(true) }, without(one)},
		{"mute", func() error { return one.Deafen(false) }, func(from, _ *Host) bool { return from != one }},
		{"neither", func() error { return one.Silence(false) }, everybody},
		{"halted", l.Halt, nobody},
		{"resumed", l.Resume, everybody},
		{"halted again", l.Halt, nobody},
		{"resumed again", l.Resume, everybody},
		{"split", split, onOneSide(one, two, l.Client())},
		{"joined", l.Join, everybody},
		{"split again, which does not have to make its other half", split, onOneSide(one, two, l.Client())},
		{"joined again", l.Join, everybody},
	} {
		must(t, step.do())
		for _, h := range all {
			assert.Is(t, true, running(t, h), "%s: %s has a carrier", step.name, h.Name)
		}
		for _, from := range all {
			for _, to := range all {
				if from == to {
					continue
				}
				want := fmt.Sprintf("%s: hello %s from %s", step.name, to.Name, from.Name)
				say(t, from, to.Addr.Addr(), want)
				if !step.hears(from, to) {
					continue
				}
				if got, sender := hear(t, ears[to]); got != want || sender != from.Addr.Addr() {
					t.Fatalf("heard %q from %v, want %q from %v", got, sender, want, from.Addr.Addr())
				}
			}
		}
	}
}

// A port that is muted, or whose interface is gone, during a split is on its side of it afterwards.
func TestSplitOfAMutedPort(t *testing.T) {
	l := newLAN(t, 4)
	muted, deleted, with := l.Board(1), l.Board(2), l.Board(3)
	must(t, muted.Mute())
	must(t, deleted.DeleteInterface())
	must(t, l.Split(muted, deleted, with))
	must(t, muted.Unmute())
	must(t, deleted.CreateInterface())
	ear := listen(t, with)
	for _, b := range []*Host{l.Board(4), muted, deleted} {
		say(t, b, with.Addr.Addr(), b.Name)
	}
	for _, want := range []*Host{muted, deleted} {
		got, _ := hear(t, ear)
		assert.Is(t, want.Name, got, "heard")
	}
}
