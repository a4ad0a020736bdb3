package netio

import (
	"io"
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/assert"
)

// TestStoreFollowsTheInterfaces covers and uncovers interfaces before and after the fence's programs went into a
// store: what is attached is always what is wanted, and a store that was given away holds nothing else.
func TestStoreFollowsTheInterfaces(t *testing.T) {
	if testedFences(t)[0] != FenceTCX {
		t.Skip("programs of the other kind cannot be counted")
	}
	b := newLAN(t, 1).boards[0]
	f := b.newFence(t, FenceTCX)
	const loopback = 1
	eth0 := b.link(t, "eth0").Index
	for _, wanted := range [][]int{{eth0}, {eth0, loopback}, {loopback}, {eth0}, {}} {
		for _, shared := range []bool{false, true, true} {
			b.do(t, func() error { return f.Cover(wanted) })
			if shared {
				must(t, f.keep(nil, func(programs ...int) {
					kept, err := queued(programs[0])
					must(t, err)
					assert.Is(t, 2*len(wanted), len(kept), "%v wanted: programs in the store", wanted)
					closeAll(kept)
				}))
			}
			for _, ifindex := range []int{eth0, loopback} {
				want := 0
				if slices.Contains(wanted, ifindex) {
					want = 1
				}
				got := b.programsAt(t, ifindex, unix.BPF_TCX_INGRESS)
				assert.Is(t, want, got, "%v wanted, shared %t: programs on interface %d", wanted, shared, ifindex)
			}
		}
	}
	before := openFiles(t)
	b.do(t, func() error { return f.Cover([]int{eth0}) })
	must(t, f.keep(nil, func(...int) {}))
	b.do(t, func() error { return f.Cover(nil) })
	if after := openFiles(t); after > before+1 { // the store, until the next one
		t.Errorf("%d files are open, %d were before", after, before)
	}
	must(t, f.Close())
}

// The kernel passes a bounded number of files at once, and a store has as many as it is given.
func TestStoreOfMany(t *testing.T) {
	const many = maxPassed + 47
	r, w, err := os.Pipe()
	must(t, err)
	defer r.Close()
	socket, err := queue(slices.Repeat([]int{int(w.Fd())}, many))
	must(t, err)
	must(t, w.Close())
	kept := 0
	for files := []int{-1}; len(files) > 0; kept += len(files) {
		files, err = queued(socket)
		must(t, err)
		closeAll(files)
		_, _, _, _, _ = unix.Recvmsg(socket, make([]byte, 1), nil, unix.MSG_DONTWAIT) // closes these
	}
	assert.Is(t, many, kept, "files in the store")
	unix.Close(socket)
	if n, err := r.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("the store was emptied, and the pipe is open: %d, %v", n, err)
	}
}

// A process that may open no more files gets all copies or none: what it did not get would not be in the next store,
// and end with this one.
func TestStoreIsCopiedWhole(t *testing.T) {
	var pair [2]int
	must(t, unix.Pipe2(pair[:], unix.O_CLOEXEC))
	defer closeAll(pair[:])
	socket, err := queue([]int{pair[0], pair[0], pair[1]})
	must(t, err)
	defer unix.Close(socket)
	var limit unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	defer func() { must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)) }()
	before := openFiles(t)
	for more := range 8 {
		low := limit
		low.Cur = uint64(before + more)
		must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &low))
		files, err := queued(socket)
		must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit))
		if err == nil && len(files) != 3 {
			t.Errorf("%d files may be opened: %d are there", more, len(files))
		}
		closeAll(files)
		assert.Is(t, before, openFiles(t), "open files, after %d more might be opened", more)
	}
}
