package netio

import (
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
			b.do(t, func() error { return f.Cover(wanted, eth0) })
			if shared {
				must(t, f.keep(nil, func(programs int) {
					kept, err := queued(programs)
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
	b.do(t, func() error { return f.Cover([]int{eth0}, eth0) })
	must(t, f.keep(nil, func(int) {}))
	b.do(t, func() error { return f.Cover(nil, eth0) })
	if after := openFiles(t); after > before+1 { // the store, until the next one
		t.Errorf("%d files are open, %d were before", after, before)
	}
	must(t, f.Close())
}

// What cannot be passed at once is left to the daemon alone, and the first interface is not.
func TestStoreIsBounded(t *testing.T) {
	f := &kernelFence{first: 7, attached: map[int][]int{}}
	for ifindex := 1; ifindex <= 200; ifindex++ {
		f.attached[ifindex] = []int{2 * ifindex, 2*ifindex + 1}
	}
	if links := f.choose(); len(links) != maxPassed-1 || links[0] != 14 {
		t.Errorf("%d programs, the first is %d", len(links), links[0])
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
