package console

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"
	"unsafe"

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

// openToPage lets the page connect to the control socket, if it has a group. It may only look there, like everybody else,
// but no user of the board can be in its way. The group comes by an access control list: the daemon may not give a file
// to a group of which it is no member. If the file system has no such lists (acl(5)), the page uses the public socket.
func openToPage(path string) error {
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

// credentials are those of the process at the other end of a connection, as they
// were when it connected. The kernel says so, not the process.
type credentials struct {
	pid    int32
	uid    uint32
	gid    uint32
	groups []uint32 // supplementary groups; empty before Linux 4.13
}

func (c credentials) in(group uint32) bool { return c.gid == group || slices.Contains(c.groups, group) }

// credentialsOf asks the kernel who is at the other end, and of which groups he is a member if that matters. A user can be in 65,536
// of them, which takes half of a processor if he connects as fast as he can.
func credentialsOf(conn syscall.Conn, groups bool) (credentials, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return credentials{}, err
	}
	var (
		c      credentials
		failed error
	)
	err = raw.Control(func(fd uintptr) {
		cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		if err != nil {
			failed = os.NewSyscallError("getsockopt SO_PEERCRED", err)
			return
		}
		c = credentials{pid: cred.Pid, uid: cred.Uid, gid: cred.Gid}
		if !groups {
			return
		}
		c.groups, err = peerGroups(fd)
		// An older kernel lacks this, and the primary group must do.
		if err != nil && !errors.Is(err, unix.ENOPROTOOPT) {
			failed = os.NewSyscallError("getsockopt SO_PEERGROUPS", err)
		}
	})
	return c, errors.Join(err, failed)
}

// peerGroups returns the supplementary groups of the peer. SO_PEERCRED tells only the
// primary one, and `usermod -aG topdog pi` makes a supplementary one. /proc would
// tell as well, but its processes come and go, and the unit's ProtectProc= hides them.
func peerGroups(fd uintptr) ([]uint32, error) {
	const size = uint32(unsafe.Sizeof(uint32(0)))
	groups := make([]uint32, 32)
	for {
		length := uint32(len(groups)) * size
		_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.SOL_SOCKET, unix.SO_PEERGROUPS,
			uintptr(unsafe.Pointer(&groups[0])), uintptr(unsafe.Pointer(&length)), 0)
		switch {
		case errno == 0:
			return groups[:length/size], nil
		case errno != unix.ERANGE || length <= uint32(len(groups))*size:
			return nil, errno
		}
		groups = make([]uint32, length/size) // the kernel said how many; at most 65536
	}
}

// policy is who may make the board resign.
type policy struct {
	daemon uint32 // the daemon's own user
	group  uint32 // the socket's group
}

// authorise returns nil or a refusal that says what to do.
func (p policy) authorise(c credentials) error {
	if c.uid == 0 || c.uid == p.daemon || c.in(p.group) {
		return nil
	}
	return &requestError{
		code:    http.StatusForbidden,
		message: mayOnlyLook(c.uid),
		hint:    p.hint(),
		err:     errDenied,
	}
}

// hint says how to become somebody who may.
func (p policy) hint() string {
	if p.group == 0 { // nobody should join the group root
		return "use sudo"
	}
	return "use sudo, or join " + groupName(p.group)
}

// mayOnlyLook is what a user is told who wants more.
func mayOnlyLook(uid uint32) string {
	return fmt.Sprintf("user %d may look, but not have this board do anything", uid)
}

// policyOfSocket is the policy of the daemon's user and of the control socket as it
// is now: an administrator may have given it to another group.
func (s *Server) policyOfSocket() policy {
	p := policy{daemon: uint32(os.Geteuid()), group: uint32(os.Getegid())}
	if info, err := os.Lstat(s.path); err == nil {
		if group, ok := groupOf(info); ok {
			p.group = group
		}
	}
	return p
}

// groupOf returns the group that owns a file.
func groupOf(info fs.FileInfo) (uint32, bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return stat.Gid, true
}

// groupName names a group of users, for hints.
func groupName(gid uint32) string {
	number := strconv.FormatUint(uint64(gid), 10)
	if g, err := user.LookupGroupId(number); err == nil {
		return "the group " + g.Name
	}
	return "the group " + number
}
