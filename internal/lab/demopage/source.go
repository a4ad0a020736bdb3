package demopage

import (
	"context"
	"errors"
)

// Document is something that one may look at.
type Document string

// The documents, all of them JSON; docs/demo.md describes them.
const (
	About    Document = "about"    // what stays the same
	State    Document = "state"    // how the boards stand
	Takeover Document = "takeover" // the messages of the last change of leader
)

// Source has the boards. Its methods may be called from several goroutines.
type Source interface {
	// Look returns a document, and what the clock of its times shows now.
	Look(ctx context.Context, d Document) (text []byte, nowNs int64, err error)
	// Act does something, and returns when it is done. Actions wait for each other. The error is a
	// *Refusal if it was not done for a reason that concerns whoever asked.
	Act(ctx context.Context, a Action) error
}

// Refusal says why something was not done.
type Refusal struct {
	Busy bool // because too much is waiting to be done
	Text string
}

func (r *Refusal) Error() string { return r.Text }

// refusalOf returns the refusal in an error, if there is one.
func refusalOf(err error) (*Refusal, bool) { return errors.AsType[*Refusal](err) }
