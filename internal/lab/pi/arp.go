package pi

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// An ARP request or reply for IPv4 over Ethernet has 28 bytes (RFC 826).
const (
	arpLength  = 28
	arpRequest = 1
	arpReply   = 2
)

// askTime is how long to wait for answers to an ARP request, and askRounds how
// often it is sent: a board that pauses or a frame that got lost must not count
// as an address that nobody has.
const (
	askRounds = 3
	askTime   = 500 * time.Millisecond
)

// Holders asks the whole LAN who has an address, and returns the numbers of the
// boards that answer, in ascending order. More than one is a fault of topdog.
func (l *Lab) Holders(ctx context.Context, addr netip.Addr) ([]int, error) {
	return l.ask(ctx, addr, askRounds)
}

// HoldersNow asks once, and returns those that answer at once: for whoever waits for a change,
// and looks again in any case.
func (l *Lab) HoldersNow(ctx context.Context, addr netip.Addr) ([]int, error) {
	return l.ask(ctx, addr, 1)
}

// ask asks the whole LAN so often who has an address.
func (l *Lab) ask(ctx context.Context, addr netip.Addr, rounds int) ([]int, error) {
	fail := func(err error) ([]int, error) { return nil, fmt.Errorf("ask who has %s: %w", addr, err) }
	index, mac, err := l.segment.Bridge()
	if err != nil {
		return fail(err)
	}
	fd, err := l.arpSocket(index)
	if err != nil {
		return fail(err)
	}
	defer unix.Close(fd)
	request := arpQuestion(mac, l.host(), addr)
	found := make(map[int]bool)
	for range rounds {
		if err := unix.Sendto(fd, request, 0, everybodyOn(index)); err != nil {
			return fail(err)
		}
		if err := l.collect(ctx, fd, addr, found); err != nil {
			return fail(err)
		}
	}
	boards := make([]int, 0, len(found))
	for n := range found {
		boards = append(boards, n)
	}
	slices.Sort(boards)
	return boards, nil
}

// arpSocket opens a socket for ARP on an interface of the segment.
func (l *Lab) arpSocket(index int) (fd int, err error) {
	fd = -1
	err = l.segment.Do(func() (err error) {
		protocol := bigEndian(unix.ETH_P_ARP)
		if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, int(protocol)); err != nil {
			return fmt.Errorf("open a packet socket: %w", err)
		}
		return unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: protocol, Ifindex: index})
	})
	if err != nil && fd >= 0 {
		unix.Close(fd)
	}
	return fd, err
}

// everybodyOn is where a request goes.
func everybodyOn(index int) *unix.SockaddrLinklayer {
	return &unix.SockaddrLinklayer{Protocol: bigEndian(unix.ETH_P_ARP), Ifindex: index, Halen: 6, Addr: [8]byte{255, 255, 255, 255, 255, 255}}
}

// collect gathers the boards whose answers arrive within askTime.
func (l *Lab) collect(ctx context.Context, fd int, addr netip.Addr, found map[int]bool) error {
	buf := make([]byte, 128)
	for end := time.Now().Add(askTime); ; {
		left := time.Until(end)
		if left <= 0 || ctx.Err() != nil {
			return ctx.Err()
		}
		timeout := unix.NsecToTimeval(max(left, time.Millisecond).Nanoseconds())
		if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout); err != nil {
			return err
		}
		n, _, err := unix.Recvfrom(fd, buf, 0)
		if err != nil {
			continue // The time is over, or a signal came.
		}
		mac, ok := arpAnswer(buf[:n], addr)
		if !ok {
			continue
		}
		if n, ok := l.numberOf(mac); ok {
			found[n] = true
		}
	}
}

// bigEndian is htons(3), for the two fields of a packet socket that want it.
func bigEndian(v uint16) uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, v))
}

// arpQuestion asks who has addr.
func arpQuestion(mac net.HardwareAddr, from, addr netip.Addr) []byte {
	b := []byte{0, unix.ARPHRD_ETHER, unix.ETH_P_IP >> 8, unix.ETH_P_IP & 0xff, 6, 4, 0, arpRequest}
	b = append(b, mac...)
	b = append(b, from.AsSlice()...)
	b = append(b, make([]byte, 6)...)
	return append(b, addr.AsSlice()...)
}

// arpAnswer returns the hardware address of a reply that says who has addr.
func arpAnswer(b []byte, addr netip.Addr) (net.HardwareAddr, bool) {
	if len(b) < arpLength || b[6] != 0 || b[7] != arpReply || !bytes.Equal(b[14:18], addr.AsSlice()) {
		return nil, false
	}
	return net.HardwareAddr(b[8:14]), true
}
