package netns

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"topdog/internal/lab/assert"
)

// The floating address of these tests.
var (
	vip   = netip.MustParseAddr("10.77.0.100")
	vip32 = netip.PrefixFrom(vip, 32)
)

// timeout is how long a test waits for something that must happen. On a
// healthy machine everything here takes a few milliseconds.
const timeout = 10 * time.Second

// roleVariable makes the test binary play a part in a test instead of
// running the tests.
const roleVariable = "TOPDOG_LAB_TEST_ROLE"

func TestMain(m *testing.M) {
	role, ok := os.LookupEnv(roleVariable)
	if !ok {
		os.Exit(m.Run())
	}
	if err := play(role); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// play is the life of a helper process.
func play(role string) error {
	switch role {
	case "address": // Says which addresses it sees.
		addrs, err := net.InterfaceAddrs()
		fmt.Println(addrs)
		return err
	case "sleeper": // Does nothing until it is killed.
		fmt.Println("ready")
		ignored := make(chan os.Signal, 1)
		signal.Notify(ignored, syscall.SIGTERM)
		for range ignored {
		}
		return nil
	case "parent": // Leaves a child of its own behind.
		child := exec.Command("/proc/self/exe")
		child.Env = append(os.Environ(), roleVariable+"=sleeper")
		child.Stdout = os.Stdout
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := child.Start(); err != nil {
			return err
		}
		fmt.Println(child.Process.Pid)
		return play("sleeper")
	case "crasher": // Has a LAN with a process in it, to be killed.
		l, err := New(1)
		if err != nil {
			return err
		}
		p, err := l.Board(1).Start(context.Background(), "/proc/self/exe", nil, as("sleeper"))
		if err != nil {
			return err
		}
		fmt.Println(p.PID)
		return play("sleeper")
	}
	return fmt.Errorf("unknown role %q", role)
}

// as makes a started test binary play a role.
func as(role string) StartOption { return Env(roleVariable + "=" + role) }

// skipUnlessAvailable skips a test where a LAN can't be built. A user of this
// package skips for whatever reason Available has; its own tests must not take
// a fault of the package for a reason.
func skipUnlessAvailable(t testing.TB) {
	t.Helper()
	switch err := Available(); {
	case err == nil:
	case os.Geteuid() != 0, errors.Is(err, unix.EPERM), errors.Is(err, unix.EOPNOTSUPP):
		t.Skip(err)
	default:
		t.Fatal(err)
	}
}

// newLAN builds a LAN for one test.
func newLAN(t testing.TB, boards int) *LAN {
	t.Helper()
	ReserveTogether(t)
	return buildLAN(t, boards)
}

// buildLAN builds one beside others of the same test.
func buildLAN(t testing.TB, boards int) *LAN {
	t.Helper()
	l, err := New(boards)
	assert.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, l.Close()) })
	return l
}

var must = assert.NoError

func withTimeout(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	t.Cleanup(cancel)
	return ctx
}

// listen opens a UDP socket on a host.
func listen(t testing.TB, h *Host) *net.UDPConn {
	t.Helper()
	var conn *net.UDPConn
	must(t, h.Do(func() (err error) {
		conn, err = net.ListenUDP("udp4", &net.UDPAddr{Port: 9254})
		return err
	}))
	t.Cleanup(func() { conn.Close() })
	return conn
}

// say sends a text from a host to an address.
func say(t testing.TB, from *Host, to netip.Addr, text string) {
	t.Helper()
	must(t, from.Do(func() error {
		conn, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(to, 9254)))
		if err != nil {
			return err
		}
		defer conn.Close()
		_, err = conn.Write([]byte(text))
		return err
	}))
}

// hear returns the next text that arrives, and its sender.
func hear(t testing.TB, conn *net.UDPConn) (string, netip.Addr) {
	t.Helper()
	must(t, conn.SetReadDeadline(time.Now().Add(timeout)))
	buf := make([]byte, 200)
	n, from, err := conn.ReadFromUDPAddrPort(buf)
	must(t, err)
	return string(buf[:n]), from.Addr()
}

func TestNumberOfBoards(t *testing.T) {
	for _, boards := range []int{0, maxBoards + 1} {
		if l, err := New(boards); err == nil {
			t.Errorf("a LAN of %d boards was built", boards)
			l.Close()
		}
	}
}

func TestMulticast(t *testing.T) {
	l := newLAN(t, 3)
	group := netip.MustParseAddr("224.0.0.254")
	var conns []*net.UDPConn
	for n := 2; n <= 3; n++ {
		must(t, l.Board(n).Do(func() error {
			eth0, err := net.InterfaceByName("eth0")
			if err != nil {
				return err
			}
			c, err := net.ListenMulticastUDP("udp4", eth0, &net.UDPAddr{IP: group.AsSlice(), Port: 9254})
			conns = append(conns, c)
			return err
		}))
	}
	must(t, l.Board(1).Do(func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		// Without a default route the interface must be named.
		if err := unix.SetsockoptInet4Addr(fd, unix.IPPROTO_IP, unix.IP_MULTICAST_IF, l.Board(1).Addr.Addr().As4()); err != nil {
			return err
		}
		return unix.Sendto(fd, []byte("to all"), 0, &unix.SockaddrInet4{Port: 9254, Addr: group.As4()})
	}))
	for _, c := range conns {
		if text, from := hear(t, c); text != "to all" || from != l.Board(1).Addr.Addr() {
			t.Errorf("heard %q from %s", text, from)
		}
		c.Close()
	}
}

func TestIdentity(t *testing.T) {
	l := newLAN(t, 2)
	type identity struct{ Name, MAC, Addr string }
	var got []identity
	for _, h := range []*Host{l.Board(1), l.Board(2), l.Client()} {
		eth0, err := h.nl.LinkByName(h.Interface)
		must(t, err)
		addrs, err := h.Addresses()
		must(t, err)
		got = append(got, identity{h.Name, eth0.Attrs().HardwareAddr.String(), fmt.Sprint(addrs)})
		if !slices.Equal(eth0.Attrs().HardwareAddr, h.HardwareAddr) || !slices.Equal(addrs, []netip.Prefix{h.Addr}) {
			t.Errorf("%s is described wrongly: %+v", h.Name, h)
		}
	}
	want := []identity{
		{"board1", "02:00:00:00:00:01", "[10.77.0.1/24]"},
		{"board2", "02:00:00:00:00:02", "[10.77.0.2/24]"},
		{"client", "02:00:00:00:00:c8", "[10.77.0.200/24]"},
	}
	assert.Equal(t, want, got, "")
}

// Two labs with the same addresses must not see each other.
func TestSeveralAtATime(t *testing.T) {
	ReserveTogether(t)
	for _, text := range []string{"first", "second"} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			l := buildLAN(t, 2)
			conn := listen(t, l.Board(2))
			for range 20 {
				say(t, l.Board(1), l.Board(2).Addr.Addr(), text)
				if got, _ := hear(t, conn); got != text {
					t.Fatalf("heard %q", got)
				}
			}
		})
	}
}

func TestDo(t *testing.T) {
	l := newLAN(t, 1)
	outside, err := netns.Get()
	must(t, err)
	defer outside.Close()
	must(t, l.Board(1).Do(func() error {
		inside, err := netns.Get()
		if err != nil {
			return err
		}
		defer inside.Close()
		if !inside.Equal(l.Board(1).ns) || inside.Equal(outside) {
			t.Errorf("Do ran in %s, not in %s", inside, l.Board(1).ns)
		}
		if unix.Gettid() == unix.Getpid() {
			t.Error("Do ran on the main thread, which would never end")
		}
		return nil
	}))
	assert.ErrorIs(t, l.Board(1).Do(func() error { return io.EOF }), io.EOF, "the error of the function")
	// The process itself must never wander into a namespace of the lab.
	main, err := netns.GetFromPid(os.Getpid())
	must(t, err)
	defer main.Close()
	if !main.Equal(outside) {
		t.Errorf("the main thread is in %s", main)
	}
}

// After Close no descriptor and no thread of this process may hold on to one
// of the namespaces: the kernel can free them then.
func TestCloseFreesTheNamespaces(t *testing.T) {
	l := newLAN(t, 2)
	_, err := l.WatchHolders(vip)
	must(t, err)
	p, err := l.Ask(vip, time.Millisecond)
	must(t, err)
	ours := make(map[string]bool)
	for _, ns := range l.namespaces() {
		name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", int(ns)))
		must(t, err)
		ours[name] = true
	}
	if len(ours) != 4 {
		t.Fatalf("%d namespaces, want 4", len(ours))
	}
	must(t, l.Close())
	must(t, l.Close())
	p.Close()

	references := func() (list []string) {
		for _, dir := range []string{"/proc/self/fd/", "/proc/self/task/"} {
			entries, err := os.ReadDir(dir)
			must(t, err)
			for _, e := range entries {
				path := dir + e.Name()
				if dir == "/proc/self/task/" {
					path += "/ns/net"
				}
				if name, err := os.Readlink(path); err == nil && ours[name] {
					list = append(list, path)
				}
			}
		}
		return list
	}
	// A thread ends a moment after its goroutine.
	deadline := time.Now().Add(timeout)
	for list := references(); len(list) > 0; list = references() {
		if time.Now().After(deadline) {
			t.Fatalf("still refer to the lab: %v", list)
		}
		tick := time.NewTimer(time.Millisecond)
		<-tick.C
	}
	if _, err := l.Ask(vip, time.Millisecond); err == nil {
		t.Error("a closed lab started to ask")
	}
	if err := l.Board(1).Do(func() error { return nil }); err == nil {
		t.Error("a closed lab ran a function")
	}
	if err := l.Board(1).Pull(); err == nil {
		t.Error("a closed lab pulled a cable")
	}
}

// announce sends a gratuitous ARP request from a board (RFC 5227, 2.3).
func announce(t testing.TB, h *Host, addr netip.Addr) {
	t.Helper()
	must(t, h.Do(func() error {
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		eth0, err := netlink.LinkByName(h.Interface)
		if err != nil {
			return err
		}
		frame := []byte{0, 1, 8, 0, 6, 4, 0, 1}
		frame = append(frame, h.HardwareAddr...)
		frame = append(frame, addr.AsSlice()...)
		frame = append(frame, 0, 0, 0, 0, 0, 0)
		frame = append(frame, addr.AsSlice()...)
		return unix.Sendto(fd, frame, 0, &unix.SockaddrLinklayer{
			Protocol: 0x0608, // ETH_P_ARP in network byte order
			Ifindex:  eth0.Attrs().Index,
			Halen:    6,
			Addr:     [8]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		})
	}))
}
