package demopage

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

// A child that talks to browsers asks its parent, who has the boards, by a stream of lines of JSON. It
// can ask for what is here, and for nothing else.

const (
	// askedMax bounds a line of the child, and answeredMax one of the parent: the largest document has 40 kB.
	askedMax    = 4 << 10
	answeredMax = 256 << 10
	// askedAtOnce bounds how many requests of the child are in progress.
	askedAtOnce = 32
)

// greeting is the first line of the parent.
type greeting struct {
	Boards int    `json:"boards"`
	Token  string `json:"token"`
}

// question is a line of the child: one document, or one action, or that nobody waits for an earlier one any more.
type question struct {
	ID     uint64          `json:"id"`
	Look   Document        `json:"look,omitempty"`
	Act    json.RawMessage `json:"act,omitempty"`
	GiveUp bool            `json:"give_up,omitempty"` // the one with this id
}

// reply is a line of the parent.
type reply struct {
	ID      uint64          `json:"id"`
	Text    json.RawMessage `json:"text,omitempty"`
	NowNs   int64           `json:"now_ns,omitempty"`
	Refused *Refusal        `json:"refused,omitempty"`
	Failed  string          `json:"failed,omitempty"`
}

// lines writes lines, one at a time.
type lines struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lines) write(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err = l.w.Write(append(text, '\n'))
	return err
}

// serveLink answers a child until the stream ends, which is no error. It closes the stream.
func serveLink(ctx context.Context, stream io.ReadWriteCloser, source Source, o Options) error {
	out := &lines{w: stream}
	if err := out.write(greeting{o.Boards, o.Token}); err != nil {
		return fmt.Errorf("greet the process of the page: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	var answering sync.WaitGroup
	defer answering.Wait()
	defer stream.Close() // a child that reads nothing keeps answers waiting
	defer cancel()
	asked := &asking{cancels: map[uint64]context.CancelFunc{}}
	places := make(chan struct{}, askedAtOnce)
	in := bufio.NewScanner(stream)
	in.Buffer(make([]byte, 0, askedMax), askedMax)
	for in.Scan() {
		var q question
		if err := json.Unmarshal(in.Bytes(), &q); err != nil {
			return fmt.Errorf("the process of the page asks for nonsense: %w", err)
		}
		if q.GiveUp {
			asked.end(q.ID)
			continue
		}
		places <- struct{}{}
		ctx, ok := asked.begin(ctx, q.ID)
		if !ok {
			return fmt.Errorf("the process of the page asks for nonsense: there are two questions %d", q.ID)
		}
		answering.Go(func() {
			defer func() { <-places }()
			defer asked.end(q.ID)
			_ = out.write(answer(ctx, source, q, o.Boards)) // a child that has gone is seen by Scan
		})
	}
	if err := in.Err(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("read what the process of the page asks: %w", err)
	}
	return nil
}

// asking are the questions in progress. The child is not trusted to give up in time.
type asking struct {
	mu      sync.Mutex
	cancels map[uint64]context.CancelFunc
}

// begin returns the context of a question, unless there is one with the same id.
func (a *asking) begin(ctx context.Context, id uint64) (context.Context, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.cancels[id] != nil {
		return nil, false
	}
	ctx, a.cancels[id] = context.WithTimeout(ctx, actWithin)
	return ctx, true
}

// end ends a question; it may have ended already.
func (a *asking) end(id uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if cancel := a.cancels[id]; cancel != nil {
		cancel()
		delete(a.cancels, id)
	}
}

// answer does what a child asks. An action is looked at again: the child is not trusted.
func answer(ctx context.Context, source Source, q question, boards int) reply {
	r := reply{ID: q.ID}
	var err error
	if q.Act == nil {
		r.Text, r.NowNs, err = source.Look(ctx, q.Look)
	} else {
		var a Action
		if a, err = ReadAction(q.Act, boards); err == nil {
			err = source.Act(ctx, a)
		}
	}
	if refusal, ok := refusalOf(err); ok {
		r.Refused = refusal
	} else if err != nil {
		r.Failed = err.Error()
	}
	return r
}

// remote is the Source of a child: it asks its parent.
type remote struct {
	out *lines

	mu      sync.Mutex
	last    uint64
	waiting map[uint64]chan reply // nil when the stream has ended
}

var errParentGone = errors.New("the process that has the boards has ended")

// receive hands the replies to whoever waits for them, until the stream ends.
func (r *remote) receive(in *bufio.Scanner) {
	for in.Scan() {
		var a reply
		if json.Unmarshal(in.Bytes(), &a) != nil {
			break // it is this very program, so this does not happen
		}
		r.mu.Lock()
		if to := r.waiting[a.ID]; to != nil {
			to <- a // there is room for one
			delete(r.waiting, a.ID)
		}
		r.mu.Unlock()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, to := range r.waiting {
		close(to)
	}
	r.waiting = nil
}

// ask asks the parent, and waits for the reply.
func (r *remote) ask(ctx context.Context, q question) (reply, error) {
	to := make(chan reply, 1)
	r.mu.Lock()
	if r.waiting == nil {
		r.mu.Unlock()
		return reply{}, errParentGone
	}
	r.last++
	q.ID = r.last
	r.waiting[q.ID] = to
	r.mu.Unlock()
	if err := r.out.write(q); err != nil {
		return reply{}, errParentGone
	}
	select {
	case a, ok := <-to:
		switch {
		case !ok:
			return a, errParentGone
		case a.Refused != nil:
			return a, a.Refused
		case a.Failed != "":
			return a, errors.New(a.Failed)
		}
		return a, nil
	case <-ctx.Done():
		r.mu.Lock()
		delete(r.waiting, q.ID)
		r.mu.Unlock()
		// What nobody waits for is not to be done. A parent that stands still reads nothing, and must not be waited for.
		go func() { _ = r.out.write(question{ID: q.ID, GiveUp: true}) }()
		return reply{}, ctx.Err()
	}
}

// Look asks the parent for a document.
func (r *remote) Look(ctx context.Context, d Document) (text []byte, nowNs int64, err error) {
	a, err := r.ask(ctx, question{Look: d})
	return a.Text, a.NowNs, err
}

// Act asks the parent to do something.
func (r *remote) Act(ctx context.Context, a Action) error {
	text, err := json.Marshal(a)
	if err != nil {
		return err
	}
	_, err = r.ask(ctx, question{Act: text})
	return err
}
