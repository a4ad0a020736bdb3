package bench

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/netns"
)

// capture is a packet socket on a host's interface.
type capture struct {
	file *os.File
	raw  syscall.RawConn
	out  *unix.SockaddrLinklayer // the interface
	buf  []byte
}

// frame is what a capture has seen. Its bytes are valid until the next read.
type frame struct {
	bytes    []byte
	length   int // on the wire, without checksum
	outgoing bool
	at       time.Time
}

// newCapture begins to capture the frames of an EtherType that a host's interface gets, or with
// ETH_P_ALL all that it gets or sends.
func newCapture(h *netns.Host, etherType uint16) (c *capture, err error) {
	err = h.Do(func() error {
		eth0, err := interfaceIndex(h.Interface)
		if err != nil {
			return err
		}
		at := &unix.SockaddrLinklayer{Protocol: htons(etherType), Ifindex: eth0}
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, int(at.Protocol))
		if err != nil {
			return os.NewSyscallError("socket", err)
		}
		file := os.NewFile(uintptr(fd), "packet")
		err = errors.Join(
			os.NewSyscallError("SO_RCVBUFFORCE", unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 4<<20)),
			os.NewSyscallError("bind", unix.Bind(fd, at)),
		)
		if err != nil {
			file.Close()
			return err
		}
		raw, err := file.SyscallConn()
		if err != nil {
			file.Close()
			return err
		}
		c = &capture{file: file, raw: raw, out: at, buf: make([]byte, 2048)}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("capture on %s of %s: %w", h.Interface, h.Name, err)
	}
	return c, nil
}

// interfaceIndex is of the calling thread's namespace.
func interfaceIndex(name string) (int, error) {
	i, err := net.InterfaceByName(name)
	if err != nil {
		return 0, err
	}
	return i.Index, nil
}

func htons(n uint16) uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, n))
}

func (c *capture) close() { c.file.Close() }

// read waits for the next frame, until the capture is closed or its deadline passes.
func (c *capture) read() (f frame, err error) {
	var recvErr error
	err = c.raw.Read(func(fd uintptr) bool {
		var n int
		var from unix.Sockaddr
		n, from, recvErr = unix.Recvfrom(int(fd), c.buf, unix.MSG_TRUNC)
		f.at = time.Now()
		if recvErr == nil {
			f.length, f.bytes = n, c.buf[:min(n, len(c.buf))]
			ll, ok := from.(*unix.SockaddrLinklayer)
			f.outgoing = ok && ll.Pkttype == unix.PACKET_OUTGOING
		}
		return !errors.Is(recvErr, unix.EAGAIN) && !errors.Is(recvErr, unix.EINTR)
	})
	return f, errors.Join(err, os.NewSyscallError("recvfrom", recvErr))
}

// Offsets in an Ethernet frame, an IPv4 packet and an ARP packet.
const (
	offsetSource    = 6
	offsetEtherType = 12
	headerEthernet  = 14
	offsetProtocol  = headerEthernet + 9
	offsetSenderIP  = headerEthernet + 14 // of ARP (RFC 826)
	offsetTargetIP  = headerEthernet + 24
)

func (f frame) etherType() uint16 {
	if len(f.bytes) < headerEthernet {
		return 0
	}
	return binary.BigEndian.Uint16(f.bytes[offsetEtherType:])
}

// from reports whether the frame has this source.
func (f frame) from(mac []byte) bool {
	return len(f.bytes) >= offsetEtherType && bytes.Equal(f.bytes[offsetSource:offsetEtherType], mac)
}

// carries reports whether the frame is of this traffic, to or from its port.
func (f frame) carries(t netns.Traffic) bool {
	if f.etherType() != unix.ETH_P_IP || len(f.bytes) < headerEthernet+20 || f.bytes[offsetProtocol] != t.Protocol {
		return false
	}
	if t.Port == 0 {
		return true
	}
	ports := headerEthernet + int(f.bytes[headerEthernet]&0x0f)*4
	return len(f.bytes) >= ports+4 && (binary.BigEndian.Uint16(f.bytes[ports:]) == t.Port ||
		binary.BigEndian.Uint16(f.bytes[ports+2:]) == t.Port)
}

// announces reports whether the frame announces the floating address by ARP: who
// sends it claims to have the address, and asks for no other.
func (f frame) announces() bool {
	if f.etherType() != unix.ETH_P_ARP || len(f.bytes) < offsetTargetIP+4 {
		return false
	}
	sender, target := f.bytes[offsetSenderIP:offsetSenderIP+4], f.bytes[offsetTargetIP:offsetTargetIP+4]
	address := vip.AsSlice()
	return bytes.Equal(sender, address) && bytes.Equal(target, address)
}

// listener hears what some hosts send and get, until it is closed.
type listener struct {
	captures []*capture
	wg       sync.WaitGroup
}

// add begins to hear a host. Its frames go to hear, one after the other, as long as that wants more.
func (l *listener) add(host *netns.Host, etherType uint16, hear func(frame) (more bool)) error {
	c, err := newCapture(host, etherType)
	if err != nil {
		return err
	}
	l.captures = append(l.captures, c)
	l.wg.Go(func() {
		for {
			f, err := c.read()
			if err != nil || !hear(f) {
				return
			}
		}
	})
	return nil
}

func (l *listener) close() {
	for _, c := range l.captures {
		c.close()
	}
	l.wg.Wait()
}

// firstFrame waits for the first frame that is looked for.
type firstFrame struct {
	listener
	seen chan time.Time
}

// firstFrame begins to look, at the board and at the client, which gets whatever
// the board sends to all.
func (r *rig) firstFrame(b *board) (*firstFrame, error) {
	return firstOf(map[*netns.Host]func(frame) bool{
		b.Host:         func(f frame) bool { return !f.outgoing && !f.from(b.HardwareAddr) },
		r.LAN.Client(): func(f frame) bool { return f.from(b.HardwareAddr) },
	})
}

// hearLeader waits for the leader's next message to all, as the client gets it. In CARP
// all messages come from one hardware address, and in VRRP and CARP none but a leader's.
func (r *rig) hearLeader(leader *board) (*firstFrame, error) {
	traffic := r.sys.traffic()
	return firstOf(map[*netns.Host]func(frame) bool{
		r.LAN.Client(): func(f frame) bool {
			return f.carries(traffic) && (traffic.Protocol == protocolVRRP || f.from(leader.HardwareAddr))
		},
	})
}

// firstOf waits for the first frame on any of the hosts that is wanted there.
func firstOf(wants map[*netns.Host]func(frame) bool) (*firstFrame, error) {
	w := &firstFrame{seen: make(chan time.Time, len(wants))}
	for host, wanted := range wants {
		err := w.add(host, unix.ETH_P_ALL, func(f frame) (more bool) {
			if wanted(f) {
				w.seen <- f.at
				return false
			}
			return true
		})
		if err != nil {
			w.close()
			return nil, err
		}
	}
	return w, nil
}

// wait returns when the first frame came.
func (w *firstFrame) wait(ctx context.Context, most time.Duration) (time.Time, error) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case at := <-w.seen:
		return at, nil
	case <-timer.C:
		return time.Time{}, fmt.Errorf("no frame got through within %v", most)
	case <-ctx.Done():
		return time.Time{}, ctx.Err()
	}
}
