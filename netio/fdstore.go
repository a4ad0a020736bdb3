package netio

import (
	"fmt"
	"maps"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// An fd store is a socket with open files in its queue, as unix(7) describes it for SCM_RIGHTS: a TUN device and the
// programs of the fence. The holder, and a daemon that has started it, have copies of the socket, and no other copies
// of the files. So the files are closed together, with the last copy of the socket, even if both processes are killed
// while they stand still.
//
// They are closed in order. The kernel closes the files in the queue: the device, which takes the addresses with it,
// and a second socket, which has the programs in its own queue. It empties that queue only after it has closed
// everything that was queued beside that socket. Otherwise the programs could be gone some milliseconds before the
// addresses.

// maxPassed is how many files the kernel passes at once (SCM_MAX_FD).
const maxPassed = 253

// storeFiles makes an fd store of a device, or -1 for none, and of programs. The caller closes his own copies.
func storeFiles(device int, programs []int) (socket int, err error) {
	inner, err := queue(programs)
	if err != nil {
		return -1, err
	}
	defer unix.Close(inner)
	if device < 0 {
		return queue([]int{inner})
	}
	return queue([]int{inner, device})
}

// queue returns a socket that has files in its queue.
func queue(files []int) (socket int, err error) {
	socket, theirs, err := newConnection()
	if err != nil {
		return -1, err
	}
	defer unix.Close(theirs)
	if err := sendMessage(theirs, []byte{0}, files...); err != nil {
		unix.Close(socket)
		return -1, fmt.Errorf("keep %d files open: %w", len(files), os.NewSyscallError("sendmsg", err))
	}
	return socket, nil
}

// storedFiles returns copies of the files in a store.
func storedFiles(socket int) (device int, programs []int, err error) {
	files, err := queued(socket)
	if err != nil || len(files) == 0 {
		return -1, nil, err
	}
	defer unix.Close(files[0])
	device = -1
	if len(files) > 1 {
		device = files[1]
	}
	if programs, err = queued(files[0]); err != nil {
		closeAll(files[1:])
		return -1, nil, err
	}
	return device, programs, nil
}

// queued returns copies of the files in the queue of a socket: all, or none. If this process may not open that many,
// the kernel leaves some out.
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

// fdStore is the store of a kernelFence.
type fdStore struct {
	socket int   // -1 while there is none
	of     []int // the interface of each program in it; 0 if that is no longer covered
}

// share puts the device, if there is one, and the fence's programs into a store, and calls send with it; with -1 if
// there is nothing to put in. From then on this process, too, has them only in the store: share closes the device. If
// there are more programs than the kernel passes at once, those of the first interface have precedence.
func (f *kernelFence) share(device *os.File, send func(store int) error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if device == nil && len(f.attached) == 0 {
		return send(-1)
	}
	if f.store.socket < 0 || isOpen(device) || f.hasUnstored() {
		if err := f.renewStore(device); err != nil {
			return err
		}
	}
	return send(f.store.socket)
}

func isOpen(file *os.File) bool { return file != nil && int(file.Fd()) >= 0 }

// hasUnstored reports whether some program is not in the store although there is room.
func (f *kernelFence) hasUnstored() bool {
	for _, links := range f.attached {
		if len(links) > 0 && len(f.store.of)+len(links) <= maxPassed {
			return true
		}
	}
	return false
}

// renewStore replaces the store. The device is the given one if that is open, and otherwise the one in the store before.
func (f *kernelFence) renewStore(device *os.File) error {
	former, all, err := f.opened()
	if err != nil {
		return err
	}
	if former >= 0 {
		defer unix.Close(former)
	}
	tun := former
	if isOpen(device) {
		tun = int(device.Fd())
	}
	links, of := f.choose(all)
	socket, err := storeFiles(tun, links)
	if err != nil {
		for ifindex, direct := range f.attached {
			closeAll(all[ifindex][len(direct):])
		}
		return err
	}
	f.attached = all
	for _, ifindex := range of {
		closeAll(f.attached[ifindex])
		f.attached[ifindex] = nil
	}
	if isOpen(device) {
		device.Close()
	}
	if f.store.socket >= 0 {
		unix.Close(f.store.socket)
	}
	f.store = fdStore{socket, of}
	return nil
}

// opened returns a copy of the device in the store, or -1, and the links of the programs on each interface: first
// those that are not in the store, and then copies of those that are.
func (f *kernelFence) opened() (device int, all map[int][]int, err error) {
	device, all = -1, maps.Clone(f.attached)
	if f.store.socket < 0 {
		return device, all, nil
	}
	device, programs, err := storedFiles(f.store.socket)
	for i, program := range programs {
		if ifindex := f.store.of[i]; ifindex != 0 {
			all[ifindex] = append(slices.Clip(all[ifindex]), program)
		} else {
			unix.Close(program)
		}
	}
	return device, all, err
}

// leave returns copies of the links that are in the store for an interface, to be detached. They stay in the store
// until the next one is made.
func (f *kernelFence) leave(ifindex int) (links []int) {
	if !slices.Contains(f.store.of, ifindex) {
		return nil
	}
	device, programs, err := storedFiles(f.store.socket)
	if err != nil {
		return nil // they are closed with the store
	}
	if device >= 0 {
		unix.Close(device)
	}
	for i, program := range programs {
		if f.store.of[i] == ifindex {
			links = append(links, program)
			f.store.of[i] = 0
		} else {
			unix.Close(program)
		}
	}
	return links
}

// choose returns as many of the links as the kernel passes at once, and the interface of each.
func (f *kernelFence) choose(all map[int][]int) (links, of []int) {
	add := func(ifindex int) {
		these := all[ifindex]
		if len(links)+len(these) <= maxPassed {
			links = append(links, these...)
			of = append(of, slices.Repeat([]int{ifindex}, len(these))...)
		}
	}
	add(f.first)
	for ifindex := range all {
		if ifindex != f.first {
			add(ifindex)
		}
	}
	return links, of
}
