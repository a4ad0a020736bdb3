package netio

import (
	"fmt"
	"maps"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// An fd store is a socket with open files in its queue, as unix(7) describes it for SCM_RIGHTS: a TUN device, and a
// second socket that has copies of the fence's programs in its own queue. Only the holder has the store, and no other
// copy of the device.
//
// If the holder is killed, even while it stands still, the files are closed in order. The kernel closes what the store
// has in its queue: the device, which takes the addresses with it, and the second socket. It empties the queue of that
// one only after it has closed everything that was queued beside it. Otherwise the programs could be gone before the
// addresses, by as long as the kernel takes for the device: 40 ms on a busy machine. So the daemon must have no copy of
// the programs then: it may be killed with the holder, and the kernel closes the files of two processes in any order.
//
// Without a device, the addresses outlive the holder until their lifetime ends. Then the daemon has a copy of the second
// socket, so that the fence outlives the holder, too.

// maxPassed is how many files the kernel passes at once (SCM_MAX_FD).
const maxPassed = 253

// queue returns a socket that has files in its queue.
func queue(files []int) (socket int, err error) {
	socket, theirs, err := newConnection()
	if err != nil {
		return -1, err
	}
	defer unix.Close(theirs)
	for some := range slices.Chunk(files, maxPassed) {
		if err := sendMessage(theirs, []byte{0}, some...); err != nil {
			unix.Close(socket)
			return -1, fmt.Errorf("keep %d files open: %w", len(files), os.NewSyscallError("sendmsg", err))
		}
	}
	return socket, nil
}

// queued returns copies of the first files in the queue of a socket, at most maxPassed: all of these, or none. If this process
// may not open that many, the kernel leaves some out.
func queued(socket int) (files []int, err error) {
	var data [1]byte
	rights := make([]byte, unix.CmsgSpace(4*maxPassed))
	_, n, flags, _, err := unix.Recvmsg(socket, data[:], rights, unix.MSG_PEEK|unix.MSG_DONTWAIT|unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("copy what is kept open: %w", os.NewSyscallError("recvmsg", err))
	}
	controls, err := unix.ParseSocketControlMessage(rights[:n])
	switch {
	case err != nil:
		return nil, err
	case len(controls) == 0 && flags&unix.MSG_CTRUNC != 0:
		return nil, fmt.Errorf("copy what is kept open: %w", unix.EMFILE)
	case len(controls) == 0:
		return nil, nil
	}
	if files, err = unix.ParseUnixRights(&controls[0]); err == nil && flags&unix.MSG_CTRUNC != 0 {
		closeAll(files)
		return nil, fmt.Errorf("copy what is kept open: %w", unix.EMFILE)
	}
	return files, err
}

// keep puts a device, which may be nil, and the fence's programs into a store, and calls tell with what the daemon is to
// have: the socket that has the programs, or nothing beside a device. It does nothing if they are there. It closes the
// device: from then on this process, too, has that only in the store.
func (f *kernelFence) keep(device *os.File, tell func(programs ...int)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	isNew := device != nil && int(device.Fd()) >= 0
	if !isNew && !f.unkept && f.keepsDevice == (device != nil) {
		return nil
	}
	tun := -1
	switch {
	case isNew:
		tun = int(device.Fd())
	case device != nil && f.keepsDevice:
		kept, err := queued(f.store)
		if err != nil {
			return err
		}
		defer closeAll(kept)
		tun = kept[1]
	}
	programs, err := queue(slices.Concat(slices.Collect(maps.Values(f.attached))...))
	if err != nil {
		return err
	}
	defer unix.Close(programs)
	files := []int{programs}
	if tun >= 0 {
		files = append(files, tun)
	}
	store, err := queue(files)
	if err != nil {
		return err
	}
	f.closeStore()
	if isNew {
		device.Close()
	}
	f.store, f.unkept, f.keepsDevice = store, false, tun >= 0
	if f.keepsDevice {
		tell()
	} else {
		tell(programs)
	}
	return nil
}

// closeStore closes the store, if there is one.
func (f *kernelFence) closeStore() {
	if f.store >= 0 {
		unix.Close(f.store)
	}
	f.store = -1
}
