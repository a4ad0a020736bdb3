package console

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"
)

// WatchOptions say what a stream is for.
type WatchOptions struct {
	// ForHooks asks for a place that the daemon reserves for those on whom others depend. Only
	// root, the daemon's user and the socket's group get one.
	ForHooks bool
	// Alive asks for EventAlive every second, and takes a daemon for dead that sends nothing.
	Alive bool
	// EachAlive has each called with EventAlive too. Set Alive as well.
	EachAlive bool
}

// path is what to ask for.
func (o WatchOptions) path() string {
	switch {
	case o.ForHooks && o.Alive:
		return pathEvents + "?for=hooks&alive"
	case o.ForHooks:
		return pathEvents + "?for=hooks"
	case o.Alive:
		return pathEvents + "?alive"
	}
	return pathEvents
}

// aliveWithin is how long a daemon may be silent that was asked for signs of life: as long as
// systemd's watchdog waits, after which there is no daemon any more.
const aliveWithin = 5 * time.Second

// Watch calls each with how the board is, and then with every transition, until ctx ends, each
// fails, or the daemon goes away; it returns why.
func (c *Client) Watch(ctx context.Context, o WatchOptions, each func(Transition) error) error {
	caller := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(c.timeout, func() { cancel(context.DeadlineExceeded) })
	defer silence.Stop()

	response, err := c.do(ctx, http.MethodGet, o.path(), nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, maxAnswer)
	lines.Split(wholeLines)
	for lines.Scan() {
		silence.Stop() // what the caller does with it may take its time
		event, err := c.event(lines.Bytes())
		if err != nil {
			return err
		}
		if event.Event != EventAlive || o.EachAlive {
			if err := each(event); err != nil {
				return err
			}
		}
		if o.Alive {
			silence.Reset(aliveWithin)
		}
	}
	switch err := lines.Err(); {
	case caller.Err() != nil:
		return caller.Err()
	case errors.Is(err, bufio.ErrTooLong):
		return c.badAnswer(err)
	case context.Cause(ctx) != nil:
		return c.explain(context.Cause(ctx))
	default:
		return c.ended(err)
	}
}

// event decodes a line of a stream.
func (c *Client) event(line []byte) (Transition, error) {
	var event struct {
		Transition
		failure
	}
	if err := json.Unmarshal(line, &event); err != nil {
		return Transition{}, c.badAnswer(err)
	}
	if event.Error != "" {
		return Transition{}, &requestError{message: event.Error, hint: event.Hint}
	}
	if event.Event == "" {
		return Transition{}, c.badAnswer(errors.New("a line of the stream has no event"))
	}
	return event.Transition, nil
}

// wholeLines splits like bufio.ScanLines, and leaves out a last line without an end:
// a daemon that was killed while it wrote has sent no bad answer.
func wholeLines(data []byte, atEOF bool) (advance int, line []byte, err error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEOF {
		return len(data), nil, nil
	}
	return 0, nil, nil
}
