package console

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
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
	groupMode  fs.FileMode = 0o660
	publicMode fs.FileMode = 0o666
)

// PublicPath is where everybody may look, given the path of the control socket.
func PublicPath(path string) string { return path + ".public" }

// pagePath is where topdog page looks. Whatever users do to the public socket, /leader is answered in time.
func pagePath(path string) string { return path + ".page" }

const (
	// controlGroup is the group that may use the control socket of a daemon that root has started. That of
	// the service belongs to this group without more, since it is the daemon's own.
	controlGroup = "topdog"
	// pageGroup is that of topdog-page.service.
	pageGroup = "topdog-page"
)

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
	gid, exists, err := lookUpGroup(controlGroup)
	if exists {
		err = os.Lchown(path, -1, int(gid))
	} // else root alone may use it
	if err != nil {
		return fmt.Errorf("control socket: give it to the group %s: %w", controlGroup, err)
	}
	return nil
}

// openToGroup has the members of pageGroup use a socket as well, if there is such a group: by an access control list, since the
// daemon may not give it to a group of which it is no member. Where the file system has no such lists (acl(5)), they use the public one.
func openToGroup(path string) error {
	gid, exists, err := lookUpGroup(pageGroup)
	if exists {
		if err = unix.Setxattr(path, "system.posix_acl_access", readableBy(gid), 0); errors.Is(err, unix.ENOTSUP) {
			err = nil
		}
	}
	if err != nil {
		return fmt.Errorf("control socket: open %s to the group %s: %w", path, pageGroup, err)
	}
	return nil
}

// readableBy is the access control list of a file that its owner, its group and another group may read and write, as
// the kernel takes it (include/uapi/linux/posix_acl_xattr.h).
func readableBy(gid uint32) []byte {
	const (
		version                               = 2
		userObj, groupObj, group, mask, other = 0x01, 0x04, 0x08, 0x10, 0x20
		readWrite                             = 6
		nobody                                = math.MaxUint32
	)
	list := binary.LittleEndian.AppendUint32(nil, version)
	for _, entry := range []struct {
		tag, may uint16
		id       uint32
	}{{userObj, readWrite, nobody}, {groupObj, readWrite, nobody}, {group, readWrite, gid}, {mask, readWrite, nobody}, {other, 0, nobody}} {
		list = binary.LittleEndian.AppendUint16(list, entry.tag)
		list = binary.LittleEndian.AppendUint16(list, entry.may)
		list = binary.LittleEndian.AppendUint32(list, entry.id)
	}
	return list
}

// lookUpGroup returns the number of a group, if there is such a group.
func lookUpGroup(name string) (gid uint32, exists bool, err error) {
	group, err := user.LookupGroup(name)
	if err != nil {
		return 0, false, nil
	}
	n, err := strconv.ParseUint(group.Gid, 10, 32)
	return uint32(n), err == nil, err
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
