package netio

import (
	"encoding/binary"
	"net"
	"net/netip"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"topdog/wire"
)

// admissionProgram makes the program that limits what reaches the sockets of a group. Of the packets to these sockets,
// it drops those that are of none of this board's groups, and those of the group that come faster than admission allows. It
// passes everything else, including what this board forwards.
type admissionProgram struct {
	sockets []bind
	network netip.Prefix // of this board; invalid if nothing is to be counted
	tag     wire.GroupTag
	others  []wire.GroupTag // of this board's other groups, which have programs of their own
	array   int             // a map that has an admissionMemory
}

// Offsets in the header of IP and in that of UDP, in bytes, and what is there.
const (
	ipFragment = 6
	ipTTL      = 8
	ipProtocol = 9
	ipMore     = 0x2000 // more fragments follow
	ipOffset   = 0x1fff // the offset of this fragment
	udpTarget  = 2
	udpLength  = 4
	udpBytes   = 8
)

// skbVLAN is the offset of the VLAN tag in struct __sk_buff (vlan_tci), which is 0 if there was none. A tag with the
// number 0 only has a priority, and the packet is for the interface itself.
const (
	skbVLAN    = 24
	vlanNumber = 0xfff
)

// Where the program copies headers to, relative to the end of the stack.
const (
	stackIP  = -24
	stackUDP = -48
)

// Offsets in admissionMemory.
var (
	offDropped = int32(unsafe.Offsetof(admissionMemory{}.dropped))
	offSeen    = int16(unsafe.Offsetof(admissionMemory{}.seen))
	offOwn     = int16(unsafe.Offsetof(admissionMemory{}.own))
	offOthers  = int32(unsafe.Offsetof(admissionMemory{}.others))
	offFromOwn = int16(unsafe.Offsetof(admissionMemory{}.fromOwn))
	offBoards  = int32(unsafe.Offsetof(admissionMemory{}.boards))
	offDue     = int16(unsafe.Offsetof(bucket{}.due))
)

func (p admissionProgram) tcx() []instruction {
	a := newAssembler()
	p.toPort(a)
	a.load(unix.BPF_W, r1, r10, stackIP+ipTarget)
	for _, socket := range p.sockets {
		a.jump(unix.BPF_JEQ, r1, networkNumber(socket.to.Addr()), "ours")
	}
	a.always("pass")
	a.label("ours")
	a.mapValue(r9, p.array)
	p.check(a)
	p.limit(a)
	p.count(a)
	a.label("pass")
	a.leave(tcxNext)
	if len(p.others) > 0 { // the kernel refuses unreachable code
		a.label("other")
		p.pass(a)
	}
	for reason := range admissionUser { // not more, for the same reason
		a.label(reason.label())
		if reason == admissionGroup {
			a.load(unix.BPF_W, r1, r10, stackIP+ipSource)
			a.slotOf(r2, r1, otherSenders, 2, offOthers) // slots of 4 bytes
			a.store(unix.BPF_W, r2, r1, 0)
		}
		a.countUp(int16(offDropped) + int16(reason)*8)
		a.leave(tcxDrop)
	}
	return a.program()
}

// check drops what is not a packet of the group.
func (p admissionProgram) check(a *assembler) {
	a.load(unix.BPF_B, r1, r10, stackIP+ipTTL)
	a.jump(unix.BPF_JNE, r1, wire.TTL, admissionTTL.label())
	a.load(unix.BPF_H, r1, r10, stackIP+ipFragment)
	a.and(r1, networkOrder(ipMore))
	a.jump(unix.BPF_JNE, r1, 0, admissionLong.label())
	a.load(unix.BPF_H, r1, r10, stackUDP+udpLength)
	a.hostOrder16(r1)
	a.jump(unix.BPF_JLT, r1, udpBytes+wire.MinPacket, admissionShort.label())
	a.jump(unix.BPF_JGT, r1, udpBytes+wire.MaxPacket, admissionLong.label())
	a.copyFromPacket(r7, udpBytes+wire.IncarnationEnd, stackUDP, admissionShort.label())
	a.load(unix.BPF_H, r1, r10, stackUDP+udpBytes+wire.GroupTagEnd-2)
	for _, other := range p.others {
		a.jump(unix.BPF_JEQ, r1, networkOrder(uint16(other)), "other")
	}
	a.jump(unix.BPF_JNE, r1, networkOrder(uint16(p.tag)), admissionGroup.label())
}

// pass passes a packet of another group of this board, whose own program limits it, but for one to a floating address of this
// group: no board sends that, and the other program does not look at it.
func (p admissionProgram) pass(a *assembler) {
	a.load(unix.BPF_W, r1, r10, stackIP+ipTarget)
	for _, socket := range p.sockets {
		if socket.path == PathFloating {
			a.jump(unix.BPF_JEQ, r1, networkNumber(socket.to.Addr()), admissionGroup.label())
		}
	}
	a.leave(tcxNext)
}

// limit drops what comes too fast, see bucket.take.
func (p admissionProgram) limit(a *assembler) {
	a.load(unix.BPF_W, r7, r10, stackIP+ipSource)
	a.slotOf(r8, r7, admissionBoards, 4, offBoards) // a bucket has 16 bytes
	a.load(unix.BPF_W, r1, r8, 0)
	a.move(r6, int32(boardEvery))
	a.jumpWith(unix.BPF_JEQ, r1, r7, "bucket")
	a.copy(r8, r9)
	a.move(r6, int32(unknownEvery))
	a.label("bucket")
	a.call(helperBootTime)
	a.load(unix.BPF_DW, r1, r8, offDue)
	a.copy(r2, r6)
	a.multiply(r2, admissionBurst)
	a.copy(r3, r0)
	a.addRegister(r3, r2)
	a.jumpWith(unix.BPF_JLT, r1, r0, "now")
	a.jumpWith(unix.BPF_JLE, r1, r3, "take")
	a.addRegister(r3, r2)
	a.jumpWith(unix.BPF_JLE, r1, r3, admissionRate.label())
	a.label("now")
	a.copy(r1, r0)
	a.label("take")
	a.addRegister(r1, r6)
	a.store(unix.BPF_DW, r8, r1, offDue)
}

// count counts the packets to all boards that pass: the sockets have to receive as many, unless a firewall drops them
// in between. It does not count what this board has broadcast, and hears itself; its own multicast does not come back.
// It does not count packets from addresses outside of the network either: the kernel drops them later, and anybody
// could send them.
func (p admissionProgram) count(a *assembler) {
	if !p.network.IsValid() {
		return
	}
	own, group := netip.IPv4Unspecified(), netip.IPv4Unspecified()
	a.load(unix.BPF_W, r1, r10, stackIP+ipTarget)
	for _, socket := range p.sockets {
		switch socket.path {
		case PathUnicast:
			own = socket.to.Addr()
		case PathMulticast:
			group = socket.to.Addr()
			a.jump(unix.BPF_JEQ, r1, networkNumber(group), "to all")
		case PathBroadcast:
			a.jump(unix.BPF_JEQ, r1, networkNumber(socket.to.Addr()), "to all")
		}
	}
	a.always("pass")
	a.label("to all")
	a.load(unix.BPF_W, r2, r10, stackIP+ipSource)
	a.jump(unix.BPF_JEQ, r2, networkNumber(own), "own")
	mask := netip.AddrFrom4([4]byte(net.CIDRMask(p.network.Bits(), 32)))
	a.jump(unix.BPF_JEQ, r2, networkNumber(LastAddr(p.network)), "pass")
	a.jump(unix.BPF_JEQ, r2, networkNumber(p.network.Masked().Addr()), "pass")
	a.and(r2, networkNumber(mask))
	a.jump(unix.BPF_JNE, r2, networkNumber(p.network.Masked().Addr()), "pass")
	a.countUp(offSeen)
	a.always("pass")
	a.label("own")
	a.jump(unix.BPF_JNE, r1, networkNumber(group), "pass")
	a.load(unix.BPF_W, r2, r10, stackUDP+udpBytes+wire.IncarnationEnd-4)
	a.and(r2, int32(binary.NativeEndian.Uint32(binary.BigEndian.AppendUint32(nil, uint32(wire.MaxIncarnation)))))
	a.load(unix.BPF_W, r1, r9, offOwn)
	a.jumpWith(unix.BPF_JEQ, r1, r2, "pass")
	a.countUp(offFromOwn)
}

// egress makes the program that keeps other users of this board from speaking to the group. Their packets would come
// from the board's address, and use up the limit that the other boards grant it. A packet of the group passes only if
// its socket belongs to one of the given users, or to root, whom nothing here could stop. Packets that this board
// forwards for a container have no socket here. Everything else passes, even to the same port, since the other boards
// ignore it.
func (p admissionProgram) egress(users ...int) []instruction {
	a := newAssembler()
	p.toPort(a)
	p.check(a)
	a.copy(r1, r6)
	a.call(helperSocketUID)
	for _, user := range append(users, 0) {
		a.jump(unix.BPF_JEQ, r0, int32(user), "pass")
	}
	a.mapValue(r9, p.array)
	a.countUp(int16(offDropped) + int16(admissionUser)*8)
	a.leave(tcxDrop)
	a.label("pass")
	a.label("other")
	for reason := admissionTTL; reason <= admissionGroup; reason++ {
		a.label(reason.label())
	}
	a.leave(tcxNext)
	return a.program()
}

// toPort copies the headers of a UDP packet to the port of the group to the stack, and goes on. With all other
// packets, and those of a VLAN, it jumps to "pass".
func (p admissionProgram) toPort(a *assembler) {
	a.copy(r6, r1)
	a.load(unix.BPF_W, r8, r6, skbProtocol)
	a.jump(unix.BPF_JNE, r8, networkOrder(unix.ETH_P_IP), "pass")
	a.load(unix.BPF_W, r8, r6, skbVLAN)
	a.and(r8, vlanNumber)
	a.jump(unix.BPF_JNE, r8, 0, "pass") // it belongs to a VLAN, whose tag the kernel has removed, or adds later
	a.move(r7, 0)
	a.copyFromPacket(r7, ipBytes, stackIP, "pass")
	a.load(unix.BPF_B, r1, r10, stackIP+ipProtocol)
	a.jump(unix.BPF_JNE, r1, unix.IPPROTO_UDP, "pass")
	a.load(unix.BPF_H, r1, r10, stackIP+ipFragment)
	a.and(r1, networkOrder(ipOffset))
	a.jump(unix.BPF_JNE, r1, 0, "pass") // a later fragment has no UDP header, and the first one is dropped
	a.load(unix.BPF_B, r7, r10, stackIP)
	a.and(r7, 0xf) // the length of the IP header in 32-bit words
	a.shift(r7, 2)
	a.copyFromPacket(r7, udpBytes, stackUDP, "pass")
	a.load(unix.BPF_H, r1, r10, stackUDP+udpTarget)
	a.jump(unix.BPF_JNE, r1, networkOrder(p.sockets[0].to.Port()), "pass") // all sockets have this port
}

// networkNumber returns an address as a program reads it from a packet.
func networkNumber(addr netip.Addr) int32 {
	as4 := addr.As4()
	return int32(binary.NativeEndian.Uint32(as4[:]))
}

// slotOf sets a register to the slot of an address, which is in another register in network order. The slots begin at
// an offset in the memory of admission, and each has 1<<shift bytes.
func (a *assembler) slotOf(to, addr register, places int32, shift, offset int32) {
	a.copy(to, addr)
	a.hostOrder32(to)
	a.and(to, places-1)
	a.shift(to, shift)
	a.addRegister(to, r9)
	a.add(to, offset)
}

// countUp adds one to a counter in the memory of admission.
func (a *assembler) countUp(offset int16) {
	a.load(unix.BPF_DW, r1, r9, offset)
	a.add(r1, 1)
	a.store(unix.BPF_DW, r9, r1, offset)
}

// copyFromPacket copies bytes of the packet to the stack. They begin as many bytes after the network header as the
// register says. It jumps if the packet is too short.
func (a *assembler) copyFromPacket(from register, length int32, to int32, short string) {
	a.copy(r1, r6)
	a.copy(r2, from)
	a.copy(r3, r10)
	a.add(r3, to)
	a.move(r4, length)
	a.move(r5, fromNetworkHeader)
	a.call(helperLoadBytesRelative)
	a.jump(unix.BPF_JNE, r0, 0, short)
}

func (r admissionReason) label() string { return string(rune('0' + r)) }

// kernelAdmission has the programs of admission on an interface.
type kernelAdmission struct {
	array  int // 0 if there is no program
	link   int
	egress int // the link of the program for outgoing packets
}

// attach attaches the programs to an interface. Besides root, only these users may send to the group.
func (p admissionProgram) attach(ifindex int, users ...int) (k kernelAdmission, err error) {
	array, err := newArray("topdog_admit", int(unsafe.Sizeof(admissionMemory{})))
	if err != nil {
		return k, err
	}
	defer array.Close()
	p.array = int(array.Fd())
	if k.link, err = attachAdmission("topdog_admit", p.tcx(), ifindex, unix.BPF_TCX_INGRESS); err != nil {
		return kernelAdmission{}, err
	}
	if k.egress, err = attachAdmission("topdog_speak", p.egress(users...), ifindex, unix.BPF_TCX_EGRESS); err != nil {
		detachProgram(k.link)
		return kernelAdmission{}, err
	}
	if k.array, err = unix.FcntlInt(array.Fd(), unix.F_DUPFD_CLOEXEC, 0); err != nil {
		detachProgram(k.link)
		detachProgram(k.egress)
		return kernelAdmission{}, os.NewSyscallError("fcntl", err)
	}
	return k, nil
}

// attachAdmission loads a program and attaches it.
func attachAdmission(name string, code []instruction, ifindex int, where uint32) (link int, err error) {
	program, err := loadProgram(name, unix.BPF_PROG_TYPE_SCHED_CLS, where, code)
	if err != nil {
		return 0, err
	}
	defer unix.Close(program)
	if link, err = attachProgram(program, ifindex, where, 0); err != nil {
		return 0, explainBPF("attach the program "+name, err)
	}
	return link, nil
}

// detach detaches the programs. Their memory is closed with the sockets.
func (k *kernelAdmission) detach() {
	if k.array != 0 {
		detachProgram(k.link)
		detachProgram(k.egress)
	}
}
