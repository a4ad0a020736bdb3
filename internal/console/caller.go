package console

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"slices"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Caller is the process at the other end of a connection, as it was when it
// connected. The kernel vouches for it.
type Caller struct {
	PID    int32
	UID    uint32
	GID    uint32
	Groups []uint32 // supplementary groups; empty before Linux 4.13
}

// String says who it is, for the journal.
func (c Caller) String() string { return fmt.Sprintf("user %d (process %d)", c.UID, c.PID) }

func (c Caller) in(group uint32) bool { return c.GID == group || slices.Contains(c.Groups, group) }

type callerKey struct{}

// CallerFrom returns who made the request that a [Backend] is serving. It is
// false if the kernel did not say.
func CallerFrom(ctx context.Context) (Caller, bool) {
	c, ok := ctx.Value(callerKey{}).(Caller)
	return c, ok
}

// callerOf asks the kernel who connected.
func callerOf(conn syscall.Conn) (Caller, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return Caller{}, err
	}
	var (
		c      Caller
		failed error
	)
	err = raw.Control(func(fd uintptr) {
		cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		if err != nil {
			failed = os.NewSyscallError("getsockopt SO_PEERCRED", err)
			return
		}
		c = Caller{PID: cred.Pid, UID: cred.Uid, GID: cred.Gid}
		c.Groups, err = peerGroups(fd)
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
func (p policy) authorise(c Caller) error {
	if c.UID == 0 || c.UID == p.daemon || c.in(p.group) {
		return nil
	}
	hint := "use sudo"
	if p.group != 0 { // nobody should join the group root
		hint += ", or join " + groupName(p.group)
	}
	return &Error{
		Code:    http.StatusForbidden,
		Message: fmt.Sprintf("user %d may look, but not make this board resign", c.UID),
		Hint:    hint,
		Err:     ErrDenied,
	}
}

// authoriseBySocket is the policy of the daemon's user and of the socket as it
// is now: an administrator may have given it to another group.
func (s *Server) authoriseBySocket(c Caller) error {
	p := policy{daemon: uint32(os.Geteuid()), group: uint32(os.Getegid())}
	if info, err := os.Lstat(s.path); err == nil {
		if group, ok := groupOf(info); ok {
			p.group = group
		}
	}
	return p.authorise(c)
}

// groupOf returns the group that owns a file.
func groupOf(info fs.FileInfo) (uint32, bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return stat.Gid, true
}

// withCaller puts the caller into a connection's context. A caller that the
// kernel does not name may look, like everybody, and nothing else.
func withCaller(ctx context.Context, conn net.Conn) context.Context {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return ctx
	}
	if caller, err := callerOf(c); err == nil {
		ctx = context.WithValue(ctx, callerKey{}, caller)
	}
	return ctx
}
