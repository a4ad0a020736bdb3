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

// kernelFence is the lease of the leader, and programs in the kernel that enforce it. When the
// lease is over, they drop ARP, IPv4 and IPv6 to and from the floating addresses, on every
// interface, even if no process of this board runs any more. They do not touch the board's own
// addresses. While there is nothing to release, everything passes: a router or a
// container on a follower must reach the address on another board.
//
// Extending the lease is a store to memory that the programs read. They are attached whether
// or not this board leads, so that a takeover has nothing to set up. They are detached when the last
// process that has the fence open ends: the daemon, or the holder, which removes the addresses
// first. If both are killed, a TUN device goes before the programs, see kernelFence.keep.
//
// On a kernel without such programs, the fence is only a lease, which the holder ends.
//
// Cover and State may be called from any goroutine, everything else from one. Only Cover and Close wait for the
// kernel's lock on the configuration of interfaces (RTNL).
type kernelFence struct {
	sharedLease
	kind     FenceKind
	reason   string // why there is no better one
	inbound  int    // a program
	outbound int    // a program; -1 if the kernel has none of that kind

	covering sync.Mutex // held while programs are attached or detached, for as long as the kernel takes

	mu          sync.Mutex    // guards what follows, and is held only for a moment
	attached    map[int][]int // the links of the programs on each covered interface, by its index
	failed      map[int]error // why an interface is not covered, by its index
	wanted      []int         // the interfaces to cover
	store       int           // the fd store; -1 while there is none
	keepsDevice bool          // the store has a TUN device
	unkept      bool          // the store does not have what is attached
}

// FenceKind is how the kernel enforces the lease.
type FenceKind int

// The kinds, the best last. FenceNone is a lease without programs.
const (
	FenceNone FenceKind = iota
	// FenceXDP drops incoming packets, in the generic mode of XDP: Linux 5.9 and newer.
	FenceXDP
	// FenceTCX drops incoming and outgoing packets: Linux 6.6 and newer.
	FenceTCX
)

var fenceKinds = [...]string{FenceNone: "none", FenceXDP: "xdp", FenceTCX: "tcx"}

// String returns the name that the JSON of docs/status.md has.
func (k FenceKind) String() string { return fenceKinds[k] }

// bestFence makes the best fence for floating addresses that the kernel allows, and a lease in any case.
func bestFence(addresses []netip.Addr) (*kernelFence, error) {
	return newFence(addresses, FenceTCX, FenceXDP)
}

func newFence(addresses []netip.Addr, kinds ...FenceKind) (*kernelFence, error) {
	f := &kernelFence{inbound: -1, outbound: -1, attached: map[int][]int{}, failed: map[int]error{}, store: -1}
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

// load loads the programs of the first kind that the kernel can attach.
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

// try finds out whether the kernel can attach what it has loaded. Loading proves nothing: an old kernel ignores where
// a program is to be attached. For tcx, the kernel can be queried. Attaching and detaching would take up to 0.1 s,
// during which nobody on this machine can add an address. For the generic mode of XDP there is no query, so that is
// tried. There is no lease yet, so everything passes.
func (f *kernelFence) try() error {
	if f.kind == FenceTCX {
		return explainAttach(knowsAttach(loopback, unix.BPF_TCX_INGRESS))
	}
	links, err := f.attach(loopback)
	detachAll(links)
	return err
}

// attach attaches the programs to an interface: both of them, or none.
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

// Cover puts the fence on interfaces, given by their indexes, and takes it from all others. It covers what it can. The error says
// which interfaces are not covered, and why.
func (f *kernelFence) Cover(interfaces []int) error {
	f.covering.Lock()
	defer f.covering.Unlock()
	f.mu.Lock()
	f.wanted = interfaces
	gone := f.uncover(func(ifindex int) bool { return !slices.Contains(interfaces, ifindex) })
	f.mu.Unlock()
	detachAll(gone)
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

// covered notes that an interface is covered, or why it is not, or that it is gone.
func (f *kernelFence) covered(ifindex int, links []int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.failed, ifindex)
	if err != nil {
		f.failed[ifindex] = err
	}
	if links != nil {
		f.attached[ifindex], f.unkept = links, true
	}
}

// uncover forgets the interfaces that satisfy a condition, and returns the links of their programs.
func (f *kernelFence) uncover(holds func(ifindex int) bool) (links []int) {
	for ifindex, l := range f.attached {
		if holds(ifindex) {
			links = append(links, l...)
			delete(f.attached, ifindex)
			f.unkept = true
		}
	}
	return links
}

func detachAll(links []int) {
	for _, link := range links {
		detachProgram(link)
	}
}

// State says which kind of fence it is, and in words why there is no better one, or which interfaces it is missing from.
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

// Closes reports whether the fence keeps everybody off the addresses once the lease has ended.
func (f *kernelFence) Closes() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.kind != FenceNone && len(f.attached) > 0 && len(f.failed) == 0
}

// Close takes the fence from all interfaces, and closes the lease.
func (f *kernelFence) Close() error {
	f.covering.Lock()
	defer f.covering.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	detachAll(f.uncover(func(int) bool { return true }))
	f.closeStore()
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

// fenceMemory is how many bytes the fence's programs share with the daemon and the holder: the word of the lease.
const fenceMemory = 8

// Helpers that programs may call (linux/bpf.h).
const (
	helperSocketUID         = 47  // get_socket_uid
	helperLoadBytesRelative = 68  // skb_load_bytes_relative
	helperBootTime          = 125 // ktime_get_boot_ns

	fromNetworkHeader = 1 // BPF_HDR_START_NET
)

// Offsets, in bytes, in the context that a program is given, and in packets.
const (
	skbProtocol = 16 // in struct __sk_buff
	xdpData     = 0  // in struct xdp_md
	xdpDataEnd  = 4

	etherType  = 12
	etherBytes = 14

	arpSender = 14 // the protocol addresses in an ARP packet for Ethernet and IPv4
	arpTarget = 24
	arpBytes  = 28
	ipSource  = 12
	ipTarget  = 16
	ipBytes   = 20 // at least
)

// The verdicts of programs.
const (
	tcxNext, tcxDrop = -1, 2
	xdpPass, xdpDrop = 2, 1
)

// direction says which packets a program drops while the fence is closed: incoming ones to a floating address, or
// outgoing ones from it. It has the offsets of that address in ARP, IPv4 and IPv6, and what of Neighbor Discovery about the
// address is dropped as well, whoever it is to or from.
type direction struct {
	arp, ip, ip6 int32
	ndp          ndpKind
}

var (
	inbound  = direction{arpTarget, ipTarget, ip6Target, solicitation}
	outbound = direction{arpSender, ipSource, ip6Source, advertisement}
)

// fenceProgram makes the programs of a fence, for these addresses and with the lease in that array map.
type fenceProgram struct {
	addresses []netip.Addr
	array     int
}

// tcx makes the program for traffic control, on any kind of interface. It reads packets from the
// network header on, and so works with and without an Ethernet header.
func (f fenceProgram) tcx(d direction) []instruction {
	a := newAssembler()
	a.copy(r6, r1)
	a.mapValue(r7, f.array)
	a.load(unix.BPF_W, r8, r6, skbProtocol)
	f.each(a, d, fenceSteps{
		word: func(offset int32) {
			a.loadBytesRelative(offset, 4)
			a.jump(unix.BPF_JNE, r0, 0, "pass") // the packet is too short
			a.load(unix.BPF_W, r1, r10, -8)
		},
		octet: func(offset int32) {
			a.loadBytesRelative(offset, 1)
			a.jump(unix.BPF_JNE, r0, 0, "pass")
			a.load(unix.BPF_B, r1, r10, -8)
		},
	})
	a.label("pass")
	a.leave(tcxNext)
	a.label("drop")
	a.leave(tcxDrop)
	return a.program()
}

// xdp makes the program for an Ethernet interface on a kernel without tcx. It sees only incoming packets.
func (f fenceProgram) xdp() []instruction {
	a := newAssembler()
	a.load(unix.BPF_W, r6, r1, xdpData)
	a.load(unix.BPF_W, r9, r1, xdpDataEnd)
	a.mapValue(r7, f.array)
	a.jumpShort(r6, r9, etherBytes, "pass")
	a.load(unix.BPF_H, r8, r6, etherType)
	f.each(a, inbound, fenceSteps{
		needs: func(length int32) { a.jumpShort(r6, r9, etherBytes+length, "pass") },
		word:  func(offset int32) { a.load(unix.BPF_W, r1, r6, int16(etherBytes+offset)) },
		octet: func(offset int32) { a.load(unix.BPF_B, r1, r6, int16(etherBytes+offset)) },
	})
	a.label("pass")
	a.leave(xdpPass)
	a.label("drop")
	a.leave(xdpDrop)
	return a.program()
}

// fenceSteps read a packet from the network header on, into r1. They jump to "pass" if it is too short.
type fenceSteps struct {
	needs       func(length int32) // is called before the others; nil if that is not needed
	word, octet func(offset int32)
}

// each jumps to "drop" if the packet, whose protocol is in r8, is one that the closed fence drops, and to "pass" if not.
func (f fenceProgram) each(a *assembler, d direction, steps fenceSteps) {
	needs := func(length int32) {
		if steps.needs != nil {
			steps.needs(length)
		}
	}
	four, six := byFamily(f.addresses)
	a.jumpOpen("pass")
	a.jump(unix.BPF_JEQ, r8, networkOrder(unix.ETH_P_ARP), "arp")
	if len(six) > 0 {
		a.jump(unix.BPF_JEQ, r8, networkOrder(unix.ETH_P_IPV6), "ip6")
	}
	a.jump(unix.BPF_JNE, r8, networkOrder(unix.ETH_P_IP), "pass")
	needs(ipBytes)
	steps.word(d.ip)
	a.always("compare")
	a.label("arp")
	needs(arpBytes)
	steps.word(d.arp)
	a.label("compare")
	for _, address := range four {
		b := address.As4()
		a.jump(unix.BPF_JEQ, r1, int32(binary.NativeEndian.Uint32(b[:])), "drop")
	}
	a.always("pass")
	if len(six) == 0 {
		return
	}
	a.label("ip6")
	needs(ip6Bytes)
	compare6(a, "ip6 address", six, d.ip6, steps.word)
	steps.octet(ip6Next)
	a.jump(unix.BPF_JNE, r1, unix.IPPROTO_ICMPV6, "pass")
	needs(ndpBytes)
	steps.octet(ndpKindAt)
	a.jump(unix.BPF_JNE, r1, int32(d.ndp), "pass")
	compare6(a, "target", six, ndpSubjectAt, steps.word)
	a.always("pass")
}

// compare6 jumps to "drop" if one of the addresses is at the offset. Its labels begin with a name.
func compare6(a *assembler, name string, addresses []netip.Addr, offset int32, word func(offset int32)) {
	for i, address := range addresses {
		next := fmt.Sprint(name, " ", i+1)
		b := address.As16()
		for at := int32(0); at < 16; at += 4 {
			word(offset + at)
			a.jump(unix.BPF_JNE, r1, int32(binary.NativeEndian.Uint32(b[at:])), next)
		}
		a.always("drop")
		a.label(next)
	}
}

// jumpOpen jumps while the fence is open: while there is no lease or it has no end, which are both
// negative, or while its end is still to come. A 32-bit machine reads the word in
// two halves. If the word changes in between, that can be wrong for one packet only.
func (a *assembler) jumpOpen(label string) {
	a.load(unix.BPF_DW, r1, r7, 0)
	a.jumpNegative(r1, label)
	a.call(helperBootTime)
	a.load(unix.BPF_DW, r1, r7, 0)
	a.jumpWith(unix.BPF_JLT, r0, r1, label)
}

// loadBytesRelative copies bytes of the packet, at an offset from the network header, to r10 - 8 on
// the stack. r0 is not 0 if it failed.
func (a *assembler) loadBytesRelative(offset, length int32) {
	a.copy(r1, r6)
	a.move(r2, offset)
	a.copy(r3, r10)
	a.add(r3, -8)
	a.move(r4, length)
	a.move(r5, fromNetworkHeader)
	a.call(helperLoadBytesRelative)
}

// jumpShort jumps if the packet between two registers is shorter than a length in bytes.
func (a *assembler) jumpShort(from, end register, length int32, label string) {
	a.copy(r1, from)
	a.add(r1, length)
	a.jumpWith(unix.BPF_JGT, r1, end, label)
}

// networkOrder returns a 16-bit number as a program reads it from a packet.
func networkOrder(n uint16) int32 {
	return int32(binary.NativeEndian.Uint16([]byte{byte(n >> 8), byte(n)}))
}
