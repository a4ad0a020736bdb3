package console

import (
	"errors"
)

// ErrNotRunning means that nobody serves the socket.
var ErrNotRunning = errors.New("the daemon does not run")

var (
	// errDenied means that this user may not do this.
	errDenied = errors.New("permission denied")
	// errOtherVersion means that the daemon does not know what its client asks for.
	errOtherVersion = errors.New("the daemon is of another version than this program")
	// errInUse means that another daemon serves the socket already.
	errInUse = errors.New("another daemon serves the socket")
)

// requestError is an error together with what to do about it. The server answers
// a request with one; the client makes the same one of that answer.
type requestError struct {
	code    int    // the HTTP status, 400 to 599; 0 means 500
	message string // what is wrong
	hint    string // what to do about it; "" if the message says it
	err     error  // the kind or the cause; it does not travel
}

// Refuse makes an error of a [Backend] that is answered with that HTTP status, 400 to 599.
func Refuse(code int, message, hint string) error {
	return &requestError{code: code, message: message, hint: hint}
}

// Explain returns what is wrong and what to do about it, of an error of a [Client]. The hint may be "".
func Explain(err error) (message, hint string) {
	if e, ok := errors.AsType[*requestError](err); ok {
		return e.message, e.hint
	}
	return err.Error(), ""
}

// Error returns the message and the hint in one line.
func (e *requestError) Error() string {
	if e.hint == "" {
		return e.message
	}
	return e.message + ": " + e.hint
}

// Unwrap returns the kind or the cause.
func (e *requestError) Unwrap() error { return e.err }
