package netio

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// This file calls bpf(2) for the fence and admission, which need five of its commands. A library would make the
// program larger by a sixth.

// bpfMap is the attribute of BPF_MAP_CREATE.
type bpfMap struct {
	kind, keySize, valueSize, entries, flags uint32

	_    [2]uint32 // an inner map, and a node
	name [16]byte
}

// bpfProgram is the attribute of BPF_PROG_LOAD.
type bpfProgram struct {
	kind, instructions uint32
	program, license   uint64

	_      [6]uint32 // a log of the verifier, and flags
	name   [16]byte
	_      uint32 // an interface
	attach uint32
}

// bpfLink is the attribute of BPF_LINK_CREATE.
type bpfLink struct {
	program, ifindex, attach, flags uint32
}

// bpfDetach is the attribute of BPF_LINK_DETACH.
type bpfDetach struct{ link uint32 }

// bpfQuery is the attribute of BPF_PROG_QUERY.
type bpfQuery struct {
	ifindex, attach uint32

	_ [2]uint32 // flags
	_ [6]uint64 // where to put what is attached, which is not needed here
}

// callBPF makes the system call.
func callBPF[T any](command int, attribute *T) (fd int, err error) {
	for {
		r, _, errno := unix.Syscall(unix.SYS_BPF, uintptr(command), uintptr(unsafe.Pointer(attribute)), unsafe.Sizeof(*attribute))
		switch errno {
		case 0:
			return int(r), nil
		case unix.EINTR, unix.EAGAIN: // the verifier was interrupted
		default:
			return -1, errno
		}
	}
}

// newArray makes an array map with one value that can be mapped into memory.
func newArray(name string, size int) (*os.File, error) {
	a := bpfMap{kind: unix.BPF_MAP_TYPE_ARRAY, keySize: 4, valueSize: uint32(size), entries: 1, flags: unix.BPF_F_MMAPABLE}
	copy(a.name[:15], name)
	fd, err := callBPF(unix.BPF_MAP_CREATE, &a)
	if err != nil {
		return nil, explainBPF("make an array map", err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// loadProgram loads a program into the kernel, which verifies it.
func loadProgram(name string, kind, attach uint32, program []instruction) (fd int, err error) {
	license := []byte("Dual MIT/GPL\x00")
	var pinned runtime.Pinner // since the kernel gets the addresses as numbers
	defer pinned.Unpin()
	pinned.Pin(&program[0])
	pinned.Pin(&license[0])
	a := bpfProgram{
		kind: kind, attach: attach,
		instructions: uint32(len(program)), program: address(unsafe.Pointer(&program[0])), license: address(unsafe.Pointer(&license[0])),
	}
	copy(a.name[:15], name)
	fd, err = callBPF(unix.BPF_PROG_LOAD, &a)
	if err != nil {
		return -1, explainBPF("load the program "+name, err)
	}
	return fd, nil
}

// address returns a pointer as bpf(2) wants it: 64 bits on every machine.
func address(p unsafe.Pointer) uint64 { return uint64(uintptr(p)) }

// attachProgram attaches a program to an interface. It stays attached until the last copy of the
// returned descriptor is closed, or until detachProgram.
func attachProgram(program, ifindex int, attach, flags uint32) (link int, err error) {
	a := bpfLink{program: uint32(program), ifindex: uint32(ifindex), attach: attach, flags: flags}
	return callBPF(unix.BPF_LINK_CREATE, &a)
}

// detachProgram detaches a program from its interface, even if another process has a copy of the descriptor.
func detachProgram(link int) {
	// This fails if the interface is gone, and the program with it.
	_, _ = callBPF(unix.BPF_LINK_DETACH, &bpfDetach{uint32(link)})
	unix.Close(link)
}

// knowsAttach returns an error if the kernel cannot attach a program there. It only queries the kernel, and changes
// nothing.
func knowsAttach(ifindex int, attach uint32) error {
	_, err := callBPF(unix.BPF_PROG_QUERY, &bpfQuery{ifindex: uint32(ifindex), attach: attach})
	return err
}

func explainBPF(what string, err error) error {
	advice := ""
	switch {
	case errors.Is(err, unix.EPERM):
		advice = " (needs CAP_BPF and CAP_NET_ADMIN)"
	case errors.Is(err, unix.ENOSYS):
		advice = " (the kernel has no bpf)"
	case errors.Is(err, unix.EINVAL):
		advice = " (the kernel is too old)"
	}
	return fmt.Errorf("%s: %w%s", what, err, advice)
}

// instruction is an instruction of BPF, struct bpf_insn in linux/bpf.h, in the byte order of the machine.
type instruction struct {
	code      uint8
	registers uint8
	offset    int16
	immediate int32
}

// register is one of r0 to r10. A call returns in r0, takes its arguments from r1 to r5 and overwrites them, and keeps
// r6 to r9. r10 is the end of the stack.
type register uint8

const (
	r0 register = iota
	r1
	r2
	r3
	r4
	r5
	r6
	r7
	r8
	r9
	r10
)

// registersOf packs two registers into a byte. They are bit fields in C, and a big-endian
// machine has the first one in the high bits.
func registersOf(destination, source register) uint8 {
	if binary.NativeEndian.Uint16([]byte{0, 1}) == 1 {
		return uint8(destination<<4 | source)
	}
	return uint8(source<<4 | destination)
}

// assembler builds a program. Jumps go to labels, whose distances are filled in at the end.
type assembler struct {
	code   []instruction
	labels map[string]int
	jumps  map[int]string
}

func newAssembler() *assembler {
	return &assembler{labels: map[string]int{}, jumps: map[int]string{}}
}

func (a *assembler) emit(code uint8, destination, source register, offset int16, immediate int32) {
	a.code = append(a.code, instruction{code, registersOf(destination, source), offset, immediate})
}

// move sets a register to a number, and copy to another register.
func (a *assembler) move(destination register, n int32) {
	a.emit(unix.BPF_ALU64|unix.BPF_MOV|unix.BPF_K, destination, 0, 0, n)
}

func (a *assembler) copy(destination, source register) {
	a.emit(unix.BPF_ALU64|unix.BPF_MOV|unix.BPF_X, destination, source, 0, 0)
}

func (a *assembler) add(destination register, n int32) {
	a.emit(unix.BPF_ALU64|unix.BPF_ADD|unix.BPF_K, destination, 0, 0, n)
}

// and, and those that follow, compute with 64 bits.
func (a *assembler) and(r register, n int32) {
	a.emit(unix.BPF_ALU64|unix.BPF_AND|unix.BPF_K, r, 0, 0, n)
}

func (a *assembler) shift(r register, bits int32) {
	a.emit(unix.BPF_ALU64|unix.BPF_LSH|unix.BPF_K, r, 0, 0, bits)
}

func (a *assembler) multiply(r register, n int32) {
	a.emit(unix.BPF_ALU64|unix.BPF_MUL|unix.BPF_K, r, 0, 0, n)
}

func (a *assembler) addRegister(r, other register) {
	a.emit(unix.BPF_ALU64|unix.BPF_ADD|unix.BPF_X, r, other, 0, 0)
}

// hostOrder16 and hostOrder32 convert what was read from a packet to the byte order of the machine.
func (a *assembler) hostOrder16(r register) {
	a.emit(unix.BPF_ALU|unix.BPF_END|unix.BPF_TO_BE, r, 0, 0, 16)
}
func (a *assembler) hostOrder32(r register) {
	a.emit(unix.BPF_ALU|unix.BPF_END|unix.BPF_TO_BE, r, 0, 0, 32)
}

func (a *assembler) store(size uint8, to, r register, offset int16) {
	a.emit(unix.BPF_STX|unix.BPF_MEM|size, to, r, offset, 0)
}

// mapValue sets a register to the address of the only value of an array map.
func (a *assembler) mapValue(destination register, fd int) {
	a.emit(unix.BPF_LD|unix.BPF_DW|unix.BPF_IMM, destination, unix.BPF_PSEUDO_MAP_VALUE, 0, int32(fd))
	a.emit(0, 0, 0, 0, 0)
}

// load reads from memory; size is one of BPF_B, BPF_H, BPF_W, BPF_DW.
func (a *assembler) load(size uint8, destination, from register, offset int16) {
	a.emit(unix.BPF_LDX|unix.BPF_MEM|size, destination, from, offset, 0)
}

// jump jumps if the comparison of a register with a number holds, jumpWith if that with
// another register does. A comparison of 32 bits takes the number as it is; one of 64 would
// extend its sign.
func (a *assembler) jump(comparison uint8, r register, n int32, label string) {
	a.jumps[len(a.code)] = label
	a.emit(unix.BPF_JMP32|comparison|unix.BPF_K, r, 0, 0, n)
}

func (a *assembler) jumpWith(comparison uint8, r, other register, label string) {
	a.jumps[len(a.code)] = label
	a.emit(unix.BPF_JMP|comparison|unix.BPF_X, r, other, 0, 0)
}

// jumpNegative jumps if the 64 bits of a register are less than 0.
func (a *assembler) jumpNegative(r register, label string) {
	a.jumps[len(a.code)] = label
	a.emit(unix.BPF_JMP|unix.BPF_JSLT|unix.BPF_K, r, 0, 0, 0)
}

func (a *assembler) always(label string) {
	a.jumps[len(a.code)] = label
	a.emit(unix.BPF_JMP|unix.BPF_JA, 0, 0, 0, 0)
}

func (a *assembler) call(helper int32) { a.emit(unix.BPF_JMP|unix.BPF_CALL, 0, 0, 0, helper) }

// leave ends the program with a verdict.
func (a *assembler) leave(verdict int32) {
	a.move(r0, verdict)
	a.emit(unix.BPF_JMP|unix.BPF_EXIT, 0, 0, 0, 0)
}

func (a *assembler) label(name string) { a.labels[name] = len(a.code) }

// program returns the program with its jumps filled in.
func (a *assembler) program() []instruction {
	for at, label := range a.jumps {
		to, known := a.labels[label]
		if !known {
			panic("netio: a program for the kernel jumps to nowhere: " + label)
		}
		a.code[at].offset = int16(to - at - 1)
	}
	return a.code
}
