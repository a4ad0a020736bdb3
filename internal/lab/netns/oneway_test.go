package netns

import (
	"net"
	"testing"
	"time"

	"topdog/internal/lab/assert"
)

// TestOneWay holds that a deaf host is heard and hears nothing, and that a mute one hears.
func TestOneWay(t *testing.T) {
	ReserveTogether(t)
	l, err := New(2)
	must(t, err)
	defer l.Close()
	one, other := l.Board(1), l.Board(2)
	listen := func(h *Host) *net.UDPConn {
		conn, err := Within(h, func() (*net.UDPConn, error) {
			return net.ListenUDP("udp4", &net.UDPAddr{IP: h.Addr.Addr().AsSlice(), Port: 9})
		})
		must(t, err)
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	a, b := listen(one), listen(other)
	// passes sends a packet each way, and tells which arrived. The kernel carries them while it is called; what
	// does arrive needs no time at all.
	passes := func() (got [2]bool) {
		for i, way := range [][2]*net.UDPConn{{a, b}, {b, a}} {
			_, err := way[0].WriteTo([]byte{1}, way[1].LocalAddr())
			must(t, err)
			must(t, way[1].SetReadDeadline(time.Now().Add(50*time.Millisecond)))
			_, err = way[1].Read(make([]byte, 2))
			got[i] = err == nil
		}
		return got
	}
	expect := func(what string, want [2]bool) {
		t.Helper()
		assert.Equal(t, want, passes(), "%s: from and to board 1", what)
	}
	expect("at first", [2]bool{true, true})
	must(t, one.Deafen(true))
	expect("deaf", [2]bool{true, false})
	must(t, one.Silence(true))
	expect("deaf and mute", [2]bool{false, false})
	must(t, one.Deafen(false))
	expect("mute", [2]bool{false, true})
	must(t, one.Silence(false))
	expect("again", [2]bool{true, true})
}
