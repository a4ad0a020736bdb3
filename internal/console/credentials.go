package console

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/user"
	"slices"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// credentials are those of the process at the other end of a connection, as they
// were when it connected. The kernel says so, not the process.
type credentials struct {
	pid    int32
	uid    uint32
	gid    uint32
	groups []uint32 // supplementary groups; empty before Linux 4.13
}

func (c credentials) in(group uint32) bool { return c.gid == group || slices.Contains(c.groups, group) }

type credentialsKey struct{}

// credentialsFrom returns who made a request, given its context. It is false if
// the kernel did not say.
func credentialsFrom(ctx context.Context) (credentials, bool) {
	c, ok := ctx.Value(credentialsKey{}).(credentials)
	return c, ok
}

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
