package soak

import (
	"net/netip"
	"testing"
	"time"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/cluster"
	"topdog/internal/lab/judge"
	"topdog/internal/lab/scene"
)

// A place sees who answers at the address, and that two do. One at the ports sees it of a board
// that the switch has cut off, and one at a machine does not.
func TestPlaces(t *testing.T) { judge.Run(t, testPlaces) }

func testPlaces(t *judge.T) {
	s := &session{groups: true} // so that all addresses are asked for
	var err error
	s.Cluster, err = cluster.NewWithIPv6(numBoards + 1)
	assert.NoError(t, err)
	defer s.Close()
	machine, ports := &place{}, &place{}
	defer machine.close()
	defer ports.close()
	for n := 1; n <= numBoards; n++ {
		b, err := s.NewTopdog(cluster.Program{}, n, nil)
		assert.NoError(t, err)
		s.Boards = append(s.Boards, b)
		assert.NoError(t, ports.atPort(b, s.addresses()))
	}
	assert.NoError(t, machine.atMachine(0, s.LAN.Board(numBoards+1), s.Boards, s.addresses()))

	for _, a := range s.addresses() {
		s.seeAt(t, netip.PrefixFrom(a.address, a.address.BitLen()), machine, ports)
	}
}

// seeAt has boards take an address and let go of it, and wants the places to see that.
func (s *session) seeAt(t *judge.T, address netip.Prefix, machine, ports *place) {
	t.Helper()
	// see returns the boards that answer at a place, and for how long two do.
	see := func(p *place) (boards map[int]bool, two time.Duration) {
		const while, onItsWay = 100 * time.Millisecond, 20 * time.Millisecond
		<-time.After(onItsWay) // what was answered before the last change
		p.take()
		<-time.After(while)
		spans := p.take()[address.Addr()]
		boards = map[int]bool{}
		for _, s := range spans {
			boards[s.Board] = true
		}
		return boards, longestOverlap(spans).duration()
	}
	expect := func(when string, p *place, two bool, want ...int) {
		t.Helper()
		got, overlap := see(p)
		same := len(got) == len(want)
		for _, n := range want {
			same = same && got[n]
		}
		if !same || two != (overlap > 0) {
			t.Errorf("%v, %s: %v answer, two for %v; want %v", address, when, got, overlap, want)
		}
	}
	expect("nobody has it", machine, false)
	assert.NoError(t, s.Boards[1].AddAddress(address))
	expect("one has it", machine, false, 2)
	expect("one has it, at the ports", ports, false, 2)
	assert.NoError(t, s.Boards[0].AddAddress(address))
	expect("two have it", machine, true, 1, 2)
	expect("two have it, at the ports", ports, true, 1, 2)
	assert.NoError(t, s.Filter([]scene.Filter{{From: []int{2}}, {To: []int{2}}}))
	expect("one of them is cut off", machine, false, 1)
	expect("one of them is cut off, at the ports", ports, true, 1, 2)
	assert.NoError(t, s.Filter(nil))
	assert.NoError(t, s.Boards[0].DeleteAddress(address))
	expect("one has let go", machine, false, 2)
	assert.NoError(t, s.Boards[1].DeleteAddress(address))
}
