package netio

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// A filter runs in the kernel for each packet that a socket would get. What it drops
// does not wake this process.

// pass is more than any packet has: the filter lets all of it through.
const pass = 1 << 18

// setFilter attaches a filter to a socket.
func setFilter(fd int, program []bpf.Instruction) error {
	raw, err := bpf.Assemble(program)
	if err != nil {
		return fmt.Errorf("assemble a packet filter: %w", err)
	}
	filters := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		filters[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	err = unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{
		Len: uint16(len(filters)), Filter: &filters[0],
	})
	if err != nil {
		return fmt.Errorf("attach a packet filter: %w", err)
	}
	return nil
}

// arpFilter passes ARP packets that concern this host: replies to it, whoever speaks as one of the addresses, and whoever
// probes for one. The offsets are those of arp.go.
func arpFilter(addresses []netip.Addr) []bpf.Instruction {
	program := reply(bpf.RetConstant{Val: pass}, bpf.LoadAbsolute{Off: 14, Size: 4})
	program = append(program, passEach(addresses)...)
	program = append(program,
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 1},
		bpf.RetConstant{Val: 0},
		bpf.LoadAbsolute{Off: 24, Size: 4})
	program = append(program, passEach(addresses)...)
	return append(program, bpf.RetConstant{Val: 0})
}

// awaitedFilter passes replies to this host that come from one of the addresses.
func awaitedFilter(awaited []netip.Addr) []bpf.Instruction {
	program := reply(bpf.Jump{Skip: 1}, bpf.RetConstant{Val: 0})
	program = append(program, bpf.LoadAbsolute{Off: 14, Size: 4})
	program = append(program, passEach(awaited)...)
	return append(program, bpf.RetConstant{Val: 0})
}

// reply begins a filter: a reply that was sent to this host alone goes on with one instruction, and
// any other packet with the next.
func reply(isOne, isNone bpf.Instruction) []bpf.Instruction {
	return []bpf.Instruction{
		bpf.LoadAbsolute{Off: 6, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: arpReply, SkipFalse: 3},
		bpf.LoadExtension{Num: bpf.ExtType},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.PACKET_HOST, SkipFalse: 1},
		isOne,
		isNone,
	}
}

// passEach passes a packet if the address that was loaded is one of these.
func passEach(addresses []netip.Addr) []bpf.Instruction {
	program := make([]bpf.Instruction, 0, 2*len(addresses))
	for _, addr := range addresses {
		as4 := addr.As4()
		program = append(program,
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: binary.BigEndian.Uint32(as4[:]), SkipFalse: 1},
			bpf.RetConstant{Val: pass})
	}
	return program
}
