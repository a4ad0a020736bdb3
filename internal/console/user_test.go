package console

import (
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// asUser runs f on a thread that has become another user. The thread is thrown
// away with its goroutine, which keeps it locked.
func asUser(t *testing.T, uid, gid uintptr, f func(), groups ...uint32) {
	t.Helper()
	done := make(chan unix.Errno)
	go func() {
		runtime.LockOSThread()
		var first unsafe.Pointer
		if len(groups) > 0 {
			first = unsafe.Pointer(&groups[0])
		}
		// The plain system calls concern one thread; those of package unix all.
		_, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(groups)), uintptr(first), 0)
		if errno == 0 {
			_, _, errno = unix.RawSyscall(unix.SYS_SETRESGID, gid, gid, gid)
		}
		if errno == 0 {
			_, _, errno = unix.RawSyscall(unix.SYS_SETRESUID, uid, uid, uid)
		}
		if errno == 0 {
			f()
		}
		done <- errno
	}()
	if errno := <-done; errno != 0 {
		t.Fatalf("cannot become user %d: %v", uid, errno)
	}
}

// connect connects on the calling thread and hangs up.
func connect(path string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Connect(fd, &unix.SockaddrUnix{Name: path})
}
