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
	index, mac, err := again.Bridge()
	must(t, err)
	var inside []net.Interface
	must(t, again.Do(func() (err error) {
		inside, err = net.Interfaces()
		return err
	}))
	found := map[string]int{}
	for _, i := range inside {
		found[i.Name] = i.Index
	}
	if found["br0"] != index || found["tap3"] == 0 || len(mac) != 6 {
		t.Errorf("inside are %v; the bridge is %d, %s", found, index, mac)
	}
}

// A machine is on another part while the segment is split, also for a program that opens it then.
func TestSegmentSplit(t *testing.T) {
	s := newSegment(t)
	for n := 1; n <= 2; n++ {
		_, err := s.Tap(n)
		must(t, err)
	}
	opened, err := OpenSegment(s.name)
	must(t, err)
	defer opened.Close()
	for _, test := range []struct {
		name string
		do   func() error
		want [2]int // the parts of tap1 and tap2
	}{
		{"whole", func() error { return nil }, [2]int{0, 0}},
		{"split", func() error { return s.Split(2) }, [2]int{0, 1}},
		{"split by another program", func() error { return opened.Split(1) }, [2]int{1, 1}},
		{"joined", func() error { return errors.Join(opened.Join(2), s.Join(1)) }, [2]int{0, 0}},
	} {
		t.Run(test.name, func(t *testing.T) {
			must(t, test.do())
			parts, mac, err := opened.Bridges()
			must(t, err)
			if len(mac) != 6 {
				t.Errorf("the hardware address is %s", mac)
			}
			for i, want := range test.want {
				link, err := s.fabric.nl.LinkByName(tapName(i + 1))
				must(t, err)
				assert.Is(t, parts[want], link.Attrs().MasterIndex, "the bridge of %s, of %v", tapName(i+1), parts)
			}
		})
	}
	if err := s.Split(3); err == nil {
		t.Error("a machine without a cable was moved")
	}
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
	s, err := l.Segment(netip.PrefixFrom(nthAddress(254).Addr(), Subnet.Bits()))
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
