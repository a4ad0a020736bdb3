package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"

	"golang.org/x/sys/unix"
)

// refused makes an error of an answer that is one.
func (c *Client) refused(code int, body []byte) error {
	var f failure
	if err := decode(body, &f); err != nil || f.Error == "" {
		return c.badAnswer(fmt.Errorf("HTTP status %d", code))
	}
	e := &requestError{code: code, message: f.Error, hint: f.Hint}
	switch code {
	case http.StatusForbidden:
		e.err = errDenied
	case http.StatusNotFound: // what it knows instead is of no use to the caller
		e.err, e.message = errOtherVersion, errOtherVersion.Error()
		e.hint = "if topdog was just updated: systemctl restart topdog (on a witness: topdog-witness)"
	}
	return e
}

func (c *Client) badAnswer(err error) error {
	return &requestError{
		message: fmt.Sprintf("what answers on %s does not talk like topdog (%v)", c.path, err),
		hint:    "see whether `socket` in the configuration is the daemon's, and restart it if topdog was just updated",
		err:     err,
	}
}

// ended says that the daemon went away in the middle; err may be nil.
func (c *Client) ended(err error) error {
	return &requestError{
		message: fmt.Sprintf("the topdog daemon on %s ended meanwhile", c.path),
		hint:    "systemctl status topdog",
		err:     errors.Join(ErrNotRunning, err),
	}
}

// explain says in words, and with what to do, why a request failed.
func (c *Client) explain(err error) error {
	var refused *requestError
	switch {
	case errors.As(err, &refused), errors.Is(err, context.Canceled):
		return err // it says so itself, or whoever cancelled knows why
	case errors.Is(err, context.DeadlineExceeded), os.IsTimeout(err):
		return &requestError{
			message: fmt.Sprintf("the topdog daemon on %s did not answer in time", c.path),
			hint:    "journalctl -u topdog may tell why",
			err:     err,
		}
	case errors.Is(err, fs.ErrNotExist):
		return &requestError{
			message: fmt.Sprintf("the topdog daemon does not run here (no %s)", c.path),
			hint:    "systemctl start topdog (on a witness: topdog-witness)",
			err:     ErrNotRunning,
		}
	case errors.Is(err, unix.ECONNREFUSED):
		return c.refusedByKernel()
	case errors.Is(err, fs.ErrPermission):
		return &requestError{
			message: fmt.Sprintf("no permission to talk to the topdog daemon on %s", c.path),
			hint:    c.hint(),
			err:     errors.Join(errDenied, err),
		}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, unix.ECONNRESET), errors.Is(err, unix.EPIPE):
		return c.ended(err)
	default:
		return fmt.Errorf("asking the topdog daemon on %s: %w", c.path, err)
	}
}

// refusedByKernel tells the socket of a daemon that was killed from a file that
// is no socket; connect(2) says ECONNREFUSED for both.
func (c *Client) refusedByKernel() error {
	if info, err := os.Stat(c.path); err == nil && info.Mode().Type() != fs.ModeSocket {
		return &requestError{
			message: fmt.Sprintf("%s is no socket", c.path),
			hint:    "see `socket` in the configuration",
			err:     ErrNotRunning,
		}
	}
	return &requestError{
		message: fmt.Sprintf("the topdog daemon does not run any more (nobody answers on %s)", c.path),
		hint:    "systemctl restart topdog",
		err:     ErrNotRunning,
	}
}

// hint says how to become somebody who may connect.
func (c *Client) hint() string {
	if info, err := os.Stat(c.path); err == nil {
		if gid, ok := groupOf(info); ok && gid != 0 { // nobody should join the group root
			return "use sudo, or join " + groupName(gid) + " and log in again"
		}
	}
	return "use sudo"
}
