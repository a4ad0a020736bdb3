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

// The modes of the sockets. connect(2) needs the permission to write, so the kernel lets only those users connect to the
// control socket who may give the board commands, and nobody else can use up its connections.
const (
	groupMode  fs.FileMode = 0o660
	publicMode fs.FileMode = 0o666
)

// permissionHint says how to get the permission to connect to the control socket.
const permissionHint = "use sudo, or join the group topdog and log in again"

// pageGroup is the group of topdog-page.service.
const pageGroup = "topdog-page"

// PublicPath returns the path of the public socket, given that of the control socket.
func PublicPath(path string) string { return path + ".public" }

// pagePath returns the path of the page's socket, given that of the control socket.
func pagePath(path string) string { return path + ".page" }

// socket is a listening socket and its name in the file system.
type socket struct {
	*net.UnixListener
	path string
	file fs.FileInfo // to distinguish this file from a later one of the same name
}

// listen makes a socket, and its directory if there is none. It replaces the socket of a daemon that was killed, but only if
// nobody answers on it.
//
// Two daemons that start at the same instant could both find the same leftover. The UDP port of the group, which only one
// of them can have, decides between them.
func listen(path string, mode fs.FileMode) (made *socket, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("control socket %s: %w", path, err)
		}
	}()
	if path == "" || len(path) > maxPath {
		return nil, fmt.Errorf("the path %q must have 1 to %d bytes, has %d: set another socket", path, maxPath, len(path))
	}
	if err := makeDirectory(filepath.Dir(path)); err != nil {
		return nil, err
	}
	if err := removeStale(path); err != nil {
		return nil, err
	}
	// bind(2) gives the file the mode of the unbound socket, less the umask. So the file is never open to more users than
	// it should be.
	lc := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		return withFD(raw, func(fd int) error { return unix.Fchmod(fd, uint32(mode.Perm())) })
	}}
	l, err := lc.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, err
	}
	s := &socket{UnixListener: l.(*net.UnixListener), path: path}
	s.SetUnlinkOnClose(false) // that would remove whatever file has the name by then
	if err := s.finish(mode); err != nil {
		return nil, errors.Join(err, s.remove(), s.Close())
	}
	return s, nil
}

// finish gives the file its full mode, and bounds how many connections wait in the kernel. Package net allows thousands, and
// the last client would have to wait for all of them.
func (s *socket) finish(mode fs.FileMode) (err error) {
	if s.file, err = os.Lstat(s.path); err != nil {
		return err
	}
	if err := os.Chmod(s.path, mode.Perm()); err != nil { // what the umask took away
		return err
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return err
	}
	return withFD(raw, func(fd int) error { return os.NewSyscallError("listen", unix.Listen(fd, backlog)) })
}

// withFD calls f with the file descriptor of a connection or listener.
func withFD(raw syscall.RawConn, f func(fd int) error) error {
	var failed error
	err := raw.Control(func(fd uintptr) { failed = f(int(fd)) })
	return errors.Join(err, failed)
}

// openToPage lets pageGroup connect to the page's socket, if there is such a group. It adds an access control list (acl(5)),
// since the daemon may not give a file to a group of which it is no member. If the file system has no such lists, the page
// uses the public socket.
func openToPage(path string) error {
	group, err := user.LookupGroup(pageGroup)
	if err != nil {
		return nil
	}
	gid, err := strconv.ParseUint(group.Gid, 10, 32)
	if err == nil {
		err = unix.Setxattr(path, "system.posix_acl_access", readableBy(uint32(gid)), 0)
	}
	if err != nil && !errors.Is(err, unix.ENOTSUP) {
		return fmt.Errorf("control socket: open %s to the group %s: %w", path, pageGroup, err)
	}
	return nil
}

// readableBy returns the access control list of a file that its owner, its group and another group may read and write,
// as the kernel takes it (include/uapi/linux/posix_acl_xattr.h).
func readableBy(gid uint32) []byte {
	const (
		version                               = 2
		userObj, groupObj, group, mask, other = 0x01, 0x04, 0x08, 0x10, 0x20
		readWrite                             = 6
		none                                  = math.MaxUint32
	)
	list := binary.LittleEndian.AppendUint32(nil, version)
	for _, entry := range [][3]uint32{
		{userObj, readWrite, none}, {groupObj, readWrite, none}, {group, readWrite, gid}, {mask, readWrite, none}, {other, 0, none},
	} {
		list = binary.LittleEndian.AppendUint16(list, uint16(entry[0]))
		list = binary.LittleEndian.AppendUint16(list, uint16(entry[1]))
		list = binary.LittleEndian.AppendUint32(list, entry[2])
	}
	return list
}

// makeDirectory makes the directory of the socket if systemd has not. Everybody may enter it, as with
// RuntimeDirectoryMode= in the unit; the sockets have modes of their own.
func makeDirectory(dir string) error {
	const mode = 0o755
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return nil // if it cannot be used, the error of listening says why
	}
	err := os.MkdirAll(dir, mode)
	if err == nil {
		err = os.Chmod(dir, mode) // what the umask took away
	}
	if err != nil {
		return fmt.Errorf("make its directory: %w", err)
	}
	return nil
}

// answerTimeout bounds the check for another daemon. Connecting to a daemon takes microseconds, even to one that hangs.
const answerTimeout = time.Second

// removeStale removes the socket of a daemon that has ended.
func removeStale(path string) error {
	found, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case found.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("something else has that name (%s): remove it, or set another socket", found.Mode())
	}
	conn, err := net.DialTimeout("unix", path, answerTimeout)
	switch {
	case err == nil:
		_ = conn.Close()
		return errors.New("another daemon serves the socket: stop it, or set another socket")
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case !errors.Is(err, unix.ECONNREFUSED): // such as EAGAIN, if the queue of a living daemon is full
		return fmt.Errorf("another daemon serves the socket, it seems (%w): stop it, or set another socket", err)
	}
	return (&socket{path: path, file: found}).remove()
}

// remove removes the file, unless another file has its name by now.
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

// unidentified is the user at the other end if the kernel does not name one.
const unidentified = math.MaxUint32

// userOf asks the kernel which user was at the other end when it connected.
func userOf(conn syscall.Conn) (user uint32) {
	user = unidentified
	if raw, err := conn.SyscallConn(); err == nil {
		_ = withFD(raw, func(fd int) error {
			cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
			if err == nil {
				user = cred.Uid
			}
			return err
		})
	}
	return user
}
