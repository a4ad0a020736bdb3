package soak

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/cluster"
	"topdog/internal/lab/netns"
)

const (
	// askEvery is how often a place asks each board by ICMP, and arpEvery every how many times
	// by ARP too.
	askEvery = 2 * time.Millisecond
	arpEvery = 5
	// arpRing is how many addresses a place asks from by ARP in turn. A reply has no number:
	// the address to which it comes says which question it answers, for as long as a round takes.
	arpRing = 8
	// firstProber is the last octet of the first address from which a place asks. No machine has
	// it: the boards learn from the requests where it is.
	firstProber = 201
)

// place asks boards whether they answer for the floating address, and notes who does.
type place struct {
	record
	sockets []*prober
}

// prober is a socket through which some boards are asked.
type prober struct {
	file   *os.File
	raw    syscall.RawConn
	link   int
	mac    net.HardwareAddr
	first  int                      // the last octet of the first address from which it asks by ARP
	boards map[int]net.HardwareAddr // by number
	began  time.Time                // of the record
	note   func(board int, asked, came time.Duration)

	mu    sync.Mutex
	asked [arpRing]time.Duration // by ARP
	done  chan struct{}
	wg    sync.WaitGroup
}

// atMachine opens the n-th place that a machine on the LAN is: one with a hardware address of its own,
// since the kernel of that machine must not care for the answers.
func (p *place) atMachine(n int, h *netns.Host, boards []*cluster.Topdog, began time.Time) error {
	mac := slices.Clone(h.HardwareAddr)
	mac[placeOctet] = placeMark
	return p.open(firstProber+n*arpRing, h.Do, h.Interface, mac, boards, began)
}

// placeOctet is the octet of the lab's hardware addresses that tells ports from machines, and
// placeMark what it is for a place.
const placeOctet, placeMark = 4, 0xaa

// atPort adds the switch port of a board to a place, so that the board is asked whatever the
// switch does.
func (p *place) atPort(t *cluster.Topdog, began time.Time) error {
	return p.open(firstProber+t.Number*arpRing, t.AtPort, string(t.Port()), nil, []*cluster.Topdog{t}, began)
}

// open begins to ask through an interface, whose hardware address is the sender's unless
// another is given. first is the last octet of the addresses from which it asks by ARP.
func (p *place) open(first int, inside func(func() error) error, name string, mac net.HardwareAddr, boards []*cluster.Topdog, began time.Time) error {
	s := &prober{mac: mac, first: first, boards: map[int]net.HardwareAddr{}, began: began, note: p.add, done: make(chan struct{})}
	for _, b := range boards {
		s.boards[b.Number] = b.HardwareAddr
	}
	if err := inside(func() error { return s.listen(name) }); err != nil {
		return fmt.Errorf("soak: ask the boards through %s: %w", name, err)
	}
	s.wg.Go(s.ask)
	s.wg.Go(s.receive)
	p.sockets = append(p.sockets, s)
	return nil
}

// close ends the asking.
func (p *place) close() {
	for _, s := range p.sockets {
		close(s.done)
		s.file.Close()
		s.wg.Wait()
	}
}

// listen opens a packet socket in the namespace of the calling thread. The kernel says when
// each frame came, however late this process reads it.
func (s *prober) listen(name string) error {
	link, err := net.InterfaceByName(name)
	if err != nil {
		return err
	}
	s.link = link.Index
	if s.mac == nil {
		s.mac = link.HardwareAddr
	}
	protocol := int(binary.NativeEndian.Uint16([]byte{unix.ETH_P_ALL >> 8, unix.ETH_P_ALL & 0xff}))
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	s.file = os.NewFile(uintptr(fd), name)
	err = errors.Join(
		os.NewSyscallError("PACKET_IGNORE_OUTGOING", unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1)),
		os.NewSyscallError("SO_TIMESTAMPNS", unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1)),
		os.NewSyscallError("bind", unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: uint16(protocol), Ifindex: s.link})),
	)
	if err == nil {
		s.raw, err = s.file.SyscallConn()
	}
	if err != nil {
		s.file.Close()
	}
	return err
}

// from is the address from which the n-th question by ARP is asked.
func (s *prober) from(n int) netip.Addr {
	a := netns.Subnet.Addr().As4()
	a[3] = byte(s.first + n%arpRing)
	return netip.AddrFrom4(a)
}

// ask sends the questions.
func (s *prober) ask() {
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-s.done:
			return
		case <-tick.C:
		}
		now := time.Since(s.began)
		arp := n%arpEvery == 0
		if arp {
			s.mu.Lock()
			s.asked[n/arpEvery%arpRing] = now
			s.mu.Unlock()
		}
		for _, mac := range s.boards {
			q := question{toMAC: mac, fromMAC: s.mac, target: cluster.Address, from: s.from(0)}
			s.send(q.echo(s.id(), now))
			if arp {
				q.from = s.from(n / arpEvery)
				s.send(q.arp())
			}
		}
	}
}

// id tells the echoes of one socket from those of another.
func (s *prober) id() uint16 { return uint16(s.link) }

// send sends a frame. A link that is down sends nothing, and then nobody is reached.
func (s *prober) send(frame []byte) {
	_ = s.raw.Write(func(fd uintptr) bool {
		_ = unix.Sendto(int(fd), frame, 0, &unix.SockaddrLinklayer{Ifindex: s.link, Halen: 6})
		return true
	})
}

// receive takes the answers, until the socket is closed.
func (s *prober) receive() {
	frame, control := make([]byte, 256), make([]byte, 128)
	for {
		var n, controls int
		err := s.raw.Read(func(fd uintptr) bool {
			var err error
			n, controls, _, _, err = unix.Recvmsg(int(fd), frame, control, 0)
			if err != nil {
				n = 0
			}
			return !errors.Is(err, unix.EAGAIN)
		})
		if err != nil {
			return
		}
		s.take(frame[:n], arrival(control[:controls]).Sub(s.began))
	}
}

// take notes an answer.
func (s *prober) take(frame []byte, came time.Duration) {
	mac, asked, ok := readEcho(frame, cluster.Address, s.id())
	if !ok {
		var to netip.Addr
		if mac, to, ok = readARP(frame, cluster.Address); !ok {
			return
		}
		place := int(to.As4()[3]) - s.first
		if place < 0 || place >= arpRing {
			return
		}
		s.mu.Lock()
		asked = s.asked[place]
		s.mu.Unlock()
	}
	for board, is := range s.boards {
		if bytes.Equal(is, mac) {
			s.note(board, asked, came)
		}
	}
}

// arrival is when the kernel received a frame, with a reading of the monotonic clock.
func arrival(control []byte) time.Time {
	now := time.Now()
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return now
	}
	for _, m := range messages {
		if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SO_TIMESTAMPNS && len(m.Data) >= 16 {
			seconds, nanos := binary.NativeEndian.Uint64(m.Data), binary.NativeEndian.Uint64(m.Data[8:])
			return now.Add(-now.Round(0).Sub(time.Unix(int64(seconds), int64(nanos))))
		}
	}
	return now
}
