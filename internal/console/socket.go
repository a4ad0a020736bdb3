package console

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// maxPath is the length of a socket's path that unix(7) allows.
const maxPath = 107

// The modes of the sockets. Who may not have the board do anything cannot even connect to the control socket, so he
// cannot be in the way of those who may.
const (
	controlMode fs.FileMode = 0o660
	publicMode  fs.FileMode = 0o666
)

// PublicPath is where everybody may look, given the path of the control socket.
func PublicPath(path string) string { return path + ".public" }

// controlGroup is the group that may use the control socket of a daemon that root has started. That of
// the service belongs to this group without more, since it is the daemon's own.
const controlGroup = "topdog"

// answerTimeout is how long the check for another daemon may take. A connection
// to a living one takes microseconds, even if that daemon does nothing but listen.
const answerTimeout = time.Second

// socket is a listening socket and its name in the file system.
type socket struct {
	*net.UnixListener
	path string
	file fs.FileInfo // to tell our file from a later one of the same name
}

// listen makes the socket, and the directory if there is none. What a daemon that
// was killed left behind is replaced, but only after nobody answered on it.
//
// Two daemons that start at the same instant could both find the same leftover.
// The UDP port of the group, which only one can have, decides between them.
func listen(path string, mode fs.FileMode) (*socket, error) {
	if path == "" || len(path) > maxPath {
		return nil, fmt.Errorf("control socket %q: the path must have 1 to %d bytes, has %d: set another socket", path, maxPath, len(path))
	}
	if err := makeDirectory(filepath.Dir(path)); err != nil {
		return nil, err
	}
	if err := removeStale(path); err != nil {
		return nil, err
	}
	// The mode of the unbound socket is what bind(2) gives to the file, less the
	// umask. So there is no moment at which the file is open to more than it should be.
	lc := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		var failed error
		err := raw.Control(func(fd uintptr) { failed = unix.Fchmod(int(fd), uint32(mode.Perm())) })
		return errors.Join(err, failed)
	}}
	l, err := lc.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, fmt.Errorf("control socket %s: %w", path, err)
	}
	ul := l.(*net.UnixListener)
	// Closing would remove whatever has the name by then.
	ul.SetUnlinkOnClose(false)
	s := &socket{UnixListener: ul, path: path}
	if s.file, err = os.Lstat(path); err == nil {
		err = os.Chmod(path, mode.Perm()) // what the umask took away
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("control socket: %w", err), s.remove(), ul.Close())
	}
	if err := s.shorten(); err != nil {
		return nil, errors.Join(fmt.Errorf("control socket %s: %w", path, err), s.remove(), ul.Close())
	}
	return s, nil
}

// shorten bounds how many connections wait in the kernel. Package net lets it be thousands, behind which
// whoever comes last would have to wait.
func (s *socket) shorten() error {
	raw, err := s.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = os.NewSyscallError("listen", unix.Listen(int(fd), backlog)) })
	return errors.Join(err, failed)
}

// giveToGroup has the members of controlGroup use the socket of a daemon that root has started, if there is such a
// group. The daemon of the service has not the right to, and need not.
func giveToGroup(path string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	group, err := user.LookupGroup(controlGroup)
	if err != nil {
		return nil // then root alone may use it
	}
	gid, err := strconv.Atoi(group.Gid)
	if err == nil {
		err = os.Lchown(path, -1, gid)
	}
	if err != nil {
		return fmt.Errorf("control socket: give it to the group %s: %w", controlGroup, err)
	}
	return nil
}

// makeDirectory makes the socket's directory if systemd has not. Everybody may
// enter it, as with RuntimeDirectoryMode= in the unit; the socket has its own mode.
func makeDirectory(dir string) error {
	const mode = 0o755
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return nil // if it is unusable, listening says how
	}
	if err := os.MkdirAll(dir, mode); err != nil {
		return fmt.Errorf("control socket: cannot make its directory: %w", err)
	}
	if err := os.Chmod(dir, mode); err != nil { // what the umask took away
		return fmt.Errorf("control socket: %w", err)
	}
	return nil
}

// removeStale removes the socket of a daemon that is no more.
func removeStale(path string) error {
	found, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("control socket: %w", err)
	case found.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("control socket %s: there is something else of that name (%s): remove it, or set another socket", path, found.Mode())
	}
	conn, err := net.DialTimeout("unix", path, answerTimeout)
	switch {
	case err == nil:
		_ = conn.Close()
		return fmt.Errorf("control socket %s: %w: stop it, or set another socket", path, errInUse)
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case !errors.Is(err, unix.ECONNREFUSED):
		// A full queue, for example: whoever that is, it is alive.
		return fmt.Errorf("control socket %s: %w, it seems (%w): stop it, or set another socket", path, errInUse, err)
	}
	return (&socket{path: path, file: found}).remove()
}

// remove removes the file unless another one has taken its name.
func (s *socket) remove() error {
	now, err := os.Lstat(s.path)
	if err != nil || !os.SameFile(s.file, now) {
		return nil
	}
	if err := os.Remove(s.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("control socket: %w", err)
	}
	return nil
}
