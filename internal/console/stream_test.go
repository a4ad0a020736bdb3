package console

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"topdog/internal/lab/assert"
	"topdog/internal/web"
)

// watched is a stream that a test reads.
type watched struct {
	t     *testing.T
	seen  chan Transition
	ended chan error
}

// watch reads a stream by Client.Watch or Client.Follow.
func watch(t *testing.T, read func(context.Context, WatchOptions, func(Transition) error) error, o WatchOptions) *watched {
	t.Helper()
	w := &watched{t: t, seen: make(chan Transition), ended: make(chan error, 1)}
	go func() { w.ended <- read(t.Context(), o, func(n Transition) error { w.seen <- n; return nil }) }()
	return w
}

// next is the next event, of this kind.
func (w *watched) next(want Event) Transition {
	w.t.Helper()
	select {
	case n := <-w.seen:
		assert.Is(w.t, want, n.Event, "told %+v", n)
		return n
	case err := <-w.ended:
		w.t.Fatalf("the stream ended: %v", err)
	case <-time.After(deadline):
		w.t.Fatalf("not told of %s", want)
	}
	return Transition{}
}

// numbered is a backend whose status tells what was published.
func numbered(s **alone) fake {
	return fake{status: func(context.Context) (Status, error) {
		status := healthy()
		status.Transition = (*s).Published()
		return status, nil
	}}
}

func newNumbered(t *testing.T, l limits) *alone {
	var s *alone
	s = newAlone(socketPath(t), numbered(&s), l)
	return s
}

// The stream begins with how the board is, and nothing is left out or told twice after that.
func TestStream(t *testing.T) {
	s := newNumbered(t, defaultLimits)
	stop := serve(t, s)
	s.Publish(Transition{Event: EventRoleChanged})
	s.Publish(Transition{Event: EventRoleChanged})
	w := watch(t, Dial(s.path).Watch, WatchOptions{})

	first := w.next(EventSnapshot)
	want := healthy()
	want.Transition = 2
	assert.Equal(t, want, *first.Status, "the status of the first line")
	first.Status = nil
	assert.Equal(t, Transition{
		Number: 2, Event: EventSnapshot, AgeNs: 7_500_000_000_000, Role: "follower", Reason: "heard_leader", ReasonText: "heard the leader",
		Leader: "192.168.1.13", LeaderName: "pi3", Term: 7, Group: "pihole", Addresses: []string{"192.168.1.250/24"},
		Interface: "eth0", Board: "192.168.1.11", BoardName: "pi1", Priority: 100, Grade: "passing",
	}, first, "the first line")

	const many, burst = 1000, 100
	for i := range uint64(many) {
		if i%burst == 0 {
			for n := range burst {
				s.Publish(Transition{Event: EventLeaderChanged, Term: uint32(int(i) + n), Addresses: []string{}})
			}
		}
		n := w.next(EventLeaderChanged)
		if n.Number != 3+i || n.Term != uint32(i) || n.Status != nil || n.Missed != 0 || n.AgeNs < 0 || n.AgeNs > int64(deadline) {
			t.Fatalf("transition %d is %+v", i, n)
		}
	}

	// The last ones arrive although the server stops at once.
	s.Publish(Transition{Event: EventStopping})
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	w.next(EventStopping)
	assert.ErrorIs(t, <-w.ended, ErrNotRunning, "after the daemon's end")
	<-stopped
}

// A stream outlives the time in which its request must have been read. Where this machine is too slow to read the request
// in time, the time is longer.
func TestStreamOutlivesItsRequest(t *testing.T) {
	t.Parallel()
	quick := defaultLimits
	for quick.Request = 20 * time.Millisecond; ; quick.Request *= 4 {
		s := newNumbered(t, quick)
		stop := serve(t, s)
		w := watch(t, Dial(s.path).Watch, WatchOptions{})
		select {
		case <-w.seen:
		case err := <-w.ended:
			if quick.Request > deadline {
				t.Fatalf("the stream ended: %v", err)
			}
			stop()
			continue
		}
		<-time.After(3 * quick.Request)
		s.Publish(Transition{Event: EventLeaderChanged})
		w.next(EventLeaderChanged)
		return
	}
}

// Whoever is too far behind gets the newest, and is told how many it has missed.
func TestOverrun(t *testing.T) {
	p := NewTransitions(4, 0)
	numbers := func(after uint64) (got []uint64, missed uint64) {
		t.Helper()
		news, _ := p.after(after)
		for _, n := range news {
			got, missed = append(got, n.Number), missed+n.Missed
		}
		return got, missed
	}
	for i := range 10 {
		p.Add(Transition{Term: uint32(i + 1)})
	}
	for _, tt := range []struct {
		after  uint64
		want   []uint64
		missed uint64
	}{
		{10, nil, 0}, {9, []uint64{10}, 0}, {6, []uint64{7, 8, 9, 10}, 0}, {5, []uint64{10}, 4}, {0, []uint64{10}, 9},
	} {
		got, missed := numbers(tt.after)
		if !slices.Equal(got, tt.want) || missed != tt.missed {
			t.Errorf("after %d: %d and %d missed, want %d and %d", tt.after, got, missed, tt.want, tt.missed)
		}
	}
	news, _ := p.after(9)
	assert.Is(t, 10, news[0].Term, "the term of transition 10")
	_, more := p.after(10)
	p.Add(Transition{})
	<-more

	// One that begins in the middle has nothing of before.
	p = NewTransitions(4, 100)
	p.Add(Transition{Term: 7, AgeNs: int64(time.Hour)})
	if got, missed := numbers(100); !slices.Equal(got, []uint64{101}) || missed != 0 {
		t.Errorf("after 100: %d and %d missed", got, missed)
	}
	if got, missed := numbers(98); !slices.Equal(got, []uint64{101}) || missed != 2 {
		t.Errorf("after 98, which was before it: %d and %d missed", got, missed)
	}
	if news, _ := p.after(100); news[0].AgeNs < int64(time.Hour) {
		t.Errorf("what happened an hour ago is %d ns old", news[0].AgeNs)
	}
}

// A reader that stops to read does not keep anything from the others, and learns what it has missed
// when it goes on.
func TestSlowReader(t *testing.T) {
	l := defaultLimits
	l.kept = 8
	s := newNumbered(t, l)
	serve(t, s)
	conn, err := net.Dial("unix", s.path)
	assert.NoError(t, err)
	defer conn.Close()
	_, _ = io.WriteString(conn, "GET /v1/events HTTP/1.1\r\nHost: x\r\n\r\n")
	waitFor(t, func() bool { return streams(s) == 1 })
	const many = 5000 // more than a socket has room for
	for i := range many {
		s.Publish(Transition{Event: EventRoleChanged, ReasonText: strings.Repeat("x", 100)})
		if i%100 == 0 {
			<-time.After(time.Millisecond)
		}
	}
	_ = conn.SetReadDeadline(time.Now().Add(deadline))
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	assert.NoError(t, err)
	lines := json.NewDecoder(response.Body)
	told, missed, last := uint64(0), uint64(0), uint64(0)
	for last < many {
		var n Transition
		assert.NoError(t, lines.Decode(&n))
		if n.Event == EventSnapshot {
			last = n.Number
			continue
		}
		if n.Number != last+n.Missed+1 {
			t.Fatalf("after %d comes %d, and %d were missed", last, n.Number, n.Missed)
		}
		told, missed, last = told+1, missed+n.Missed, n.Number
	}
	if missed == 0 {
		t.Errorf("%d were told, and none was missed: this test does not see an overrun any more", told)
	}
}

// Signs of life come if they are wanted, and are not passed on.
func TestAlive(t *testing.T) {
	l := defaultLimits
	l.interval, l.status = 5*time.Millisecond, 200*time.Millisecond
	dead := make(chan struct{})
	s := newAlone(socketPath(t), fake{alive: func(ctx context.Context) error {
		select {
		case <-dead:
			<-ctx.Done()
			return ctx.Err()
		default:
			return nil
		}
	}}, l)
	serve(t, s)
	ctx, hangUp := context.WithCancel(t.Context())
	defer hangUp()
	response, err := Dial(s.path).do(ctx, http.MethodGet, pathEvents, nil)
	assert.NoError(t, err)
	lines := json.NewDecoder(response.Body)
	for i, want := range []Event{EventSnapshot, EventAlive, EventAlive} {
		var n Transition
		if err := lines.Decode(&n); err != nil || n.Event != want || n.Role != "follower" || (n.Status == nil) != (i > 0) {
			t.Errorf("line %d: %+v, %v; want %s", i, n, err, want)
		}
	}
	each := watch(t, Dial(s.path).Watch, WatchOptions{Alive: true})
	each.next(EventSnapshot)
	each.next(EventAlive)
	go func() { // it goes on
		for t.Context().Err() == nil {
			select {
			case <-each.seen:
			case <-t.Context().Done():
			}
		}
	}()
	w := watch(t, Dial(s.path).Watch, WatchOptions{})
	w.next(EventSnapshot)
	close(dead)
	select {
	case n := <-w.seen:
		t.Errorf("passed on: %+v", n)
	case err := <-w.ended:
		assert.ErrorContains(t, err, "did not answer within 200ms", "the daemon's loop stands still, and the stream ends")
	case <-time.After(deadline):
		t.Error("the stream goes on although the daemon's loop stands still")
	}
}

// A stream ends when nothing comes for some time, and not because its reader takes longer.
func TestSilence(t *testing.T) {
	for _, test := range []struct {
		name                    string
		silence, interval, busy time.Duration
		ends                    bool
	}{
		{"silent", 50 * time.Millisecond, time.Minute, 0, true},
		{"a sign of life in time", time.Minute, time.Second, 0, false},
		{"a busy reader", 500 * time.Millisecond, 50 * time.Millisecond, time.Second, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			l := defaultLimits
			l.interval = test.interval
			s := newNumbered(t, l)
			serve(t, s)
			client := Dial(s.path)
			client.silence = test.silence
			ctx, enough := context.WithTimeout(t.Context(), 1500*time.Millisecond)
			defer enough()
			began := time.Now()
			err := client.Watch(ctx, WatchOptions{}, func(Transition) error { <-time.After(test.busy); return nil })
			took := time.Since(began)
			switch {
			case !test.ends:
				assert.ErrorIs(t, err, ctx.Err(), "it goes on")
			case took < test.silence*(aliveLooks-1)/aliveLooks || took > time.Second:
				t.Errorf("it ends after %v", took)
			default:
				assert.ErrorContains(t, err, "did not answer in time", "")
			}
		})
	}
}

func TestStreamEnds(t *testing.T) {
	t.Run("with the caller's context", func(t *testing.T) {
		s := serving(t, fake{})
		ctx, cancel := context.WithCancel(t.Context())
		err := Dial(s.path).Watch(ctx, WatchOptions{}, func(Transition) error { cancel(); return nil })
		assert.ErrorIs(t, err, context.Canceled, "")
		waitFor(t, func() bool { return streams(s) == 0 })
	})
	t.Run("with an error of the caller", func(t *testing.T) {
		s := serving(t, fake{})
		enough := errors.New("enough")
		assert.ErrorIs(t, Dial(s.path).Watch(t.Context(), WatchOptions{}, func(Transition) error { return enough }), enough, "")
	})
	t.Run("with an error of the backend", func(t *testing.T) {
		s := serving(t, fake{status: func(context.Context) (Status, error) {
			return Status{}, &web.Error{Message: "out of order", Hint: "restart me"}
		}})
		err := Dial(s.path).Watch(t.Context(), WatchOptions{}, func(Transition) error { return nil })
		assert.Is(t, "out of order: restart me", fmt.Sprint(err), "")
	})
	t.Run("when there are too many", func(t *testing.T) {
		few := defaultLimits
		few.control.perUser = 2
		s := newAlone(socketPath(t), fake{}, few)
		serve(t, s)
		err := Dial(s.path).Watch(t.Context(), WatchOptions{}, func(Transition) error {
			return Dial(s.path).Watch(t.Context(), WatchOptions{}, func(Transition) error { return nil })
		})
		assert.ErrorContains(t, err, "each user may have 1 streams of events", "")
	})
	t.Run("when the daemon talks otherwise", func(t *testing.T) {
		path := socketPath(t)
		impostor(t, path, "HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n{\"version\":\"0\"}\n")
		err := Dial(path).Watch(t.Context(), WatchOptions{}, func(Transition) error { return nil })
		assert.ErrorIs(t, err, ErrNotRunning, "half a line: cut off")
		for name, line := range map[string]string{
			"no JSON": "<html>", "no event": "{}", "another type": `{"event":5}`,
			"endless": `{"event":"` + strings.Repeat("x", maxAnswer),
		} {
			path := socketPath(t)
			impostor(t, path, "HTTP/1.0 200 OK\r\n\r\n"+line+"\n")
			err := Dial(path).Watch(t.Context(), WatchOptions{}, func(Transition) error { return nil })
			assert.ErrorContains(t, err, "does not talk like topdog (", "%s", name)
			if errors.Is(err, ErrNotRunning) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// streams is how many streams this user has on the control socket: with one more, there may be another.
func streams(s *alone) (n int) {
	for !s.control.places.Stream(&web.Place{Client: uint32(os.Getuid())}, n+1) {
		n++
	}
	return n
}

// Follow tells of a daemon that goes away, and goes on with the next.
func TestFollow(t *testing.T) {
	path := socketPath(t)
	var server *alone
	start := func() (stop func()) {
		server = newAlone(path, numbered(&server), defaultLimits)
		return serve(t, server)
	}
	stop := start()
	ctx, cancel := context.WithCancel(t.Context())
	w := watch(t, func(_ context.Context, o WatchOptions, tell func(Transition) error) error {
		return Dial(path).Follow(ctx, o, tell)
	}, WatchOptions{})
	w.next(EventSnapshot)
	server.Publish(Transition{Event: EventRoleChanged, Role: RoleLeader, Holding: true, Group: "pihole", Leader: "x", Term: 8})
	if n := w.next(EventRoleChanged); !n.Leads() {
		t.Errorf("%+v does not lead", n)
	}
	for range 2 {
		stop()
		n := w.next(EventDaemonGone)
		if n.Leads() || n.Leader != "" || n.Term != 0 || n.Group != "pihole" || !strings.Contains(n.ReasonText, path) {
			t.Errorf("without a daemon: %+v", n)
		}
		stop = start()
		w.next(EventSnapshot)
	}
	cancel()
	assert.ErrorIs(t, <-w.ended, context.Canceled, "its end")
}
