package netns

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// goOnOwnThread starts fn on an OS thread that nothing else uses and that
// ends when fn returns, so that whatever fn does to its thread (a namespace,
// a parent-death signal) can't leak into other goroutines.
func goOnOwnThread(fn func()) {
	go func() {
		// A goroutine that exits while locked takes its thread along.
		runtime.LockOSThread()
		if unix.Gettid() != unix.Getpid() {
			fn()
			return
		}
		// The main thread can't end before the process: the runtime would
		// park it for ever, and with it the namespace. Keep it occupied
		// until another goroutine has locked another thread.
		locked := make(chan struct{})
		goOnOwnThread(func() {
			close(locked)
			fn()
		})
		<-locked
		runtime.UnlockOSThread()
	}()
}

// onOwnThread runs fn as goOnOwnThread does, and waits for it.
func onOwnThread(fn func() error) error {
	// This error stays if fn ends its goroutine, as testing.T.FailNow does.
	err := errors.New("netns: the function ended its goroutine instead of returning")
	done := make(chan struct{})
	goOnOwnThread(func() {
		defer close(done)
		err = fn()
	})
	<-done
	return err
}

// loopback is the first interface of every namespace.
var loopback = linkIndex(1)

// newNamespace makes a network namespace with its loopback up, and a netlink handle that belongs to it. With a name
// it outlives the program.
func newNamespace(name string) (ns netns.NsHandle, nl *netlink.Handle, err error) {
	ns = netns.None()
	err = onOwnThread(func() error {
		if name == "" {
			ns, err = netns.New()
		} else {
			ns, err = netns.NewNamed(name)
		}
		if err != nil {
			return fmt.Errorf("create a network namespace (needs root, CAP_SYS_ADMIN): %w", err)
		}
		if nl, err = netlink.NewHandle(unix.NETLINK_ROUTE); err != nil {
			return fmt.Errorf("open a netlink socket in the new namespace: %w", err)
		}
		if err = nl.LinkSetUp(loopback); err != nil {
			return fmt.Errorf("set the loopback up: %w", err)
		}
		return nil
	})
	if err != nil {
		freeNamespace(&ns, nl)
	}
	return ns, nl, err
}

// freeNamespace drops this process's references to a namespace.
func freeNamespace(ns *netns.NsHandle, nl *netlink.Handle) {
	if nl != nil {
		nl.Close()
	}
	if ns.IsOpen() {
		ns.Close()
	}
}
