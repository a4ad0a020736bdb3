package netio

import (
	"encoding/binary"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/judge"
	"topdog/internal/lab/netns"
	"topdog/wire"
)

const testTag wire.GroupTag = 0x1234

// ofGroup is a packet that the kernel lets through: it has a header, and no signature.
func ofGroup(tag wire.GroupTag, size int) []byte {
	packet := make([]byte, size)
	packet[wire.GroupTagEnd-2], packet[wire.GroupTagEnd-1] = byte(tag>>8), byte(tag)
	return packet
}

func TestBucket(t *testing.T) {
	const every = 1000
	for name, test := range map[string]struct {
		due, now uint64
		want     bool
		next     uint64
	}{
		"never used":             {0, 5e6, true, 5e6 + every},
		"used long ago":          {4e6, 5e6, true, 5e6 + every},
		"used just now":          {5e6 + every, 5e6 + 1, true, 5e6 + 2*every},
		"the last one":           {5e6 + every*admissionBurst, 5e6, true, 5e6 + every*admissionBurst + every},
		"one too many":           {5e6 + every*admissionBurst + 1, 5e6, false, 5e6 + every*admissionBurst + 1},
		"not written in a whole": {5e6 + 1<<32, 5e6, true, 5e6 + every},
	} {
		var b bucket
		b.due.Store(test.due)
		assert.Is(t, test.want, b.take(test.now, every), "%s", name)
		assert.Is(t, test.next, b.due.Load(), "%s: the next is due", name)
	}
}

// TestAdmission: what a reader hands on while strangers say more than they may.
func TestAdmission(t *testing.T) {
	a := newAdmission()
	board, stranger, neighbour := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.9"), netip.MustParseAddr("10.0.4.1")
	a.know(board)
	now := time.Hour
	admitted := func(from netip.Addr, n int) (admitted int) {
		for range n {
			if a.admit(from, now, false) {
				admitted++
			}
		}
		return admitted
	}
	const burst = admissionBurst + 1
	assert.Is(t, burst, admitted(stranger, 5000), "of strangers at once")
	assert.Is(t, 0, admitted(neighbour, 10), "of another one")
	assert.Is(t, 200, admitted(board, 200), "of a board at the same time")
	now += time.Second
	assert.Is(t, burst, admitted(stranger, 5000), "of strangers a second later")
	assert.Is(t, burst, admitted(board, 5000), "of a board that says too much")
	assert.Is(t, uint64(5000-burst+10+5000-burst+5000-burst), a.dropped(admissionRate), "dropped")
	a.know(neighbour) // has the place of the board
	if !a.knows(neighbour) || a.knows(board) {
		t.Error("the board that spoke last is not the one that is known")
	}
}

// openAdmitting has a holder open sockets that only take what is of the group.
func (b *board) openAdmitting(t testing.TB) *Conn {
	t.Helper()
	h, err := on(b, func() (*Holder, error) {
		return StartHolder(holderCommand, HolderOptions{Interface: "eth0", Floating: []netip.Addr{testVIP}, Group: testGroup, Tag: testTag, Method: HoldLifetime})
	})
	must(t, err)
	t.Cleanup(func() { h.Close() })
	return b.openSockets(t, &guard{Holder: h})
}

// TestAdmissionByReaders has the kernel refuse the program, since others have all places of the interface.
func TestAdmissionByReaders(t *testing.T) { judge.RunTogether(t, testAdmissionByReaders) }

func testAdmissionByReaders(t *judge.T) {
	const places = 64 // of an interface at most: BPF_MPROG_MAX in include/linux/bpf_mprog.h of Linux
	l := newLAN(t, 2)
	a := l.boards[0]
	a.do(t, func() error {
		eth0, err := net.InterfaceByName("eth0")
		if err != nil {
			return err
		}
		for range places {
			k, err := admissionProgram{sockets: []bind{{to: testGroup, path: PathMulticast}}, tag: testTag + 1}.attach(eth0.Index)
			if err != nil {
				return nil // they have all
			}
			t.Cleanup(func() {
				k.detach()
				closeAll([]int{k.array})
			})
		}
		return nil
	})
	conn := a.openAdmitting(t)
	if why := conn.Unlimited(); !strings.Contains(why, "attach the program topdog_admit: ") || conn.admission.inKernel {
		t.Fatalf("no kernel limits what comes because of %q", why)
	}
	var admitted atomic.Int64
	serve(t, conn, func(Datagram) { admitted.Add(1) })
	stranger := openForeign(t, l.boards[1])
	eventually(t, "the bridge forwards", func() bool {
		send(t, stranger, 255, ofGroup(testTag, wire.MinPacket), conn.self)
		return admitted.Load() > 0
	})
	eventually(t, "more comes than strangers may say", func() bool {
		for range admissionBurst {
			send(t, stranger, 255, ofGroup(testTag, wire.MinPacket), conn.self)
		}
		return conn.Drops().OverRate > 0
	})
}

// TestUsersDoNotSpeak: of a board, only its holder and root send to the group. Everything else of a user leaves.
func TestUsersDoNotSpeak(t *testing.T) { judge.RunTogether(t, testUsersDoNotSpeak) }

func testUsersDoNotSpeak(t *judge.T) {
	const user = 64001
	l := newLAN(t, 3)
	a, b, other := l.boards[0], l.boards[1], l.boards[2]
	conn := a.openAdmitting(t)
	if !conn.admission.inKernel {
		t.Skipf("the kernel attaches no program: %s", conn.Unlimited())
	}
	serve(t, conn, func(Datagram) {})
	second := netip.MustParsePrefix("10.77.0.201/24")
	a.addAddr(t, "eth0", second)
	port := testGroup.Port()
	var arrived atomic.Int64
	for _, bound := range []netip.AddrPort{netip.AddrPortFrom(b.addr, port), netip.AddrPortFrom(b.addr, port+1)} {
		hears := b.listen(t, bound)
		go func() {
			for buf := make([]byte, 64); ; {
				if _, _, err := hears.ReadFrom(buf); err != nil {
					return
				}
				arrived.Add(1)
			}
		}()
	}
	from := func(addr netip.Addr, uid int) *net.UDPConn {
		c := a.listen(t, netip.AddrPortFrom(addr, 0))
		raw, err := c.SyscallConn()
		must(t, err)
		must(t, raw.Control(func(fd uintptr) { // whose the socket is, is whose the file is
			must(t, unix.Fchown(int(fd), uid, -1))
			must(t, unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_BROADCAST, 1))
		}))
		return c
	}
	users, root, atSecond := from(a.addr, user), from(a.addr, 0), from(second.Addr(), user)
	eventually(t, "the bridge forwards", func() bool {
		send(t, root, 255, ofGroup(testTag, 40), netip.AddrPortFrom(b.addr, port))
		return arrived.Load() > 0
	})
	keptBack := Drops{LocalUser: 1}
	for name, test := range map[string]struct {
		from *net.UDPConn
		to   netip.AddrPort
	}{
		"to the group":        {users, testGroup},
		"to all":              {users, netip.AddrPortFrom(LastAddr(netip.PrefixFrom(a.addr, 24)), port)},
		"to a board":          {users, netip.AddrPortFrom(b.addr, port)},
		"of a second address": {atSecond, testGroup},
		"of that, to a board": {atSecond, netip.AddrPortFrom(other.addr, port)},
	} {
		t.Run(name, func(t *judge.T) {
			wantDropped(t, conn, keptBack, func() { send(t, test.from, 255, ofGroup(testTag, 40), test.to) })
		})
	}
	for name, test := range map[string]struct {
		from *net.UDPConn
		to   netip.AddrPort
		ttl  int
		data []byte
	}{
		"another port":  {users, netip.AddrPortFrom(b.addr, port+1), 255, ofGroup(testTag, 40)},
		"another TTL":   {users, netip.AddrPortFrom(b.addr, port), 64, ofGroup(testTag, 40)},
		"another group": {users, netip.AddrPortFrom(b.addr, port), 255, ofGroup(testTag+1, 40)},
		"no packet":     {users, netip.AddrPortFrom(b.addr, port), 255, []byte("an answer of DNS")},
		"by root":       {root, netip.AddrPortFrom(b.addr, port), 255, ofGroup(testTag, 40)},
	} {
		t.Run(name, func(t *judge.T) {
			before := arrived.Load()
			send(t, test.from, test.ttl, test.data, test.to)
			eventually(t, "it arrives", func() bool { return arrived.Load() > before })
		})
	}
	t.Run("by the board", func(t *judge.T) {
		before := arrived.Load()
		must(t, conn.Unicast(ofGroup(testTag, 40), netip.AddrPortFrom(b.addr, port)))
		eventually(t, "it arrives", func() bool { return arrived.Load() > before })
	})
}

// TestAdmissionInKernel sends to a board whose holder has put the program on the interface.
func TestAdmissionInKernel(t *testing.T) { judge.RunTogether(t, testAdmissionInKernel) }

func testAdmissionInKernel(t *judge.T) {
	l := newLAN(t, 3)
	a, b := l.boards[0], l.boards[1]
	conn := a.openAdmitting(t)
	if !conn.admission.inKernel {
		t.Skipf("the kernel attaches no program: %s", conn.Unlimited())
	}
	in := &inbox{Conn: conn, name: "board", got: make(chan string, 1<<14)}
	serve(t, conn, func(d Datagram) {
		switch {
		case len(d.Data) == wire.MinPacket: // which is sent until the bridge forwards, and may come late
			in.got <- "early"
		case d.Known:
			in.got <- "board"
		default:
			in.got <- "stranger"
		}
	})
	stranger, board := openForeign(t, b), openForeign(t, l.boards[2])
	eventually(t, "the bridge forwards", func() bool {
		send(t, board, 255, ofGroup(testTag, wire.MinPacket), conn.self)
		return len(in.got) > 0
	})
	for name, test := range map[string]struct {
		ttl  int
		data []byte
		want Drops
	}{
		"from beyond the link": {254, ofGroup(testTag, 40), Drops{WrongTTL: 1}},
		"too short":            {255, ofGroup(testTag, wire.MinPacket-1), Drops{Short: 1}},
		"nothing":              {255, nil, Drops{Short: 1}},
		"too long":             {255, ofGroup(testTag, wire.MaxPacket+1), Drops{Truncated: 1}},
		"another group":        {255, ofGroup(testTag+1, 40), Drops{OtherGroup: 1}},
	} {
		t.Run(name, func(t *judge.T) {
			wantDropped(t, conn, test.want, func() { send(t, stranger, test.ttl, test.data, conn.self) })
		})
	}
	t.Run("arrivals", func(t *judge.T) {
		all := func(from *net.UDPConn) {
			send(t, from, 255, ofGroup(testTag, 40), testGroup)
			send(t, from, 255, ofGroup(testTag, 40), conn.self) // which is not for all
			send(t, from, 255, ofGroup(testTag+1, 40), testGroup)
		}
		duplicate := l.boards[2]
		duplicate.addAddr(t, "eth0", netip.PrefixFrom(a.addr, 24))
		conn.SetIncarnation(7)
		same := duplicate.listen(t, netip.AddrPortFrom(a.addr, 0))
		arrive := func(what string, does func(), want Arrivals) {
			t.Helper()
			before := conn.Arrivals()
			does()
			eventually(t, what, func() bool {
				now := conn.Arrivals()
				return now == Arrivals{true, before.Seen + want.Seen, before.FromOwn + want.FromOwn, before.Heard + want.Heard, before.Own + want.Own}
			})
		}
		arrive("a multicast of a stranger", func() { all(stranger) }, Arrivals{Seen: 1, Heard: 2})
		arrive("of another board with this one's address", func() { send(t, same, 255, ofGroup(testTag, 40), testGroup) }, Arrivals{FromOwn: 1})
		reflected := ofGroup(testTag, 40)
		binary.BigEndian.PutUint32(reflected[wire.IncarnationEnd-4:], 0x40000007) // with the grade
		before := conn.Arrivals()
		send(t, same, 255, reflected, testGroup)
		arrive("what this board has said, sent back by an access point", func() { send(t, same, 255, ofGroup(testTag, 40), testGroup) }, Arrivals{FromOwn: 1})
		assert.Is(t, before.FromOwn+1, conn.Arrivals().FromOwn, "counted, without what was sent back")
		arrive("what this board broadcasts", func() { must(t, conn.Broadcast(ofGroup(testTag, 40))) }, Arrivals{Own: 1})
		duplicate.delAddr(t, "eth0", netip.PrefixFrom(a.addr, 24))
		// Of a host of another network: the kernel may drop it anyway.
		foreign := netip.MustParsePrefix("172.16.0.9/32")
		l.boards[1].addAddr(t, "lo", foreign)
		from := l.boards[1].listen(t, netip.AddrPortFrom(foreign.Addr(), 0))
		must(t, ipv4.NewPacketConn(from).SetMulticastInterface(&net.Interface{Index: l.boards[1].link(t, "eth0").Index}))
		before = conn.Arrivals()
		send(t, from, 255, ofGroup(testTag, 40), testGroup)
		send(t, stranger, 255, ofGroup(testTag, 40), testGroup)
		eventually(t, "the next one is seen", func() bool { return conn.Arrivals().Seen > before.Seen })
		assert.Is(t, before.Seen+1, conn.Arrivals().Seen, "seen, without that of another network")
		eventually(t, "both are heard", func() bool { return conn.Arrivals().Heard == before.Heard+2 })
		_ = conn.OtherGroups()
		send(t, stranger, 255, ofGroup(testTag+1, 40), testGroup)
		send(t, duplicate.listen(t, netip.AddrPortFrom(duplicate.addr, 0)), 255, ofGroup(testTag+2, 40), conn.self)
		var others []netip.Addr
		eventually(t, "both senders of other groups are known", func() bool { others = append(others, conn.OtherGroups()...); return len(others) == 2 })
		assert.Is(t, true, slices.Contains(others, b.addr) && slices.Contains(others, duplicate.addr), "senders of other groups: %v", others)
		assert.Is(t, 0, len(conn.OtherGroups()), "senders since")
		firewall, err := on(a, netns.NewFirewall)
		must(t, err)
		arrive("behind a firewall", func() { all(stranger) }, Arrivals{Seen: 1})
		must(t, firewall.Close())
	})
	t.Run("too much", func(t *judge.T) {
		conn.Know(l.boards[2].addr)
		for len(in.got) > 0 {
			<-in.got
		}
		const said, flood = 100, 30 * 100
		began := Now()
		for i := range flood {
			send(t, stranger, 255, ofGroup(testTag, 40), conn.self)
			if i%(flood/said) == 0 {
				send(t, board, 255, ofGroup(testTag, 40), conn.self)
			}
		}
		took := Now() - began
		send(t, board, 255, ofGroup(testTag, wire.MinPacket-1), conn.self) // the last one
		boards, strangers := 0, 0
		eventually(t, "all of the board is heard", func() bool {
			for len(in.got) > 0 {
				switch <-in.got {
				case "board":
					boards++
				case "stranger":
					strangers++
				}
			}
			return boards == said
		})
		if most := admissionBurst + 1 + int(took/unknownEvery) + 1; strangers > most || strangers < admissionBurst {
			t.Errorf("of %d packets of strangers %d came within %v, want %d at most", flood, strangers, took, most)
		}
		if d := conn.Drops(); d.OverRate < flood/2 || d.Overflows > 0 {
			t.Errorf("%d were dropped for their rate, and %d did not fit", d.OverRate, d.Overflows)
		}
	})
	// The program is for the sockets of the group only. Another address may have the same port, and what this board
	// forwards may be for any.
	second := netip.MustParsePrefix("10.77.0.50/24")
	a.addAddr(t, "eth0", second)
	for name, to := range map[string]netip.AddrPort{
		"another port":    netip.AddrPortFrom(a.addr, testPort+1),
		"another address": netip.AddrPortFrom(second.Addr(), testPort),
	} {
		t.Run(name, func(t *judge.T) {
			other := a.listen(t, to)
			for _, ttl := range []int{64, 255} {
				send(t, stranger, ttl, []byte("x"), to)
			}
			must(t, other.SetReadDeadline(time.Now().Add(testTimeout)))
			for range 2 {
				_, err := other.Read(make([]byte, 10))
				must(t, err)
			}
		})
	}
}

// TestAdmissionOfVLANs: the kernel takes the tag of a VLAN off a frame before the program sees it. What is for a VLAN is for another
// interface, and may be of another group. Tag 0 says no more than a priority, and the frame is for the interface itself.
func TestAdmissionOfVLANs(t *testing.T) { judge.RunTogether(t, testAdmissionOfVLANs) }

func testAdmissionOfVLANs(t *judge.T) {
	l := newLAN(t, 2)
	a, b := l.boards[0], l.boards[1]
	conn := a.openAdmitting(t)
	if !conn.admission.inKernel {
		t.Skipf("the kernel attaches no program: %s", conn.Unlimited())
	}
	t.Cleanup(func() { conn.Close() })
	var fd int
	b.do(t, func() (err error) {
		fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		return err
	})
	defer unix.Close(fd)
	say := func(tag uint16) {
		t.Helper()
		frame := taggedFrame(tag, b.link(t, "eth0").HardwareAddr, ofGroup(testTag+1, 40))
		must(t, unix.Sendto(fd, frame, 0, &unix.SockaddrLinklayer{Protocol: htons(unix.ETH_P_8021Q), Ifindex: b.link(t, "eth0").Index, Halen: 6}))
	}
	eventually(t, "a frame with a priority is dropped", func() bool { say(0); return conn.Drops().OtherGroup > 0 })
	want := conn.Drops()
	for range 20 {
		say(10)
	}
	say(0) // the last one
	want.OtherGroup++
	eventually(t, "the last one is dropped", func() bool { return conn.Drops().OtherGroup >= want.OtherGroup })
	assert.Equal(t, want, conn.Drops(), "drops")
}

// taggedFrame is an Ethernet frame with a tag (IEEE 802.1Q) and a datagram for the group.
func taggedFrame(tag uint16, from net.HardwareAddr, payload []byte) []byte {
	group := testGroup.Addr().As4()
	frame := append([]byte{1, 0, 0x5e, group[1] & 0x7f, group[2], group[3]}, from...)
	frame = append(frame, 0x81, 0, byte(tag>>8), byte(tag), 8, 0)
	ip := append([]byte{0x45, 0, 0, byte(28 + len(payload)), 0, 0, 0x40, 0, wire.TTL, unix.IPPROTO_UDP, 0, 0, 10, 77, 0, 2}, group[:]...)
	sum := uint32(0)
	for two := range slices.Chunk(ip, 2) {
		sum += uint32(binary.BigEndian.Uint16(two))
	}
	binary.BigEndian.PutUint16(ip[10:], ^uint16(sum+sum>>16))
	frame = append(frame, ip...)
	frame = binary.BigEndian.AppendUint16(frame, testGroup.Port())
	frame = binary.BigEndian.AppendUint16(frame, testGroup.Port())
	frame = binary.BigEndian.AppendUint16(frame, uint16(8+len(payload)))
	return append(append(frame, 0, 0), payload...) // without a checksum
}

// TestOverflow: what finds no room in a socket is counted, from when a Conn is opened.
func TestOverflow(t *testing.T) {
	a, b := loopbackPair(t) // nobody reads b
	assert.Is(t, uint64(0), b.Drops().Overflows, "lost before anything was sent")
	packet := make([]byte, wire.MaxPacket)
	const sent = 2000
	for range sent {
		must(t, a.Unicast(packet, b.self))
	}
	lost := b.Drops().Overflows
	if lost < sent/2 || lost >= sent {
		t.Errorf("%d of %d did not fit", lost, sent)
	}
	assert.Is(t, lost, b.Drops().Overflows, "lost, when it is asked again")
}
