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
				must(t, f.share(nil, func(store int) error {
					if len(wanted) > 0 && store < 0 {
						t.Errorf("%v wanted: the store is %d", wanted, store)
					}
					return nil
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
	must(t, f.share(nil, func(int) error { return nil }))
	b.do(t, func() error { return f.Cover(nil, eth0) })
	if after := openFiles(t); after > before+1 { // the store, until the next one
		t.Errorf("%d files are open, %d were before", after, before)
	}
	must(t, f.Close())
}

// What cannot be passed at once is left to the daemon alone, and the first interface is not.
func TestStoreIsBounded(t *testing.T) {
	f := &kernelFence{first: 7}
	all := map[int][]int{}
	for ifindex := 1; ifindex <= 200; ifindex++ {
		all[ifindex] = []int{2 * ifindex, 2*ifindex + 1}
	}
	links, of := f.choose(all)
	if len(links) != maxPassed-1 || len(of) != len(links) || links[0] != 14 || of[0] != 7 {
		t.Errorf("%d programs of %d interfaces, the first of interface %d", len(links), len(of), of[0])
	}
}

// A process that may open no more files gets all copies or none: what it did not get would not be in the next store,
// and end with this one.
func TestStoreIsCopiedWhole(t *testing.T) {
	var pair [2]int
	must(t, unix.Pipe2(pair[:], unix.O_CLOEXEC))
	defer closeAll(pair[:])
	socket, err := storeFiles(pair[0], []int{pair[0], pair[1]})
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
		device, programs, err := storedFiles(socket)
		must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit))
		if err == nil && (device < 0 || len(programs) != 2) {
			t.Errorf("%d files may be opened: device %d, %d programs", more, device, len(programs))
		}
		if err == nil {
			closeAll(append(programs, device))
		}
		assert.Is(t, before, openFiles(t), "open files, after %d more might be opened", more)
	}
}
