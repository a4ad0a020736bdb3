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

// admission limits how many packets a board accepts, so that a flood cannot drown what the boards of its group say.
// Each known board has a bucket of its own, and all other senders share one. The rule is the generic cell rate
// algorithm (ITU-T I.371, annex A): a bucket is the time at which the next packet is due at the allowed rate.
//
// If possible, a program in the kernel decides, and shares the memory with the daemon: a packet that it drops takes no
// room in a socket and wakes nobody. Otherwise the reader of the socket decides.
type admission struct {
	memory   *admissionMemory
	inKernel bool
	// unlimited is why no program in the kernel decides; "" if one does, or if none was wanted.
	unlimited string
}

// admissionMemory is shared by the program in the kernel and the daemon.
type admissionMemory struct {
	unknown bucket
	dropped [admissionReasons]atomic.Uint64
	seen    atomic.Uint64 // packets from other hosts to all boards that passed
	fromOwn atomic.Uint64 // packets to all boards from this board's own address that another machine has sent
	own     atomic.Uint32 // this board's incarnation, in network order: some access points send its own packets back
	_       uint32
	boards  [admissionBoards]bucket
	others  [otherSenders]atomic.Uint32 // senders of packets of other groups, in network order, until they are read
}

// bucket is the limit of one sender.
type bucket struct {
	from atomic.Uint32 // its address, in network order; 0 for nobody
	_    uint32
	due  atomic.Uint64 // on the clock of Now, in nanoseconds
}

// admissionBoards is how many slots there are for boards. The last ten bits of a board's address are its slot, so no two
// boards of a subnet of 1022 hosts share one. Of two that do, the one that spoke last is known.
const admissionBoards = 1 << 10

// otherSenders is how many slots there are for senders of packets of other groups. The last six bits of an address are
// its slot.
const otherSenders = 1 << 6

const (
	// boardEvery allows a board 2,000 packets a second. A leader with the shortest heartbeat sends 500.
	boardEvery = 500 * time.Microsecond
	// unknownEvery allows all other senders together as many. 255 boards that start together send a thousand in their
	// first second.
	unknownEvery = 500 * time.Microsecond
	// admissionBurst is how many packets may come at once. A socket has room for that many of strangers, and of some
	// boards, see receiveBuffer.
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
	admissionUser // a user of this board, who is not topdog, was about to send it
	admissionReasons
)

// newAdmission returns a limit that the readers enforce.
func newAdmission() admission { return admission{memory: new(admissionMemory)} }

// share leaves the limit to a program in the kernel, whose memory is that file. The memory is unmapped with the Conn.
func (c *Conn) share(fd int) error {
	mapped, err := unix.Mmap(fd, 0, int(unsafe.Sizeof(admissionMemory{})), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return os.NewSyscallError("mmap", err)
	}
	runtime.AddCleanup(c, func(mapped []byte) { _ = unix.Munmap(mapped) }, mapped)
	a := admission{memory: (*admissionMemory)(unsafe.Pointer(&mapped[0])), inKernel: true}
	for reason := range a.memory.dropped {
		a.memory.dropped[reason].Store(0) // the previous daemon has left its counts
	}
	a.memory.fromOwn.Store(0)
	c.admission = a
	return nil
}

// SetIncarnation sets the incarnation by which this board recognizes its own packets.
func (c *Conn) SetIncarnation(own wire.Incarnation) {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], uint32(own))
	c.admission.memory.own.Store(binary.NativeEndian.Uint32(b[:]))
}

// Know gives a board a limit of its own, apart from that of strangers. Call it once a packet was proven to be from
// that board.
func (c *Conn) Know(board netip.Addr) { c.admission.know(board) }

// Unlimited says why no program in the kernel limits what arrives; "" if one does, or if the Conn was opened without a
// holder.
func (c *Conn) Unlimited() string { return c.admission.unlimited }

// slot returns the slot of a board, and its address in network order.
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

// admit reports whether a reader delivers a packet of a sender. The program in the kernel is on the group's interface only.
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

// take does the same as admissionProgram.limit. Two readers that take from one bucket at the same time may admit one
// packet too many.
func (b *bucket) take(now, every uint64) bool {
	due, most := b.due.Load(), every*admissionBurst
	switch {
	case due < now, due > now+2*most: // the latter was written in two halves by a 32-bit machine
		due = now
	case due > now+most:
		return false
	}
	b.due.Store(due + every)
	return true
}

// dropped returns how many packets were dropped for a reason.
func (a *admission) dropped(reason admissionReason) uint64 {
	return a.memory.dropped[reason].Load()
}
