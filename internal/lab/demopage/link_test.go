package demopage

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"topdog/internal/lab/assert"
)

// linked returns the Source of a child whose parent has another one, and what ends the parent.
func linked(t *testing.T, source Source) (r *remote, end func(), ended chan error) {
	t.Helper()
	ours, theirs := net.Pipe()
	ended = make(chan error, 1)
	go func() { ended <- serveLink(t.Context(), ours, source, testOptions) }()
	in := bufio.NewScanner(theirs)
	in.Buffer(nil, answeredMax)
	if !in.Scan() || in.Text() != `{"boards":5,"token":"SECRET"}` {
		t.Fatalf("the greeting is %q", in.Text())
	}
	r = &remote{out: &lines{w: theirs}, waiting: map[uint64]chan reply{}}
	go r.receive(in)
	return r, func() { ours.Close() }, ended
}

func TestLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &fakeSource{}
		r, end, ended := linked(t, source)
		text, nowNs, err := r.Look(t.Context(), Takeover)
		if string(text) != `{"this":"takeover"}` || nowNs != 42 || err != nil {
			t.Errorf("a document: %s, %d, %v", text, nowNs, err)
		}
		_, _, err = r.Look(t.Context(), "passwords")
		assert.ErrorContains(t, err, "there is no document", "another document")
		percent := 20
		for _, a := range []Action{{Verb: Kill, Board: 2}, {Verb: Loss, Percent: &percent}, {Verb: Split, Apart: []int{1, 4}}} {
			assert.ErrorIs(t, r.Act(t.Context(), a), nil, "")
			assert.Equal(t, a, source.done[len(source.done)-1], "was done")
		}
		source.fail = &Refusal{Busy: true, Text: "too much"}
		if refusal, ok := refusalOf(r.Act(t.Context(), Action{Verb: AllOn})); !ok || !cmp.Equal(refusal, source.fail) {
			t.Errorf("a refusal: %v", refusal)
		}
		// The parent looks at an action again.
		source.fail = nil
		if err := r.Act(t.Context(), Action{Verb: Kill, Board: 6}); err == nil || len(source.done) != 3 {
			t.Errorf("an action that is none: %v, done %d", err, len(source.done))
		}
		// Whoever waits does not wait for ever.
		source.hold = make(chan struct{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, _, err = r.Look(ctx, State)
		assert.ErrorIs(t, err, context.DeadlineExceeded, "a parent that stands still")
		close(source.hold)
		end()
		synctest.Wait()
		_, _, err = r.Look(t.Context(), State)
		assert.ErrorIs(t, err, errParentGone, "a parent that has ended")
		if err := <-ended; err != nil && !errors.Is(err, io.ErrClosedPipe) {
			t.Error(err)
		}
	})
}

// TestHostileChild: a child that asks for something else ends the link.
func TestHostileChild(t *testing.T) {
	for name, says := range map[string]string{
		"no JSON":          "hello\n",
		"one number twice": `{"id":1,"act":{}}` + "\n" + `{"id":1,"act":{}}` + "\n",
		"too long":         strings.Repeat("x", askedMax+1) + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			ours, theirs := net.Pipe()
			defer theirs.Close()
			source := &fakeSource{}
			ended := make(chan error, 1)
			go func() { ended <- serveLink(t.Context(), ours, source, testOptions) }()
			_, _ = bufio.NewReader(theirs).ReadString('\n')
			_, _ = io.WriteString(theirs, says) // fails when the parent has heard enough
			if err := <-ended; err == nil || len(source.done) > 0 {
				t.Errorf("%v, done %v", err, source.done)
			}
		})
	}
}

// slowSource has actions that take until a time is over, or nobody waits any more. It holds how they ended.
type slowSource struct {
	fakeSource
	takes time.Duration
	ended chan error
}

func (s *slowSource) Act(ctx context.Context, _ Action) error {
	select {
	case <-time.After(s.takes):
		s.ended <- nil
	case <-ctx.Done():
		s.ended <- ctx.Err()
	}
	return ctx.Err()
}

// TestGiveUp: the parent learns that nobody waits for an action any more, and does not depend on being told.
func TestGiveUp(t *testing.T) {
	for name, test := range map[string]struct {
		takes, patience time.Duration
		after           time.Duration // it ended
		child, parent   error         // how it ended for both
	}{
		"it is done":                    {time.Second, time.Minute, time.Second, nil, nil},
		"the client gives up":           {time.Hour, time.Second, time.Second, context.DeadlineExceeded, context.Canceled},
		"the child does not give up":    {time.Hour, time.Hour, actWithin, context.DeadlineExceeded, context.DeadlineExceeded},
		"it is done at the last moment": {actWithin - 1, time.Hour, actWithin - 1, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := &slowSource{takes: test.takes, ended: make(chan error, 1)}
				r, end, ended := linked(t, source)
				ctx, cancel := context.WithTimeout(t.Context(), test.patience)
				defer cancel()
				began := time.Now()
				err := r.Act(ctx, Action{Verb: Resign, Board: 1})
				if (err != nil) != (test.child != nil) || err != nil && err.Error() != test.child.Error() {
					t.Errorf("the child gets %v", err)
				}
				if err := <-source.ended; !errors.Is(err, test.parent) || time.Since(began) != test.after {
					t.Errorf("for the parent it ended with %v after %v", err, time.Since(began))
				}
				// Places are free again, and who gave up is forgotten.
				for range 2 * askedAtOnce {
					if _, _, err := r.Look(t.Context(), State); err != nil {
						t.Fatal(err)
					}
				}
				end()
				if err := <-ended; err != nil && !errors.Is(err, io.ErrClosedPipe) {
					t.Error(err)
				}
			})
		})
	}
}
