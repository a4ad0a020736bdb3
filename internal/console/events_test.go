package console

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// counting is a backend whose term grows with each status.
func counting() (Backend, *atomic.Uint32) {
	var term atomic.Uint32
	return fake{status: func(context.Context) (Status, error) {
		return Status{Term: term.Add(1)}, nil
	}}, &term
}

func TestEvents(t *testing.T) {
	backend, _ := counting()
	slow := defaultLimits
	slow.interval = time.Hour // only changes
	// The second event comes after the time in which a request must have been
	// read. A stream must outlive that.
	slow.request, slow.gap = 20*time.Millisecond, 60*time.Millisecond
	s := newServer(socketPath(t), 0o660, backend, slow)
	stop := serve(t, s)
	seen := make(chan uint32)
	ended := make(chan error, 1)
	go func() {
		ended <- Dial(s.path).Watch(t.Context(), func(s Status) error { seen <- s.Term; return nil })
	}()
	next := func(want uint32) {
		t.Helper()
		select {
		case got := <-seen:
			if got != want {
				t.Errorf("term %d, want %d", got, want)
			}
		case err := <-ended:
			t.Fatalf("Watch ended: %v", err)
		case <-time.After(deadline):
			t.Fatal("no event")
		}
	}
	next(1)
	for want := uint32(2); want < 5; want++ {
		s.Changed()
		next(want)
	}
	stop()
	if err := <-ended; !errors.Is(err, ErrNotRunning) {
		t.Errorf("after the daemon's end: %v, want ErrNotRunning", err)
	}
}

func TestEventsInterval(t *testing.T) {
	backend, _ := counting()
	quick := defaultLimits
	quick.interval = time.Millisecond
	s := newServer(socketPath(t), 0o660, backend, quick)
	serve(t, s)
	enough := errors.New("enough")
	var terms []uint32
	err := Dial(s.path).Watch(t.Context(), func(s Status) error {
		if terms = append(terms, s.Term); len(terms) == 3 {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) || !slices.Equal(terms, []uint32{1, 2, 3}) {
		t.Errorf("terms %d, %v", terms, err)
	}
}

func TestEventsEnd(t *testing.T) {
	t.Run("with the caller's context", func(t *testing.T) {
		s := newTestServer(t, fake{})
		serve(t, s)
		ctx, cancel := context.WithCancel(t.Context())
		err := Dial(s.path).Watch(ctx, func(Status) error { cancel(); return nil })
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		waitFor(t, func() bool { return len(s.streams) == 0 })
	})
	t.Run("with an error of the backend", func(t *testing.T) {
		first := true
		s := newTestServer(t, fake{status: func(context.Context) (Status, error) {
			if !first {
				return Status{}, &requestError{message: "out of order", hint: "restart me"}
			}
			first = false
			return healthy(), nil
		}})
		s.limits.interval = time.Millisecond
		serve(t, s)
		err := Dial(s.path).Watch(t.Context(), func(Status) error { return nil })
		if err == nil || err.Error() != "out of order: restart me" {
			t.Errorf("got %v", err)
		}
	})
	t.Run("when there are too many", func(t *testing.T) {
		few := defaultLimits
		few.streams = 1
		s := newServer(socketPath(t), 0o660, fake{}, few)
		serve(t, s)
		err := Dial(s.path).Watch(t.Context(), func(Status) error {
			return Dial(s.path).Watch(t.Context(), func(Status) error { return nil })
		})
		if err == nil || !strings.Contains(err.Error(), "serves 1 streams of events already") {
			t.Errorf("got %v", err)
		}
	})
}
