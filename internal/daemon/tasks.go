package daemon

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// shared is what every owner uses.
type shared struct {
	platform *Platform
	now      func() time.Duration // a monotonic clock
	tasks    *tasks
	reporter *reporter
	trace    *trace
}

// lookEvery is how often the loop looks after what no event tells, see Daemon.look.
const lookEvery = time.Second

// tasks are what runs outside of the loop: whatever may block or take long. A task reaches the loop by the functions that it
// posts, and touches everything that the loop owns in such a function only.
type tasks struct {
	ctx     context.Context // of all tasks; it ends with the loop
	cancel  context.CancelFunc
	running errgroup.Group
	posted  chan func()
}

// postedMax is how many functions may wait for the loop.
const postedMax = 16

func newTasks() *tasks {
	t := &tasks{posted: make(chan func(), postedMax)}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	return t
}

// start starts a task, which returns soon when ctx ends.
func (t *tasks) start(task func(ctx context.Context)) {
	t.run(func(ctx context.Context) error { task(ctx); return nil })
}

// run starts a task that may fail. end returns its error.
func (t *tasks) run(task func(ctx context.Context) error) {
	t.running.Go(func() error { return task(t.ctx) })
}

// end ends all tasks, and waits for them.
func (t *tasks) end() error {
	t.cancel()
	return t.running.Wait()
}

// post has something done in the loop. It waits for room, so the loop itself must not call it. What is posted is dropped when
// the daemon ends.
func (t *tasks) post(do func()) {
	select {
	case t.posted <- do:
	case <-t.ctx.Done():
	}
}

// tryPost is post for callers that the loop may wait for. It never blocks: when the loop is far behind, what is posted is
// dropped.
func (t *tasks) tryPost(do func()) {
	select {
	case t.posted <- do:
	default:
	}
}

// postAfter has something done in the loop after a while.
func (t *tasks) postAfter(delay time.Duration, do func()) {
	t.start(func(ctx context.Context) {
		select {
		case <-time.After(delay):
			t.post(do)
		case <-ctx.Done():
		}
	})
}

// call has something done in the loop, waits for it, and returns its error. If the caller gives up before the loop has
// begun, it is not done at all: its answer would be written while the caller reads it, and nobody would wait for what it
// begins.
func (t *tasks) call(ctx context.Context, do func() error) (err error) {
	var claimed atomic.Bool // by the loop, which does it, or by the caller, who has given up
	done := make(chan struct{})
	select {
	case t.posted <- func() {
		if claimed.CompareAndSwap(false, true) {
			err = do()
			close(done)
		}
	}:
	case <-ctx.Done():
		return ctx.Err()
	case <-t.ctx.Done():
		return errStopping
	}
	var gaveUp error
	select {
	case <-done:
		return err
	case <-ctx.Done():
		gaveUp = ctx.Err()
	case <-t.ctx.Done():
		gaveUp = errStopping
	}
	if claimed.CompareAndSwap(false, true) {
		return gaveUp
	}
	<-done // the loop has begun
	return err
}

var errStopping = errors.New("the daemon is stopping")
