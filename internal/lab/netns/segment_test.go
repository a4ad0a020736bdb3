package netns

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"topdog/internal/lab/assert"
)

var segmentHost = netip.MustParsePrefix("10.99.0.254/24")

// newSegment builds a segment with a name that nothing else has.
func newSegment(t *testing.T) *Segment {
	t.Helper()
	ReserveTogether(t)
	s, err := NewSegment(fmt.Sprintf("topdog-test-%d", os.Getpid()), segmentHost)
	must(t, err)
	t.Cleanup(func() {
		if err := s.Delete(); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	})
	return s
}

// A segment can be opened by its name, and what one has made the other sees.
func TestSegmentOutlivesItsMaker(t *testing.T) {
	s := newSegment(t)
	name, err := s.Tap(3)
	must(t, err)
	assert.Is(t, "tap3", name, "the tap device")
	s.Close()

	again, err := OpenSegment(s.name)
	must(t, err)
	defer again.Close()
	_, err = again.Tap(3)
	assert.ErrorIs(t, err, nil, "the tap device that is there")
	must(t, again.Plug(name, false))
	if again.Plugged(name) {
		t.Error("the cable is in that was pulled")
	}
	must(t, again.Plug(name, true))
	if !again.Plugged(name) {
		t.Error("the cable is out that was plugged in")
	}
	var inside []net.Interface
	must(t, again.Do(func() (err error) {
		inside, err = net.Interfaces()
		return err
	}))
	found := map[string]int{}
	for _, i := range inside {
		found[i.Name] = i.Index
	}
	if found["br0"] == 0 || found["tap3"] == 0 {
		t.Errorf("inside are %v", found)
	}
}

// A segment is filtered, whichever program does it, and this machine reaches all machines on it nevertheless.
func TestSegmentFilter(t *testing.T) {
	l := newLAN(t, 2)
	s, err := l.Segment(netip.PrefixFrom(nthAddress(Subnet, 254).Addr(), Subnet.Bits()))
	must(t, err)
	must(t, s.Filter(Filter{}))
	one, two := l.Board(1), l.Board(2)
	ear := listen(t, two)
	say(t, one, two.Addr.Addr(), "nobody hears this")
	must(t, s.Do(func() error {
		conn, err := net.Dial("udp4", netip.AddrPortFrom(two.Addr.Addr(), 9254).String())
		if err == nil {
			_, err = conn.Write([]byte("from the switch"))
			conn.Close()
		}
		return err
	}))
	got, _ := hear(t, ear)
	assert.Is(t, "from the switch", got, "heard")

	named := newSegment(t)
	opened, err := OpenSegment(named.name)
	must(t, err)
	defer opened.Close()
	must(t, named.Filter(Cut(TapPort(1))...))
	must(t, opened.Filter(Cut(TapPort(2))...))
	must(t, opened.Filter())
	must(t, named.Filter())
}

func TestSegmentNames(t *testing.T) {
	s := newSegment(t)
	_, err := NewSegment(s.name, segmentHost)
	assert.ErrorIs(t, err, fs.ErrExist, "a second one of the same name")
	must(t, s.Delete())
	_, err = OpenSegment(s.name)
	assert.ErrorIs(t, err, fs.ErrNotExist, "open a deleted one")
	_, err = os.Stat(filepath.Join(namedNamespaces, s.name))
	assert.ErrorIs(t, err, fs.ErrNotExist, "its name")
}

// The machine restarts, and the files on which namespaces were mounted stay.
func TestSegmentNameOfBeforeARestart(t *testing.T) {
	ReserveTogether(t)
	name := fmt.Sprintf("topdog-left-%d", os.Getpid())
	path := filepath.Join(namedNamespaces, name)
	must(t, os.MkdirAll(namedNamespaces, 0o755))
	must(t, os.WriteFile(path, nil, 0o444))
	defer os.Remove(path)
	_, err := OpenSegment(name)
	assert.ErrorIs(t, err, fs.ErrNotExist, "open a left-over file")
	s, err := NewSegment(name, segmentHost)
	must(t, err)
	must(t, s.Delete())
}

// Go runs in the segment, and says when it is over.
func TestSegmentGo(t *testing.T) {
	s := newSegment(t)
	done := make(chan error)
	s.Go(func() error {
		_, err := net.InterfaceByName("br0")
		return err
	}, func(err error) { done <- err })
	must(t, <-done)
}

// A segment of a LAN is its switch: this machine reaches the LAN's boards there. It ends with the LAN.
func TestSegmentOfLAN(t *testing.T) {
	l := newLAN(t, 1)
	s, err := l.Segment(netip.PrefixFrom(nthAddress(Subnet, 254).Addr(), Subnet.Bits()))
	must(t, err)
	board := l.Board(1)
	listener, err := Within(board, func() (net.Listener, error) { return net.Listen("tcp", board.Addr.Addr().String()+":0") })
	must(t, err)
	defer listener.Close()
	must(t, s.Do(func() error {
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err == nil {
			err = conn.Close()
		}
		return err
	}))
	must(t, l.Close())
	s.Close()
	if err := s.Do(func() error { return nil }); err == nil {
		t.Error("the segment is there without its LAN")
	}
}
