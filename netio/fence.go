package netio

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// kernelFence is the lease of the leader, and programs in the kernel that enforce it: when the
// lease has ended, they drop ARP and IPv4 for the floating addresses and from them, on every
// interface, whatever has become of the processes of this board. The board's own addresses
// are not touched. While there is nothing to release, everything passes: a router or a
// container on a follower must reach the address on another board.
//
// To extend the lease is a store to memory, which the programs read. They are there whether
// or not this board leads, so that a takeover has nothing to set up. They go when the last
// process that has the fence open goes: the daemon, or the holder, which sees to it that the
// addresses are gone first. If both are killed, a TUN device goes before them, see fdStore.
//
// Where the kernel has no such programs, the fence is a lease and nothing more: the holder ends it.
//
// Cover, CoverAgain and State may be called from any goroutine, all else from one. Only Cover, CoverAgain
// and Close wait for a lock of the kernel that whoever configures interfaces holds.
type kernelFence struct {
	sharedLease
	kind     FenceKind
	reason   string // why there is none
	inbound  int    // a program
	outbound int    // likewise; -1 where the kernel has none

	covering sync.Mutex // held by who attaches and detaches, for as long as the kernel takes

	mu       sync.Mutex    // of what follows; held for a moment only
	attached map[int][]int // what holds the programs on an interface, by its index, if it is not in the store
	failed   map[int]error // why they are not there, likewise
	wanted   []int         // what shall be covered
	first    int           // index of the most important interface
	store    fdStore
}

// FenceKind is how the kernel enforces the lease.
type FenceKind int

// The kinds, the best last. FenceNone is only a lease.
const (
	FenceNone FenceKind = iota
	// FenceXDP drops what comes in, in the generic mode of XDP: Linux 5.9 and newer.
	FenceXDP
	// FenceTCX drops what comes in and what leaves: Linux 6.6 and newer.
	FenceTCX
)

var fenceKinds = [...]string{FenceNone: "none", FenceXDP: "xdp", FenceTCX: "tcx"}

// String returns the kind for programs: it is part of the JSON that docs/status.md describes.
func (k FenceKind) String() string { return fenceKinds[k] }

// bestFence makes a fence for floating addresses, as good a one as the kernel has, and the lease
// in any case. There is nothing to release yet.
func bestFence(addresses []netip.Addr) (*kernelFence, error) {
	return newFence(addresses, FenceTCX, FenceXDP)
}

func newFence(addresses []netip.Addr, kinds ...FenceKind) (*kernelFence, error) {
	f := &kernelFence{inbound: -1, outbound: -1, attached: map[int][]int{}, failed: map[int]error{}, store: fdStore{socket: -1}}
	array, err := newArray("topdog_lease", fenceMemory)
	if err == nil {
		f.sharedLease, err = newLease(array)
	}
	if err == nil {
		err = f.load(addresses, kinds)
	}
	if err == nil {
		return f, nil
	}
	f.Close()
	f.kind, f.reason = FenceNone, err.Error()
	if f.sharedLease, err = newLease(nil); err != nil {
		f.sharedLease.close()
		return nil, fmt.Errorf("netio: make a lease: %w", err)
	}
	return f, nil
}

// load loads the programs of the best kind that the kernel can attach.
func (f *kernelFence) load(addresses []netip.Addr, kinds []FenceKind) error {
	var failed []error
	for _, kind := range kinds {
		f.kind = kind
		err := f.loadKind(fenceProgram{addresses, int(f.file.Fd())})
		if err == nil {
			err = f.try()
		}
		if err == nil {
			return nil
		}
		f.unload()
		failed = append(failed, fmt.Errorf("%v: %w", kind, err))
	}
	return errors.Join(failed...)
}

func (f *kernelFence) loadKind(p fenceProgram) (err error) {
	if f.kind == FenceXDP {
		f.inbound, err = loadProgram("topdog_in", unix.BPF_PROG_TYPE_XDP, unix.BPF_XDP, p.xdp())
		return err
	}
	const kind = unix.BPF_PROG_TYPE_SCHED_CLS
	if f.inbound, err = loadProgram("topdog_in", kind, unix.BPF_TCX_INGRESS, p.tcx(inbound)); err != nil {
		return err
	}
	f.outbound, err = loadProgram("topdog_out", kind, unix.BPF_TCX_EGRESS, p.tcx(outbound))
	return err
}

// loopback is the index of the loopback interface, which every network namespace has.
const loopback = 1

// try finds out whether the kernel can attach what it has loaded: to load is no proof, an old kernel does not look at
// where a program belongs. It is asked for tcx. To attach and detach takes up to 0.1 s, in which nobody else in this machine gets an
// address added. XDP cannot be asked for by its mode, so it is tried. Everything passes, since there is no lease yet.
func (f *kernelFence) try() error {
	if f.kind == FenceTCX {
		return explainAttach(knowsAttach(loopback, unix.BPF_TCX_INGRESS))
	}
	links, err := f.attach(loopback)
	detachAll(links)
	return err
}

// attach attaches the programs to an interface: all of them, or none.
func (f *kernelFence) attach(ifindex int) (links []int, err error) {
	attach := func(program int, to, flags uint32) {
		if err != nil {
			return
		}
		var link int
		if link, err = attachProgram(program, ifindex, to, flags); err == nil {
			links = append(links, link)
		}
	}
	if f.kind == FenceXDP {
		attach(f.inbound, unix.BPF_XDP, unix.XDP_FLAGS_SKB_MODE)
	} else {
		attach(f.inbound, unix.BPF_TCX_INGRESS, 0)
		attach(f.outbound, unix.BPF_TCX_EGRESS, 0)
	}
	if err != nil {
		detachAll(links)
		links = nil
	}
	return links, explainAttach(err)
}

func explainAttach(err error) error {
	switch {
	case errors.Is(err, unix.EBUSY):
		return fmt.Errorf("%w: another program is there", err)
	case errors.Is(err, unix.EINVAL):
		return fmt.Errorf("%w: the kernel cannot attach it", err)
	}
	return err
}

// Cover puts the fence on interfaces, given by their indexes, and forgets those that are gone. The
// first one is that which is in the store in any case. The error says where the fence
// is not, and why; what can be covered is.
func (f *kernelFence) Cover(interfaces []int, first int) error {
	f.covering.Lock()
	defer f.covering.Unlock()
	f.mu.Lock()
	f.wanted, f.first = interfaces, first
	gone := f.uncover(func(ifindex int) bool { return !slices.Contains(interfaces, ifindex) })
	f.mu.Unlock()
	detachAll(gone)
	return f.cover()
}

// CoverAgain tries to cover what could not be covered.
func (f *kernelFence) CoverAgain() error {
	f.covering.Lock()
	defer f.covering.Unlock()
	return f.cover()
}

// cover covers what is not covered yet.
func (f *kernelFence) cover() error {
	var failed []error
	for _, ifindex := range f.uncovered() {
		links, err := f.attach(ifindex)
		if err != nil {
			i, gone := net.InterfaceByIndex(ifindex)
			if gone != nil {
				err = nil
			} else {
				err = fmt.Errorf("the fence is not on %s: %w", i.Name, err)
				failed = append(failed, err)
			}
		}
		f.covered(ifindex, links, err)
	}
	return errors.Join(failed...)
}

// uncovered returns the interfaces that are not covered yet. Until they are, the fence does not close.
func (f *kernelFence) uncovered() (missing []int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.failed)
	if f.kind == FenceNone {
		return nil
	}
	for _, ifindex := range f.wanted {
		if _, covered := f.attached[ifindex]; !covered {
			missing = append(missing, ifindex)
			f.failed[ifindex] = fmt.Errorf("the fence is not on the interface %d yet", ifindex)
		}
	}
	return missing
}

// covered notes what has become of an interface: it is covered, or there is an error, or it is gone.
func (f *kernelFence) covered(ifindex int, links []int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.failed, ifindex)
	if err != nil {
		f.failed[ifindex] = err
	}
	if links != nil {
		f.attached[ifindex] = links
	}
}

// uncover forgets the interfaces that satisfy a condition, and returns what holds the programs there.
func (f *kernelFence) uncover(holds func(ifindex int) bool) (links []int) {
	for ifindex, l := range f.attached {
		if holds(ifindex) {
			links = append(links, l...)
			links = append(links, f.leave(ifindex)...)
			delete(f.attached, ifindex)
		}
	}
	return links
}

func detachAll(links []int) {
	for _, link := range links {
		detachProgram(link)
	}
}

// State says what the fence is, and in words why it is not better, or where it is not.
func (f *kernelFence) State() (kind FenceKind, problem string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.kind == FenceNone {
		return FenceNone, f.reason
	}
	var failed []error
	for _, err := range f.failed {
		failed = append(failed, err)
	}
	if err := errors.Join(failed...); err != nil {
		problem = err.Error()
	}
	return f.kind, problem
}

// Closes reports whether nobody reaches this board by the addresses once the lease was ended.
func (f *kernelFence) Closes() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.kind != FenceNone && len(f.attached) > 0 && len(f.failed) == 0
}

// Close takes the fence from all interfaces and ends the lease.
func (f *kernelFence) Close() error {
	f.covering.Lock()
	defer f.covering.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	detachAll(f.uncover(func(int) bool { return true }))
	if f.store.socket >= 0 {
		unix.Close(f.store.socket)
	}
	f.store = fdStore{socket: -1}
	f.unload()
	f.sharedLease.close()
	f.sharedLease = sharedLease{timer: -1}
	f.kind = FenceNone
	return nil
}

func (f *kernelFence) unload() {
	for _, program := range []*int{&f.inbound, &f.outbound} {
		if *program >= 0 {
			unix.Close(*program)
		}
		*program = -1
	}
}

// fenceMemory is how many bytes the fence's programs share with the daemon and the holder:
// the word of the lease.
const fenceMemory = 8

// Helpers that programs may call (linux/bpf.h).
const (
	helperSocketUID         = 47  // get_socket_uid
	helperLoadBytesRelative = 68  // skb_load_bytes_relative
	helperBootTime          = 125 // ktime_get_boot_ns

	fromNetworkHeader = 1 // BPF_HDR_START_NET
)

// Where things are in what a program is given, and in packets.
const (
	skbProtocol = 16 // in struct __sk_buff
	xdpData     = 0  // in struct xdp_md
	xdpDataEnd  = 4

	etherType  = 12
	etherBytes = 14

	arpSender = 14 // the protocol addresses, of an ARP packet for Ethernet and IPv4
	arpTarget = 24
	arpBytes  = 28
	ipSource  = 12
	ipTarget  = 16
	ipBytes   = 20 // at least
)

// Verdicts.
const (
	tcxNext, tcxDrop = -1, 2
	xdpPass, xdpDrop = 2, 1
)

// direction is which packets of a floating address a program drops while the fence is closed: those
// for it, as they come in, or those from it, as they leave.
type direction struct{ arp, ip int32 }

var (
	inbound  = direction{arpTarget, ipTarget}
	outbound = direction{arpSender, ipSource}
)

// fenceProgram makes the programs of a fence: which addresses they drop, and the array that
// has the lease.
type fenceProgram struct {
	addresses []netip.Addr
	array     int
}

// tcx is the program for traffic control, on any kind of interface. It reads packets from the
// network header on, which is where it is whether or not there is an Ethernet header before it.
func (f fenceProgram) tcx(d direction) []instruction {
	a := newAssembler()
	a.copy(r6, r1)
	a.mapValue(r7, f.array)
	a.load(unix.BPF_W, r8, r6, skbProtocol)
	a.jumpOpen("pass")
	a.jump(unix.BPF_JEQ, r8, networkOrder(unix.ETH_P_ARP), "arp")
	a.jump(unix.BPF_JNE, r8, networkOrder(unix.ETH_P_IP), "pass")
	a.loadBytesRelative(d.ip, 4)
	a.always("compare")
	a.label("arp")
	a.loadBytesRelative(d.arp, 4)
	a.label("compare")
	a.jump(unix.BPF_JNE, r0, 0, "pass") // shorter than that
	a.load(unix.BPF_W, r1, r10, -8)
	f.compare(a, r1)
	a.label("pass")
	a.leave(tcxNext)
	a.label("drop")
	a.leave(tcxDrop)
	return a.program()
}

// xdp is the program for an Ethernet interface where there is no tcx. It sees only what comes in.
func (f fenceProgram) xdp() []instruction {
	a := newAssembler()
	a.load(unix.BPF_W, r6, r1, xdpData)
	a.load(unix.BPF_W, r9, r1, xdpDataEnd)
	a.mapValue(r7, f.array)
	a.jumpShort(r6, r9, etherBytes, "pass")
	a.load(unix.BPF_H, r8, r6, etherType)
	a.jumpOpen("pass")
	a.jump(unix.BPF_JEQ, r8, networkOrder(unix.ETH_P_ARP), "arp")
	a.jump(unix.BPF_JNE, r8, networkOrder(unix.ETH_P_IP), "pass")
	a.jumpShort(r6, r9, etherBytes+ipBytes, "pass")
	a.load(unix.BPF_W, r1, r6, etherBytes+ipTarget)
	a.always("compare")
	a.label("arp")
	a.jumpShort(r6, r9, etherBytes+arpBytes, "pass")
	a.load(unix.BPF_W, r1, r6, etherBytes+arpTarget)
	a.label("compare")
	f.compare(a, r1)
	a.label("pass")
	a.leave(xdpPass)
	a.label("drop")
	a.leave(xdpDrop)
	return a.program()
}

// compare goes to "drop" if the register has one of the addresses, and on if not.
func (f fenceProgram) compare(a *assembler, r register) {
	for _, address := range f.addresses {
		b := address.As4()
		a.jump(unix.BPF_JEQ, r, int32(binary.NativeEndian.Uint32(b[:])), "drop")
	}
}

// jumpOpen jumps while the fence is open: while there is no lease, or it has no end, which are
// both less than 0, or while its end is still to come. A machine of 32 bits reads the word in
// two halves. What it reads of one that changes meanwhile can only be wrong for one packet.
func (a *assembler) jumpOpen(label string) {
	a.load(unix.BPF_DW, r1, r7, 0)
	a.jumpNegative(r1, label)
	a.call(helperBootTime)
	a.load(unix.BPF_DW, r1, r7, 0)
	a.jumpWith(unix.BPF_JLT, r0, r1, label)
}

// loadBytesRelative copies bytes of the packet, counted from the network header, to the end of the
// stack less 8, and leaves in r0 whether it failed.
func (a *assembler) loadBytesRelative(offset, length int32) {
	a.copy(r1, r6)
	a.move(r2, offset)
	a.copy(r3, r10)
	a.add(r3, -8)
	a.move(r4, length)
	a.move(r5, fromNetworkHeader)
	a.call(helperLoadBytesRelative)
}

// jumpShort jumps if the packet between two registers has less than so many bytes.
func (a *assembler) jumpShort(from, end register, length int32, label string) {
	a.copy(r1, from)
	a.add(r1, length)
	a.jumpWith(unix.BPF_JGT, r1, end, label)
}

// networkOrder is a number of 16 bits as a program reads it from a packet.
func networkOrder(n uint16) int32 {
	return int32(binary.NativeEndian.Uint16([]byte{byte(n >> 8), byte(n)}))
}
