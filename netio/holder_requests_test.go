package netio

import (
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"topdog/internal/lab/assert"
	"topdog/wire"
)

// FuzzRequests is a daemon that was taken over, and asks a holder for anything. The interface of the holder's configuration
// does not exist, so that nothing of this machine is changed.
func FuzzRequests(f *testing.F) {
	for asked := askFence; asked <= askPing; asked++ {
		f.Add([]byte{byte(asked)})
	}
	for _, request := range []struct {
		asked holderRequest
		body  any
	}{
		{askSideSocket, nil},
		{askCover, coverRequest{[]int{1, 2}}},
		{askSockets, socketsRequest{"none0", netip.MustParseAddr("10.77.0.1")}},
		{askFloating, floatingRequest{"none0", []netip.Prefix{netip.PrefixFrom(testVIP, 24)}}},
		{askFloating, floatingRequest{"none0", []netip.Prefix{netip.MustParsePrefix("8.8.8.8/24")}}},
		{askResign, PreparedResign{[]byte{0, 0, 0}, []netip.AddrPort{wire.DefaultGroup}}},
		{askARP, openARPRequest{1}},
		{askAnnounce, nil},
		{askProbe, probeRequest{testVIP, ProbeCount, time.Millisecond}},
		{askLAN, lanRequest{Doubt: Doubt{[]ARPQuestion{{testVIP, net.HardwareAddr{2, 0, 0, 0, 0, 1}, true}}, 1, []netip.Addr{testVIP}}}},
		{askLAN, lanRequest{Resolve: testVIP}},
		{askLAN, lanRequest{Calm: true}},
		{askWatch, AddressWatch{testVIP, net.HardwareAddr{2, 0, 0, 0, 0, 1}, 10 * time.Millisecond}},
		{askWatch, AddressWatch{}},
		{askARP, openARPRequest{}},
		{askGateway, gatewayRequest{"none0", time.Millisecond}},
	} {
		body, err := encode(request.body)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(append([]byte{byte(request.asked)}, body...))
	}
	options := HolderOptions{
		Interface: "none0", Floating: []netip.Addr{testVIP}, Group: wire.DefaultGroup, Tag: testTag, Method: HoldLifetime,
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		if len(message) > 0 && holderRequest(message[0]) == askFence {
			return // it makes one, which is slow, and reads nothing
		}
		h := newSession(options, new(boardSockets).of(0))
		defer h.idle.Stop()
		var files []int
		_, given, err := h.handle(message, &files)
		if err == nil && len(given) > 0 {
			t.Errorf("%d files are given", len(given))
		}
		if h.floating != nil { // prepared, and nothing more
			must(t, h.floating.Close())
		}
		if h.announcer != nil || len(h.sockets.files()) > 0 {
			t.Error("something was opened on an interface that is not there")
		}
		// What passes the check can be asked.
		var r lanRequest
		if len(message) > 0 && decode(message[1:], &r) == nil && r.check() == nil {
			a := &Announcer{announcers: map[netip.Addr]hardwareAddr{testVIP: broadcast}}
			for _, q := range a.addressed(r.Questions) {
				request(testVIP, q.Addr.Unmap()).append(nil)
			}
			_, _ = bpf.Assemble(foreignFilter(broadcast, r.Ignored))
		}
	})
}

// TestSpeaksByNoOtherSocket: a holder answers only by what may be an end of a connection to a daemon.
func TestSpeaksByNoOtherSocket(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	must(t, err)
	defer closeAll(pair[:1])
	h := ownSession()
	defer h.idle.Stop()
	err = h.addSideSocket(&[]int{pair[1]})
	assert.ErrorContains(t, err, "is no Unix socket that keeps", "a datagram socket as a side socket")

	ours, theirs, err := newConnection()
	must(t, err)
	side := os.NewFile(uintptr(theirs), "side socket")
	defer side.Close()
	must(t, sendMessage(ours, []byte{byte(askPing)}, pair[1]))
	unix.Close(pair[1])
	unix.Close(ours)
	h.serveSideSocket(side)
	h.workers.Wait()
	if message, _, err := receiveMessage(pair[0], make([]byte, maxAnswerBytes)); err == nil {
		t.Errorf("the holder says %q by a datagram socket", message)
	}
}
