package sim

import (
	"slices"

	"topdog/election"
	"topdog/internal/lab/scene"
	"topdog/wire"
)

// askLAN is what a board asks by ARP: the address of the leader that it suspects, and the
// witness. That is a router, which filters call scene.Client, and which every board reaches whose port lets frames through.
func (b *Board) askLAN(suspect wire.ID) {
	s := b.sim
	s.trace(b, EventAddress, "asks the LAN")
	if !b.plugged || b.unheard() {
		return
	}
	askedAt, core := b.local(), b.core
	ask := func(other *Board, receive func() []election.Effect) { // nil is the witness
		s.At(s.delay(), func() {
			if other != nil && !(other.answersARP() && s.carries(b, other, false)) {
				return
			}
			s.At(s.delay(), func() {
				if b.core == core && b.plugged && !b.deaf() && (other == nil || s.reaches(other, b)) {
					b.run(func() { b.act(receive()) })
				}
			})
		})
	}
	if !lost(s.leaving, scene.Client, b.machine, false) {
		ask(nil, func() []election.Effect { return core.Evidence(b.local()) })
	}
	if owner := s.peers[suspect]; owner != nil {
		ask(owner, func() []election.Effect { return core.AddressAnswered(b.local(), askedAt) })
	}
}

// findsHolder reports whether another board answers this one, which asks all by ARP who has the floating address.
func (b *Board) findsHolder() bool {
	return b.plugged && slices.ContainsFunc(b.sim.boards, func(other *Board) bool {
		return other != b && other.answersARP() && b.sim.inTouch(b, other)
	})
}

// answersARP reports whether the kernel of the board answers for the floating address. It
// does so whether the daemon runs or not.
func (b *Board) answersARP() bool { return b.Answers() && b.plugged }
