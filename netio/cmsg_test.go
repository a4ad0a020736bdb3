package netio

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// header is the control message's header in place, to write it as the kernel would.
func header(b []byte) *unix.Cmsghdr { return (*unix.Cmsghdr)(unsafe.Pointer(&b[0])) }
