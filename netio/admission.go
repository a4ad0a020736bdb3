package netio

import (
	"encoding/binary"
	"net/netip"
	"os"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"topdog/wire"
)

// admission limits what a board listens to, so that no flood keeps it from what the boards of its group say. Each known
// board has a bucket of its own, and all others share one. The rule is the generic cell rate algorithm (ITU-T I.371,
// annex A): a bucket is the time at which the next packet is due if they come at the rate.
//
// Where the kernel can, a program in it decides, and the memory is shared with it: what it drops costs nobody a
// socket's room or a wake-up. Else the reader of a socket decides.
type admission struct {
	memory   *admissionMemory
	inKernel bool
	// unlimited is why the kernel does not do it; "" where it does, or nobody has asked it to.
	unlimited string
	before    [admissionReasons]uint64 // what was counted for the daemon that had it before
	fromOwn   uint64                   // likewise
}

// admissionMemory is what the program in the kernel and the daemon share.
type admissionMemory struct {
	unknown bucket
	dropped [admissionReasons]atomic.Uint64
	seen    atomic.Uint64 // passed, of what other hosts have sent to all boards
	fromOwn atomic.Uint64 // passed, of what another machine has sent to all boards from this board's own address
	own     atomic.Uint32 // this board's incarnation, as it is in a packet: some access points send back what they were sent
	_       uint32
	boards  [admissionBoards]bucket
	others  [otherSenders]atomic.Uint32 // who has sent packets of other groups, as it is in a packet, until that is read
}

// bucket is the limit of one sender.
type bucket struct {
	from atomic.Uint32 // its address as it is in a packet; 0 for nobody
	_    uint32
	due  atomic.Uint64 // on the clock of Now, in nanoseconds
}

// admissionBoards is how many slots there are for boards. A board's slot is what the last ten bits of its
// address say, so no two boards of a subnet of 1022 hosts share one. Of two that do, the one that spoke last is known.
const admissionBoards = 1 << 10

// otherSenders is how many slots there are for those who send packets of other groups. A slot is what the last six bits of an address
// say. Of two, the one that spoke last is known.
const otherSenders = 1 << 6

const (
	// boardEvery allows a board 2,000 packets a second. A leader with the shortest heartbeat says 500.
	boardEvery = 500 * time.Microsecond
	// unknownEvery allows all others together as many. 255 boards that start together say a thousand in their first second.
	unknownEvery = 500 * time.Microsecond
	// admissionBurst is how many may come at once. A socket has room for as many of strangers and of some boards, see receiveBuffer.
	admissionBurst = 256
)

// admissionReason is why a packet is dropped before it reaches a socket.
type admissionReason int

// The reasons.
const (
	admissionTTL admissionReason = iota
	admissionShort
	admissionLong
	admissionGroup
	admissionRate
	admissionUser // of those that this board was to send, by a user who has no part in it
	admissionReasons
)

// newAdmission returns a limit that the readers keep.
func newAdmission() admission { return admission{memory: new(admissionMemory)} }

// share leaves the limit to a program in the kernel, which shares the memory of that file. The memory goes with the Conn.
func (c *Conn) share(fd int) error {
	mapped, err := unix.Mmap(fd, 0, int(unsafe.Sizeof(admissionMemory{})), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return os.NewSyscallError("mmap", err)
	}
	runtime.AddCleanup(c, func(mapped []byte) { _ = unix.Munmap(mapped) }, mapped)
	a := admission{memory: (*admissionMemory)(unsafe.Pointer(&mapped[0])), inKernel: true}
	for reason := range a.before {
		a.before[reason] = a.memory.dropped[reason].Load()
	}
	a.fromOwn = a.memory.fromOwn.Load()
	c.admission = a
	return nil
}

// SetIncarnation says in which packets this board may hear itself.
func (c *Conn) SetIncarnation(own wire.Incarnation) {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], uint32(own))
	c.admission.memory.own.Store(binary.NativeEndian.Uint32(b[:]))
}

// Know has the packets of a board limited by themselves, and not with those of strangers. A packet of it
// was proven to be its own.
func (c *Conn) Know(board netip.Addr) { c.admission.know(board) }

// Unlimited says why no program in the kernel limits what comes; "" if one does, or if the Conn was opened without a
// holder.
func (c *Conn) Unlimited() string { return c.admission.unlimited }

// slot returns the slot of a board, and its address as it is in a packet.
func (m *admissionMemory) slot(from netip.Addr) (*bucket, uint32) {
	as4 := from.As4()
	return &m.boards[binary.BigEndian.Uint32(as4[:])%admissionBoards], binary.NativeEndian.Uint32(as4[:])
}

// know gives a board a bucket of its own.
func (a *admission) know(board netip.Addr) {
	if !board.Is4() {
		return
	}
	slot, from := a.memory.slot(board)
	if slot.from.Load() != from {
		slot.due.Store(0)
		slot.from.Store(from)
	}
}

// knows reports whether a sender has a bucket of its own.
func (a *admission) knows(sender netip.Addr) bool {
	slot, from := a.memory.slot(sender)
	return slot.from.Load() == from
}

// admit reports whether a reader hands on what has come from a sender. The program in the kernel is on the group's interface only.
func (a *admission) admit(sender netip.Addr, now time.Duration, anyInterface bool) bool {
	if a.inKernel && !anyInterface {
		return true
	}
	slot, from := a.memory.slot(sender)
	every := boardEvery
	if slot.from.Load() != from {
		slot, every = &a.memory.unknown, unknownEvery
	}
	if slot.take(uint64(now), uint64(every)) {
		return true
	}
	a.memory.dropped[admissionRate].Add(1)
	return false
}

// take does what admissionProgram does. Two readers that take from one bucket at the same time may take one packet too many.
func (b *bucket) take(now, every uint64) bool {
	due, most := b.due.Load(), every*admissionBurst
	switch {
	case due < now, due > now+2*most: // the latter was not written in one piece by a machine of 32 bits
		due = now
	case due > now+most:
		return false
	}
	b.due.Store(due + every)
	return true
}

// dropped is how many packets were dropped for a reason.
func (a *admission) dropped(reason admissionReason) uint64 {
	return a.memory.dropped[reason].Load() - a.before[reason]
}
