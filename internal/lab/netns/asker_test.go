package netns

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"testing"
	"time"

	"topdog/internal/lab/observe"
)

// waitFor waits until a board answers.
func waitFor(t *testing.T, ctx context.Context, a *observe.Asker, n int) {
	t.Helper()
	_, err := a.WaitAnswer(ctx, func(board int) bool { return board == n })
	must(t, err)
}

// askFirst has the first board have the address, and asks there until it answers.
func askFirst(t *testing.T, l *LAN) (*observe.Asker, context.Context) {
	t.Helper()
	ctx := withTimeout(t)
	must(t, l.Board(1).AddAddress(vip32))
	a, err := l.Ask(vip, time.Millisecond)
	must(t, err)
	waitFor(t, ctx, a, 1)
	return a, ctx
}

func TestAskerSeesAHandover(t *testing.T) {
	l := newLAN(t, 3)
	one, two := l.Board(1), l.Board(2)
	p, ctx := askFirst(t, l)

	since := time.Now()
	must(t, one.DeleteAddress(vip32))
	must(t, two.AddAddress(vip32))
	announce(t, two, vip)
	waitFor(t, ctx, p, 2)
	answered := time.Now()
	p.Close()

	// The gap of the handover is the one between the answers of two boards.
	// On a busy machine it need not be the longest.
	var handover time.Duration
	moves := 0
	gaps, _ := p.Gaps(0)
	for _, gap := range gaps {
		if gap.Before != 0 && gap.Before != gap.After {
			moves++
			handover = gap.Duration()
		}
	}
	longest := p.Report(since).Longest.Duration()
	t.Logf("outage of a handover: %s, longest gap: %s", handover, longest)
	if moves != 1 || longest < handover || handover > answered.Sub(since)+longest {
		t.Errorf("%d moves, gap of the handover %s, longest gap %s", moves, handover, longest)
	}
	if r := p.Report(since); r.Answers[2] == 0 || r.Answers[3] != 0 {
		t.Errorf("answers %v", r.Answers)
	}
}

// Without an announcement the client goes on sending to the board that it
// knows. That is what announcements are for, and what must be measured.
func TestClientBelievesItsARPCache(t *testing.T) {
	l := newLAN(t, 2)
	two := l.Board(2)
	p, ctx := askFirst(t, l)

	// Both have it; only what the client believes decides who is asked.
	must(t, two.AddAddress(vip32))
	for range 50 {
		_, err := p.WaitAnswer(ctx, func(board int) bool {
			if board != 1 {
				t.Fatalf("board %d answered without having announced itself", board)
			}
			return true
		})
		must(t, err)
	}
	announce(t, two, vip)
	waitFor(t, ctx, p, 2)
}

func TestAskerMeasuresAnOutage(t *testing.T) {
	l := newLAN(t, 2)
	b := l.Board(1)
	p, ctx := askFirst(t, l)

	since := time.Now()
	must(t, l.Filter(Cut(b.Port())...))
	muted := time.Now()
	// The outage lasts until this test's clock says so, which is its subject.
	const outage = 60 * time.Millisecond
	<-time.NewTimer(outage).C
	if gap := p.Report(since).Longest; gap.Duration() < outage-time.Millisecond || gap.After != 0 {
		t.Errorf("outage so far %s: %+v", gap.Duration(), gap)
	}
	unmuting := time.Now()
	must(t, l.Filter())
	waitFor(t, ctx, p, 1)
	answered := time.Now()

	gap := p.Report(since).Longest
	d := gap.Duration()
	t.Logf("outage %s, muted for %s", d, unmuting.Sub(muted))
	if d < unmuting.Sub(muted) || gap.To.After(answered) || gap.Before != 1 || gap.After != 1 {
		t.Errorf("outage %s: %+v", d, gap)
	}
	if r := p.Report(since); r.Unanswered < d || r.Longest != gap || r.First.Board != 1 {
		t.Errorf("report %+v", r)
	}
}

// While nobody has the address the client's kernel holds questions back until
// its ARP queue is full, and then drops them; asking must not block meanwhile.
func TestAskerAsksIntoTheVoid(t *testing.T) {
	l := newLAN(t, 1)
	ctx := withTimeout(t)
	conn, err := l.listenAtClient(vip)
	must(t, err)
	defer conn.Close()
	// More than the queue holds, in a fraction of the time after which ARP
	// gives up and empties it (3 s). Other errors than a timeout are the
	// kernel saying that there is no route to the host.
	must(t, conn.SetWriteDeadline(time.Now().Add(time.Second)))
	for i := range 2000 {
		_, err := conn.WriteToUDPAddrPort(make([]byte, 8), netip.AddrPortFrom(vip, observe.Port))
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("question %d was held up", i)
		}
	}

	p, err := l.Ask(vip, time.Millisecond)
	must(t, err)
	must(t, l.Board(1).AddAddress(vip32))
	announce(t, l.Board(1), vip)
	waitFor(t, ctx, p, 1)
}

func TestAskerOfAnotherSubnet(t *testing.T) {
	l := newLAN(t, 1)
	if _, err := l.Ask(vip.Next().Next(), 0); err == nil {
		t.Error("interval 0 was accepted")
	}
	other := vip.As4()
	other[0] = 11
	if _, err := l.Ask(addrFrom(other), time.Millisecond); err == nil {
		t.Error("an address without a route was accepted")
	}
}

func addrFrom(b [4]byte) netip.Addr { return netip.AddrFrom4(b) }
