package console

import (
	"errors"
	"os/user"
	"strconv"
)

// The kinds of failure that a client may want to tell apart, with errors.Is.
var (
	// ErrNotRunning means that nobody serves the socket.
	ErrNotRunning = errors.New("the daemon does not run")
	// ErrDenied means that this user may not do this.
	ErrDenied = errors.New("permission denied")
	// ErrInUse means that another daemon serves the socket already.
	ErrInUse = errors.New("another daemon serves the socket")
)

// Error is an error together with what to do about it. A [Backend] returns one
// to refuse a request with a hint; a [Client] returns the same one.
type Error struct {
	Code    int    // the HTTP status, 400 to 599; 0 means 500
	Message string // what is wrong
	Hint    string // what to do about it; "" if the message says it
	Err     error  // the kind or the cause; it does not travel
}

// Error returns the message and the hint in one line.
func (e *Error) Error() string {
	if e.Hint == "" {
		return e.Message
	}
	return e.Message + ": " + e.Hint
}

// Unwrap returns the kind or the cause.
func (e *Error) Unwrap() error { return e.Err }

// The exit statuses of `topdog status`.
const (
	ExitHeld       = 0 // a live leader that this board knows of holds the address
	ExitNotHeld    = 1 // the daemon runs, and nobody holds it, or it cannot be told who does
	ExitUsage      = 2 // the command line was wrong; nothing was asked
	ExitNotRunning = 3 // no daemon runs here
	ExitNoAnswer   = 4 // a daemon may run, but gave no usable answer: permission, time, garbage
)

// ExitStatus is what `topdog status` ends with, given what [Client.Status] returned.
// Problems do not count: a board that lacks a light would be in alarm for ever.
func ExitStatus(s Status, err error) int {
	switch {
	case errors.Is(err, ErrNotRunning):
		return ExitNotRunning
	case err != nil:
		return ExitNoAnswer
	case s.Held():
		return ExitHeld
	default:
		return ExitNotHeld
	}
}

// groupName names a group of users, for hints.
func groupName(gid uint32) string {
	number := strconv.FormatUint(uint64(gid), 10)
	if g, err := user.LookupGroupId(number); err == nil {
		return "the group " + g.Name
	}
	return "the group " + number
}
