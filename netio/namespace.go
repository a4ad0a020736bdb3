package netio

import (
	"fmt"
	"runtime"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// isCurrent tells whether ns stands for the calling thread's own namespace.
// File descriptor 0 can never be a namespace handle of ours: it is the
// daemon's standard input. So the zero value may mean "nothing was given".
func isCurrent(ns netns.NsHandle) bool { return ns <= 0 }

// inNamespace calls open with the calling thread in the namespace ns. A socket
// belongs for good to the namespace it was opened in, so only the opening has
// to happen there.
//
// A foreign namespace is entered on a goroutine of its own. Should the way back
// fail, that goroutine ends with its thread still locked, and the runtime
// throws the thread away instead of letting other goroutines run in the wrong
// network.
func inNamespace(ns netns.NsHandle, open func() error) error {
	if isCurrent(ns) {
		return open()
	}
	result := make(chan error)
	go func() {
		runtime.LockOSThread()
		home, err := netns.Get()
		if err != nil {
			result <- fmt.Errorf("netio: find the current network namespace: %w", err)
			return
		}
		defer home.Close()
		if err := unix.Setns(int(ns), unix.CLONE_NEWNET); err != nil {
			runtime.UnlockOSThread()
			result <- fmt.Errorf("netio: enter network namespace %s (needs CAP_SYS_ADMIN): %w", ns, err)
			return
		}
		err = open()
		if unix.Setns(int(home), unix.CLONE_NEWNET) == nil {
			runtime.UnlockOSThread()
		}
		result <- err
	}()
	return <-result
}

// openHandle opens a netlink socket in ns that is kept open: a fresh one for
// each request costs three times as much.
func openHandle(ns netns.NsHandle) (*netlink.Handle, error) {
	if isCurrent(ns) {
		ns = netns.None()
	}
	handle, err := netlink.NewHandleAt(ns, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("netio: open a netlink socket: %w", err)
	}
	return handle, nil
}

// namespaceOption is ns in the form that netlink's subscriptions want.
func namespaceOption(ns netns.NsHandle) *netns.NsHandle {
	if isCurrent(ns) {
		return nil
	}
	return &ns
}
