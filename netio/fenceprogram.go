package netio

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"
)

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
